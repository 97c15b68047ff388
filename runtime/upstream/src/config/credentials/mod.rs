//! Reads the `credentials` of a configuration file: secrets by name, each resolved once when the file is read.
//!
//! - this file: the table of credentials; [`emit`]: the `auth` of an entry, which turns credentials into
//!   headers; [`oauth`]: logins; [`header`]: which headers an entry may set, and `static_headers`

mod emit;
mod header;
mod oauth;

pub(super) use emit::SCHEMES;
pub(super) use oauth::KEYS as OAUTH_KEYS;

use super::ConfigError;
use super::location::Document;
use ptc_base::secrets::{Credential, Protection, SecretRegistry};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The top-level key.
pub(super) const KEY: &str = "credentials";

/// Sources of a value: name of the source, name of the key that belongs to it, and what that key holds.
pub(super) const SOURCES: [(&str, &str, &str); 3] = [
    ("env", "var", "The variable that holds the value."),
    ("file", "path", "The file that holds the value; a relative one is looked for beside this file."),
    ("literal", "value", "The value itself."),
];

/// A source that is reserved and not implemented.
const RESERVED_SOURCE: &str = "exec";

/// Credentials by name. Holds secrets, so it implements neither `Debug` nor `Serialize`.
#[derive(Default)]
pub(super) struct Credentials {
    bindings: BTreeMap<String, Binding>,
}

/// One resolved credential.
pub(super) struct Binding {
    value: Credential,
    /// The scheme that the file suggests for it.
    hint: Option<String>,
}

/// Reads the credentials of one file.
pub(super) struct CredentialReader<'a> {
    pub(super) document: &'a Document<'a>,
    pub(super) secrets: &'a SecretRegistry,
    pub(super) variables: &'a dyn Fn(&str) -> Option<String>,
    pub(super) warnings: &'a mut Vec<ConfigError>,
}

impl Credentials {
    fn get(&self, name: &str) -> Option<&Binding> {
        self.bindings.get(name)
    }

    /// The secrets by name.
    pub(super) fn into_values(self) -> BTreeMap<String, Credential> {
        self.bindings.into_iter().map(|(name, binding)| (name, binding.value)).collect()
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.bindings.keys().map(String::as_str)
    }
}

impl CredentialReader<'_> {
    /// Resolves every credential of a file, used or not, so that a missing one is noticed at the start.
    pub(super) fn read(mut self, root: &Map<String, Value>) -> Result<Credentials, ConfigError> {
        let mut credentials = Credentials::default();
        let bindings = match root.get(KEY) {
            None | Some(Value::Null) => return Ok(credentials),
            Some(Value::Object(bindings)) => bindings,
            Some(_) => return Err(self.document.error(&[KEY], "credentials must be an object")),
        };
        for (name, value) in bindings {
            let binding = self.binding(name, value)?;
            credentials.bindings.insert(name.clone(), binding);
        }
        Ok(credentials)
    }

    fn binding(&mut self, name: &str, value: &Value) -> Result<Binding, ConfigError> {
        let sources = SOURCES.map(|(source, key, _)| format!("{{\"source\": \"{source}\", \"{key}\": …}}"));
        let error = |below: &[&str], message: String| {
            let path: Vec<&str> = [KEY, name].iter().chain(below).copied().collect();
            self.document.error(&path, message)
        };
        let invalid = |below: &[&str], why: &str| {
            let hint = sources.join(" or ");
            error(below, format!("invalid credential binding \"{name}\": {why}; write {hint}"))
        };
        let Value::Object(fields) = value else { return Err(invalid(&[], "it must be an object")) };
        let source = match fields.get("source") {
            Some(Value::String(source)) => source,
            Some(_) => return Err(invalid(&["source"], "source must be a string")),
            None => return Err(invalid(&[], "it has no source")),
        };
        if source == RESERVED_SOURCE {
            return Err(error(
                &["source"],
                format!(
                    "credential {name}: source \"exec\" is reserved and not built into this version; \
                run the command before ptc and hand its output over with source env or file"
                ),
            ));
        }
        let Some((_, key, _)) = SOURCES.into_iter().find(|(known, ..)| known == source) else {
            return Err(invalid(&["source"], &format!("there is no source \"{source}\"")));
        };
        if let Some(odd) =
            fields.keys().find(|field| ![key, "source", "scheme_hint"].contains(&field.as_str()))
        {
            return Err(invalid(&[odd], &format!("source {source} takes no \"{odd}\"")));
        }
        let text = match fields.get(key) {
            Some(Value::String(text)) if !text.is_empty() => text,
            Some(_) => return Err(invalid(&[key], &format!("{key} must be a string that is not empty"))),
            None => return Err(invalid(&[], &format!("source {source} needs \"{key}\""))),
        };
        let hint = match fields.get("scheme_hint") {
            None | Some(Value::Null) => None,
            Some(Value::String(hint)) => Some(hint.clone()),
            Some(_) => return Err(invalid(&["scheme_hint"], "scheme_hint must be a string")),
        };
        let resolved = match source.as_str() {
            "env" => (self.variables)(text).ok_or_else(|| {
                error(
                    &["var"],
                    format!("credential {name} env {text} is not set; set it before ptc is started"),
                )
            })?,
            "file" => {
                let path = self.document.beside(text);
                let content = ptc_base::files::read_text(&path).map_err(|why| {
                    let at = path.display();
                    error(
                        &["path"],
                        format!("credential {name}: {at}: {why}; it is read once, when ptc starts"),
                    )
                })?;
                content.trim_end().to_owned()
            }
            _ => text.clone(),
        };
        if resolved.trim().is_empty() {
            return Err(error(&[key], format!("credential {name}: its value is empty")));
        }
        let (value, protection) = Credential::secret(resolved, self.secrets);
        if let Some(complaint) = Protection::complaint(protection) {
            let warning = error(
                &[key],
                format!("credential {name}: its value {complaint}; nothing hides it in output"),
            );
            self.warnings.push(warning);
        }
        Ok(Binding { value, hint })
    }
}

#[cfg(test)]
mod tests;
