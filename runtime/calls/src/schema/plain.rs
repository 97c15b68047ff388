//! A fast check for plain schemas, which only name arguments with scalar types. Most functions of
//! applications have one.

use super::member;
use serde_json::Value as Json;

/// Limit of arguments: a bit of a word for each.
const MOST: usize = 32;

/// The arguments of a tool with a plain schema.
pub struct PlainArguments {
    arguments: Vec<PlainArgument>,
    /// Bits of the required ones.
    required: u32,
}

/// One argument.
pub struct PlainArgument {
    pub name: String,
    pub kind: PlainKind,
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainKind {
    /// An integer.
    Integer,
    /// A number.
    Number,
    /// A string.
    Text,
    /// A boolean.
    Boolean,
    /// Another or a more specific type.
    Other,
}

/// Members of a schema that do not affect which arguments are valid.
const PROSE: [&str; 6] = ["description", "title", "examples", "default", "$schema", "$defs"];

/// Members of a value's schema that constrain more than its type.
const MORE: [&str; 6] = ["const", "enum", "anyOf", "oneOf", "allOf", "$ref"];

impl PlainArguments {
    /// The arguments of a schema, if it is plain.
    pub(crate) fn from_schema(schema: &Json) -> Option<PlainArguments> {
        let members = schema.as_object()?;
        let known = ["type", "properties", "required", "additionalProperties"];
        let is_known = |name: &String| known.contains(&name.as_str()) || PROSE.contains(&name.as_str());
        if member(schema, "type")?.as_str()? != "object" || !members.keys().all(is_known) {
            return None;
        }
        let properties = member(schema, "properties")?.as_object().filter(|all| all.len() <= MOST)?;
        let arguments = properties.iter().map(|(name, property)| PlainArgument {
            name: name.clone(),
            kind: PlainKind::from_schema(property),
        });
        let arguments: Vec<PlainArgument> = arguments.collect();
        let mut required = 0;
        for name in member(schema, "required").and_then(Json::as_array).into_iter().flatten() {
            required |= 1 << arguments.iter().position(|argument| Some(&*argument.name) == name.as_str())?;
        }
        Some(PlainArguments { arguments, required })
    }

    /// The argument at an index in the schema's order.
    pub fn at(&self, place: usize) -> Option<&PlainArgument> {
        self.arguments.get(place)
    }

    /// The index of the argument of this name.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.arguments.iter().position(|argument| argument.name == name)
    }

    /// Whether these arguments, as bits, include all required ones.
    pub fn suffice(&self, given: u32) -> bool {
        self.required & !given == 0
    }
}

impl PlainKind {
    fn from_schema(schema: &Json) -> PlainKind {
        if MORE.iter().any(|name| member(schema, name).is_some()) {
            return PlainKind::Other;
        }
        match member(schema, "type").and_then(Json::as_str) {
            Some("integer") => PlainKind::Integer,
            Some("number") => PlainKind::Number,
            Some("string") => PlainKind::Text,
            Some("boolean") => PlainKind::Boolean,
            _ => PlainKind::Other,
        }
    }
}
