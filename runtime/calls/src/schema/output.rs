//! Parses the `output_schema` of a program's result, and refuses whatever is outside a small subset of JSON Schema.
//!
//! Types string, integer, number, boolean, array (with `items`) and object (with `properties`,
//! `required`, `additionalProperties`); `description` is allowed everywhere and ignored. Anything
//! else is refused, because a keyword that would be ignored silently is a promise not kept.

use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};

/// A parsed schema.
#[derive(Clone, Debug, PartialEq)]
pub enum Schema {
    /// `string`.
    String,
    /// `integer`.
    Integer,
    /// `number`; accepts integers.
    Number,
    /// `boolean`.
    Boolean,
    /// `array`.
    Array(Box<Schema>),
    /// `object`.
    Object(ObjectSchema),
}

/// An `object` schema.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectSchema {
    /// In the order of the schema.
    pub properties: Vec<Property>,
    /// False when the schema says `additionalProperties: false`.
    pub open: bool,
    /// How many properties are required.
    pub required: usize,
    /// Index of a property by each of its spellings.
    spellings: HashMap<String, Spelling>,
}

/// The property that a key names, and the rank of its spelling: 0 as in the schema, 1 in kebab case, 2 in snake
/// case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spelling {
    /// Index in the schema's order.
    pub property: usize,
    rank: u8,
}

impl ObjectSchema {
    fn new(properties: Vec<Property>, open: bool) -> ObjectSchema {
        let mut spellings = HashMap::with_capacity(2 * properties.len());
        let ranks: [fn(&str) -> String; 3] =
            [str::to_owned, |name| name.replace('_', "-"), |name| name.replace('-', "_")];
        for (rank, spell) in (0..).zip(ranks) {
            for (property, declared) in properties.iter().enumerate() {
                spellings.entry(spell(&declared.name)).or_insert(Spelling { property, rank });
            }
        }
        let required = properties.iter().filter(|property| property.required).count();
        ObjectSchema { properties, open, required, spellings }
    }

    /// Finds the property that a key of a value names.
    pub fn find(&self, key: &str) -> Option<Spelling> {
        self.spellings.get(key).copied()
    }
}

/// One declared property.
#[derive(Clone, Debug, PartialEq)]
pub struct Property {
    /// Name as the client spells it.
    pub name: String,
    /// A required property must be present and not null.
    pub required: bool,
    /// Schema of its value.
    pub schema: Schema,
}

/// Most bytes of a schema. Parsing it and validating with it is work that no limit of the program covers.
pub const MAX_SCHEMA_BYTES: usize = 64 << 10;

const ANY_KEYS: &[&str] = &["type", "description"];

impl Schema {
    /// Reads a schema; the error completes ``argument `output_schema` is invalid: ``.
    ///
    /// The native stack is safe: a `Value` is at most 128 levels deep.
    pub fn parse(value: &Value) -> Result<Schema, String> {
        let Value::Object(map) = value else { return Err("schema must be a JSON object".into()) };
        let kind = map.get("type").ok_or("schema must have a \"type\" key")?;
        match kind.as_str() {
            Some("string") => allow(map, &[]).map(|()| Schema::String),
            Some("integer") => allow(map, &[]).map(|()| Schema::Integer),
            Some("number") => allow(map, &[]).map(|()| Schema::Number),
            Some("boolean") => allow(map, &[]).map(|()| Schema::Boolean),
            Some("array") => {
                allow(map, &["items"])?;
                let items = map.get("items").ok_or("array type requires an \"items\" key")?;
                if !items.is_object() {
                    return Err("array \"items\" must be a JSON object".into());
                }
                Ok(Schema::Array(Box::new(Schema::parse(items)?)))
            }
            Some("object") => {
                allow(map, &["properties", "required", "additionalProperties"])?;
                parse_object(map).map(Schema::Object)
            }
            _ => Err(format!("unsupported type: {kind}")),
        }
    }

    /// True when an answer that fits holds no text, and no list whose length may tell one.
    pub fn is_limited(&self) -> bool {
        match self {
            Schema::Integer | Schema::Number | Schema::Boolean => true,
            Schema::String | Schema::Array(_) => false,
            Schema::Object(object) => {
                !object.open && object.properties.iter().all(|property| property.schema.is_limited())
            }
        }
    }

    /// The type name in messages.
    pub const fn name(&self) -> &'static str {
        match self {
            Schema::String => "string",
            Schema::Integer => "integer",
            Schema::Number => "number",
            Schema::Boolean => "boolean",
            Schema::Array(_) => "array",
            Schema::Object(_) => "object",
        }
    }
}

fn allow(map: &Map<String, Value>, extra: &[&str]) -> Result<(), String> {
    let unsupported: Vec<&str> = map
        .keys()
        .map(String::as_str)
        .filter(|key| !ANY_KEYS.contains(key) && !extra.contains(key))
        .collect();
    if unsupported.is_empty() {
        Ok(())
    } else {
        Err(format!("unsupported JSON Schema key(s): {}", unsupported.join(", ")))
    }
}

fn parse_object(map: &Map<String, Value>) -> Result<ObjectSchema, String> {
    let empty = Map::new();
    let properties = match map.get("properties") {
        None => &empty,
        Some(Value::Object(properties)) => properties,
        Some(_) => return Err("object \"properties\" must be a JSON object".into()),
    };
    let required = match map.get("required") {
        None => HashSet::new(),
        Some(Value::Array(entries)) => entries
            .iter()
            .map(|entry| {
                entry.as_str().ok_or_else(|| format!("\"required\" entries must be strings, got {entry}"))
            })
            .collect::<Result<HashSet<_>, _>>()?,
        Some(_) => return Err("\"required\" must be an array of strings".into()),
    };
    if let Some(undeclared) = required.iter().find(|name| !properties.contains_key(**name)) {
        return Err(format!("\"required\" entry \"{undeclared}\" is not a declared property"));
    }
    let open = match map.get("additionalProperties") {
        None => true,
        Some(Value::Bool(open)) => *open,
        Some(other) => return Err(format!("\"additionalProperties\" must be true or false, got {other}")),
    };
    let properties = properties
        .iter()
        .map(|(name, value)| {
            let schema = Schema::parse(value).map_err(|reason| format!("property \"{name}\": {reason}"))?;
            Ok(Property { name: name.clone(), required: required.contains(name.as_str()), schema })
        })
        .collect::<Result<Vec<_>, String>>()?;
    Ok(ObjectSchema::new(properties, open))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_refusal_has_its_reason() {
        let cases = [
            (json!({}), "schema must have a \"type\" key"),
            (json!({"type": "null"}), "unsupported type: \"null\""),
            (json!({"type": ["string"]}), "unsupported type: [\"string\"]"),
            (
                json!({"type": "string", "minLength": 1, "enum": []}),
                "unsupported JSON Schema key(s): minLength, enum",
            ),
            (json!({"type": "array"}), "array type requires an \"items\" key"),
            (json!({"type": "array", "items": 1}), "array \"items\" must be a JSON object"),
            (json!({"type": "object", "properties": []}), "object \"properties\" must be a JSON object"),
            (json!({"type": "object", "required": "a"}), "\"required\" must be an array of strings"),
            (json!({"type": "object", "required": [1]}), "\"required\" entries must be strings, got 1"),
            (
                json!({"type": "object", "required": ["a"]}),
                "\"required\" entry \"a\" is not a declared property",
            ),
            (
                json!({"type": "object", "additionalProperties": {}}),
                "\"additionalProperties\" must be true or false, got {}",
            ),
            (
                json!({"type": "object", "properties": {"a": {"type": "array", "items": {}}}}),
                "property \"a\": schema must have a \"type\" key",
            ),
        ];
        for (schema, reason) in cases {
            assert_eq!(Schema::parse(&schema), Err(reason.to_owned()), "{schema}");
        }
    }

    #[test]
    fn descriptions_are_allowed_everywhere() {
        let schema = json!({"type": "object", "description": "d",
            "properties": {"a": {"type": "integer", "description": "e"}}, "required": ["a"]});
        let Ok(Schema::Object(object)) = Schema::parse(&schema) else { panic!("object schema") };
        assert!(object.open);
        assert!(object.properties[0].required);
    }
}
