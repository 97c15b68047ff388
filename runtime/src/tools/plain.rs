//! Schemas that say no more about arguments than their names and scalar types. Most functions of applications have one, and
//! a call with scalars is checked against it in one look.

use super::schema::member;
use serde_json::Value as Json;

/// Most arguments: bits of the word that says which were given.
const MOST: usize = 32;

/// What the arguments of a tool are.
pub(crate) struct PlainArguments {
    arguments: Vec<PlainArgument>,
    /// Bits of those that must be given.
    required: u32,
}

/// One argument.
pub(crate) struct PlainArgument {
    pub(crate) name: String,
    pub(crate) kind: PlainKind,
}

/// What a value has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlainKind {
    Integer,
    Number,
    Text,
    Boolean,
    /// The schema says more, or something else.
    Other,
}

/// Members of a schema that say nothing about which arguments there are.
const PROSE: [&str; 6] = ["description", "title", "examples", "default", "$schema", "$defs"];

/// Members of the schema of a value that say more than its type.
const MORE: [&str; 6] = ["const", "enum", "anyOf", "oneOf", "allOf", "$ref"];

impl PlainArguments {
    /// What a schema says, if it is a plain one.
    pub(crate) fn of(schema: &Json) -> Option<PlainArguments> {
        let members = schema.as_object()?;
        let known = ["type", "properties", "required", "additionalProperties"];
        let is_known = |name: &String| known.contains(&name.as_str()) || PROSE.contains(&name.as_str());
        if member(schema, "type")?.as_str()? != "object" || !members.keys().all(is_known) {
            return None;
        }
        let properties = member(schema, "properties")?.as_object().filter(|all| all.len() <= MOST)?;
        let arguments = properties
            .iter()
            .map(|(name, property)| PlainArgument { name: name.clone(), kind: PlainKind::of(property) });
        let arguments: Vec<PlainArgument> = arguments.collect();
        let mut required = 0;
        for name in member(schema, "required").and_then(Json::as_array).into_iter().flatten() {
            required |= 1 << arguments.iter().position(|argument| Some(&*argument.name) == name.as_str())?;
        }
        Some(PlainArguments { arguments, required })
    }

    /// The argument at a place of the schema's order.
    pub(crate) fn at(&self, place: usize) -> Option<&PlainArgument> {
        self.arguments.get(place)
    }

    /// The place of the argument of this name.
    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        self.arguments.iter().position(|argument| argument.name == name)
    }

    /// Whether these, as bits, are all that must be given.
    pub(crate) fn suffice(&self, given: u32) -> bool {
        self.required & !given == 0
    }
}

impl PlainKind {
    fn of(schema: &Json) -> PlainKind {
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
