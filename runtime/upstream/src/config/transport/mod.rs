//! Reads how an entry's server is reached, and the keys that belong to one transport; `local`: tools that the
//! entry defines itself.

mod local;

pub(super) use local::FILE_WORK;

use super::entry::EntryReader;
use super::keys;
use super::{ConfigError, Shape};
use crate::{Environment, HttpProtocol, StdioSpec, Transport};
use ptc_base::secrets::{Credential, names};
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::sync::Arc;

/// Transports, under every name of the three shapes.
const TRANSPORTS: [(&str, TransportName); 9] = [
    ("mcp_stdio", TransportName::Stdio),
    ("stdio", TransportName::Stdio),
    ("mcp_http", TransportName::Http(HttpProtocol::Streamable)),
    ("http", TransportName::Http(HttpProtocol::Streamable)),
    ("streamable-http", TransportName::Http(HttpProtocol::Streamable)),
    ("streamableHttp", TransportName::Http(HttpProtocol::Streamable)),
    ("sse", TransportName::Http(HttpProtocol::Sse)),
    ("openapi", TransportName::OpenApi),
    ("local", TransportName::Local),
];

/// More names that hosts use: Copilot's and Goose's.
const HOST_TRANSPORTS: [(&str, TransportName); 2] =
    [("local", TransportName::Stdio), ("streamable_http", TransportName::Http(HttpProtocol::Streamable))];

/// Keys in which hosts write addresses. Gemini's `httpUrl` implies the transport and is checked first.
pub(super) const HOST_ADDRESSES: [(&str, HttpProtocol); 3] = [
    ("httpUrl", HttpProtocol::Streamable),
    ("url", HttpProtocol::Either),
    ("serverUrl", HttpProtocol::Either),
];

/// Names of transports for error messages: in our own shape, and in the others.
const NAMES: &str = "mcp_stdio, mcp_http, sse, openapi or local";
const HOST_NAMES: &str = "stdio, http, sse, openapi or local";

#[derive(Clone, Copy, PartialEq)]
enum TransportName {
    Stdio,
    Http(HttpProtocol),
    OpenApi,
    Local,
}

impl EntryReader<'_> {
    /// How the server is reached.
    pub(super) fn transport(&self, entry: &Map<String, Value>) -> Result<Arc<dyn Transport>, ConfigError> {
        let server = self.server;
        let names = if self.shape == Shape::Upstreams { NAMES } else { HOST_NAMES };
        let key = if entry.contains_key("transport") { "transport" } else { "type" };
        let Some(name) = self.string(entry, key)? else {
            if entry.contains_key("command") {
                return self.stdio(entry);
            }
            let address = HOST_ADDRESSES.iter().find(|(key, _)| entry.contains_key(*key));
            if let Some((_, protocol)) = address.filter(|_| self.shape != Shape::Upstreams) {
                return Ok(Arc::new(self.http(entry, *protocol)?));
            }
            let known = if entry.contains_key("url") { "mcp_http or sse" } else { names };
            let hosts = self.shape != Shape::Upstreams;
            let unknown = entry.keys().find(|key| keys::find(key, hosts).is_none());
            let meant = unknown
                .and_then(|key| Some(format!("; \"{key}\": did you mean \"{}\"?", keys::nearest(key)?)));
            let meant = meant.unwrap_or_default();
            let message = format!("upstream {server} requires explicit transport: {known}{meant}");
            return Err(self.error(&[], message));
        };
        // `"type": "local"` is a host's word for a command; our `"transport": "local"` has no command.
        let theirs: &[_] =
            if self.shape == Shape::Upstreams || key != "type" { &[] } else { &HOST_TRANSPORTS };
        let mut all = theirs.iter().chain(&TRANSPORTS);
        let known = all.find(|(known, _)| *known == name).map(|(_, transport)| *transport);
        match known {
            Some(TransportName::Stdio) if name == "stdio" && self.shape == Shape::Upstreams => {
                let message =
                    format!("upstream {server} uses old transport \"stdio\"; use mcp_stdio or mcp_http");
                Err(self.error(&[key], message))
            }
            Some(TransportName::Stdio) => self.stdio(entry),
            Some(TransportName::Local) => Ok(Arc::new(self.local(entry)?)),
            Some(TransportName::OpenApi) => Ok(Arc::new(self.openapi(entry)?)),
            Some(TransportName::Http(protocol)) => Ok(Arc::new(self.http(entry, protocol)?)),
            None => {
                let message = format!("upstream {server} has unsupported transport \"{name}\"; use {names}");
                Err(self.error(&[key], message))
            }
        }
    }

    fn stdio(&self, entry: &Map<String, Value>) -> Result<Arc<dyn Transport>, ConfigError> {
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
