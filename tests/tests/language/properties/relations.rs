//! Equality, hashes and the order of values agree.

use crate::properties::for_all;
use crate::properties::values::{Build, Plain, in_isolate, values};
use proptest::prelude::*;
use ptc_vm::value::relation::equal::{equal, same_key};
use ptc_vm::value::relation::hash::hash_value;
use ptc_vm::value::relation::order::{compare, compare_keys};
use ptc_vm::value::set::SetNode;
use ptc_vm::{Context, Value};
use std::cmp::Ordering;

/// Few leaves, so that equal and nearly equal values meet.
fn alike() -> impl Strategy<Value = Plain> {
    let leaf = prop::sample::select(vec![
        Plain::Nil,
        Plain::Bool(false),
        Plain::Bool(true),
        Plain::Int(0),
        Plain::Int(1),
        Plain::Int((1 << 53) + 1),
        Plain::Int(i64::MAX),
        Plain::Big("9223372036854775808".into()),
        Plain::Big("1000000000000000000000".into()),
        Plain::Float(0.0),
        Plain::Float(-0.0),
        Plain::Float(1.0),
        Plain::Float(9_007_199_254_740_992.0),
        Plain::Float(9_223_372_036_854_775_808.0),
        Plain::Float(1e21),
        Plain::Float(f64::NAN),
        Plain::Float(f64::INFINITY),
        Plain::Float(f64::NEG_INFINITY),
        Plain::Text("a".into()),
        Plain::Text(String::new()),
        Plain::Keyword("a"),
        Plain::Symbol("a"),
        Plain::Date(0),
        Plain::Instant(0),
        Plain::Pattern("a+"),
    ]);
    leaf.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Plain::Vector),
            prop::collection::vec((inner.clone(), inner.clone()), 0..3).prop_map(Plain::Map),
            prop::collection::vec(inner, 0..3).prop_map(Plain::Set),
        ]
    })
}

fn order(cx: &mut Context, a: &Value, b: &Value) -> Ordering {
    compare(cx, a, b).expect("within limits")
}

#[test]
fn keys_that_are_the_same_hash_the_same() {
    for_all(10_000, (alike(), alike()), |(a, b)| {
        in_isolate(|cx| {
            let (a, b) = (a.build(cx, Build::Usual), b.build(cx, Build::Other));
            if same_key(cx, &a, &b).expect("within limits") {
                let hash = hash_value(cx, &a).expect("within limits");
                assert_eq!(hash, hash_value(cx, &b).expect("within limits"));
            }
        });
    });
}

#[test]
fn a_value_is_the_same_in_every_representation() {
    for_all(2_000, prop_oneof![alike(), values()], |plain| {
        in_isolate(|cx| {
            let (a, b) = (plain.build(cx, Build::Usual), plain.build(cx, Build::Other));
            assert!(same_key(cx, &a, &b).expect("within limits"), "not the same key");
            let hash = hash_value(cx, &a).expect("within limits");
            assert_eq!(hash, hash_value(cx, &b).expect("within limits"));
            assert_eq!(order(cx, &a, &b), Ordering::Equal);
            let is_nan = matches!(a, Value::Float(number) if number.is_nan());
            assert_eq!(equal(cx, &a, &b).expect("within limits"), !is_nan);
            // The set finds the value in either representation.
            let set = SetNode::insert(SetNode::empty(), cx, a).expect("within limits");
            assert!(set.find(cx, &b).expect("within limits").is_some(), "a set does not find it");
            let set = SetNode::insert(set, cx, b).expect("within limits");
            assert_eq!(set.len(), 1);
        });
    });
}

/// `=` compares numbers by value, keys by value and type.
#[test]
fn integers_and_floats_are_equal_but_other_keys() {
    for_all(2_000, -(1i64 << 53)..(1 << 53), |number| {
        in_isolate(|cx| {
            let (integer, float) = (Value::Int(number), Value::Float(number as f64));
            assert!(equal(cx, &integer, &float).expect("within limits"));
            assert!(!same_key(cx, &integer, &float).expect("within limits"));
            assert_eq!(order(cx, &integer, &float), Ordering::Equal);
            let (integers, floats) = (Value::vector(vec![integer]), Value::vector(vec![float]));
            assert!(equal(cx, &integers, &floats).expect("within limits"));
            assert!(!same_key(cx, &integers, &floats).expect("within limits"));
        });
    });
}

#[test]
fn equality_is_symmetric_and_agrees_with_the_order() {
    for_all(10_000, (alike(), alike()), |(a, b)| {
        in_isolate(|cx| {
            let (a, b) = (a.build(cx, Build::Usual), b.build(cx, Build::Other));
            let equals = equal(cx, &a, &b).expect("within limits");
            assert_eq!(equals, equal(cx, &b, &a).expect("within limits"), "= is not symmetric");
            let same = same_key(cx, &a, &b).expect("within limits");
            assert_eq!(same, same_key(cx, &b, &a).expect("within limits"), "keys are not symmetric");
            let of_keys = compare_keys(cx, &a, &b).expect("within limits");
            assert_eq!(of_keys == Ordering::Equal, same, "the order of keys tells others apart");
            assert_eq!(of_keys, compare_keys(cx, &b, &a).expect("within limits").reverse());
            let ordering = order(cx, &a, &b);
            assert_eq!(ordering, order(cx, &b, &a).reverse(), "the order is not antisymmetric");
            if equals || same {
                assert_eq!(ordering, Ordering::Equal, "equal, but not in the order");
            }
        });
    });
}

#[test]
fn the_order_is_transitive() {
    for_all(10_000, [alike(), alike(), alike()], |plain| {
        in_isolate(|cx| {
            let mut values: Vec<Value> = plain.iter().map(|plain| plain.build(cx, Build::Usual)).collect();
            let leq = |cx: &mut Context, a: &Value, b: &Value| order(cx, a, b) != Ordering::Greater;
            for _ in 0..3 {
                for _ in 0..2 {
                    if leq(cx, &values[0], &values[1]) && leq(cx, &values[1], &values[2]) {
                        assert!(leq(cx, &values[0], &values[2]), "not transitive");
                    }
                    values.swap(0, 1);
                }
                values.rotate_left(1);
            }
        });
    });
}
