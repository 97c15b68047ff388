//! Tests of the collection builtins, called through their rows as the interpreter does, under limits.

use super::{with_context, with_limits};
use crate::context::Context;
use crate::fault::{Reason, Result};
use crate::json;
use crate::print::pr_str;
use crate::value::Value;
use crate::value::vector::VectorNode;

const MEGABYTE: u64 = 1 << 20;

fn call(cx: &mut Context, name: &str, arguments: Vec<Value>) -> Result<Value> {
    super::call(cx, None, name, arguments)
}

/// A value from JSON text.
fn value(cx: &mut Context, text: &str) -> Value {
    match json::decode(cx, text.as_bytes()) {
        Ok(value) => value,
        Err(_) => panic!("bad JSON in a test: {text}"),
    }
}

/// The printed result of a call with arguments given as JSON.
fn shown(name: &'static str, arguments: &'static [&'static str]) -> String {
    with_context(move |cx| {
        let arguments = arguments.iter().map(|text| value(cx, text)).collect();
        match call(cx, name, arguments) {
            Ok(result) => pr_str(cx, &result, 4_096).expect("it prints").text.to_string(),
            Err(fault) => format!("{}: {}", fault.reason.raw(), fault.message),
        }
    })
}

/// The reason for which a call fails under 1 MiB and ten million units of fuel.
fn refused(name: &'static str, arguments: impl FnOnce() -> Vec<Value> + Send + 'static) -> Option<Reason> {
    with_limits(10_000_000, MEGABYTE, move |cx| {
        let arguments = arguments();
        call(cx, name, arguments).err().map(|fault| fault.reason)
    })
}

fn long_range() -> Value {
    Value::Vector(VectorNode::range(0, 1, 1 << 40))
}

#[test]
fn results() {
    for (name, arguments, expected) in [
        ("first", &["\"añb\""][..], "\"a\""),
        ("nth", &["\"añb\"", "1"], "\"ñ\""),
        ("last", &["[]"], "nil"),
        ("take", &["-1", "[1, 2]"], "[]"),
        ("take-last", &["2", "[1, 2, 3]"], "[2 3]"),
        ("nthnext", &["[1, 2]", "2"], "nil"),
        ("split-at", &["1", "\"ab\""], "[[\"a\"] [\"b\"]]"),
        ("partition", &["3", "3", "[0]", "[1, 2, 3, 4, 5]"], "[[1 2 3] [4 5 0]]"),
        ("partition-all", &["2", "3", "[1, 2, 3, 4]"], "[[1 2] [4]]"),
        ("combinations", &["[1, 2, 3]", "2"], "[[1 2] [1 3] [2 3]]"),
        ("flatten", &["[1, [2, [{\"a\": 3}, []]]]"], "[1 2 {\"a\" 3}]"),
        ("distinct", &["[1, 1.0, 1, 2]"], "[1 1.0 2]"),
        ("frequencies", &["\"aba\""], "{\"a\" 2 \"b\" 1}"),
        ("range", &["0", "1", "0.5"], "[0 0.5]"),
        (
            "range",
            &["9223372036854775806", "9223372036854775808"],
            "[9223372036854775806 9223372036854775807]",
        ),
        ("into", &["{}", "[[\"b\", 1], {\"a\": 2}]"], "{\"a\" 2 \"b\" 1}"),
        ("get", &["{\"a\": {\"b\": 1}}", "[\"a\", \"b\"]"], "1"),
        ("assoc-in", &["{\"a\": [1, {}]}", "[\"a\", 1, \"b\"]", "2"], "{\"a\" [1 {\"b\" 2}]}"),
        ("contains?", &["[1, 2]", "2"], "true"),
        ("sum", &["[1, null, 2.5]"], "3.5"),
        ("keys", &["{\"b\": 1, \"a\": 2}"], "[\"a\" \"b\"]"),
    ] {
        assert_eq!(shown(name, arguments), expected, "({name} {arguments:?})");
    }
}

#[test]
fn faults_name_the_builtin_and_what_it_got() {
    for (name, arguments, expected) in [
        ("count", &["5"][..], "type_error: count: arg 1 expected seqable, got number"),
        ("first", &["5"], "type_error: first: invalid argument types: number"),
        ("get", &["5", "1"], "type_error: get: arg 1 expected associative, got number"),
        ("partition", &["0", "[1]"], "type_error: partition: n must be a positive integer, got 0"),
        ("assoc", &["[1, 2]", "5", "1"], "runtime_error: index 5 out of bounds for list of length 2"),
        (
            "assoc",
            &["{}", "1"],
            "runtime_error: assoc requires a map or list and key-value pairs, got 2 args",
        ),
        (
            "assoc-in",
            &["{\"a\": 5}", "[\"a\", \"b\"]", "1"],
            "type_error: assoc-in: could not put/update key \"b\" on a non-map value, got number",
        ),
        ("hash-map", &["1"], "arity_error: hash-map expects an even number of arguments, got 1"),
        ("sum", &["[\"a\"]"], "arithmetic_error: bad argument in arithmetic expression"),
    ] {
        assert_eq!(shown(name, arguments), expected, "({name} {arguments:?})");
    }
}

#[test]
fn a_range_costs_nothing_until_its_items_are_needed() {
    with_limits(1_000, MEGABYTE, |cx| {
        let count = call(cx, "count", vec![long_range()]).expect("a count");
        assert!(matches!(count, Value::Int(count) if count == 1 << 40));
        let part = call(cx, "drop", vec![Value::Int(1 << 39), long_range()]).expect("a part");
        let first = call(cx, "first", vec![part]).expect("an item");
        assert!(matches!(first, Value::Int(first) if first == 1 << 39));
        call(cx, "pop", vec![long_range()]).expect("a range");
    });
}

#[test]
fn what_cannot_fit_is_refused_before_it_is_built() {
    let memory = Some(Reason::MemoryExceeded);
    for name in ["reverse", "frequencies", "distinct", "dedupe"] {
        assert_eq!(refused(name, || vec![long_range()]), memory, "{name}");
    }
    for name in ["interleave", "concat", "zipmap", "zip", "into"] {
        assert_eq!(refused(name, || vec![Value::vector(vec![Value::Nil]), long_range()]), {
            // These two stop at the shorter collection.
            if matches!(name, "interleave" | "zipmap" | "zip") { None } else { memory }
        });
        assert_eq!(
            refused(name, || vec![long_range(), Value::Vector(VectorNode::range(0, 1, 1 << 40))]),
            memory,
            "{name}"
        );
    }
    assert_eq!(refused("conj", || vec![long_range(), Value::Nil]), memory);
    assert_eq!(refused("cons", || vec![Value::Nil, long_range()]), memory);
    assert_eq!(refused("assoc", || vec![long_range(), Value::Int(0), Value::Nil]), memory);
    assert_eq!(
        refused("combinations", || vec![Value::Vector(VectorNode::range(0, 1, 60)), Value::Int(30)]),
        memory
    );
    assert_eq!(refused("sum", || vec![long_range()]), Some(Reason::FuelExceeded));
}

#[test]
fn shared_and_deep_values_neither_hang_nor_recurse() {
    // 64 nodes, 2^64 paths.
    let shared = || {
        vec![(0..64).fold(Value::vector(Vec::new()), |inner, _| Value::vector(vec![inner.clone(), inner]))]
    };
    assert_eq!(refused("flatten", shared), Some(Reason::FuelExceeded));
    with_context(|cx| {
        let deep = (0..100_000).fold(Value::Int(7), |inner, _| Value::vector(vec![inner]));
        let flat = call(cx, "flatten", vec![deep]).expect("one item");
        assert!(matches!(&flat, Value::Vector(flat) if flat.len() == 1));
        let path = Value::vector(vec![Value::Int(1); 100_000]);
        let map = call(cx, "assoc-in", vec![Value::Nil, path, Value::Nil]).expect("a deep map");
        assert!(matches!(map, Value::Map(_)));
    });
}

#[test]
fn unique_collections_are_updated_in_place() {
    with_context(|cx| {
        let mut stack = Value::vector(Vec::new());
        let mut front = Value::vector(Vec::new());
        let mut map = Value::Nil;
        for at in 0..10_000 {
            stack = call(cx, "conj", vec![stack, Value::Int(at)]).expect("a vector");
            front = call(cx, "cons", vec![Value::Int(at), front]).expect("a vector");
            map = call(cx, "assoc", vec![map, Value::Int(at), Value::Nil]).expect("a map");
        }
        while let Value::Vector(_) = stack {
            stack = call(cx, "pop", vec![stack]).expect("a vector");
            front = call(cx, "rest", vec![front]).expect("a vector");
        }
        // Copying them at every step would have been noticed.
        assert!(!crate::memory::account::attention());
    });
}
