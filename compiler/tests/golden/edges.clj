; A local that only one branch reads is dropped on the way to the other.
(defn f [a b c] (if a (str b) (str c)))
(defn g [a b] (cond (= a 1) b (= a 2) [a b] :else nil))
(defn h [a b] (and a (str b) (or b a)))
(defn k [a b c] (if (and a (or b (nil? c))) [b c] a))
(defn m [a b] (case a 1 b (2 :x) [b b] "s" nil a))
