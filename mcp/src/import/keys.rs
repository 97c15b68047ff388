//! What becomes of each key of a host's entry: one table.

use super::hosts::Host;
use serde_json::Value;

/// What a key of a host's entry becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// It is ours as well, whatever the server is.
    Same,
    /// Of a server that is started: the same key of ours, with its placeholders.
    Local,
    /// Of a remote server: the same.
    Remote,
    /// It is read together with others: how the server is reached, and whether it is on.
    Read,
    /// A limit in milliseconds, under our key.
    Millis(&'static str),
    /// A limit in seconds, under our key of milliseconds.
    Seconds(&'static str),
    /// The only tools there are.
    Only,
    /// The same, but an empty list means all.
    OnlyIfAny,
    /// Tools that are left out.
    Without,
    /// What is called without asking.
    Approval,
    /// How the host shows, finds or keeps the server: nothing is lost.
    Display,
    /// It has no counterpart; what to do instead.
    Lost(&'static str),
}

/// Keys, and the hosts that mean them so; no host at all are all.
#[rustfmt::skip]
const KEYS: &[(&[Host], &[&str], Meaning)] = &[
    (&[Host::Gemini, Host::ClaudeCode], &["timeout"], Meaning::Millis("request_timeout_ms")),
    (&[Host::Goose], &["timeout"], Meaning::Seconds("request_timeout_ms")),
    (&[Host::Opencode], &["timeout"], Meaning::Millis("handshake_timeout_ms")),
    (&[Host::Goose], &["available_tools"], Meaning::OnlyIfAny),
    (&[Host::Codex], &["tools", "default_tools_approval_mode"], Meaning::Approval),
    (&[Host::Codex], &["env_vars", "http_headers", "env_http_headers", "bearer_token_env_var"], Meaning::Read),
    (&[], &["description", "required"], Meaning::Same),
    (&[], &["args", "env", "cwd"], Meaning::Local),
    (&[], &["headers"], Meaning::Remote),
    (&[], &["command", "url", "serverUrl", "httpUrl", "uri", "type", "disabled", "enabled"], Meaning::Read),
    (&[], &["startup_timeout_sec"], Meaning::Seconds("handshake_timeout_ms")),
    (&[], &["startup_timeout_ms"], Meaning::Millis("handshake_timeout_ms")),
    (&[], &["tool_timeout_sec"], Meaning::Seconds("request_timeout_ms")),
    (&[], &["enabled_tools", "enabledTools", "includeTools", "allowedTools", "available_tools", "tools"], Meaning::Only),
    (&[], &["disabled_tools", "disabledTools", "excludeTools"], Meaning::Without),
    (&[], &["autoApprove", "alwaysAllow", "alwaysApprove", "autoAllow", "trust"], Meaning::Approval),
    (&[], &["name", "display_name", "title", "icon", "icons", "version", "gallery", "dev", "source", "bundled"], Meaning::Display),
    (&[], &["envFile"], Meaning::Lost("is not read: export its variables, or write them into env")),
    (&[], &["auth", "oauth", "authProviderType", "oauth_resource", "scopes", "headersHelper"], Meaning::Lost("is not taken over: ptc signs in nowhere by itself; give the server a token in headers")),
];

/// What a key of this host becomes.
pub fn meaning(host: Host, key: &str) -> Meaning {
    let row = KEYS
        .iter()
        .find(|(hosts, keys, _)| keys.contains(&key) && (hosts.is_empty() || hosts.contains(&host)));
    row.map_or(Meaning::Lost("is not taken over"), |(_, _, meaning)| *meaning)
}

/// True for a value that says nothing, whatever its key is.
pub fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    }
}
