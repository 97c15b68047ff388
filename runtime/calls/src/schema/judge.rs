//! Checks a value against a JSON Schema level by level: its type, enumeration and constant, and the names and schemas
//! of its members. Everything that is not understood is accepted; the upstream decides about that.

use super::{alternatives, member, resolve, word};
use ptc_base::secrets::{Cut, dotted};
use serde_json::Value as Json;
use std::borrow::Cow;
use std::cell::Cell;
use std::fmt::Write as _;

/// Limit of schemas inside schemas that are followed for one value.
const DEEPEST: usize = 8;

/// Limit of schemas that are examined for one value.
const MOST_LOOKED_AT: usize = 1_000;

/// Length limit of a value in a message, in characters.
const SHOWN: usize = 60;

/// Limit of listed values of an enumeration in a message.
const MOST_LISTED: usize = 12;

/// Limit of values of enumerations, and of schemas, that the arguments of one call are compared with, for a
/// caller without a meter. The rest is accepted.
pub const MOST_COMPARED: u64 = 5_000_000;

/// Checks values against a schema document, and counts the work.
#[derive(Debug)]
pub struct Judge<'s> {
    root: &'s Json,
    /// Work that is left.
    left: Cell<u64>,
    /// Work that is not charged yet.
    work: Cell<u64>,
}

impl<'s> Judge<'s> {
    /// A judge of a document; `most` limits its work.
    pub fn new(root: &'s Json, most: u64) -> Judge<'s> {
        Judge { root, left: Cell::new(most), work: Cell::new(0) }
    }

    /// The document.
    pub fn root(&self) -> &'s Json {
        self.root
    }

    /// Work since the last call, in schemas or values of enumerations examined.
    pub fn take_work(&self) -> u64 {
        self.work.take()
    }

    /// Counts work; false when the limit is reached.
    fn works(&self, units: usize) -> bool {
        let units = units as u64;
        self.work.set(self.work.get().saturating_add(units));
        let left = self.left.get();
        self.left.set(left.saturating_sub(units));
        left > 0
    }
}

/// The shape of a value from outside.
#[derive(Clone, Debug)]
pub enum ValueShape<'v> {
    /// `null`.
    Nil,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer beyond 64 bits.
    BigInt(Cow<'v, str>),
    /// A number with a fraction.
    Float(f64),
    /// A string.
    Text(Cow<'v, str>),
    /// An array.
    List,
    /// An object.
    Map,
    /// Unknown, or without a counterpart in JSON.
    Unknown,
}

/// Why a value does not match.
#[derive(Debug)]
pub enum Mismatch<'s> {
    /// It has another type, which is named here.
    Type(String),
    /// It is none of these values.
    NotListed(&'s [Json]),
    /// It is not this value.
    NotEqual(&'s Json),
}

/// Why a value does not match its schema, which is part of the judge's document.
pub fn mismatch<'s>(judge: &Judge<'s>, schema: &'s Json, shape: &ValueShape<'_>) -> Option<Mismatch<'s>> {
    let mut left = MOST_LOOKED_AT;
    look(judge, schema, shape, 0, &mut left)
}

/// `left` counts the schemas that may still be examined: nested alternatives multiply.
fn look<'s>(
    judge: &Judge<'s>,
    schema: &'s Json,
    shape: &ValueShape<'_>,
    depth: usize,
    left: &mut usize,
) -> Option<Mismatch<'s>> {
    let root = judge.root;
    let schema = resolve(root, schema);
    *left = left.saturating_sub(1);
    if depth > DEEPEST || *left == 0 || !judge.works(1) || matches!(shape, ValueShape::Unknown) {
        return None;
    }
    if matches!(shape, ValueShape::Nil) && member(schema, "nullable") == Some(&Json::Bool(true)) {
        return None;
    }
    if let Some(fixed) = member(schema, "const") {
        return (equal(fixed, shape) == Some(false)).then_some(Mismatch::NotEqual(fixed));
    }
    if let Some(values) = member(schema, "enum").and_then(Json::as_array) {
        let found = values.iter().position(|value| equal(value, shape) != Some(false));
        let fits = found.is_some() | !judge.works(found.unwrap_or(values.len()));
        return (!fits).then_some(Mismatch::NotListed(values));
    }
    if !type_fits(member(schema, "type"), shape) {
        return Some(Mismatch::Type(word(root, schema)));
    }
    if let Some(choices) = alternatives(schema)
        && choices.iter().all(|choice| look(judge, choice, shape, depth + 1, left).is_some())
    {
        return Some(Mismatch::Type(word(root, schema)));
    }
    let all = member(schema, "allOf").and_then(Json::as_array);
    all.into_iter().flatten().find_map(|part| look(judge, part, shape, depth + 1, left))
}

fn type_fits(kind: Option<&Json>, shape: &ValueShape<'_>) -> bool {
    match kind {
        Some(Json::String(kind)) => fits(kind, shape),
        Some(Json::Array(kinds)) => kinds.iter().filter_map(Json::as_str).any(|kind| fits(kind, shape)),
        _ => true,
    }
}

fn fits(kind: &str, shape: &ValueShape<'_>) -> bool {
    match shape {
        ValueShape::Nil => kind == "null",
        ValueShape::Bool(_) => kind == "boolean",
        ValueShape::Int(_) | ValueShape::BigInt(_) => matches!(kind, "integer" | "number"),
        ValueShape::Float(number) => kind == "number" || (kind == "integer" && number.fract() == 0.0),
        ValueShape::Text(_) => kind == "string",
        ValueShape::List => kind == "array",
        ValueShape::Map => kind == "object",
        ValueShape::Unknown => true,
    }
}

/// Whether a value equals this one; `None` when that depends on its members.
fn equal(json: &Json, shape: &ValueShape<'_>) -> Option<bool> {
    Some(match (json, shape) {
        (Json::Null, ValueShape::Nil) => true,
        (Json::Bool(a), ValueShape::Bool(b)) => a == b,
        (Json::Number(a), ValueShape::Int(b)) => a.as_i64() == Some(*b) || a.as_f64() == Some(*b as f64),
        (Json::Number(a), ValueShape::Float(b)) => a.as_f64() == Some(*b),
        (Json::Number(a), ValueShape::BigInt(b)) => a.to_string() == **b,
        (Json::String(a), ValueShape::Text(b)) => a == b,
        (Json::Array(_), ValueShape::List)
        | (Json::Object(_), ValueShape::Map)
        | (_, ValueShape::Unknown) => return None,
        _ => false,
    })
}

/// The schema of an entry of a map: its property, or the schema for all other names.
pub fn below<'s>(judge: &Judge<'s>, schema: &'s Json, name: &str) -> Option<&'s Json> {
    let schema = container(judge, schema, "object")?;
    match member(schema, "properties").and_then(|properties| member(properties, name)) {
        Some(property) => Some(property),
        None => member(schema, "additionalProperties").filter(|other| other.is_object()),
    }
}

/// The schema of the items of a list.
pub fn items<'s>(judge: &Judge<'s>, schema: &'s Json) -> Option<&'s Json> {
    container(judge, schema, "array")?.get("items").filter(|items| items.is_object())
}

/// The one schema that describes a map or list: the schema itself, or the only alternative of that type.
fn container<'s>(judge: &Judge<'s>, schema: &'s Json, kind: &str) -> Option<&'s Json> {
    let root = judge.root;
    let schema = resolve(root, schema);
    let Some(choices) = alternatives(schema) else { return Some(schema) };
    let shape = if kind == "object" { ValueShape::Map } else { ValueShape::List };
    let mut fitting = choices.iter().filter(|choice| mismatch(judge, choice, &shape).is_none());
    let only = fitting.next()?;
    (fitting.next().is_none() && member(schema, "properties").is_none()).then(|| resolve(root, only))
}

/// A schema's rules for the names of a map.
pub struct Names<'s> {
    schema: Option<&'s Json>,
}

/// What the schema says about one name.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The schema declares it, or accepts any.
    Known,
    /// The schema refuses it.
    Refused,
    /// The schema declares other names, and does not refuse further ones.
    Undeclared,
}

impl<'s> Names<'s> {
    /// The rules of the object that the schema describes.
    pub fn for_object(judge: &Judge<'s>, schema: &'s Json) -> Names<'s> {
        Names { schema: container(judge, schema, "object") }
    }

    /// The declared names.
    pub fn declared(&self) -> Vec<&'s str> {
        let properties =
            self.schema.and_then(|schema| member(schema, "properties")).and_then(Json::as_object);
        properties.into_iter().flat_map(|properties| properties.keys().map(String::as_str)).collect()
    }

    /// The names that must be there, in schema order.
    pub fn required(&self) -> impl Iterator<Item = &'s str> {
        let required = self.schema.and_then(|schema| member(schema, "required")).and_then(Json::as_array);
        required.into_iter().flatten().filter_map(Json::as_str)
    }

    /// The name of a key: a keyword's `-` becomes `_` where the schema spells it so.
    pub fn spelled<'k>(&self, key: &'k str, is_keyword: bool) -> Cow<'k, str> {
        let properties = self.schema.and_then(|schema| member(schema, "properties"));
        let is_declared = |name: &str| properties.is_some_and(|properties| properties.get(name).is_some());
        if !is_keyword || !key.contains('-') || is_declared(key) {
            return Cow::Borrowed(key);
        }
        let underscored = key.replace('-', "_");
        if is_declared(&underscored) { Cow::Owned(underscored) } else { Cow::Borrowed(key) }
    }

    /// Judges a name.
    pub fn judge(&self, name: &str) -> Verdict {
        let Some(schema) = self.schema else { return Verdict::Known };
        let properties = member(schema, "properties").and_then(Json::as_object);
        let is_declared = properties.is_some_and(|properties| properties.contains_key(name));
        // These keywords may declare names, too.
        let elsewhere = ["patternProperties", "allOf", "anyOf", "oneOf", "$ref", "if", "dependentSchemas"];
        if is_declared || elsewhere.iter().any(|keyword| member(schema, keyword).is_some()) {
            return Verdict::Known;
        }
        match (member(schema, "additionalProperties"), properties) {
            (Some(Json::Bool(false)), _) => Verdict::Refused,
            (None, Some(properties)) if !properties.is_empty() => Verdict::Undeclared,
            _ => Verdict::Known,
        }
    }
}

impl ValueShape<'_> {
    /// The value in a message.
    pub fn shown(&self) -> String {
        match self {
            ValueShape::Nil => "nil".to_owned(),
            ValueShape::Bool(value) => value.to_string(),
            ValueShape::Int(value) => value.to_string(),
            ValueShape::BigInt(digits) => digits.to_string(),
            ValueShape::Float(value) => format!("{value:?}"),
            // Cut inside the quotes: the ellipsis marks where a secret may have been cut.
            ValueShape::Text(text) => Json::from(dotted(text, Cut::Chars(SHOWN))).to_string(),
            ValueShape::List => "a list".to_owned(),
            ValueShape::Map => "a map".to_owned(),
            ValueShape::Unknown => "another value".to_owned(),
        }
    }
}

impl Mismatch<'_> {
    /// The schema's demand, to follow `must be`.
    pub(crate) fn wanted(&self) -> String {
        match self {
            Mismatch::Type(word) => word.clone(),
            Mismatch::NotEqual(fixed) => fixed.to_string(),
            Mismatch::NotListed(values) => {
                let mut text = String::from("one of ");
                for (at, value) in values.iter().take(MOST_LISTED).enumerate() {
                    let comma = if at > 0 { ", " } else { "" };
                    // Writing to a string cannot fail.
                    let _ = write!(text, "{comma}{value}");
                }
                if values.len() > MOST_LISTED {
                    let _ = write!(text, ", … ({} more)", values.len() - MOST_LISTED);
                }
                text
            }
        }
    }

    /// The texts that would have matched.
    pub(crate) fn texts(&self) -> Vec<&str> {
        match self {
            Mismatch::NotListed(values) => values.iter().filter_map(Json::as_str).collect(),
            Mismatch::NotEqual(fixed) => fixed.as_str().into_iter().collect(),
            Mismatch::Type(_) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fits(schema: Json, shape: ValueShape<'_>) -> bool {
        mismatch(&Judge::new(&schema, u64::MAX), &schema, &shape).is_none()
    }

    fn text(text: &str) -> ValueShape<'_> {
        ValueShape::Text(text.into())
    }

    #[test]
    fn types_fit_as_json_schema_says() {
        let integer = json!({"type": "integer"});
        assert!(fits(integer.clone(), ValueShape::Int(1)) && fits(integer.clone(), ValueShape::Float(1.0)));
        assert!(!fits(integer.clone(), ValueShape::Float(1.5)) && !fits(integer.clone(), text("1")));
        assert!(!fits(integer.clone(), ValueShape::Nil) && fits(integer, ValueShape::Unknown));
        assert!(fits(json!({"type": ["integer", "null"]}), ValueShape::Nil));
        assert!(fits(json!({"type": "string", "nullable": true}), ValueShape::Nil));
        assert!(
            fits(json!({"type": "array"}), ValueShape::List)
                && !fits(json!({"type": "array"}), ValueShape::Map)
        );
        assert!(
            fits(json!({}), ValueShape::Map)
                && fits(json!(true), ValueShape::Nil)
                && fits(json!(null), ValueShape::Nil)
        );
    }

    #[test]
    fn enumerations_constants_and_alternatives() {
        let state = json!({"type": "string", "enum": ["open", "closed"]});
        assert!(fits(state.clone(), text("open")) && !fits(state.clone(), text("Open")));
        let shown = mismatch(&Judge::new(&state, u64::MAX), &state, &text("opn")).map(|why| why.wanted());
        assert_eq!(shown.as_deref(), Some("one of \"open\", \"closed\""));
        assert!(
            fits(json!({"const": 1}), ValueShape::Float(1.0))
                && !fits(json!({"const": "a"}), ValueShape::Int(1))
        );
        assert!(
            fits(json!({"enum": [[1]]}), ValueShape::List) && !fits(json!({"enum": [[1]]}), ValueShape::Map)
        );
        let either = json!({"anyOf": [{"type": "string"}, {"type": "array"}]});
        assert!(fits(either.clone(), ValueShape::List) && !fits(either, ValueShape::Int(1)));
        assert!(!fits(json!({"allOf": [{"type": "string"}, {"enum": ["a"]}]}), text("b")));
        let circle = json!({"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"});
        assert!(fits(circle, ValueShape::Int(1)));
    }

    #[test]
    fn work_is_counted_and_bounded() {
        let many: Vec<u32> = (0..20_000).collect();
        let schema = json!({ "enum": many });
        let judge = Judge::new(&schema, 30_000);
        assert!(mismatch(&judge, &schema, &ValueShape::Int(-1)).is_some());
        assert!(judge.take_work() >= 20_000 && judge.take_work() == 0);
        // The rest is not examined, and accepted.
        assert!(mismatch(&judge, &schema, &ValueShape::Int(-1)).is_some());
        assert!(mismatch(&judge, &schema, &ValueShape::Int(-1)).is_none());
    }

    #[test]
    fn names_are_refused_only_by_closed_schemas() {
        let judge =
            |schema: Json, name: &str| Names::for_object(&Judge::new(&schema, u64::MAX), &schema).judge(name);
        let properties = json!({"a-b": {}, "c_d": {}});
        let closed = json!({"properties": properties, "additionalProperties": false});
        assert_eq!(
            (judge(closed.clone(), "a-b"), judge(closed.clone(), "x")),
            (Verdict::Known, Verdict::Refused)
        );
        assert_eq!(judge(json!({"properties": properties}), "x"), Verdict::Undeclared);
        assert_eq!(
            judge(json!({"properties": properties, "additionalProperties": true}), "x"),
            Verdict::Known
        );
        assert_eq!(judge(json!({"properties": properties, "anyOf": [{}]}), "x"), Verdict::Known);
        assert_eq!(judge(json!({"type": "object"}), "x"), Verdict::Known);
        let names = Names::for_object(&Judge::new(&closed, u64::MAX), &closed);
        assert_eq!((names.spelled("a-b", true), names.spelled("c-d", true)), ("a-b".into(), "c_d".into()));
        assert_eq!((names.spelled("c-d", false), names.spelled("e-f", true)), ("c-d".into(), "e-f".into()));
    }
}
