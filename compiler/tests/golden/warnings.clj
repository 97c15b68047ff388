(defn two [a b] [a b])
(when data/x (two 1) (inc 1 2))
(if true 1 2))
