//! Recognizes tool arguments that say where something goes or what is touched (recipient, URL, path, amount), which the
//! standard data-flow rules of policy files guard against untrusted data. A policy file enables these rules with
//! `flows = "standard"`.

use super::rules::{Place, Sink, same_key};
use serde_json::Value as Json;

/// Names of such arguments.
const DESTINATIONS: [&str; 20] = [
    "recipient",
    "recipients",
    "to",
    "cc",
    "bcc",
    "participants",
    "attendees",
    "email",
    "address",
    "iban",
    "account",
    "user",
    "channel",
    "url",
    "uri",
    "path",
    "file",
    "folder",
    "id",
    "amount",
];

/// Formats of such arguments (JSON Schema, section 7.3).
const FORMATS: [&str; 2] = ["email", "uri"];

/// Levels of a schema that are looked at.
const DEEPEST: usize = 6;

/// True when a flow reaches an argument that says where something goes or what is touched.
pub(super) fn is_destination(sink: &Sink<'_>) -> bool {
    match sink.place {
        Place::Control { arguments: None } => true,
        Place::Control { arguments: Some(paths) } => {
            paths.iter().any(|path| is_named(path) || has_format(&sink.tool.input_schema, path))
        }
        Place::Argument(path) => is_named(path) || has_format(&sink.tool.input_schema, path),
    }
}

/// True when a key on the way may be one of the names. An unknown key may be any.
fn is_named(path: &[Box<str>]) -> bool {
    path.iter().any(|key| key.is_empty() || names_destination(key))
}

/// `recipient`, and also what ends with such a word: `recipient_email`, `fileId`, `user_ids`.
fn names_destination(key: &str) -> bool {
    let is_named = |word: &str| {
        let is_listed = |word: &str| DESTINATIONS.iter().any(|name| same_key(name, word));
        is_listed(word) || word.strip_suffix(['s', 'S']).is_some_and(is_listed)
    };
    let begins = |(at, c): (usize, char)| match c {
        '_' | '-' | '.' | ' ' => Some(at + 1),
        c if c.is_ascii_uppercase() => Some(at),
        _ => None,
    };
    let last = key.char_indices().filter_map(begins).next_back().and_then(|at| key.get(at..));
    is_named(key) || last.is_some_and(is_named)
}

/// True when the schema gives the argument, or a part of it, one of the formats.
fn has_format(schema: &Json, path: &[Box<str>]) -> bool {
    let mut schema = schema;
    for key in path {
        while let Some(items) = schema.get("items") {
            schema = items;
        }
        let properties = schema.get("properties").and_then(Json::as_object);
        let named = properties.and_then(|all| all.iter().find(|(name, _)| same_key(name, key)));
        match named {
            Some((_, below)) => schema = below,
            None => return false,
        }
    }
    mentions_format(schema, DEEPEST)
}

fn mentions_format(schema: &Json, depth: usize) -> bool {
    match schema {
        Json::Object(members) => members.iter().any(|(name, value)| {
            (name == "format" && value.as_str().is_some_and(|format| FORMATS.contains(&format)))
                || (depth > 0 && mentions_format(value, depth - 1))
        }),
        Json::Array(items) => depth > 0 && items.iter().any(|item| mentions_format(item, depth - 1)),
        _ => false,
    }
}
