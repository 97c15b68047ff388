; Arithmetic folds from the left; small literals are operands of comparisons.
(defn area [w h] (* w h))
(defn f [a b] (if (< a 10) (+ a b 1) (- (* a b) (inc b))))
(defn g [a b] [(> a b) (>= a b) (not= a b) (not (= a 1)) (nil? a) (some? b)])
; integer literals as operands: on either side of a product, on the right of a division
(defn scaled [x] (+ (* 7 x) (* x 7) (mod x 1000003) (quot x 9) (rem x 9) (* x 100000)))
(defn between [x] (cond (<= x 10) :low (>= x 3000000) :high (not= x 50) :other (> x 3000000000) :never))
