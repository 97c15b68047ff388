(defn steps [n]
  (dotimes [i n] (println i))
  (doto {:n n} println (println "twice"))
  (letfn [(down [x] (if (zero? x) (end) (down (dec x))))
          (end [] :end)]
    (down n)))
(first (iterate inc (steps 2)))
