(ns paged
  "Lists in pages.")

(defn page
  "The page of this number, from 0."
  [number size items]
  (vec (take size (drop (* number size) items))))
