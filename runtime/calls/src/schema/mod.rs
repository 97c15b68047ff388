//! Interprets JSON Schemas: follows references, checks arguments of calls, and validates results of programs against
//! `output_schema`. No other code interprets them; `tools/signature` writes them down for programs.
//!
//! # Layout
//! - this file: references, alternatives, and one word for the type of each argument
//! - [`judge`]: one value, and the names of an object, against any schema; what is not understood is accepted
//! - [`output`]: the strict subset that `output_schema` may use; `validate`: a result against it

pub mod judge;
pub mod output;
mod validate;

pub use validate::validate;

use serde_json::Value as Json;

/// Limit of references that are followed: `$ref` may point in a circle.
const MOST_REFERENCES: usize = 8;

/// Objects with at most this many members are searched linearly, which is faster than hashing the name.
const FEW: usize = 8;

/// The member of this name, if `json` is an object that has one.
pub(crate) fn member<'j>(json: &'j Json, name: &str) -> Option<&'j Json> {
    let members = json.as_object()?;
    if members.len() > FEW {
        return members.get(name);
    }
    members.iter().find(|(key, _)| *key == name).map(|(_, value)| value)
}

/// Follows `$ref` within the document, and an `allOf` of one schema.
pub fn resolve<'s>(root: &'s Json, schema: &'s Json) -> &'s Json {
    let mut schema = schema;
    for _ in 0..MOST_REFERENCES {
        let target = match (member(schema, "$ref").and_then(Json::as_str), member(schema, "allOf")) {
            (Some(reference), _) => reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer)),
            (None, Some(Json::Array(only))) if only.len() == 1 && member(schema, "type").is_none() => {
                only.first()
            }
            _ => None,
        };
        match target {
            Some(target) => schema = target,
            None => break,
        }
    }
    schema
}

/// The alternatives of a schema that consists only of them.
pub(crate) fn alternatives(schema: &Json) -> Option<&[Json]> {
    let list = member(schema, "anyOf").or_else(|| member(schema, "oneOf"))?.as_array()?;
    (!list.is_empty()).then_some(list.as_slice())
}

/// The word for an argument: a type name, `enum<type>`, `const<json>`, or alternatives with `|` between them.
/// A constraint that is stricter than the type wins.
pub(crate) fn word(root: &Json, schema: &Json) -> String {
    words(root, schema, 0)
}

fn words(root: &Json, schema: &Json, depth: usize) -> String {
    let schema = resolve(root, schema);
    if let Some(fixed) = member(schema, "const") {
        return format!("const<{fixed}>");
    }
    if let Some(values) = member(schema, "enum").and_then(Json::as_array) {
        return match shared_type(values) {
            Some(kind) => format!("enum<{kind}>"),
            None => "enum".to_owned(),
        };
    }
    match member(schema, "type") {
        Some(Json::String(kind)) => return kind.clone(),
        Some(Json::Array(kinds)) => return union(kinds.iter().filter_map(Json::as_str).map(str::to_owned)),
        _ => {}
    }
    if let Some(choices) = alternatives(schema).filter(|_| depth < MOST_REFERENCES) {
        return union(choices.iter().map(|choice| words(root, choice, depth + 1)));
    }
    if member(schema, "properties").is_some() {
        "object".to_owned()
    } else if member(schema, "items").is_some() {
        "array".to_owned()
    } else {
        "any".to_owned()
    }
}

/// The type that all values share.
fn shared_type(values: &[Json]) -> Option<&'static str> {
    let mut kinds = values.iter().map(type_of);
    let first = kinds.next()?;
    kinds.try_fold(first, |shared, kind| match (shared, kind) {
        (shared, kind) if shared == kind => Some(shared),
        ("integer", "number") | ("number", "integer") => Some("number"),
        _ => None,
    })
}

/// The JSON Schema name of a value's type.
pub(crate) fn type_of(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(number) if number.is_f64() => "number",
        Json::Number(_) => "integer",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}

/// Words with `|` between them, each once; null is dropped if there are others.
fn union(words: impl Iterator<Item = String>) -> String {
    let mut seen: Vec<String> = Vec::new();
    for word in words {
        if !seen.contains(&word) {
            seen.push(word);
        }
    }
    if seen.len() > 1 {
        seen.retain(|word| word != "null");
    }
    if seen.is_empty() { "any".to_owned() } else { seen.join("|") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn constraints_come_before_types() {
        let cases = [
            (json!({"type": "string"}), "string"),
            (json!({"type": "string", "enum": ["open", "closed"]}), "enum<string>"),
            (json!({"enum": [1, 2]}), "enum<integer>"),
            (json!({"enum": [1, 2.5]}), "enum<number>"),
            (json!({"enum": ["a", 1]}), "enum"),
            (json!({"type": "string", "const": "fixed"}), "const<\"fixed\">"),
            (json!({"const": 42}), "const<42>"),
            (json!({"const": false}), "const<false>"),
            (json!({"const": null}), "const<null>"),
            (json!({"const": 0}), "const<0>"),
            (json!({"const": ""}), "const<\"\">"),
            (json!({"type": ["string", "null"]}), "string"),
            (json!({"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]}), "integer|string"),
            (json!({"type": "object", "properties": {"a": {"type": "string"}}}), "object"),
            (json!({"type": "array", "items": {"type": "string"}}), "array"),
            (json!({}), "any"),
            (json!(true), "any"),
        ];
        for (schema, want) in cases {
            assert_eq!(word(&schema, &schema), want, "{schema}");
        }
    }

    #[test]
    fn references_are_followed_and_circles_end() {
        let root = json!({"$defs": {"id": {"type": "integer"}, "loop": {"$ref": "#/$defs/loop"},
            "either": {"anyOf": [{"$ref": "#/$defs/either"}, {"$ref": "#/$defs/id"}]}}});
        assert_eq!(word(&root, &json!({"$ref": "#/$defs/id"})), "integer");
        assert_eq!(word(&root, &json!({"allOf": [{"$ref": "#/$defs/id"}]})), "integer");
        assert_eq!(word(&root, &json!({"$ref": "#/$defs/loop"})), "any");
        assert!(word(&root, &json!({"$ref": "#/$defs/either"})).contains("integer"));
        assert_eq!(word(&root, &json!({"$ref": "#/nowhere"})), "any");
    }
}
