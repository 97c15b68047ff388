; Loop variables stay in their registers; the last reader of a value takes it.
(defn count-down [n] (if (> n 0) (recur (dec n)) :done))
(defn sum-to [n]
  (loop [i 0 acc 0]
    (if (< i n) (recur (inc i) (+ acc i)) acc)))
(defn collect [xs]
  (loop [xs xs acc []]
    (if (empty? xs) acc (recur (rest xs) (conj acc (first xs))))))
(defn swap [n] (loop [a 1 b 2 i 0] (if (< i n) (recur b a (inc i)) [a b])))
