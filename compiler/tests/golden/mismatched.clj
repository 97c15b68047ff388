(defn f [x] (+ x 1])
