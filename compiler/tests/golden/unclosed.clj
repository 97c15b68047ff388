(defn f [x]
  (let [y 1
    (+ x y)
