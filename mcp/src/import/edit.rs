//! Edits entries of JSON configuration files, and leaves comments, order and whitespace as they are.

use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObjectProp, CstRootNode};
use ptc_upstream::config::{json_options, read_json};
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

/// The entries below a key of a file, by name. In a list these are its objects with a name.
pub fn entries_below(root: &Value, key: &str) -> Map<String, Value> {
    let named = |item: &Value| Some((item.get("name")?.as_str()?.to_owned(), item.clone()));
    match root.get(key) {
        Some(Value::Object(entries)) => entries.clone(),
        Some(Value::Array(items)) => items.iter().filter_map(named).collect(),
        _ => Map::new(),
    }
}

/// A JSON file, perhaps with comments and trailing commas.
pub struct JsonFile {
    root: CstRootNode,
}

impl JsonFile {
    /// Parses a text; an empty one is an empty object.
    ///
    /// # Errors
    /// What is wrong with it, in one line without a quotation.
    pub fn read(text: &str) -> Result<JsonFile, String> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let text = if text.trim().is_empty() { "{}\n" } else { text };
        let root = CstRootNode::parse(text, &json_options()).map_err(|error| error.to_string())?;
        match root.object_value() {
            Some(_) => Ok(JsonFile { root }),
            None => Err("it is not a JSON object".into()),
        }
    }

    /// True if the file has this key at the top level.
    pub fn has(&self, key: &str) -> bool {
        self.root.object_value().is_some_and(|object| object.get(key).is_some())
    }

    /// A key at the top level, or of an entry, that is there twice: readers take the last one, and an edit changes the first.
    pub fn doubled(&self) -> Option<String> {
        let root = self.root.object_value()?;
        let lists = root.properties().into_iter().filter_map(|property| property.object_value());
        std::iter::once(root.clone()).chain(lists).find_map(|object| {
            let mut seen = HashSet::new();
            let names = object.properties().into_iter().filter_map(|property| name_of(&property));
            names.into_iter().find(|name| !seen.insert(name.clone()))
        })
    }

    /// What an edit below this key would change in place of what readers see: the key, or an entry below it, that is there
    /// twice.
    pub fn doubled_below(&self, key: &str) -> Option<String> {
        let root = self.root.object_value()?;
        let named =
            root.properties().into_iter().filter(|property| name_of(property).as_deref() == Some(key));
        let (mut below, mut seen) = (None, HashSet::new());
        for property in named {
            if below.replace(property).is_some() {
                return Some(key.to_owned());
            }
        }
        let entries = below?.object_value()?.properties();
        entries.iter().filter_map(name_of).find(|name| !seen.insert(name.clone()))
    }

    /// The list at this path of keys, if there is one.
    fn list(&self, path: &[&str]) -> Option<CstArray> {
        let (last, folders) = path.split_last()?;
        let root = self.root.object_value()?;
        folders.iter().try_fold(root, |object, key| object.object_value(key))?.array_value(last)
    }

    /// Adds a text to the list at this path of keys, where there is such a list that lacks it.
    pub fn add_to_list(&self, path: &[&str], text: &str) {
        if let Some(list) = self.list(path)
            && !list.elements().iter().any(|item| is_text(item, text))
        {
            list.append(CstInputValue::String(text.to_owned()));
        }
    }

    /// Removes a text from the list at this path of keys.
    pub fn remove_from_list(&self, path: &[&str], text: &str) {
        let items = self.list(path).map(|list| list.elements()).unwrap_or_default();
        items.into_iter().filter(|item| is_text(item, text)).for_each(CstNode::remove);
    }

    /// Whether the list at this path of keys has this text.
    pub fn has_in_list(&self, path: &[&str], text: &str) -> bool {
        self.list(path).is_some_and(|list| list.elements().iter().any(|item| is_text(item, text)))
    }

    /// [`entries_below`] for a key of this file.
    pub fn entries(&self, key: &str) -> Map<String, Value> {
        // The syntax tree only knows the layout; values come from the JSON reader that all other files use.
        let root = read_json(&self.root.to_string()).unwrap_or_default();
        entries_below(&root, key)
    }

    /// True if the key has an object, or is absent.
    pub fn can_have_entries(&self, key: &str) -> bool {
        let object = self.root.object_value();
        object.is_none_or(|object| object.get(key).is_none() || object.object_value(key).is_some())
    }

    /// Sets an entry below a key; a new one is appended.
    ///
    /// # Errors
    /// The key has a value other than entries.
    pub fn set(&self, key: &str, name: &str, entry: &Value) -> Result<(), String> {
        let object = self.root.object_value_or_set();
        let entries = object.object_value_or_create(key).ok_or_else(|| format!("{key} is not an object"))?;
        match entries.get(name) {
            Some(property) => property.set_value(input(entry)),
            None => drop(entries.append(name, input(entry))),
        }
        Ok(())
    }

    /// [`JsonFile::set`] for many entries in one pass.
    ///
    /// # Errors
    /// The key has a value other than entries.
    pub fn set_all(&mut self, key: &str, all: &Map<String, Value>) -> Result<(), String> {
        let object = self.root.object_value_or_set();
        let entries = object.object_value_or_create(key).ok_or_else(|| format!("{key} is not an object"))?;
        let there: HashMap<String, CstObjectProp> = entries
            .properties()
            .into_iter()
            .filter_map(|property| Some((name_of(&property)?, property)))
            .collect();
        let (old, new): (Vec<_>, Vec<_>) = all.iter().partition(|(name, _)| there.contains_key(*name));
        for (name, entry) in old {
            there[name].set_value(input(entry));
        }
        if new.len() <= FEW {
            new.into_iter().for_each(|(name, entry)| drop(entries.append(name, input(entry))));
            return Ok(());
        }
        // Appending an entry to the tree costs time proportional to the entries there. So one placeholder
        // stands for all.
        let place = format!("\"ptc-{:016x}\"", RandomState::new().hash_one(new.len()));
        entries.append(place.trim_matches('"'), CstInputValue::Null);
        let text = self.root.to_string();
        let place = place + ": null";
        let (before, after) = text.split_once(&place).ok_or("it cannot be changed")?;
        let text = format!("{before}{}{after}", written(&new, before));
        *self = JsonFile::read(&text)?;
        Ok(())
    }

    /// Removes an entry below a key; false when there is none.
    pub fn remove(&self, key: &str, name: &str) -> bool {
        let Some(root) = self.root.object_value() else { return false };
        if let Some(property) = root.object_value(key).and_then(|entries| entries.get(name)) {
            property.remove();
            return true;
        }
        let items = root.array_value(key).map(|items| items.elements()).unwrap_or_default();
        let called = |item: &CstNode| {
            let value = item.as_object()?.get("name")?.value()?;
            value.as_string_lit()?.decoded_value().ok()
        };
        match items.into_iter().find(|item| called(item).as_deref() == Some(name)) {
            Some(item) => {
                item.remove();
                true
            }
            None => false,
        }
    }

    /// The text, ending with a newline.
    pub fn text(&self) -> String {
        let mut text = self.root.to_string();
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text
    }
}

fn is_text(item: &CstNode, text: &str) -> bool {
    item.as_string_lit().and_then(|item| item.decoded_value().ok()).as_deref() == Some(text)
}

fn name_of(property: &CstObjectProp) -> Option<String> {
    property.name()?.decoded_value().ok()
}

/// Up to this number, entries are appended one by one.
const FEW: usize = 64;

/// Formats entries as they would stand in a file after the text `before`.
fn written(entries: &[(&String, &Value)], before: &str) -> String {
    let end = if before.contains("\r\n") { "\r\n" } else { "\n" };
    let line = before.rsplit('\n').next().unwrap_or_default();
    let indent = &line[..line.len() - line.trim_start().len()];
    let pretty = |(name, entry): &(&String, &Value)| {
        format!("{}: {entry:#}", Value::from(name.as_str())).replace('\n', &format!("{end}{indent}"))
    };
    entries.iter().map(pretty).collect::<Vec<_>>().join(&format!(",{end}{indent}"))
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(map) => {
            CstInputValue::Object(map.iter().map(|(key, value)| (key.clone(), input(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn everything_else_stays_as_it_was() {
        let text = "{\n  // mine\n  \"theme\": \"dark\",\n  \"mcpServers\": {\n    \"a\": { \"command\": \"x\" }, // first\n  },\n}\n";
        let file = JsonFile::read(text).unwrap();
        file.set("mcpServers", "b", &json!({ "command": "y\"z", "args": ["1", "2"] })).unwrap();
        let with = file.text();
        assert!(with.starts_with("{\n  // mine\n  \"theme\": \"dark\",\n"), "{with}");
        assert!(with.contains("\"a\": { \"command\": \"x\" }, // first\n"), "{with}");
        let read = ptc_upstream::config::read_json(&with).unwrap();
        assert_eq!(read["mcpServers"]["b"], json!({ "command": "y\"z", "args": ["1", "2"] }));
        let file = JsonFile::read(&with).unwrap();
        assert!(file.remove("mcpServers", "b") && !file.remove("mcpServers", "b"));
        let names: Vec<String> = file.entries("mcpServers").into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["a"]);
    }

    #[test]
    fn a_key_that_is_there_twice_is_found() {
        let doubled = |text: &str| JsonFile::read(text).unwrap().doubled();
        assert_eq!(
            doubled("{\"mcpServers\": {\"a\": {}, \"b\": {}, \"\\u0061\": {}}}").as_deref(),
            Some("a")
        );
        assert_eq!(
            doubled("{\"mcpServers\": {}, \"servers\": {}, \"mcpServers\": {}}").as_deref(),
            Some("mcpServers")
        );
        assert_eq!(doubled("{\"mcpServers\": {\"a\": {\"env\": {}}, \"env\": {}}, \"a\": []}"), None);
    }

    #[test]
    fn many_entries_are_as_one_by_one() {
        let all: Map<String, Value> = (0..1_000)
            .map(|n| (format!("s{n} \"quoted\""), json!({ "command": "x\ny", "args": [n] })))
            .collect();
        for text in [
            "",
            "{\"servers\": {\"s7 \\\"quoted\\\"\": {}, \"mine\": 1}}",
            "{\r\n  // mine\r\n  \"servers\": {\r\n    \"mine\": 1, // last\r\n  }\r\n}\r\n",
        ] {
            let (mut many, one) = (JsonFile::read(text).unwrap(), JsonFile::read(text).unwrap());
            many.set_all("servers", &all).unwrap();
            all.iter().for_each(|(name, entry)| one.set("servers", name, entry).unwrap());
            let read = |file: &JsonFile| ptc_upstream::config::read_json(&file.text()).unwrap();
            assert_eq!(read(&many), read(&one));
            assert_eq!(many.text().contains("// mine"), text.contains("// mine"));
            assert_eq!(many.text().contains("\r\n    \"s3"), text.contains("\r\n"));
        }
    }

    #[test]
    fn a_new_file_and_files_that_are_something_else() {
        let file = JsonFile::read("").unwrap();
        file.set("servers", "a", &json!({ "command": "x" })).unwrap();
        assert_eq!(
            ptc_upstream::config::read_json(&file.text()).unwrap(),
            json!({ "servers": { "a": { "command": "x" } } })
        );
        assert!(JsonFile::read("[]").is_err() && JsonFile::read("{").is_err());
        assert!(JsonFile::read("{\"servers\": 1}").unwrap().set("servers", "a", &json!({})).is_err());
    }
}
