//! Parses the conditions of policy rules on the arguments of a call (a JSON pointer, and tests of the values at it),
//! and evaluates them.
//!
//! # Layout
//! - this file: conditions; `arguments`: the arguments, and the values at a pointer

mod arguments;

use arguments::Values;
pub(super) use arguments::{Arguments, Found};

use crate::tools::glob;
use serde_json::Value as Json;
use std::cmp::Ordering;

/// Whether a condition is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Met {
    /// No value meets it.
    No,
    /// It cannot be decided: a value has the wrong type, or only some values meet it. A rule that denies or asks
    /// applies then, and one that allows does not.
    Unclear,
    /// All values meet it.
    Yes,
}

/// A condition on the values at a pointer.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    pointer: Pointer,
    /// All of them are needed.
    tests: Vec<Test>,
}

/// The last segment of a pointer to all texts at any depth.
pub(super) const ALL_TEXTS: &str = "**";

/// A JSON pointer (RFC 6901). The segment `*` stands for all items of a list or all members of an object, a last segment
/// `**` for all texts at any depth.
#[derive(Clone, Debug)]
pub(super) struct Pointer {
    text: String,
    pub(super) segments: Vec<String>,
}

/// What one value has to be.
#[derive(Clone, Debug)]
enum Test {
    Equal(Json),
    Glob(String),
    Compared(Comparison, Bound),
    In(Vec<Json>),
    Size(Vec<(Comparison, Bound)>),
    Present(bool),
}

/// `gt`, `gte`, `lt`, `lte`.
#[derive(Clone, Copy, Debug)]
struct Comparison {
    accepts: fn(Ordering) -> bool,
}

/// A number.
#[derive(Clone, Copy, Debug)]
enum Bound {
    Whole(i128),
    Real(f64),
}

impl Bound {
    fn new(number: &serde_json::Number) -> Bound {
        let whole = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
        whole.map_or_else(|| Bound::Real(number.as_f64().unwrap_or(f64::NAN)), Bound::Whole)
    }

    /// The order of two numbers; whole ones are compared exactly.
    fn order(self, other: Bound) -> Option<Ordering> {
        let real = |bound: Bound| match bound {
            #[expect(clippy::cast_precision_loss, reason = "only compared with a real number")]
            Bound::Whole(number) => number as f64,
            Bound::Real(number) => number,
        };
        match (self, other) {
            (Bound::Whole(one), Bound::Whole(other)) => Some(one.cmp(&other)),
            (one, other) => real(one).partial_cmp(&real(other)),
        }
    }
}

const COMPARISONS: [(&str, Comparison); 4] = [
    ("gt", Comparison { accepts: Ordering::is_gt }),
    ("gte", Comparison { accepts: Ordering::is_ge }),
    ("lt", Comparison { accepts: Ordering::is_lt }),
    ("lte", Comparison { accepts: Ordering::is_le }),
];

/// The keys of a condition.
const KEYS: &str = "gt, gte, lt, lte, in, glob, size, present";

impl Pointer {
    /// Reads a pointer to single values.
    ///
    /// # Errors
    /// It does not begin with `/`, or names all texts.
    pub(super) fn parse(text: &str) -> Result<Pointer, String> {
        let pointer = Pointer::parse_any(text)?;
        match pointer.is_all_texts() {
            true => Err(format!("{text}: ** stands in conditions of rules alone")),
            false => Ok(pointer),
        }
    }

    fn parse_any(text: &str) -> Result<Pointer, String> {
        let Some(rest) = text.strip_prefix('/') else {
            return Err(format!("{text:?} is no JSON pointer: it begins with /, as in \"/{text}\""));
        };
        let segments: Vec<String> =
            rest.split('/').map(|part| part.replace("~1", "/").replace("~0", "~")).collect();
        if segments.iter().rev().skip(1).any(|segment| segment == ALL_TEXTS) {
            return Err(format!("{text}: ** is the last part of a pointer"));
        }
        Ok(Pointer { text: text.to_owned(), segments })
    }

    /// As it is written.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// True if it names all texts below a value.
    fn is_all_texts(&self) -> bool {
        self.segments.last().is_some_and(|last| last == ALL_TEXTS)
    }
}

impl Condition {
    /// Reads a condition: a value, or a table of tests.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn parse(pointer: &str, written: &Json) -> Result<Condition, String> {
        let pointer = Pointer::parse_any(pointer)?;
        let tests = match written {
            Json::Object(table) => {
                table.iter().map(|(key, value)| Test::parse(key, value)).collect::<Result<_, _>>()?
            }
            Json::String(text) => vec![Test::Glob(text.clone())],
            Json::Array(_) => return Err(format!("{} has a list: write {{ in = [...] }}", pointer.text)),
            plain => vec![Test::Equal(plain.clone())],
        };
        if tests.is_empty() {
            return Err(format!("{} has no condition: use one of {KEYS}", pointer.text));
        }
        if pointer.is_all_texts() && !tests.iter().all(Test::is_of_texts) {
            return Err(format!("{} are texts: compare them with a text, glob, in or size", pointer.text));
        }
        Ok(Condition { pointer, tests })
    }

    /// The pointer.
    pub(super) fn pointer(&self) -> &Pointer {
        &self.pointer
    }

    /// Whether these arguments meet it.
    pub(super) fn met(&self, arguments: &Arguments<'_>) -> Met {
        let Some(Found { values, is_exact, is_blocked: false, is_incomplete, .. }) =
            arguments.find(&self.pointer)
        else {
            return Met::Unclear;
        };
        // Some items have the next name, and others lack it.
        let is_exact = is_exact && (values.is_empty() || !is_incomplete);
        let values: Option<Values<&Json>> = values.iter().map(|value| value.json()).collect();
        let Some(values) = values else { return Met::Unclear };
        let each = self.tests.iter().map(|test| test.met(&values, is_exact));
        each.fold(Met::Yes, |all, one| match (all, one) {
            (Met::No, _) | (_, Met::No) => Met::No,
            (Met::Unclear, _) | (_, Met::Unclear) => Met::Unclear,
            (Met::Yes, Met::Yes) => Met::Yes,
        })
    }
}

impl Test {
    fn parse(key: &str, written: &Json) -> Result<Test, String> {
        if let Some((_, comparison)) = COMPARISONS.iter().find(|(name, _)| *name == key) {
            return Ok(Test::Compared(*comparison, number(key, written)?));
        }
        match (key, written) {
            ("in", Json::Array(items)) if !items.is_empty() => Ok(Test::In(items.clone())),
            ("in", _) => Err("in takes a list of values, not empty".to_owned()),
            ("glob", Json::String(text)) => Ok(Test::Glob(text.clone())),
            ("glob", _) => Err("glob takes a text".to_owned()),
            ("present", Json::Bool(wanted)) => Ok(Test::Present(*wanted)),
            ("present", _) => Err("present takes true or false".to_owned()),
            ("size", Json::Object(bounds)) if !bounds.is_empty() => {
                let bound = |(key, written): (&String, &Json)| {
                    let known = COMPARISONS.iter().find(|(name, _)| name == key);
                    let (_, comparison) =
                        known.ok_or_else(|| format!("size takes gt, gte, lt, lte, not {key}"))?;
                    Ok((*comparison, number(key, written)?))
                };
                Ok(Test::Size(bounds.iter().map(bound).collect::<Result<_, String>>()?))
            }
            ("size", _) => Err("size takes a table, as in size = { gt = 10 }".to_owned()),
            _ => Err(format!("there is no condition {key}: use one of {KEYS}")),
        }
    }

    /// True if every text passes it or does not.
    fn is_of_texts(&self) -> bool {
        match self {
            Test::Equal(wanted) => wanted.is_string(),
            Test::In(wanted) => wanted.iter().all(Json::is_string),
            Test::Glob(_) | Test::Size(_) => true,
            Test::Compared(..) | Test::Present(_) => false,
        }
    }

    /// Whether all values pass.
    fn met(&self, values: &[&Json], is_exact: bool) -> Met {
        match self {
            Test::Present(_) if !is_exact => return Met::Unclear,
            Test::Present(wanted) if *wanted == values.is_empty() => return Met::No,
            Test::Present(_) => return Met::Yes,
            _ => {}
        }
        let mut passed = values.iter().map(|value| self.passes(value));
        let Some(first) = passed.next() else { return Met::No };
        match passed.fold(first, |all, one| if all == one { all } else { Met::Unclear }) {
            // A server that tells cases apart reads it as absent, which meets nothing.
            Met::Yes if !is_exact => Met::Unclear,
            met => met,
        }
    }

    fn passes(&self, value: &Json) -> Met {
        let decided = |is_met: bool| if is_met { Met::Yes } else { Met::No };
        match (self, value) {
            (Test::Equal(wanted), value) if is_alike(wanted, value) => decided(is_equal(wanted, value)),
            (Test::Glob(wanted), Json::String(text)) => decided(glob(wanted, text)),
            (Test::Compared(comparison, bound), Json::Number(number)) => Bound::new(number)
                .order(*bound)
                .map_or(Met::Unclear, |order| decided((comparison.accepts)(order))),
            (Test::In(wanted), value) if wanted.iter().any(|one| is_alike(one, value)) => {
                decided(wanted.iter().any(|one| is_equal(one, value)))
            }
            (Test::Size(bounds), value) => {
                let size = match value {
                    Json::String(text) => text.chars().count(),
                    Json::Array(items) => items.len(),
                    Json::Object(members) => members.len(),
                    _ => return Met::Unclear,
                };
                let size = Bound::Whole(size as i128);
                decided(
                    bounds
                        .iter()
                        .all(|(comparison, bound)| size.order(*bound).is_some_and(comparison.accepts)),
                )
            }
            _ => Met::Unclear,
        }
    }
}

fn number(key: &str, written: &Json) -> Result<Bound, String> {
    match written {
        Json::Number(number) => Ok(Bound::new(number)),
        _ => Err(format!("{key} takes a number")),
    }
}

/// True if two values have the same type.
fn is_alike(one: &Json, other: &Json) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(other)
}

/// True if two values are equal; numbers by their size, so 1 is 1.0.
fn is_equal(one: &Json, other: &Json) -> bool {
    match (one, other) {
        (Json::Number(one), Json::Number(other)) => {
            Bound::new(one).order(Bound::new(other)) == Some(Ordering::Equal)
        }
        (one, other) => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn met(pointer: &str, written: Json, arguments: &str) -> Met {
        Condition::parse(pointer, &written).unwrap().met(&Arguments::new(arguments))
    }

    #[test]
    fn conditions_are_met_or_not_or_unclear() {
        use Met::{No, Unclear, Yes};
        let over = || json!({ "gt": 100 });
        for (pointer, written, arguments, want) in [
            ("/amount", over(), r#"{"amount": 101}"#, Yes),
            ("/amount", over(), r#"{"amount": 100}"#, No),
            ("/amount", over(), r#"{"amount": 100.5}"#, Yes),
            ("/amount", over(), r#"{"amount": "101"}"#, Unclear),
            ("/amount", over(), r#"{"amount": 1e999}"#, Unclear),
            ("/amount", over(), r#"{"amount": null}"#, Unclear),
            ("/amount", over(), "{}", No),
            ("/amount", over(), "{", Unclear),
            ("/amount", over(), "nope", Unclear),
            ("/amount", over(), "{} {}", Unclear),
            // What a server may read is looked at, whatever it reads.
            ("/amount", over(), r#"{"amount": 1, "amount": 101}"#, Unclear),
            ("/amount", over(), r#"{"Amount": 101}"#, Unclear),
            ("/amount", over(), r#"{"Amount": 99}"#, No),
            ("/amount", over(), r#"{"Amount": 101, "amount": 102}"#, Yes),
            ("/items/*/n", over(), r#"{"items": [{"n": 101}, {"N": 101}]}"#, Unclear),
            ("/o/*/p", json!("a"), r#"{"o": [{"p": "a"}, {}]}"#, Unclear),
            ("/o/*/p", json!("a"), r#"{"o": [{"p": "a"}, null]}"#, Unclear),
            ("/o/*/p", json!("a"), r#"{"o": [{"p": "b"}, {}]}"#, No),
            ("/o/*/p", json!("a"), r#"{"o": [{}, {}]}"#, No),
            ("/o/*/p", json!({"present": true}), r#"{"o": [{"p": 1}, {}]}"#, Unclear),
            ("/o/*/p", json!({"present": false}), r#"{"o": [{"p": 1}, {}]}"#, Unclear),
            ("/o/*/p", json!({"present": false}), r#"{"o": [{}, {}]}"#, Yes),
            ("/o/to", json!("a"), r#"{"O": {"to": "a"}, "o": {}}"#, Unclear),
            ("/o/to", json!("a"), r#"{"O": {"to": "a"}, "o": {"to": "a"}}"#, Yes),
            ("/o/*", json!("a"), r#"{"O": ["a"], "o": []}"#, Unclear),
            ("/o/*", json!({"present": false}), r#"{"O": {"a": 1}, "o": {}}"#, Unclear),
            ("/o/**", json!("a"), r#"{"O": {"t": "a"}, "o": {}}"#, Unclear),
            ("/o/dry", json!({"present": false}), r#"{"O": {"dry": true}, "o": {}}"#, Unclear),
            ("/amount", over(), r#"{"\u0061mount": 101}"#, Yes),
            ("/amount", json!({"gt": 9_007_199_254_740_992_i64}), r#"{"amount": 9007199254740993}"#, Yes),
            ("/amount", json!({"gte": 1, "lt": 3}), r#"{"amount": 3}"#, No),
            ("/repo", json!("acme/*"), r#"{"repo": "acme/x"}"#, Yes),
            ("/repo", json!("acme/*"), r#"{"repo": ["acme/x"]}"#, Unclear),
            ("/repo", json!("acme/*"), r#"{"repo": "acm/x"}"#, No),
            ("/force", json!(true), r#"{"force": true}"#, Yes),
            ("/force", json!(true), r#"{"force": "true"}"#, Unclear),
            ("/n", json!(1), r#"{"n": 1.0}"#, Yes),
            ("/to", json!({"in": ["a", "b"]}), r#"{"to": "b"}"#, Yes),
            ("/to", json!({"in": ["a", "b"]}), r#"{"to": 1}"#, Unclear),
            ("/to/*", json!("*@acme.com"), r#"{"to": ["x@acme.com", "y@acme.com"]}"#, Yes),
            ("/to/*", json!("*@acme.com"), r#"{"to": ["x@acme.com", "y@evil.com"]}"#, Unclear),
            ("/to/*", json!("*@acme.com"), r#"{"to": []}"#, No),
            // A way to the value that has the wrong type hides what a server reads there.
            ("/to/*", json!("*@acme.com"), r#"{"to": "y@evil.com"}"#, Unclear),
            ("/item/amount", over(), r#"{"item": "{\"amount\": 101}"}"#, Unclear),
            ("/item/amount", over(), r#"{"item": 101}"#, Unclear),
            ("/item/amount", over(), r#"{"item": true}"#, Unclear),
            ("/item/amount", over(), r#"{"item": [{"amount": 101}]}"#, Unclear),
            ("/item/amount", json!({"present": false}), r#"{"item": "x"}"#, Unclear),
            ("/item/amount", over(), r#"{"item": null}"#, No),
            ("/item/amount", over(), r#"{"item": {}}"#, No),
            ("/items/*/amount", over(), r#"{"items": [{"amount": 1}, "x"]}"#, Unclear),
            ("/items/0/amount", over(), r#"{"items": []}"#, No),
            ("/a~1b/0", json!(1), r#"{"a/b": [1]}"#, Yes),
            // All texts, at any depth.
            ("/**", json!("*key*"), r#"{"n": 1, "a": [{"b": "my key"}], "c": null}"#, Yes),
            ("/**", json!("*key*"), r#"{"a": "my key", "b": ["other"]}"#, Unclear),
            ("/**", json!("*key*"), r#"{"key": ["other"], "n": 1}"#, No),
            ("/**", json!("*key*"), r#"{"a": "\u006bey", "a": 1}"#, Yes),
            ("/**", json!("*key*"), "{}", No),
            ("/**", json!("*key*"), "{", Unclear),
            ("/a/**", json!({"size": {"gt": 3}}), r#"{"a": {"b": ["long"]}, "c": "x"}"#, Yes),
            ("/a/**", json!("x"), r#"{"a": "x"}"#, Yes),
            ("/x", json!({"present": true}), r#"{"x": null}"#, Yes),
            ("/x", json!({"present": false}), r#"{"y": 1}"#, Yes),
            ("/x", json!({"present": false}), r#"{"X": 1}"#, Unclear),
            ("/s", json!({"size": {"gt": 2}}), r#"{"s": "äöü"}"#, Yes),
            ("/s", json!({"size": {"gt": 2}}), r#"{"s": [1, 2]}"#, No),
            ("/s", json!({"size": {"gt": 2}}), r#"{"s": 7}"#, Unclear),
        ] {
            assert_eq!(met(pointer, written.clone(), arguments), want, "{pointer} {written} {arguments}");
        }
    }

    #[test]
    fn wrong_conditions_say_what_is_right() {
        for (pointer, written, want) in [
            ("amount", json!(1), "\"amount\" is no JSON pointer: it begins with /, as in \"/amount\""),
            ("/**/a", json!("x"), "/**/a: ** is the last part"),
            ("/**", json!(1), "/** are texts: compare them with a text"),
            ("/a", json!({"gtt": 1}), "there is no condition gtt: use one of gt, gte"),
            ("/a", json!({}), "/a has no condition"),
            ("/a", json!(["x"]), "/a has a list: write { in = [...] }"),
            ("/a", json!({"gt": "1"}), "gt takes a number"),
            ("/a", json!({"size": {"eq": 1}}), "size takes gt, gte, lt, lte, not eq"),
        ] {
            let error = Condition::parse(pointer, &written).unwrap_err();
            assert!(error.starts_with(want), "{error}");
        }
    }
}
