//! Chooses the transport of a configured server (child process, HTTP, OpenAPI service or local tools); a module for
//! each transport reads its settings.

mod http;
mod local;
mod openapi;
mod stdio;

pub(super) use local::FILE_WORK;
pub(super) use openapi::OVERRIDE_KEYS;

use super::entry::EntryReader;
use super::keys;
use super::{ConfigError, Shape};
use crate::{HttpProtocol, Transport};
use serde_json::{Map, Value};
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
            return Err(self.about(&[], &format!("requires explicit transport: {known}{meant}")));
        };
        // `"type": "local"` is a host's word for a command; our `"transport": "local"` has no command.
        let theirs: &[_] =
            if self.shape == Shape::Upstreams || key != "type" { &[] } else { &HOST_TRANSPORTS };
        let mut all = theirs.iter().chain(&TRANSPORTS);
        let known = all.find(|(known, _)| *known == name).map(|(_, transport)| *transport);
        match known {
            Some(TransportName::Stdio) if name == "stdio" && self.shape == Shape::Upstreams => {
                Err(self.about(&[key], "uses old transport \"stdio\"; use mcp_stdio or mcp_http"))
            }
            Some(TransportName::Stdio) => self.stdio(entry),
            Some(TransportName::Local) => Ok(Arc::new(self.local(entry)?)),
            Some(TransportName::OpenApi) => Ok(Arc::new(self.openapi(entry)?)),
            Some(TransportName::Http(protocol)) => Ok(Arc::new(self.http(entry, protocol)?)),
            None => Err(self.about(&[key], &format!("has unsupported transport \"{name}\"; use {names}"))),
        }
    }
}
