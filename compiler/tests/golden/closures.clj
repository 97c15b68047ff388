; Captures are flat; a named function refers to itself without capturing itself.
(defn adder [n] (fn [x] (+ x n)))
(defn deep [a] (fn [b] (fn [c] [a b c])))
(def fact (fn self [n] (if (< n 2) 1 (* n (self (dec n))))))
(defn both ([a] (both a 1)) ([a b & more] [a b more]))
(map #(vector % %2 %&) [1] [2])
