; A builtin that the program redefines is looked up at run time.
(def total 5)
(defn inc [x] (+ x total))
(defonce once (inc 1))
(map inc [1 2])
(or missing total)
(or late 1)
(defn later [] (def late 2))
