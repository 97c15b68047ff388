//! A loop that counts, jumps back and tests in one instruction behaves like separate instructions.

use crate::properties::cases::{Case, ends_as_said, fuel_runs_out_anywhere};

const CASES: &[Case] = &[
    ("(loop [i 0 acc 0] (if (< i 5) (recur (inc i) (+ acc i)) acc))", "10"),
    ("(loop [i 0 acc 0] (if (< i 5) (recur (+ i 2) (+ acc i)) [i acc]))", "[6 6]"),
    ("(let [n 4] (loop [i 0 acc []] (if (< i n) (recur (inc i) (conj acc i)) acc)))", "[0 1 2 3]"),
    ("(let [n 2.5] (loop [i 0 acc []] (if (< i n) (recur (inc i) (conj acc i)) acc)))", "[0 1 2]"),
    ("(loop [i 0.5 acc 0] (if (< i 3) (recur (inc i) (+ acc i)) acc))", "4.5"),
    ("(loop [i 0 n 6] (if (< i n) (recur (inc i) (dec n)) [i n]))", "[3 3]"),
    ("(loop [i 0 j 9] (if (< j 12) (recur (inc i) (inc j)) [i j]))", "[3 12]"),
    (
        "(loop [i 9223372036854775806] (if (< i 9223372036854775809) (recur (inc i)) i))",
        "9223372036854775809",
    ),
    ("(loop [i 0] (if (<= i 3) (recur (inc i)) i))", "4"),
    ("(loop [i 0] (if (< 3 i) i (recur (inc i))))", "4"),
];

#[test]
fn nobody_can_tell() {
    ends_as_said(CASES);
}

#[test]
fn fuel_ends_at_the_same_place() {
    fuel_runs_out_anywhere(CASES);
}
