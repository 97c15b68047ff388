//! Functions that only forward to a builtin run without a frame, and count in place; programs cannot observe it.

use crate::properties::cases::{Case, ends_as_said, fuel_runs_out_anywhere};

const CASES: &[Case] = &[
    (r#"(reduce (fn [m w] (update m w (fnil inc 0))) {} ["a" "b" "a" "a"])"#, r#"{"a" 3 "b" 1}"#),
    (r#"(reduce (fn [m w] (update m w inc)) {:a 1} [:a :a])"#, "{:a 3}"),
    (r#"(reduce (fn [m w] (update m w dec)) {"a" 1} (map str ["a" "a"]))"#, r#"{"a" -1}"#),
    (
        r#"(reduce (fn [m w] (update m (:k w) (fnil inc 5))) {} [{:k 1} {:k 1} {:j 2} {:k 2.5}])"#,
        "{1 7 2.5 6 nil 6}",
    ),
    (
        r#"(reduce (fn [m w] (update m (:k w) (fnil inc 0))) {} [{:k "x"} {"k" "x"} {:k :x}])"#,
        // A keyword writes where it reads.
        r#"{"x" 3}"#,
    ),
    // The earlier map is unchanged.
    (r#"(let [m {:a 1}] [(reduce (fn [m w] (update m w inc)) m [:a :a]) m])"#, "[{:a 3} {:a 1}]"),
    (r#"(reductions (fn [m w] (update m w (fnil inc 0))) {} [:a :a])"#, "[{} {:a 1} {:a 2}]"),
    (r#"(reduce (fn [m w] (update m w inc)) {:a 9223372036854775807} [:a])"#, "{:a 9223372036854775808}"),
    (r#"(reduce (fn [m w] (update m w inc)) {:a 1.5} [:a :a])"#, "{:a 3.5}"),
    (r#"(reduce (fn [m w] (update m w (fnil inc 0))) nil [1 1 2])"#, "{1 2 2 1}"),
    (r#"(reduce (fn [m w] (update m w inc)) [1 2] [0 0 1])"#, "[3 3]"),
    (r#"(map #(str "t" %) (range 3))"#, r#"["t0" "t1" "t2"]"#),
    (r#"(filter (fn [row] (contains? #{1 2} (:id row))) [{:id 1} {:id 3} {:id 2}])"#, "[{:id 1} {:id 2}]"),
    (r#"(map (fn [row] (get row "id" :none)) [{"id" 1} {}])"#, "[1 :none]"),
    (r#"(map-indexed (fn [i x] (str i x)) ["a" "b"])"#, r#"["0a" "1b"]"#),
    (r#"(reduce-kv (fn [m k v] (assoc m v k)) {} {:a 1 :b 2})"#, "{1 :a 2 :b}"),
    (r#"(map (fn [x] (str x x)) ["a"])"#, r#"["aa"]"#),
    // Faults are located inside the function.
    (r#"(reduce (fn [m w] (update m w inc)) {} [:a])"#, "arithmetic_error (update m w inc)"),
    (r#"(reduce (fn [m w] (update m w (fnil inc 0))) 5 [:a])"#, "type_error (update m w (fnil inc 0))"),
    (
        r#"(do (defn add [m w] (update m w inc)) (reduce add {:a "x"} [:a]))"#,
        "arithmetic_error (update m w inc)",
    ),
    (r#"(map #(subs % 1) ["ab" 5])"#, "type_error #(subs % 1)"),
];

#[test]
fn nobody_can_tell() {
    ends_as_said(CASES);
}

#[test]
fn fuel_ends_at_the_same_place() {
    fuel_runs_out_anywhere(CASES);
}
