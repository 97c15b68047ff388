; Arithmetic folds from the left; small literals are operands of comparisons.
(defn area [w h] (* w h))
(defn f [a b] (if (< a 10) (+ a b 1) (- (* a b) (inc b))))
(defn g [a b] [(> a b) (>= a b) (not= a b) (not (= a 1)) (nil? a) (some? b)])
