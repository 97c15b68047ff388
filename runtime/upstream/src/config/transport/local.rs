//! Reads the settings of a `local` server from the configuration: tools that the user defines as commands and file
//! operations in one folder.

use crate::config::ConfigError;
use crate::config::entry::EntryReader;
use crate::{LocalHandler, LocalSpec, LocalWork};
use serde_json::{Map, Value};

/// Keys of a handler.
const HANDLER_KEYS: [&str; 5] = ["name", "description", "command", "file", "parameters"];

/// File operations by name.
pub(in crate::config) const FILE_WORK: [(&str, LocalWork); 3] =
    [("read", LocalWork::Read), ("list", LocalWork::List), ("write", LocalWork::Write)];

const KEY: &str = "handlers";

impl EntryReader<'_> {
    pub(super) fn local(&self, entry: &Map<String, Value>) -> Result<LocalSpec, ConfigError> {
        let Some(folder) = self.string(entry, "folder")?.filter(|folder| !folder.is_empty()) else {
            return Err(self.about(&[], "requires folder"));
        };
        let folder = self.host_text("folder", folder)?;
        let wrong = |what: &str| self.about(&[KEY], what);
        let Some(Value::Array(given)) =
            entry.get(KEY).filter(|given| given.as_array().is_some_and(|all| !all.is_empty()))
        else {
            return Err(match entry.contains_key(KEY) {
                true => wrong("handlers must be a list of objects, not empty"),
                false => self.about(&[], "requires handlers"),
            });
        };
        let mut handlers: Vec<LocalHandler> = Vec::new();
        for value in given {
            let handler = self.handler(value)?;
            if handlers.iter().any(|other| other.name == handler.name) {
                return Err(wrong(&format!("handlers: two are called {}", handler.name)));
            }
            handlers.push(handler);
        }
        Ok(LocalSpec { folder: self.document.beside(folder), handlers })
    }

    fn handler(&self, value: &Value) -> Result<LocalHandler, ConfigError> {
        let wrong = |what: &str| self.about(&[KEY], &format!("handlers: {what}"));
        let fields = value.as_object().ok_or_else(|| wrong("each is an object"))?;
        if let Some(odd) = fields.keys().find(|key| !HANDLER_KEYS.contains(&key.as_str())) {
            return Err(wrong(&format!("unknown key \"{odd}\"; there are {}", HANDLER_KEYS.join(", "))));
        }
        let text = |key: &str| match fields.get(key) {
            None => Ok(None),
            Some(Value::String(text)) if !text.is_empty() => Ok(Some(text.clone())),
            Some(_) => Err(wrong(&format!("{key} must be a string that is not empty"))),
        };
        let name = text("name")?.ok_or_else(|| wrong("each has a name"))?;
        let command = fields.get("command").map(|words| {
            let words: Option<Vec<String>> = words
                .as_array()
                .and_then(|all| all.iter().map(|word| word.as_str().map(str::to_owned)).collect());
            words.filter(|words| {
                words.first().is_some_and(|program| !program.is_empty() && !program.contains('{'))
            })
        });
        let work = match (command, text("file")?) {
            (Some(Some(words)), None) => LocalWork::Command(words),
            (Some(None), _) => {
                return Err(wrong(
                    "command is a list of strings: a program, which is fixed, and its arguments",
                ));
            }
            (None, Some(file)) => {
                let known = FILE_WORK.into_iter().find(|(known, _)| *known == file);
                known.map(|(_, work)| work).ok_or_else(|| wrong("file is read, list or write"))?
            }
            _ => return Err(wrong(&format!("{name} needs either command or file"))),
        };
        let parameters = match fields.get("parameters") {
            None => Map::new(),
            Some(Value::Object(schemas)) if schemas.values().all(Value::is_object) => schemas.clone(),
            Some(_) => return Err(wrong("parameters is an object of schemas")),
        };
        Ok(LocalHandler { name, description: text("description")?, work, parameters })
    }
}
