(letfn [(even [n] (if (zero? n) true (odd (dec n))))
        (odd [n] (if (zero? n) false (even (dec n))))]
  (even 3))
(letfn [f [x] x] (f 1))
(dotimes [[a] 3] a)
(dotimes 3)
(doto)
