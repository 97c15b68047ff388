(defn f [xs ys] (for [x xs :when (odd? x) y ys :let [z (+ x y)] :while (< z 10)] [x z]))
(defn g [xs] (doseq [[k v] xs] (println k v)))
