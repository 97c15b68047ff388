//! Functions of one operation are computed inline, and a reduction calls its function again in the same window;
//! programs cannot observe it.

use crate::properties::cases::{Case, ends_as_said, fuel_runs_out_anywhere};

const CASES: &[Case] = &[
    ("(defn square [x] (* x x)) (+ (square 3) (square -4))", "25"),
    ("(defn less [a b] (- a b)) [(less 5 7) (less 7 5)]", "[-2 2]"),
    ("(defn next [n] (inc n)) (next (next 1))", "3"),
    ("(let [f (fn [x] (mod x 7))] [(f 15) (f -1)])", "[1 6]"),
    ("(let [f (fn [x] (mod 15 x))] [(f 7) (f -4)])", "[1 -1]"),
    ("(defn times [k] (fn [x] (* x k))) ((times 3) ((times 4) 5))", "60"),
    ("(let [f (fn [x] (+ x 1000000))] (f (f 1)))", "2000001"),
    ("(let [f (fn [x] (- 10 x))] (f 3))", "7"),
    ("(let [f (fn [a b] (+ a a))] (f 2 [1]))", "4"),
    ("((comp (fn [x] (mod x 10)) (fn [x] (* x 3))) 7)", "1"),
    ("(let [k 3 f (comp #(+ % k) #(* % %) inc)] (map f (range 4)))", "[4 7 12 19]"),
    ("(let [f (comp #(* % 2) :a)] (f {:a 4}))", "8"),
    ("(let [f (comp #(* % 2) (fn [x] (if (> x 1) x 0)))] [(f 1) (f 2)])", "[0 4]"),
    ("(let [f (comp #(* % 2) #(+ %1 %2))] (f 1 2))", "6"),
    ("(let [f (comp)] (f 1))", "1"),
    // Operands other than integers in range take a frame.
    ("(defn square [x] (* x x)) [(square 1.5) (square 4000000000)]", "[2.25 16000000000000000000]"),
    ("(let [f (comp #(* % 4) #(* % 3))] [(f 1.5) (f 4611686018427387904)])", "[18.0 55340232221128654848]"),
    ("(defn half [k] (fn [x] (* x k))) ((half 0.5) 3)", "1.5"),
    ("(defn square [x] (* x x)) (square \"a\")", "type_error (* x x)"),
    ("(let [f (fn [x] (mod 5 x))] (f 0))", "arithmetic_error (mod 5 x)"),
    ("(let [f (comp (fn [x] (+ x 1)) (fn [x] (mod x 0)))] (f 3))", "arithmetic_error (mod x 0)"),
    ("(map (fn [x] (* x x)) [1] [2])", "arity_mismatch (map (fn [x] (* x x)) [1] [2])"),
    ("(let [f (comp (fn [x y] (+ x y)) inc)] (f 1))", "arity_mismatch (f 1)"),
    // Branches of pmap with definitions of their own.
    ("(defn f [x] (* x 2)) (pmap (fn [n] (do (defn f [x] (* x n)) (f 5))) [1 2 3])", "[5 10 15]"),
    // Reductions.
    ("(reduce (fn [acc i] (if (> i 3) (reduced acc) (+ acc i))) 0 (range 10))", "6"),
    ("(reduce (fn [acc i] (conj acc (* i i))) [] (range 4))", "[0 1 4 9]"),
    ("(reduce (fn [acc i] i) 0 [1 [2] {:a 3}])", "{:a 3}"),
    ("(reduce (fn [acc i] acc) [7] (range 3))", "[7]"),
    ("(reduce (fn [acc i] (+ acc i 0.5)) 0 (range 3))", "4.5"),
    ("(reduce (fn [acc i] (if acc (= i acc) nil)) 0 [0 true])", "true"),
    ("(reduce (fn [& xs] (apply + xs)) 0 (range 4))", "6"),
    ("(reduce (fn ([] 9) ([a b] (+ a b))) 0 (range 4))", "6"),
    ("(reduce (fn ([a b] (+ a b)) ([a] a)) (range 5))", "10"),
    ("(reductions (fn [acc i] (+ acc i)) 0 (range 4))", "[0 0 1 3 6]"),
    ("(let [xs [1 2 3]] [(reduce (fn [a b] (* a (+ b 1))) 1 (rest xs)) xs])", "[12 [1 2 3]]"),
    ("(reduce (fn [acc i] (+ acc (mod 6 i))) 0 [4 0])", "arithmetic_error (mod 6 i)"),
    (
        "(defn modulo [k] (fn [x] (mod x k))) (let [f (comp (modulo 97) #(* % 3))] \
      (reduce (fn [acc i] (f (+ acc i))) 0 (range 20)))",
        "86",
    ),
];

#[test]
fn nobody_can_tell() {
    ends_as_said(CASES);
}

#[test]
fn fuel_ends_at_the_same_place() {
    fuel_runs_out_anywhere(CASES);
}
