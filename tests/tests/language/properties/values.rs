//! Random values as plain data, which tests build in several representations or write as source text.

use proptest::prelude::*;
use ptc_vm::value::map::MapNode;
use ptc_vm::value::set::SetNode;
use ptc_vm::value::temporal::{DateTime, LocalDate};
use ptc_vm::value::vector::VectorNode;
use ptc_vm::{Budget, Context, Isolate, Value};

/// A value as plain data.
#[derive(Clone, Debug)]
pub(crate) enum Plain {
    Nil,
    Bool(bool),
    Int(i64),
    /// An integer outside 64 bits.
    Big(String),
    Float(f64),
    Text(String),
    Keyword(&'static str),
    Symbol(&'static str),
    Date(i64),
    Instant(i64),
    Pattern(&'static str),
    Vector(Vec<Plain>),
    Map(Vec<(Plain, Plain)>),
    Set(Vec<Plain>),
}

/// How a value is represented; programs cannot observe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Build {
    Usual,
    /// Strings are interned, vectors are ranges or slices of longer ones, entries are inserted from the end.
    Other,
}

fn floats() -> impl Strategy<Value = f64> {
    prop_oneof![
        prop::sample::select(vec![
            0.0,
            -0.0,
            1.0,
            -1.0,
            2.0,
            0.1,
            1e15,
            1e16,
            1e17,
            1e21,
            1e-5,
            5e-324,
            f64::MAX,
            f64::MIN_POSITIVE,
            9_007_199_254_740_992.0,
            9_223_372_036_854_775_808.0,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
        ]),
        any::<f64>(),
        (-100i32..100).prop_map(|quarters| f64::from(quarters) / 4.0),
    ]
}

fn integers() -> impl Strategy<Value = i64> {
    prop_oneof![
        -3i64..4,
        any::<i64>(),
        prop::sample::select(vec![i64::MIN, i64::MAX, 1 << 53, (1 << 53) + 1, -(1 << 53) - 1]),
    ]
}

/// Texts with every character that printing and reading must handle.
pub(crate) fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "",
            "a",
            "b",
            "name",
            "\\",
            "\"",
            "\\\"",
            "\\n",
            "\n",
            "\r\n",
            "\t",
            "#{",
            ";",
            "é",
            "😀",
            "\u{0}",
            "\u{1b}",
            "\u{2028}",
            "e\u{301}",
            "👩‍👩‍👧",
            "a longer text of more than thirty-two bytes"
        ])
        .prop_map(str::to_owned),
        ".{0,12}",
    ]
}

fn leaves() -> impl Strategy<Value = Plain> {
    prop_oneof![
        1 => Just(Plain::Nil),
        1 => any::<bool>().prop_map(Plain::Bool),
        4 => integers().prop_map(Plain::Int),
        1 => ("-?", "[1-9][0-9]{19,60}").prop_map(|(sign, digits)| Plain::Big(sign + &digits)),
        4 => floats().prop_map(Plain::Float),
        4 => texts().prop_map(Plain::Text),
        3 => prop::sample::select(vec!["a", "b", "name", "x-y?", "*z*", "+", "1"]).prop_map(Plain::Keyword),
        1 => prop::sample::select(vec!["a", "name", "a/b", "->x"]).prop_map(Plain::Symbol),
        1 => (-800_000i64..800_000).prop_map(Plain::Date),
        1 => (-60_000_000_000_000i64..60_000_000_000_000).prop_map(Plain::Instant),
        1 => prop::sample::select(vec!["a+", "\\d", "a\\\\b", "\"", "\\\"x", "[\\n]", "a b", "é"]).prop_map(Plain::Pattern),
    ]
}

/// Values of all kinds, nested.
pub(crate) fn values() -> impl Strategy<Value = Plain> {
    leaves().prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Plain::Vector),
            (-3i64..3, 0i64..5).prop_map(|(from, length)| {
                Plain::Vector((from..from + length).map(Plain::Int).collect())
            }),
            prop::collection::vec((inner.clone(), inner.clone()), 0..5).prop_map(Plain::Map),
            prop::collection::vec(inner, 0..5).prop_map(Plain::Set),
        ]
    })
}

impl Plain {
    /// Contains a date, which prints as a string and so sorts differently.
    pub(crate) fn holds_date(&self) -> bool {
        match self {
            Plain::Date(_) | Plain::Instant(_) => true,
            Plain::Vector(items) | Plain::Set(items) => items.iter().any(Plain::holds_date),
            Plain::Map(entries) => entries.iter().any(|(key, value)| key.holds_date() || value.holds_date()),
            _ => false,
        }
    }

    /// Contains a set or map with dates as keys, which are read back in another order.
    pub(crate) fn has_dates_as_keys(&self) -> bool {
        match self {
            Plain::Vector(items) => items.iter().any(Plain::has_dates_as_keys),
            Plain::Set(items) => items.iter().any(Plain::holds_date),
            Plain::Map(entries) => {
                entries.iter().any(|(key, value)| key.holds_date() || value.has_dates_as_keys())
            }
            _ => false,
        }
    }

    /// Builds the value. It nests only as deep as [`values`] makes it, so recursion is safe.
    pub(crate) fn build(&self, cx: &mut Context, build: Build) -> Value {
        match self {
            Plain::Nil => Value::Nil,
            Plain::Bool(value) => Value::Bool(*value),
            Plain::Int(value) => Value::Int(*value),
            Plain::Big(digits) => Value::integer(digits.parse().expect("digits")),
            Plain::Float(value) => Value::Float(*value),
            Plain::Text(text) => match (build, cx.symbols.intern_dynamic(text)) {
                (Build::Other, Some(symbol)) => Value::Str(cx.symbols.string(symbol).clone()),
                _ => Value::string(text),
            },
            Plain::Keyword(name) => cx.keyword(name),
            Plain::Symbol(name) => Value::Symbol(cx.symbols.intern(name)),
            Plain::Date(days) => Value::LocalDate(LocalDate::from_epoch_day(*days).expect("in range")),
            Plain::Instant(millis) => Value::DateTime(DateTime::from_millis(*millis).expect("in range")),
            Plain::Pattern(pattern) => Value::Regex(cx.compile_regex(pattern).expect("a pattern")),
            Plain::Vector(items) => {
                let built = items.iter().map(|item| item.build(cx, build)).collect();
                match build {
                    Build::Usual => Value::vector(built),
                    Build::Other => other_vector(items, built),
                }
            }
            Plain::Map(entries) => {
                let mut map = MapNode::empty();
                for (key, value) in in_order(&distinct(cx, entries.iter().cloned()), build) {
                    let (key, value) = (key.build(cx, build), value.build(cx, build));
                    map = MapNode::insert(map, cx, key, value).expect("within limits");
                }
                Value::Map(map)
            }
            Plain::Set(members) => {
                let mut set = SetNode::empty();
                let members = members.iter().map(|member| (member.clone(), Plain::Nil));
                for (member, _) in in_order(&distinct(cx, members), build) {
                    let member = member.build(cx, build);
                    set = SetNode::insert(set, cx, member).expect("within limits");
                }
                Value::Set(set)
            }
        }
    }
}

/// The first of equal keys, so that the order of insertion does not matter.
fn distinct(cx: &mut Context, entries: impl Iterator<Item = (Plain, Plain)>) -> Vec<(Plain, Plain)> {
    let mut seen = SetNode::empty();
    let mut kept = Vec::new();
    for (key, value) in entries {
        let before = seen.len();
        let built = key.build(cx, Build::Usual);
        seen = SetNode::insert(seen, cx, built).expect("within limits");
        if seen.len() > before {
            kept.push((key, value));
        }
    }
    kept
}

fn in_order(entries: &[(Plain, Plain)], build: Build) -> Vec<(Plain, Plain)> {
    let mut entries = entries.to_vec();
    if build == Build::Other {
        entries.reverse();
    }
    entries
}

/// A range if the items form one, else the middle of a longer vector.
fn other_vector(plain: &[Plain], items: Vec<Value>) -> Value {
    if let Some(&Plain::Int(first)) = plain.first()
        && plain
            .iter()
            .zip(0..)
            .all(|(item, step)| matches!(item, Plain::Int(value) if first.checked_add(step) == Some(*value)))
    {
        return Value::Vector(VectorNode::range(first, 1, items.len()));
    }
    let length = items.len();
    let longer: Vec<Value> =
        std::iter::once(Value::Nil).chain(items).chain([Value::Nil, Value::Nil]).collect();
    let longer = VectorNode::new(longer);
    Value::Vector(VectorNode::slice(&longer, 1, 1 + length))
}

/// Runs `work` in an isolate of its own, which must leave no memory behind.
pub(crate) fn in_isolate<T>(work: impl FnOnce(&mut Context) -> T) -> T {
    let options = Budget { memory_bytes: 256 << 20, ..Budget::default() };
    let mut isolate = Isolate::new(options);
    let result = isolate.with(work);
    assert_eq!(isolate.close(), 0, "bytes left behind");
    result
}

/// The text of `pr-str`.
pub(crate) fn printed(cx: &mut Context, value: &Value) -> String {
    ptc_vm::print::pr_str(cx, value, usize::MAX).expect("within limits").text
}
