//! Reads from the configuration how to start a server as a child process: command, arguments, working directory and
//! environment.

use crate::config::entry::EntryReader;
use crate::config::{ConfigError, Shape};
use crate::{Environment, StdioSpec, Transport};
use ptc_base::secrets::{Credential, names};
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::sync::Arc;

impl EntryReader<'_> {
    pub(super) fn stdio(&self, entry: &Map<String, Value>) -> Result<Arc<dyn Transport>, ConfigError> {
        let Some(command) = self.string(entry, "command")?.filter(|command| !command.is_empty()) else {
            return Err(self.error(&[], format!("upstream {} requires command", self.server)));
        };
        let command = self.host_text("command", command)?;
        let mut spec = StdioSpec::new(command, self.arguments(entry)?);
        spec.variables = self.environment(entry)?;
        let directory = match self.string(entry, "cd")? {
            Some(directory) => Some(("cd", directory)),
            None => self.string(entry, "cwd")?.map(|directory| ("cwd", directory)),
        };
        spec.directory =
            directory.map(|(key, text)| self.host_text(key, text)).transpose()?.map(PathBuf::from);
        if self.boolean(entry, "inheritEnv")? == Some(true) {
            spec.environment = Environment::Inherited;
            for (name, value) in std::env::vars().filter(|(name, _)| names::is_secret(name)) {
                self.protect(&["inheritEnv"], &format!("the value of {name}"), &value);
            }
        }
        Ok(Arc::new(spec))
    }

    fn arguments(&self, entry: &Map<String, Value>) -> Result<Vec<String>, ConfigError> {
        let Some(value) = entry.get("args") else { return Ok(Vec::new()) };
        let strings: Option<Vec<String>> = value
            .as_array()
            .and_then(|items| items.iter().map(|item| item.as_str().map(str::to_owned)).collect());
        let strings = strings.ok_or_else(|| self.wrong("args", "args must be a list of strings"))?;
        let arguments: Vec<String> =
            strings.iter().map(|text| self.host_text("args", text)).collect::<Result<_, _>>()?;
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        for secret in names::in_arguments(&words) {
            self.protect(&["args"], "a secret in args", &secret);
        }
        Ok(arguments)
    }

    fn environment(&self, entry: &Map<String, Value>) -> Result<Vec<(String, Credential)>, ConfigError> {
        let Some(value) = entry.get("env") else { return Ok(Vec::new()) };
        let Value::Object(variables) = value else {
            return Err(self.wrong("env", "env must be an object"));
        };
        let mut resolved = Vec::with_capacity(variables.len());
        for (name, value) in variables {
            let text = match value {
                Value::String(text) => text.clone(),
                // A number is read before it is written again: `1.10` would be `1.1`, `1e3` would be `1000.0`.
                Value::Number(number)
                    if number.is_f64() && !self.writes_number(&["env", name], &number.to_string()) =>
                {
                    let message = format!(
                        "upstream {}: env value of {name} must be a string; write the number in quotes",
                        self.server
                    );
                    return Err(self.error(&["env", name], message));
                }
                Value::Number(_) | Value::Bool(_) => value.to_string(),
                // VS Code removes a variable this way; the child's environment never had it.
                Value::Null if self.shape != Shape::Upstreams => continue,
                Value::Null | Value::Array(_) | Value::Object(_) => {
                    let message = format!("upstream {}: env value of {name} must be a string", self.server);
                    return Err(self.error(&["env", name], message));
                }
            };
            if name.is_empty() || name.contains(['=', '\0']) || text.contains('\0') {
                let message = format!("upstream {}: env {name:?} cannot be set", self.server);
                return Err(self.error(&["env", name], message));
            }
            let filled = self.filled(&["env", name], &text)?;
            // A variable that was filled in is already registered; its default is not.
            let is_literal = filled == text || names::defaults(&text).next().is_some();
            let credential = if is_literal && names::is_secret(name) {
                self.protect(&["env", name], &format!("env {name}"), &filled)
            } else {
                for secret in names::in_text(&filled) {
                    self.protect(&["env", name], &format!("a secret in env {name}"), &secret);
                }
                Credential::composed(filled)
            };
            resolved.push((name.clone(), credential));
        }
        Ok(resolved)
    }
}
