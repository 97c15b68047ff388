(defn f [{:keys [name age] :or {age 1} :as m} [a b & more]] [name age m a b more])
(let [{x "x" [p q] :pair} data/row] [x p q])
