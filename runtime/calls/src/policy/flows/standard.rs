//! Recognizes tool arguments that say where something goes or what is touched (recipient, URL, path, amount), which the
//! standard data-flow rules of policy files guard against untrusted data. A policy file enables these rules with
//! `flows = "standard"`.

use super::rules::{Place, Sink, same_key};
use serde_json::Value as Json;
use std::collections::HashSet;

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

/// Levels of a schema that are looked at, behind references too.
const DEEPEST: usize = 64;

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
        let singular =
            |end: &str| word.get(..word.len().checked_sub(end.len())?).filter(|_| ends_with(word, end));
        is_listed(word) || ["s", "es"].into_iter().filter_map(singular).any(is_listed)
    };
    // Each end that begins at a word: behind a mark, or at a capital letter behind another letter or digit.
    let letters = key.char_indices().zip(key.chars().skip(1));
    let mut begins = letters.filter_map(|((at, before), c)| match before {
        '_' | '-' | '.' | ' ' => Some(at + before.len_utf8()),
        _ if c.is_ascii_uppercase() && !before.is_ascii_uppercase() => Some(at + before.len_utf8()),
        _ => None,
    });
    is_named(key) || begins.any(|at| key.get(at..).is_some_and(is_named))
}

/// Without regard to case.
fn ends_with(word: &str, end: &str) -> bool {
    let from = word.len().checked_sub(end.len());
    from.and_then(|from| word.get(from..)).is_some_and(|found| found.eq_ignore_ascii_case(end))
}

/// True when the schema gives the argument, or a part of it, one of the formats.
fn has_format(schema: &Json, path: &[Box<str>]) -> bool {
    FormatSearch { root: schema, followed: HashSet::new() }.is_in(schema, path, DEEPEST)
}

/// A search for formats in a schema.
struct FormatSearch<'s> {
    root: &'s Json,
    /// References that were followed, each with the keys that were left then.
    followed: HashSet<(&'s str, usize)>,
}

impl<'s> FormatSearch<'s> {
    /// True when what a path leads to in a part of the schema has one of the formats. A part that is in another document,
    /// or too deep, may have them.
    fn is_in(&mut self, schema: &'s Json, path: &[Box<str>], depth: usize) -> bool {
        let Json::Object(members) = schema else { return false };
        let Some(depth) = depth.checked_sub(1) else { return true };
        members.iter().any(|(name, part)| match (name.as_str(), part) {
            ("format", Json::String(format)) => path.is_empty() && FORMATS.contains(&format.as_str()),
            ("$ref" | "$dynamicRef", Json::String(reference)) => self.is_behind(reference, path, depth),
            ("properties", Json::Object(properties)) => properties.iter().any(|(name, part)| {
                let is_on_the_way = path.first().is_none_or(|key| key.is_empty() || same_key(name, key));
                is_on_the_way && self.is_in(part, path.get(1..).unwrap_or_default(), depth)
            }),
            ("additionalProperties" | "unevaluatedProperties", part) => {
                let properties = members.get("properties").and_then(Json::as_object);
                let has =
                    |key: &str| properties.is_some_and(|all| all.keys().any(|name| same_key(name, key)));
                let is_named = path.first().is_some_and(|key| !key.is_empty() && has(key));
                !is_named && self.is_in(part, path.get(1..).unwrap_or_default(), depth)
            }
            ("propertyNames", part) => path.is_empty() && self.is_in(part, path, depth),
            ("patternProperties", Json::Object(parts)) => {
                parts.values().any(|part| self.is_in(part, path.get(1..).unwrap_or_default(), depth))
            }
            // These are about the same value, or about items, which have the path of their list.
            ("anyOf" | "oneOf" | "allOf" | "prefixItems" | "items", Json::Array(parts)) => {
                parts.iter().any(|part| self.is_in(part, path, depth))
            }
            ("dependentSchemas" | "dependencies", Json::Object(parts)) => {
                parts.values().any(|part| self.is_in(part, path, depth))
            }
            (
                "items" | "additionalItems" | "unevaluatedItems" | "contains" | "if" | "then" | "else",
                part,
            ) => self.is_in(part, path, depth),
            _ => false,
        })
    }

    fn is_behind(&mut self, reference: &'s str, path: &[Box<str>], depth: usize) -> bool {
        if !self.followed.insert((reference, path.len())) {
            return false;
        }
        match reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer)) {
            Some(part) => self.is_in(part, path, depth),
            None => true,
        }
    }
}
