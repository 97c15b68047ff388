//! Reads the settings of an OpenAPI service from the configuration: its address, its document, and the operations that
//! become tools.

use crate::config::ConfigError;
use crate::config::entry::{EntryReader, saturated};
use crate::{DEFAULT_SCHEMA_BYTES, OpenApiSpec, OperationOverride, SchemaSource, is_pattern};
use ptc_base::secrets::names;
use ptc_vm::fault::nearest;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Keys of an override.
pub(in crate::config) const OVERRIDE_KEYS: [&str; 3] = ["name", "description", "default_args"];

impl EntryReader<'_> {
    pub(super) fn openapi(&self, entry: &Map<String, Value>) -> Result<OpenApiSpec, ConfigError> {
        let (headers, has_auth) = self.headers(entry)?;
        if entry
            .get("auth")
            .and_then(Value::as_array)
            .is_some_and(|all| all.iter().any(|one| one["scheme"] == "oauth"))
        {
            let what = "auth with scheme oauth is for MCP servers; use bearer with a token of the service";
            return Err(self.about(&["auth"], what));
        }
        let requires = |what: &str| self.about(&[], &format!("requires {what}"));
        let base_url = self.address(entry, "base_url", has_auth)?.ok_or_else(|| requires("base_url"))?;
        if base_url.query().is_some() {
            let what =
                "has malformed base_url: it has a query (?…); arguments of operations are written there";
            return Err(self.about(&["base_url"], what));
        }
        let file = self.string(entry, "schema_file")?;
        let url = self.address(entry, "schema_url", has_auth)?;
        let schema = match (file, url) {
            (Some(file), None) if !file.is_empty() => SchemaSource::File(self.document.beside(file)),
            (None, Some(url)) => SchemaSource::Url(url),
            _ => {
                let what = "must set exactly one of schema_file or schema_url; prefer schema_file";
                return Err(self.about(&[], what));
            }
        };
        let include = self.operation_ids(entry, "include_operations")?;
        let with_effects = self.operation_ids(entry, "allow_operations_with_effects")?;
        if include.is_empty() && with_effects.is_empty() {
            let key =
                if entry.contains_key("include_operations") { &["include_operations"][..] } else { &[] };
            let what = "requires non-empty include_operations: the operationIds that become tools, or [\"*\"] for all that read";
            return Err(self.about(key, what));
        }
        let overrides = self.overrides(entry, &include, &with_effects)?;
        Ok(OpenApiSpec {
            base_url,
            schema,
            schema_max_bytes: self
                .positive(entry, "schema_max_bytes")?
                .map_or(DEFAULT_SCHEMA_BYTES, saturated),
            headers,
            client: self.client_options(entry)?,
            include,
            with_effects,
            overrides,
        })
    }

    fn operation_ids(&self, entry: &Map<String, Value>, key: &str) -> Result<Vec<String>, ConfigError> {
        let Some(value) = entry.get(key) else { return Ok(Vec::new()) };
        let id = |id: &Value| id.as_str().filter(|id| !id.is_empty()).map(str::to_owned);
        let ids: Option<Vec<String>> = value.as_array().and_then(|ids| ids.iter().map(id).collect());
        ids.ok_or_else(|| {
            self.about(&[key], &format!("{key} must be a list of operationIds, none of them empty"))
        })
    }

    fn overrides(
        &self,
        entry: &Map<String, Value>,
        include: &[String],
        with_effects: &[String],
    ) -> Result<BTreeMap<String, OperationOverride>, ConfigError> {
        const KEY: &str = "operation_overrides";
        let given = match entry.get(KEY) {
            None | Some(Value::Null) => return Ok(BTreeMap::new()),
            Some(Value::Object(given)) => given,
            Some(_) => {
                return Err(self.about(&[KEY], "operation_overrides must be an object of operationIds"));
            }
        };
        let mut overrides = BTreeMap::new();
        for (id, value) in given {
            let wrong = |below: &[&str], what: &str| {
                let path: Vec<&str> = [KEY, id].iter().chain(below).copied().collect();
                self.about(&path, &format!("operation_overrides {id} {what}"))
            };
            let by_pattern = include.iter().any(|word| is_pattern(word));
            if !by_pattern && !include.contains(id) && !with_effects.contains(id) {
                let known = include.iter().chain(with_effects).map(String::as_str);
                let hint = match nearest(id, known) {
                    Some(near) => format!("did you mean {near}?"),
                    None => "add it there, or leave it out".to_owned(),
                };
                return Err(wrong(&[], &format!("is not in include_operations; {hint}")));
            }
            let Value::Object(fields) = value else { return Err(wrong(&[], "must be an object")) };
            if let Some(odd) = fields.keys().find(|key| !OVERRIDE_KEYS.contains(&key.as_str())) {
                let known = OVERRIDE_KEYS.join(", ");
                return Err(wrong(&[odd], &format!("has unknown key \"{odd}\"; there are {known}")));
            }
            let text = |key: &str| match fields.get(key) {
                None | Some(Value::Null) => Ok(None),
                Some(Value::String(text)) if !text.trim().is_empty() => Ok(Some(text.clone())),
                Some(_) => Err(wrong(&[key], &format!("{key} must be a string that is not empty"))),
            };
            let default_args = match fields.get("default_args") {
                None | Some(Value::Null) => Map::new(),
                Some(Value::Object(arguments)) => arguments.clone(),
                Some(_) => {
                    return Err(wrong(&["default_args"], "default_args must be an object of arguments"));
                }
            };
            for (name, value) in &default_args {
                for secret in names::secrets_below(name, value) {
                    let what = format!("the default argument {name} of {id}");
                    let text = secret.as_str().map_or_else(|| Cow::Owned(secret.to_string()), Cow::Borrowed);
                    self.protect(&[KEY, id, "default_args", name], &what, &text);
                }
            }
            let told =
                OperationOverride { name: text("name")?, description: text("description")?, default_args };
            overrides.insert(id.clone(), told);
        }
        Ok(overrides)
    }
}
