[1 {:a [2 3] "b" #{:c}} nil]
(defn f [x] [x {:a x :b 1} #{x 2} 1e3 100000 12345678901234567890 #"a+" 'server/tool \a])
