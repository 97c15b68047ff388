//! A program's result against an `output_schema`.
//!
//! The result is taken in its JSON form. There is no coercion, except that a number may be an
//! integer and that a property is also found under its kebab-case name (`:user-id` for `user_id`);
//! the validated value carries the client's spelling.

use super::schema::{ObjectSchema, Schema};
use serde_json::{Map, Value};

/// Most mismatches that one message lists.
const MAX_MISMATCHES: usize = 10;

/// Checks `value`; the error is the message of a `validation_error`.
pub fn validate(value: Value, schema: &Schema) -> Result<Value, String> {
    let mut mismatches = Mismatches { found: Vec::new(), more: 0 };
    let value = check(value, schema, "return", &mut mismatches);
    if mismatches.found.is_empty() {
        return Ok(value);
    }
    let mut message = mismatches.found.join("; ");
    if mismatches.more > 0 {
        message.push_str(&format!("; … and {} more", mismatches.more));
    }
    Err(message)
}

struct Mismatches {
    found: Vec<String>,
    more: usize,
}

impl Mismatches {
    fn add(&mut self, path: &str, what: &str) {
        if self.found.len() < MAX_MISMATCHES {
            self.found.push(format!("{path}: {what}"));
        } else {
            self.more += 1;
        }
    }
}

// Recursion follows the schema, which is at most 128 levels deep.
fn check(value: Value, schema: &Schema, path: &str, mismatches: &mut Mismatches) -> Value {
    match (schema, value) {
        (Schema::String, value @ Value::String(_))
        | (Schema::Boolean, value @ Value::Bool(_))
        | (Schema::Number, value @ Value::Number(_)) => value,
        (Schema::Integer, value) if is_integer(&value) => value,
        (Schema::Array(items), Value::Array(values)) => Value::Array(
            values
                .into_iter()
                .enumerate()
                .map(|(index, value)| check(value, items, &format!("{path}.{index}"), mismatches))
                .collect(),
        ),
        (Schema::Object(object), Value::Object(map)) => {
            Value::Object(check_object(map, object, path, mismatches))
        }
        (schema, value) => {
            mismatches.add(path, &format!("expected {}, got {}", schema.name(), type_name(&value)));
            value
        }
    }
}

fn check_object(
    mut map: Map<String, Value>,
    schema: &ObjectSchema,
    path: &str,
    mismatches: &mut Mismatches,
) -> Map<String, Value> {
    let mut checked = Map::new();
    for property in &schema.properties {
        let found = map
            .shift_remove(&property.name)
            .or_else(|| map.shift_remove(&property.name.replace('_', "-")))
            .or_else(|| map.shift_remove(&property.name.replace('-', "_")));
        let path = format!("{path}.{}", property.name);
        match found {
            None | Some(Value::Null) if property.required => mismatches.add(&path, "expected field, got nil"),
            None => {}
            Some(Value::Null) => {
                checked.insert(property.name.clone(), Value::Null);
            }
            Some(value) => {
                checked.insert(property.name.clone(), check(value, &property.schema, &path, mismatches));
            }
        }
    }
    if schema.open {
        checked.extend(map);
    } else {
        for name in map.keys() {
            mismatches
                .add(&format!("{path}.{name}"), "unexpected field — schema disallows additional properties");
        }
    }
    checked
}

fn is_integer(value: &Value) -> bool {
    matches!(value, Value::Number(number) if number.is_i64() || number.is_u64())
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "nil",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
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
    fn long_lists_of_mismatches_are_cut() {
        let message =
            check_json(json!(vec!["x"; 100]), json!({"type": "array", "items": {"type": "integer"}}));
        assert!(message.expect_err("mismatch").ends_with("; … and 90 more"));
    }
}
