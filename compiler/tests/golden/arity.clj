(defn two [a b] [a b])
(map (fn [] (inc 1 2)) [1])
(defn wrong [] (two 1))
(inc 1 2)
