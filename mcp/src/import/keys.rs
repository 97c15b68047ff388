//! Table of the keys that server entries have in the configuration files of other MCP clients, and whether the import
//! copies, converts, drops or reports each.

use super::hosts::Host;
use ptc_upstream::config::keys::{self, Kind};
use serde_json::Value;

/// Meaning of a key in a host's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// We have the same key, for any server.
    Same,
    /// For a local server: we have the same key; placeholders in it are replaced.
    Local,
    /// For a remote server: we have the same key.
    Remote,
    /// Read together with other keys: how the server is reached, and whether it is enabled.
    Read,
    /// A limit in milliseconds, under our key.
    Millis(&'static str),
    /// A limit in seconds, under our key of milliseconds.
    Seconds(&'static str),
    /// A list of the only allowed tools.
    Allow,
    /// The same, but an empty list means all tools.
    AllowUnlessEmpty,
    /// A list of excluded tools.
    Exclude,
    /// Tools that may be called without confirmation.
    Approval,
    /// How the host shows, finds or stores the server; it can be dropped.
    Display,
    /// Without a counterpart; the text says what to do instead.
    Unsupported(&'static str),
}

/// Keys, and the hosts that use them with this meaning. An empty list means all hosts.
#[rustfmt::skip]
const KEYS: &[(&[Host], &[&str], Meaning)] = &[
    (&[Host::Gemini, Host::ClaudeCode], &["timeout"], Meaning::Millis("request_timeout_ms")),
    (&[Host::Goose], &["timeout"], Meaning::Seconds("request_timeout_ms")),
    (&[Host::Opencode], &["timeout"], Meaning::Millis("handshake_timeout_ms")),
    (&[Host::Goose], &["available_tools"], Meaning::AllowUnlessEmpty),
    (&[Host::Codex], &["tools", "default_tools_approval_mode"], Meaning::Approval),
    (&[Host::Codex], &["env_vars", "http_headers", "env_http_headers", "bearer_token_env_var"], Meaning::Read),
    (&[], &["description", "required"], Meaning::Same),
    (&[], &["args", "env", "cwd"], Meaning::Local),
    (&[], &["headers"], Meaning::Remote),
    (&[], &["command", "url", "serverUrl", "httpUrl", "uri", "type", "disabled", "enabled"], Meaning::Read),
    (&[], &["startup_timeout_sec"], Meaning::Seconds("handshake_timeout_ms")),
    (&[], &["startup_timeout_ms"], Meaning::Millis("handshake_timeout_ms")),
    (&[], &["tool_timeout_sec"], Meaning::Seconds("request_timeout_ms")),
    (&[], &["available_tools"], Meaning::Allow),
    (&[], &["name", "display_name", "title", "icon", "icons", "version", "gallery", "dev", "source", "bundled"], Meaning::Display),
    (&[], &["envFile"], Meaning::Unsupported("is not read: export its variables, or write them into env")),
    (&[], &["headersHelper"], Meaning::Unsupported("is not taken over: give the server a token in headers, or log in with ptc login")),
    (&[], &["auth", "oauth", "authProviderType", "oauth_resource", "scopes"], Meaning::Unsupported("is not taken over: log in with ptc login, or give the server a token in headers")),
];

/// The meaning of a key for this host.
pub fn meaning(host: Host, key: &str) -> Meaning {
    let row = KEYS
        .iter()
        .find(|(hosts, keys, _)| keys.contains(&key) && (hosts.is_empty() || hosts.contains(&host)));
    let known = row.map(|(_, _, meaning)| *meaning).or_else(|| selects_tools(key));
    known.unwrap_or(Meaning::Unsupported("is not taken over"))
}

/// The meaning of a key that selects tools. A configuration file may have the same keys.
fn selects_tools(key: &str) -> Option<Meaning> {
    keys::choices().find(|row| row.name == key).map(|row| match row.kind {
        Kind::Without => Meaning::Exclude,
        Kind::Approval => Meaning::Approval,
        _ => Meaning::Allow,
    })
}

/// True for a value without information, whatever its key is.
pub fn is_empty_value(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    }
}
