//! Adds line and column to errors about a configuration file, by finding the key in question in its JSON or YAML text.

use super::ConfigError;
use super::syntax::{FileSyntax, json_options};
use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, parse_to_ast};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;
use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};

/// A file being read.
pub(super) struct Document<'a> {
    pub(super) name: &'a str,
    pub(super) text: &'a str,
    pub(super) syntax: FileSyntax,
}

/// The key that names an item of a list of servers.
pub(super) const NAME: &str = "name";

impl Document<'_> {
    /// A path of the file; a relative one is looked for where the file is.
    pub(super) fn beside(&self, path: impl AsRef<Path>) -> PathBuf {
        Path::new(self.name).parent().unwrap_or(Path::new("")).join(path)
    }

    /// True if the file writes the number at `path` with these characters. `path` ends with a key of an object.
    pub(super) fn writes_number(&self, path: &[&str], number: &str) -> bool {
        let (line, column) = self.position(path);
        let lines = self.text.split_inclusive('\n').skip(line.saturating_sub(1));
        let entry: String = lines.collect::<String>().chars().skip(column.saturating_sub(1)).collect();
        // A quoted key may have a colon.
        let after = match entry.chars().next() {
            Some(quote @ ('"' | '\'')) => entry[1..].split_once(quote).map_or("", |(_, after)| after),
            _ => &entry,
        };
        let mut value = after.split_once(':').map_or("", |(_, value)| value.trim_start());
        // An anchor or a tag of YAML.
        while value.starts_with(['&', '!']) {
            value = value.split_once(char::is_whitespace).map_or("", |(_, value)| value.trim_start());
        }
        let goes_on = |c: char| c.is_ascii_alphanumeric() || "._+-".contains(c);
        value.strip_prefix(number).is_some_and(|rest| !rest.starts_with(goes_on))
    }

    fn position(&self, path: &[&str]) -> (usize, usize) {
        match self.syntax {
            FileSyntax::Json => locate(self.text, path),
            FileSyntax::Yaml => locate_in_yaml(self.text, path),
        }
    }

    /// An error about the key at `path`, or about the deepest part of the path that exists. A part is a key
    /// of an object, or, in a list, the name of an item ([`NAME`]) or its index ([`at_index`]).
    pub(super) fn error(&self, path: &[&str], message: impl Into<String>) -> ConfigError {
        let position = Some(self.position(path));
        ConfigError { file: self.name.to_owned(), position, message: message.into() }
    }

    /// A warning for each key of a JSON file that its object has twice. (YAML with such a key is refused.)
    pub(super) fn doubled(&self) -> Vec<ConfigError> {
        let parsed = match self.syntax {
            FileSyntax::Json => parse_to_ast(self.text, &CollectOptions::default(), &json_options()).ok(),
            FileSyntax::Yaml => None,
        };
        let mut warnings = Vec::new();
        let mut values: Vec<ast::Value<'_>> = parsed.and_then(|parsed| parsed.value).into_iter().collect();
        while let Some(value) = values.pop() {
            match value {
                ast::Value::Object(object) => {
                    let mut seen = HashSet::new();
                    for property in object.properties {
                        let name = property.name.as_str();
                        if !seen.insert(name.to_owned()) {
                            let message = format!("{name:?} is there twice, and the last one counts");
                            let position = Some(line_column(self.text, property.range.start));
                            warnings.push(ConfigError { file: self.name.to_owned(), position, message });
                        }
                        values.push(property.value);
                    }
                }
                ast::Value::Array(array) => values.extend(array.elements),
                _ => {}
            }
        }
        warnings
    }
}

/// The part of a path that is the item of a list at `index`.
pub(super) fn at_index(index: usize) -> String {
    format!("#{index}")
}

/// Whether a part of a path denotes the item with this index and name.
fn is_meant(part: &str, index: usize, name: Option<&str>) -> bool {
    name == Some(part) || part == at_index(index)
}

/// Line and column of the key that `path` leads to; of the deepest key found when the path ends early.
fn locate(text: &str, path: &[&str]) -> (usize, usize) {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &json_options());
    let Some(root) = parsed.ok().and_then(|parsed| parsed.value) else { return (1, 1) };
    let (mut best, mut value) = (root.start(), &root);
    for part in path {
        let found = match value {
            ast::Value::Object(object) => {
                let mut properties = object.properties.iter();
                properties
                    .find(|property| property.name.as_str() == *part)
                    .map(|property| (property.start(), &property.value))
            }
            ast::Value::Array(array) => {
                let mut items = array.elements.iter().enumerate();
                let name = |item: &ast::Value<'_>| -> Option<String> {
                    Some(item.as_object()?.get_string(NAME)?.value.to_string())
                };
                items
                    .find(|(index, item)| is_meant(part, *index, name(item).as_deref()))
                    .map(|(_, item)| (item.start(), item))
            }
            _ => None,
        };
        let Some(found) = found else { break };
        (best, value) = found;
    }
    line_column(text, best)
}

fn line_column(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..offset];
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[start..].chars().count() + 1)
}

/// A YAML node with the locations of keys and items.
enum Node {
    Mapping(Vec<(Spanned<String>, Node)>),
    Sequence(Vec<Spanned<Node>>),
    Text(String),
    Other,
}

fn locate_in_yaml(text: &str, path: &[&str]) -> (usize, usize) {
    let Ok(root) = serde_saphyr::from_str::<Node>(text) else { return (1, 1) };
    let (mut best, mut node) = ((1, 1), &root);
    for part in path {
        let found = match node {
            Node::Mapping(entries) => {
                entries.iter().find(|(key, _)| key.value == *part).map(|(key, value)| (key.defined, value))
            }
            Node::Sequence(items) => {
                let mut items = items.iter().enumerate();
                items
                    .find(|(index, item)| is_meant(part, *index, item.value.name()))
                    .map(|(_, item)| (item.defined, &item.value))
            }
            Node::Text(_) | Node::Other => None,
        };
        let Some((place, below)) = found else { break };
        let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        (best, node) = ((number(place.line()), number(place.column())), below);
    }
    best
}

impl Node {
    fn name(&self) -> Option<&str> {
        let Node::Mapping(entries) = self else { return None };
        match entries.iter().find(|(key, _)| key.value == NAME) {
            Some((_, Node::Text(name))) => Some(name),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        struct NodeVisitor;
        impl<'de> Visitor<'de> for NodeVisitor {
            type Value = Node;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("anything")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Node::Mapping(entries))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    items.push(item);
                }
                Ok(Node::Sequence(items))
            }

            fn visit_str<E>(self, text: &str) -> Result<Node, E> {
                Ok(Node::Text(text.to_owned()))
            }

            fn visit_some<D: Deserializer<'de>>(self, value: D) -> Result<Node, D::Error> {
                IgnoredAny::deserialize(value).map(|_| Node::Other)
            }

            fn visit_unit<E>(self) -> Result<Node, E> {
                Ok(Node::Other)
            }

            fn visit_none<E>(self) -> Result<Node, E> {
                Ok(Node::Other)
            }

            fn visit_bool<E>(self, _: bool) -> Result<Node, E> {
                Ok(Node::Other)
            }

            fn visit_i64<E>(self, _: i64) -> Result<Node, E> {
                Ok(Node::Other)
            }

            fn visit_u64<E>(self, _: u64) -> Result<Node, E> {
                Ok(Node::Other)
            }

            fn visit_f64<E>(self, _: f64) -> Result<Node, E> {
                Ok(Node::Other)
            }
        }
        deserializer.deserialize_any(NodeVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_nested_keys_and_skips_namesakes() {
        let text = "{\n \"a\": {\"b\": [\"b\", {\"c\": 1}], \"x\": {\"c\": 0}},\n \"b\": {\"c\": 2}\n}";
        let at = |path: &[&str]| locate(text, path);
        assert_eq!(at(&["b", "c"]), (3, 8));
        assert_eq!(at(&["a", "x", "c"]), (2, 36));
        assert_eq!(at(&["a", "zz"]), (2, 2));
        assert_eq!(at(&[]), (1, 1));
        assert_eq!(at(&["nope"]), (1, 1));
    }

    #[test]
    fn items_of_lists_are_found_by_name_and_number() {
        let json = "{\"s\": [{\"name\": \"a\"},\n {\"name\": \"b\", \"c\": 1}]}";
        let yaml = "# ü\ns:\n  - name: a\n  - c: &x 1\n    name: b\nb: {ü: 1, c: *x}\n";
        assert_eq!(locate(json, &["s", "b", "c"]), (2, 16));
        assert_eq!(locate(json, &["s", "#1"]), (2, 2));
        assert_eq!(locate_in_yaml(yaml, &["s", "b", "c"]), (4, 5));
        assert_eq!(locate_in_yaml(yaml, &["s", "#1", "name"]), (5, 5));
        assert_eq!(locate_in_yaml(yaml, &["b", "c"]), (6, 11));
        assert_eq!(locate_in_yaml(yaml, &["s", "nope"]), (2, 1));
    }
}
