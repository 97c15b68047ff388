//! Validates a program's result against the `output_schema` that its caller gave, a small subset of JSON Schema.
//!
//! The result is taken in its JSON form. There is no coercion, with two exceptions: a number may be an integer,
//! and a property is also found under its kebab-case name (`:user-id` for `user_id`). The validated value has
//! the client's spelling.

use super::output::{ObjectSchema, Schema};
use super::type_of;
use serde_json::{Map, Value};
use std::fmt;

/// Most mismatches that one message lists.
const MAX_MISMATCHES: usize = 10;

/// Validates `value`; the error is the message of a `validation_error`. The work is linear in the value: the
/// schema's properties are only traversed to list a mismatch.
pub fn validate(value: Value, schema: &Schema) -> Result<Value, String> {
    let mut mismatches = Mismatches { found: Vec::new(), more: 0 };
    let value = check(value, schema, ValuePath::Return, &mut mismatches);
    if mismatches.found.is_empty() {
        return Ok(value);
    }
    let mut message = mismatches.found.join("; ");
    if mismatches.more > 0 {
        message.push_str(&format!("; … and {} more", mismatches.more));
    }
    Err(message)
}

/// Path of a value. It is formatted only for a mismatch that is listed.
#[derive(Clone, Copy)]
enum ValuePath<'p> {
    Return,
    Item(&'p ValuePath<'p>, usize),
    Field(&'p ValuePath<'p>, &'p str),
}

// Recursion follows the schema, which is at most 128 levels deep.
impl fmt::Display for ValuePath<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValuePath::Return => out.write_str("return"),
            ValuePath::Item(before, index) => write!(out, "{before}.{index}"),
            ValuePath::Field(before, name) => write!(out, "{before}.{name}"),
        }
    }
}

struct Mismatches {
    found: Vec<String>,
    more: usize,
}

impl Mismatches {
    fn has_room(&self) -> bool {
        self.found.len() < MAX_MISMATCHES
    }

    fn add(&mut self, path: ValuePath<'_>, what: impl FnOnce() -> String) {
        if self.has_room() {
            self.found.push(format!("{path}: {}", what()));
        } else {
            self.more += 1;
        }
    }
}

// Recursion follows the schema, which is at most 128 levels deep.
fn check(value: Value, schema: &Schema, path: ValuePath<'_>, mismatches: &mut Mismatches) -> Value {
    match (schema, value) {
        (Schema::String, value @ Value::String(_))
        | (Schema::Boolean, value @ Value::Bool(_))
        | (Schema::Number, value @ Value::Number(_)) => value,
        (Schema::Integer, value) if is_integer(&value) => value,
        (Schema::Array(items), Value::Array(values)) => {
            let values = values.into_iter().enumerate();
            Value::Array(
                values
                    .map(|(index, value)| check(value, items, ValuePath::Item(&path, index), mismatches))
                    .collect(),
            )
        }
        (Schema::Object(object), Value::Object(map)) => {
            Value::Object(check_object(map, object, path, mismatches))
        }
        (schema, value) => {
            mismatches.add(path, || format!("expected {}, got {}", schema.name(), type_name(&value)));
            value
        }
    }
}

fn check_object(
    map: Map<String, Value>,
    schema: &ObjectSchema,
    path: ValuePath<'_>,
    mismatches: &mut Mismatches,
) -> Map<String, Value> {
    let mut declared = Vec::with_capacity(map.len().min(schema.properties.len()));
    let mut others = Map::new();
    for (key, value) in map {
        match schema.find(&key) {
            Some(spelling) => declared.push((spelling, key, value)),
            None => {
                others.insert(key, value);
            }
        }
    }
    // In the schema's order, the best spelling of each property first. A second spelling of the same property
    // counts as an undeclared key.
    declared.sort_by_key(|(spelling, ..)| *spelling);
    let mut fields: Vec<(usize, Value)> = Vec::with_capacity(declared.len());
    for (spelling, key, value) in declared {
        if fields.last().is_some_and(|(property, _)| *property == spelling.property) {
            others.insert(key, value);
        } else {
            fields.push((spelling.property, value));
        }
    }
    let is_filled = |(at, value): &&(usize, Value)| schema.properties[*at].required && !value.is_null();
    let missing = schema.required - fields.iter().filter(is_filled).count();
    // Listing a mismatch traverses the schema, so it is done at most ten times.
    let lists_missing = missing > 0 && mismatches.has_room();
    let list = |from: usize, to: usize, mismatches: &mut Mismatches| {
        if lists_missing {
            for property in schema.properties[from..to].iter().filter(|property| property.required) {
                mismatches
                    .add(ValuePath::Field(&path, &property.name), || "expected field, got nil".to_owned());
            }
        }
    };
    let mut next = 0;
    let mut checked = Map::new();
    for (at, value) in fields {
        let property = &schema.properties[at];
        let value = match value {
            Value::Null if property.required => continue,
            Value::Null => Value::Null,
            value => {
                list(next, at, mismatches);
                next = at + 1;
                check(value, &property.schema, ValuePath::Field(&path, &property.name), mismatches)
            }
        };
        checked.insert(property.name.clone(), value);
    }
    list(next, schema.properties.len(), mismatches);
    if missing > 0 && !lists_missing {
        mismatches.more += missing;
    }
    if schema.open {
        checked.extend(others);
    } else {
        for name in others.keys() {
            let what = || "unexpected field — schema disallows additional properties".to_owned();
            mismatches.add(ValuePath::Field(&path, name), what);
        }
    }
    checked
}

fn is_integer(value: &Value) -> bool {
    matches!(value, Value::Number(number) if number.is_i64() || number.is_u64())
}

/// The type of a value, with `nil` for null, as programs write it.
fn type_name(value: &Value) -> &'static str {
    if value.is_null() { "nil" } else { type_of(value) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check_json(value: Value, schema: Value) -> Result<Value, String> {
        validate(value, &Schema::parse(&schema).expect("schema"))
    }

    #[test]
    fn a_match_keeps_extra_fields_of_open_objects_and_the_schema_spelling() {
        let schema =
            json!({"type": "object", "properties": {"user_id": {"type": "number"}}, "required": ["user_id"]});
        assert_eq!(check_json(json!({"user-id": 1, "x": [1]}), schema), Ok(json!({"user_id": 1, "x": [1]})));
    }

    #[test]
    fn mismatches_name_their_path() {
        let schema = json!({"type": "object", "additionalProperties": false, "required": ["rows", "n"], "properties": {
            "rows": {"type": "array", "items": {"type": "integer"}}, "n": {"type": "integer"},
            "note": {"type": "string"}}});
        assert_eq!(
            check_json(json!({"rows": [1, "a", 1.5], "z": 1, "note": null}), schema),
            Err("return.rows.1: expected integer, got string; return.rows.2: expected integer, got number; \
                 return.n: expected field, got nil; \
                 return.z: unexpected field — schema disallows additional properties"
                .into())
        );
        assert_eq!(
            check_json(json!(null), json!({"type": "boolean"})),
            Err("return: expected boolean, got nil".into())
        );
    }

    #[test]
    fn missing_fields_are_told_in_the_order_of_the_schema_and_counted() {
        let names: Vec<String> = (0..12).map(|n| format!("k_{n}")).collect();
        let properties: Map<String, Value> =
            names.iter().map(|name| (name.clone(), json!({"type": "integer"}))).collect();
        let schema = json!({"type": "array", "items": {"type": "object", "properties": properties, "required": names}});
        let message =
            check_json(json!([{"k-1": 1, "k_2": "x", "k_3": null}, {}]), schema).expect_err("mismatch");
        assert!(
            message.starts_with(
                "return.0.k_0: expected field, got nil; return.0.k_2: expected integer, got string; return.0.k_3: \
                 expected field, got nil; "
            ),
            "{message}"
        );
        assert!(message.ends_with("; … and 13 more"), "{message}");
    }

    #[test]
    fn the_best_spelling_of_a_field_counts() {
        let schema = json!({"type": "object", "properties": {"a_b": {"type": "integer"}}});
        assert_eq!(check_json(json!({"a-b": "x", "a_b": 1}), schema), Ok(json!({"a_b": 1, "a-b": "x"})));
    }

    #[test]
    fn long_lists_of_mismatches_are_cut() {
        let message =
            check_json(json!(vec!["x"; 100]), json!({"type": "array", "items": {"type": "integer"}}));
        assert!(message.expect_err("mismatch").ends_with("; … and 90 more"));
    }
}
