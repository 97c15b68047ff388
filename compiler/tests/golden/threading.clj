; A chain binds one register again and again; effects keep the order of nested calls.
(defn f [rows] (->> rows (filter :ok) (map :price) (reduce + 0)))
(defn g [m] (-> m (assoc :a 1) (update :b inc) :b))
(defn h [m] (some-> m :a :b (+ 1)))
(defn k [m t] (cond-> m t (assoc :t t) true (dissoc :x)))
(defn o [x] (->> x (str (tool/call 'a/b {})) (str (tool/call 'a/c {}))))
