//! Sorts are stable permutations.

use crate::properties::for_all;
use crate::properties::values::{Build, Plain, in_isolate, printed, values};
use proptest::prelude::*;
use ptc_tests::variants::{Budget, Ending, compare};
use ptc_vm::Value;
use std::cmp::Ordering;

const BUDGET: Budget = Budget { fuel: 10_000_000, memory_bytes: 64 << 20 };

/// Programs over `xs`, pairs of an item and its position, and whether they sort by the item.
const SORTS: &[(&str, bool)] = &[
    ("(sort-by first xs)", true),
    ("(sort-by (fn [x] (first x)) xs)", true),
    ("(sort-by (fn [x] (tool/echo (first x))) xs)", true),
    ("(sort-by first compare xs)", true),
    ("(sort-by (fn [x] (tool/echo (first x))) (fn [a b] (tool/echo (compare a b))) xs)", true),
    ("(sort (fn [a b] (compare (first a) (first b))) xs)", true),
    ("(sort (fn [a b] (tool/echo (compare (first a) (first b)))) xs)", true),
    ("(sort (fn [a b] (tool/echo (neg? (compare (first a) (first b))))) xs)", true),
    ("(sort-by first (fn [a b] (compare b a)) xs)", false),
    ("(sort-by first :desc xs)", false),
];

fn items() -> impl Strategy<Value = Vec<Plain>> {
    prop_oneof![
        prop::collection::vec((-3i64..4).prop_map(Plain::Int), 0..70),
        prop::collection::vec(values(), 0..12),
        prop::collection::vec(
            prop::sample::select(vec!["a", "b", "ab"]).prop_map(|text| Plain::Text(text.into())),
            0..20
        ),
    ]
}

#[test]
fn sorts_are_stable_permutations() {
    for_all(60, items(), |items| {
        let (literal, sorted): (String, [Vec<Pair>; 2]) = in_isolate(|cx| {
            let values: Vec<Value> = items.iter().map(|item| item.build(cx, Build::Usual)).collect();
            let literal =
                format!("[{}]", values.iter().map(|value| printed(cx, value)).collect::<Vec<_>>().join(" "));
            let sorted = [false, true].map(|descending| {
                // Insertion preserves the order of equal items.
                let mut sorted: Vec<usize> = Vec::new();
                for index in 0..values.len() {
                    let at = sorted.iter().position(|&other| {
                        let (a, b) = (&values[index], &values[other]);
                        let order = ptc_vm::value::relation::order::compare(cx, a, b).expect("within limits");
                        order == if descending { Ordering::Greater } else { Ordering::Less }
                    });
                    sorted.insert(at.unwrap_or(sorted.len()), index);
                }
                sorted.into_iter().map(|index| (printed(cx, &values[index]), index)).collect()
            });
            (literal, sorted)
        });
        // Dates print as strings, which sort among strings.
        if items.iter().any(Plain::holds_date) {
            return;
        }
        for (sort, ascending) in SORTS {
            let program = format!("(let [xs (map-indexed (fn [i x] [x i]) {literal})] {sort})");
            let ran = compare(&program, &BUDGET).unwrap_or_else(|| panic!("does not compile: {program}"));
            let wanted = &sorted[usize::from(!ascending)];
            let wanted: Vec<String> =
                wanted.iter().map(|(item, index)| format!("[{item} {index}]")).collect();
            assert_eq!(ran.ending, Ending::Done(format!("[{}]", wanted.join(" "))), "{program}");
        }
    });
}

/// The printed item, and its original position.
type Pair = (String, usize);

/// Inconsistent comparators give some permutation, never a fault or an endless loop.
#[test]
fn any_comparator_gives_a_permutation() {
    for_all(
        100,
        (prop::collection::vec(-3i64..4, 0..40), prop::collection::vec(any::<bool>(), 1..30)),
        |(items, answers)| {
            let mut sorted = items.clone();
            sorted.sort_unstable();
            let program = format!(
            "(let [answers {answers:?} xs {items:?}] (sort (sort (fn [a b] (nth answers (mod (+ (* 7 a) b) (count answers)))) xs)))",
        )
        .replace(',', " ");
            let ran = compare(&program, &BUDGET).unwrap_or_else(|| panic!("does not compile: {program}"));
            assert_eq!(ran.ending, Ending::Done(format!("{sorted:?}").replace(',', "")), "{program}");
        },
    );
}
