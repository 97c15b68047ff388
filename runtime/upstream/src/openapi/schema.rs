//! Converts the schemas of an OpenAPI document to JSON Schema for tool lists, with referenced schemas in `$defs`.
//!
//! The dialect of 3.0 is converted, `allOf` of objects becomes one object, and annotations for readers of the
//! document are dropped. The size of a schema is limited: parts beyond the limit accept anything.

use super::document::{OpenApiDocument, OpenApiVersion};
use ptc_base::secrets::{Cut, shortened};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;

/// Limit of bytes of the document that are read for one tool: references may multiply them.
const MOST_READ: usize = 512 << 10;

/// Limit of the number of schemas that one refers to.
const MOST_NAMES: usize = 1_000;

/// Depth limit of `allOf` that is merged.
const DEEPEST_ALL_OF: usize = 8;

/// Most schemas that are looked into for `readOnly`. A member behind more of them stays required.
const MOST_LOOKS: u32 = 20_000;

/// Depth limit of nested schemas.
const DEEPEST: usize = 32;

/// Length limit of a description, in characters.
const LONGEST_DESCRIPTION: usize = 400;

/// The kind of a keyword's value.
#[derive(Clone, Copy, PartialEq)]
enum KeywordKind {
    /// A value that stays unchanged.
    Plain,
    /// A schema.
    Schema,
    /// A list of schemas.
    Schemas,
    /// Schemas by name.
    Named,
}

/// Keywords that are kept; all others are dropped.
const KEYWORDS: [(&str, KeywordKind); 30] = [
    ("type", KeywordKind::Plain),
    ("format", KeywordKind::Plain),
    ("enum", KeywordKind::Plain),
    ("const", KeywordKind::Plain),
    ("default", KeywordKind::Plain),
    ("required", KeywordKind::Plain),
    ("minimum", KeywordKind::Plain),
    ("maximum", KeywordKind::Plain),
    ("exclusiveMinimum", KeywordKind::Plain),
    ("exclusiveMaximum", KeywordKind::Plain),
    ("multipleOf", KeywordKind::Plain),
    ("minLength", KeywordKind::Plain),
    ("maxLength", KeywordKind::Plain),
    ("pattern", KeywordKind::Plain),
    ("minItems", KeywordKind::Plain),
    ("maxItems", KeywordKind::Plain),
    ("uniqueItems", KeywordKind::Plain),
    ("minProperties", KeywordKind::Plain),
    ("maxProperties", KeywordKind::Plain),
    ("additionalProperties", KeywordKind::Schema),
    ("items", KeywordKind::Schema),
    ("not", KeywordKind::Schema),
    ("anyOf", KeywordKind::Schemas),
    ("oneOf", KeywordKind::Schemas),
    ("allOf", KeywordKind::Schemas),
    ("prefixItems", KeywordKind::Schemas),
    ("properties", KeywordKind::Named),
    ("patternProperties", KeywordKind::Named),
    ("description", KeywordKind::Plain),
    ("discriminator", KeywordKind::Plain),
];

/// The way of the values that a schema describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// To the service: `readOnly` members are not required.
    Request,
    /// From it: `writeOnly` members are not required.
    Response,
}

impl Direction {
    /// The mark of members that values of this way need not have.
    const fn mark(self) -> &'static str {
        match self {
            Direction::Request => "readOnly",
            Direction::Response => "writeOnly",
        }
    }
}

/// What a reference leads to; `None` if that is no schema with members.
type Target = Option<Rc<Map<String, Value>>>;

/// Builds one schema with its `$defs`.
pub(super) struct SchemaBuilder<'d, 'a> {
    document: &'d OpenApiDocument<'a>,
    direction: Direction,
    /// Names in `$defs` by reference.
    names: HashMap<String, String>,
    taken: HashSet<String>,
    /// References that are not built yet.
    open: VecDeque<String>,
    /// Bytes that may still be read.
    left: Cell<usize>,
    /// What references lead to that were followed.
    targets: RefCell<HashMap<String, Target>>,
    /// How many schemas may still be looked into for the mark.
    looks: Cell<u32>,
}

impl<'d, 'a> SchemaBuilder<'d, 'a> {
    /// For a schema of this document.
    pub(super) fn new(document: &'d OpenApiDocument<'a>, direction: Direction) -> SchemaBuilder<'d, 'a> {
        SchemaBuilder {
            document,
            direction,
            names: HashMap::new(),
            taken: HashSet::new(),
            open: VecDeque::new(),
            left: MOST_READ.into(),
            targets: RefCell::default(),
            looks: MOST_LOOKS.into(),
        }
    }

    /// Converts a schema; the targets of its references are in [`SchemaBuilder::definitions`].
    pub(super) fn schema(&mut self, raw: &RawValue) -> Value {
        // A schema that nests too deeply to be parsed accepts anything.
        self.read(raw).map_or(Value::Bool(true), |value| self.convert(value, 0))
    }

    /// Parses a part of the document, unless the limit was reached.
    fn read<T: DeserializeOwned>(&self, raw: &RawValue) -> Option<T> {
        for left in [&self.left, &self.document.schemas] {
            let Some(rest) = left.get().checked_sub(raw.get().len()) else {
                left.set(0);
                return None;
            };
            left.set(rest);
        }
        serde_json::from_str(raw.get()).ok()
    }

    /// The schemas that were referred to, and those that they refer to.
    pub(super) fn definitions(mut self) -> Map<String, Value> {
        let mut definitions = Map::new();
        let mut bytes = 0;
        while let Some(reference) = self.open.pop_front() {
            let schema = match self.document.at(&reference) {
                Ok(raw) if bytes < self.document.referred.get() => self.schema(raw),
                Ok(_) | Err(_) => Value::Object(Map::new()),
            };
            bytes += schema.to_string().len();
            if let Some(name) = self.names.get(&reference) {
                definitions.insert(name.clone(), schema);
            }
        }
        definitions
    }

    fn convert(&mut self, value: Value, depth: usize) -> Value {
        let mut schema = match value {
            Value::Object(schema) if depth < DEEPEST => schema,
            Value::Bool(_) => return value,
            _ => return Value::Object(Map::new()),
        };
        if let Some(Value::String(reference)) = schema.get("$ref") {
            let mut made = Map::new();
            if let Some(name) = self.name(reference) {
                made.insert("$ref".to_owned(), format!("#/$defs/{name}").into());
            }
            // In 3.0, siblings of a reference are ignored.
            if let Some(text) = schema.get("description").and_then(Value::as_str) {
                made.insert("description".to_owned(), short(text).into());
            }
            return Value::Object(made);
        }
        if schema.contains_key("allOf")
            && let Some(merged) = self.merged(&schema, 0)
        {
            schema = merged;
        }
        self.require_no_marked(&mut schema);
        let is_nullable = self.document.version == OpenApiVersion::V30
            && schema.get("nullable") == Some(&Value::Bool(true));
        if self.document.version == OpenApiVersion::V30 {
            bound(&mut schema, "minimum", "exclusiveMinimum");
            bound(&mut schema, "maximum", "exclusiveMaximum");
        }
        let mut made = Map::new();
        for (keyword, kind) in KEYWORDS {
            let Some(value) = schema.remove(keyword) else { continue };
            let value = match (kind, value) {
                (KeywordKind::Plain, Value::String(text)) if keyword == "description" => short(&text).into(),
                // Its other members name parts of the document.
                (KeywordKind::Plain, by) if keyword == "discriminator" => {
                    let Some(Value::String(name)) = by.get("propertyName") else { continue };
                    json!({ "propertyName": name })
                }
                (KeywordKind::Plain, value) => value,
                // It would refuse what the document accepts.
                (_, value) if keyword == "not" && !is_whole(&value) => continue,
                (KeywordKind::Schema, value) => self.convert(value, depth + 1),
                (KeywordKind::Schemas, Value::Array(schemas)) => {
                    schemas.into_iter().map(|schema| self.convert(schema, depth + 1)).collect()
                }
                (KeywordKind::Named, Value::Object(named)) => {
                    let named =
                        named.into_iter().map(|(name, schema)| (name, self.convert(schema, depth + 1)));
                    Value::Object(named.collect())
                }
                (KeywordKind::Schemas | KeywordKind::Named, _) => continue,
            };
            made.insert(keyword.to_owned(), value);
        }
        if is_nullable { nullable(made) } else { Value::Object(made) }
    }

    /// Removes members from the required ones that a value of this direction need not have. Parts of `allOf` say together
    /// what is required.
    fn require_no_marked(&self, schema: &mut Map<String, Value>) {
        let mut names = required_in(schema);
        names.retain(|name| self.is_marked_member(schema, name, 0));
        if names.is_empty() {
            return;
        }
        let unrequire = |schema: &mut Map<String, Value>| {
            if let Some(Value::Array(required)) = schema.get_mut("required") {
                required.retain(|name| !name.as_str().is_some_and(|name| names.contains(name)));
            }
        };
        unrequire(schema);
        if let Some(Value::Array(parts)) = schema.get_mut("allOf") {
            parts.iter_mut().filter_map(Value::as_object_mut).for_each(unrequire);
        }
    }

    /// Whether the member is marked, in the schema or in a part of its `allOf`.
    fn is_marked_member(&self, schema: &Map<String, Value>, name: &str, depth: usize) -> bool {
        let property = schema.get("properties").and_then(|all| all.get(name)?.as_object());
        property.is_some_and(|property| self.is_marked(property, depth))
            || self.any_part(schema, depth, |part| self.is_marked_member(part, name, depth + 1))
    }

    /// Whether the schema has the mark, in itself, behind a reference, or in a part of its `allOf`.
    fn is_marked(&self, schema: &Map<String, Value>, depth: usize) -> bool {
        schema.get(self.direction.mark()) == Some(&Value::Bool(true))
            || self.any_part(schema, depth, |part| self.is_marked(part, depth + 1))
    }

    /// Whether this holds for the target of the schema's reference, or for a part of its `allOf`.
    fn any_part(
        &self,
        schema: &Map<String, Value>,
        depth: usize,
        holds: impl Fn(&Map<String, Value>) -> bool,
    ) -> bool {
        // Parts may refer to each other in many ways.
        let Some(left) = self.looks.get().checked_sub(1).filter(|_| depth <= DEEPEST_ALL_OF) else {
            return false;
        };
        self.looks.set(left);
        let target = schema.get("$ref").and_then(Value::as_str).and_then(|reference| self.target(reference));
        let parts = schema.get("allOf").and_then(Value::as_array).into_iter().flatten();
        target.is_some_and(|target| holds(&target)) || parts.filter_map(Value::as_object).any(holds)
    }

    /// The schema that a reference leads to. Each is read once.
    fn target(&self, reference: &str) -> Target {
        if let Some(known) = self.targets.borrow().get(reference) {
            return known.clone();
        }
        let read = self.document.at(reference).ok().and_then(|raw| self.read(raw)).map(Rc::new);
        self.targets.borrow_mut().insert(reference.to_owned(), read.clone());
        read
    }

    /// The name in `$defs` of a reference's target; `None` when there is no target.
    fn name(&mut self, reference: &str) -> Option<String> {
        if let Some(name) = self.names.get(reference) {
            return Some(name.clone());
        }
        if self.names.len() == MOST_NAMES {
            return None;
        }
        self.document.at(reference).ok()?;
        let last = reference.rsplit('/').next().unwrap_or_default();
        let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
        let base: String = last.chars().map(plain).collect();
        let mut name = base.clone();
        let mut count = 1;
        while !self.taken.insert(name.clone()) {
            count += 1;
            name = format!("{base}_{count}");
        }
        self.names.insert(reference.to_owned(), name.clone());
        self.open.push_back(reference.to_owned());
        Some(name)
    }

    /// One object for an `allOf` of objects; `None` when some part is something else.
    fn merged(&self, schema: &Map<String, Value>, depth: usize) -> Option<Map<String, Value>> {
        if depth > DEEPEST_ALL_OF {
            return None;
        }
        let mut whole = schema.clone();
        let Some(Value::Array(parts)) = whole.remove("allOf") else { return Some(whole) };
        for part in parts {
            let part = match part {
                Value::Object(part) => part,
                _ => return None,
            };
            let part = match part.get("$ref").and_then(Value::as_str) {
                Some(reference) => {
                    let raw = self.document.at(reference).ok()?;
                    self.read::<Map<String, Value>>(raw)?
                }
                None => part,
            };
            let part = self.merged(&part, depth + 1)?;
            let is_object = part.contains_key("properties") || part.get("type") == Some(&json!("object"));
            if !is_object && part.keys().any(|key| key != "required" && key != "description") {
                return None;
            }
            for (key, value) in part {
                match (whole.get_mut(&key), value) {
                    (Some(Value::Object(known)), Value::Object(more)) if key == "properties" => {
                        known.extend(more)
                    }
                    (Some(Value::Array(known)), Value::Array(more)) if key == "required" => {
                        known.extend(more);
                        let mut seen = HashSet::new();
                        known.retain(|name| seen.insert(name.to_string()));
                    }
                    // Keywords outside allOf override those inside.
                    (Some(_), _) => {}
                    (None, value) => {
                        whole.insert(key, value);
                    }
                }
            }
        }
        Some(whole)
    }
}

/// The required members of a schema and of the parts of its `allOf` that stand in it.
fn required_in(schema: &Map<String, Value>) -> HashSet<String> {
    let parts = schema.get("allOf").and_then(Value::as_array).into_iter().flatten();
    let all = parts.filter_map(Value::as_object).chain([schema]);
    let required = all.filter_map(|part| part.get("required")?.as_array()).flatten();
    required.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Keywords that are dropped and do not constrain values; those of references are in the schemas that they lead to.
const UNCONSTRAINING: [&str; 10] = [
    "$ref",
    "$comment",
    "title",
    "example",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "externalDocs",
    "xml",
];

/// True when no constraint of the schema is dropped.
fn is_whole(schema: &Value) -> bool {
    let Value::Object(members) = schema else { return true };
    members.iter().all(|(word, value)| {
        let kind = KEYWORDS.iter().find(|(known, _)| known == word).map(|(_, kind)| *kind);
        match (kind, value) {
            (None, _) => UNCONSTRAINING.contains(&word.as_str()) || word.starts_with("x-"),
            (Some(KeywordKind::Plain), _) => true,
            (Some(KeywordKind::Schema), value) => is_whole(value),
            (Some(KeywordKind::Schemas | KeywordKind::Named), Value::Array(parts)) => {
                parts.iter().all(is_whole)
            }
            (Some(_), Value::Object(parts)) => parts.values().all(is_whole),
            (Some(_), _) => true,
        }
    })
}

/// `minimum` and `exclusiveMinimum: true` of 3.0 become one keyword.
fn bound(schema: &mut Map<String, Value>, plain: &str, exclusive: &str) {
    match schema.get(exclusive) {
        Some(Value::Bool(true)) => {
            let value = schema.remove(plain);
            schema.remove(exclusive);
            schema.extend(value.map(|value| (exclusive.to_owned(), value)));
        }
        Some(Value::Bool(false)) => {
            schema.remove(exclusive);
        }
        _ => {}
    }
}

/// The same schema, which also accepts null.
fn nullable(mut schema: Map<String, Value>) -> Value {
    if let Some(Value::Array(values)) = schema.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    let combined = ["allOf", "anyOf", "oneOf", "properties"].iter().any(|key| schema.contains_key(*key));
    match schema.get_mut("type") {
        Some(kind @ Value::String(_)) => *kind = json!([kind.take(), "null"]),
        None if combined => return json!({ "anyOf": [schema, { "type": "null" }] }),
        Some(_) | None => {}
    }
    Value::Object(schema)
}

/// A description, shortened for a tool list.
pub(super) fn short(text: &str) -> String {
    shortened(text, Cut::Chars(LONGEST_DESCRIPTION)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST_REFERRED: usize = 48 << 10;

    /// The schema `s` of a document, and its definitions.
    fn built(version: &str, schemas: Value) -> (Value, Value) {
        let text = json!({ "openapi": version, "components": { "schemas": schemas } }).to_string();
        let document = OpenApiDocument::read(&text).unwrap();
        document.allow_schemas(MOST_REFERRED);
        let mut builder = SchemaBuilder::new(&document, Direction::Request);
        let schema = builder.schema(document.at("#/components/schemas/s").unwrap());
        (schema, Value::Object(builder.definitions()))
    }

    #[test]
    fn the_dialect_of_3_0_becomes_json_schema() {
        let cases = [
            (json!({"type": "string", "nullable": true}), json!({"type": ["string", "null"]})),
            (json!({"nullable": true, "enum": ["a"]}), json!({"enum": ["a", null]})),
            (
                json!({"type": "integer", "minimum": 1, "exclusiveMinimum": true}),
                json!({"type": "integer", "exclusiveMinimum": 1}),
            ),
            (
                json!({"type": "integer", "maximum": 1, "exclusiveMaximum": false}),
                json!({"type": "integer", "maximum": 1}),
            ),
            (json!({"type": "string", "example": "x", "xml": {}, "x-any": 1}), json!({"type": "string"})),
            (
                json!({"nullable": true, "anyOf": [{"type": "string"}]}),
                json!({"anyOf": [{"anyOf": [{"type": "string"}]}, {"type": "null"}]}),
            ),
            (json!({"items": true, "properties": 5}), json!({"items": true})),
        ];
        for (schema, wanted) in cases {
            assert_eq!(built("3.0.3", json!({"s": schema})).0, wanted);
        }
        assert_eq!(
            built("3.1.0", json!({"s": {"type": ["string", "null"], "const": "a"}})).0,
            json!({"type": ["string", "null"], "const": "a"})
        );
    }

    #[test]
    fn circles_become_definitions_once() {
        let (schema, definitions) = built(
            "3.1.0",
            json!({
            "s": {"type": "object", "properties": {"left": {"$ref": "#/components/schemas/s"}, "right": {"$ref": "#/components/schemas/s"},
                "other": {"$ref": "#/components/schemas/a~1b"}, "far": {"$ref": "x.json#/y"}, "gone": {"$ref": "#/nope"}}},
            "a/b": {"type": "string"}}),
        );
        let one = json!({"$ref": "#/$defs/s"});
        assert_eq!(
            schema["properties"],
            json!({"left": one, "right": one, "other": {"$ref": "#/$defs/a_1b"}, "far": {}, "gone": {}})
        );
        assert_eq!(definitions["s"], schema);
        assert_eq!(definitions["a_1b"], json!({"type": "string"}));
    }

    #[test]
    fn all_of_objects_is_one_object() {
        let (schema, _) = built(
            "3.0.0",
            json!({
            "base": {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}, "n": {"type": "string"}}},
            "s": {"description": "D", "allOf": [{"$ref": "#/components/schemas/base"}, {"required": ["n", "id"]},
                {"type": "object", "properties": {"m": {}}}]}}),
        );
        assert_eq!(
            schema,
            json!({"type": "object", "required": ["id", "n"], "description": "D",
            "properties": {"id": {"type": "integer"}, "n": {"type": "string"}, "m": {}}})
        );
        let (schema, _) = built("3.0.0", json!({"s": {"allOf": [{"type": "string"}, {"minLength": 1}]}}));
        assert_eq!(schema, json!({"allOf": [{"type": "string"}, {"minLength": 1}]}));
        let (schema, _) = built("3.0.0", json!({"s": {"allOf": [{"$ref": "#/components/schemas/s"}]}}));
        assert_eq!(schema, json!({"allOf": [{"$ref": "#/$defs/s"}]}));
    }

    /// Without a limit the first would take a thousand years, the second a day, and the third would fill the
    /// memory.
    #[test]
    fn references_do_not_multiply_work() {
        let reference = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
        let mut schemas = Map::new();
        for at in 0..12 {
            let name = if at == 0 { "s".to_owned() } else { format!("x{at}") };
            schemas.insert(
                name,
                json!({"type": "object", "allOf": vec![reference(&format!("x{}", at + 1)); 100]}),
            );
        }
        schemas.insert("x12".to_owned(), json!({"type": "object", "required": ["a"]}));
        built("3.1.0", Value::Object(schemas));

        let names = |name: &dyn Fn(usize) -> (String, Value)| (0..2_000).map(name).collect::<Map<_, _>>();
        let all = names(&|at| (format!("p{at}"), json!({"$ref": format!("#/x/p{at}/x")})));
        let parts = names(&|at| (format!("p{at}"), json!({"x": {"type": "string"}})));
        let text = json!({"openapi": "3.1.0", "x": parts, "s": {"properties": all}}).to_string();
        let document = OpenApiDocument::read(&text).unwrap();
        document.allow_schemas(MOST_REFERRED);
        let mut builder = SchemaBuilder::new(&document, Direction::Request);
        builder.schema(document.at("#/s").unwrap());
        assert_eq!(builder.definitions().len(), MOST_NAMES);

        let wide = json!({"enum": vec![0; 1 << 20]});
        assert_eq!(built("3.1.0", json!({"s": wide})).0, json!(true));
    }

    #[test]
    fn a_schema_is_bounded() {
        let mut schemas = Map::new();
        for at in 0..200 {
            let text = "d".repeat(390);
            let next = format!(
                "#/components/schemas/{}",
                if at == 199 { "s".to_owned() } else { format!("x{}", at + 1) }
            );
            let name = if at == 0 { "s".to_owned() } else { format!("x{at}") };
            schemas.insert(name, json!({"description": text, "properties": {"next": {"$ref": next}}}));
        }
        let (_, definitions) = built("3.1.0", Value::Object(schemas));
        let bytes = definitions.to_string().len();
        assert!(bytes > MOST_REFERRED && bytes < MOST_REFERRED + 2_000, "{bytes}");
        let deep = (0..100).fold(json!({"type": "string"}), |below, _| json!({"items": below}));
        assert!(built("3.1.0", json!({"s": deep})).0.to_string().len() < 400);
    }
}
