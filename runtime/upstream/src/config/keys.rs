//! Lists the keys that a server's configuration entry may have, with type and help, for warnings and for the JSON
//! Schema of the file. The parser warns about all others, and a test keeps the parser in line with this table.

/// What a key holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A string.
    Text,
    /// A list of strings.
    Texts,
    /// An object of strings, numbers and booleans.
    Variables,
    /// True or false.
    Flag,
    /// A whole number from 1.
    Positive,
    /// An object of overrides for operations, by `operationId`.
    Overrides,
    /// A list of tools: `{"name": …, "command": […]}` or `{"name": …, "file": "read"}`.
    Handlers,
    /// A list of emitters: `{"scheme": …, "binding": …}`.
    Emitters,
    /// An object of header names and texts.
    Headers,
    /// `{"allow": [name]}` or `{"block": [name]}`.
    ToolRule,
    /// A list of tools, as hosts write it: only these exist.
    Only,
    /// A list of tools, as hosts write it: these do not exist.
    Without,
    /// Tools that a host calls without confirmation. Nothing here asks for confirmation.
    Approval,
    /// Any value: a key of hosts that has no meaning here.
    Foreign,
}

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct KeyRow {
    /// Its name in the file.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Its meaning, for people.
    pub help: &'static str,
}

const fn row(name: &'static str, kind: Kind, help: &'static str) -> KeyRow {
    KeyRow { name, kind, help }
}

/// Keys of an entry.
#[rustfmt::skip]
pub const ENTRY_KEYS: &[KeyRow] = &[
    row("transport", Kind::Text, "How the server is reached: mcp_stdio, mcp_http, sse, openapi, local."),
    row("command", Kind::Text, "The program to start: a path, or a name looked up in PATH."),
    row("args", Kind::Texts, "Its arguments."),
    row("env", Kind::Variables, "Variables for it; ${VAR} is filled from the environment of ptc."),
    row("cd", Kind::Text, "The folder to start it in."),
    row("cwd", Kind::Text, "The same as cd."),
    row("inheritEnv", Kind::Flag, "Give it the whole environment of ptc instead of the usual few variables."),
    row("url", Kind::Text, "Address of a remote MCP server."),
    row("base_url", Kind::Text, "Address of a JSON service; the paths of its document are below it."),
    row("schema_file", Kind::Text, "Its OpenAPI document, JSON or YAML; a relative path is looked for beside this file."),
    row("schema_url", Kind::Text, "Where the document is loaded from when the server starts, instead of schema_file."),
    row("schema_max_bytes", Kind::Positive, "The largest document, refused before it is decoded."),
    row("include_operations", Kind::Texts, "The operationIds that become tools, patterns with * among them, and tags as tag:NAME; all others are left out."),
    row("operation_overrides", Kind::Overrides, "Names, descriptions and default_args of operations."),
    row("allow_operations_with_effects", Kind::Texts, "operationIds that become tools though they may change something: other methods than GET, and JSON bodies."),
    row("folder", Kind::Text, "Where the handlers of a local entry work; a relative path is looked for beside this file."),
    row("handlers", Kind::Handlers, "Tools of a local entry: commands without a shell, and file operations in its folder."),
    row("allow_insecure_http", Kind::Flag, "Allows addresses with http://."),
    row("allow_insecure_auth", Kind::Flag, "Allows auth over http:// as well."),
    row("connect_timeout_ms", Kind::Positive, "How long a connection may take."),
    row("idle_timeout_ms", Kind::Positive, "How long nothing may come of an answer that has begun; no limit if not said."),
    row("proxy", Kind::Text, "http://host:port to connect through; otherwise HTTPS_PROXY, HTTP_PROXY and NO_PROXY hold."),
    row("ca_file", Kind::Text, "PEM file of certificate authorities to trust beside those of the system."),
    row("client_certificate", Kind::Text, "PEM file of the certificate to show to servers that ask for one."),
    row("client_key", Kind::Text, "PEM file of its key, if it is another one."),
    row("auth", Kind::Emitters, "What puts credentials into headers of requests, in order; scheme oauth describes a login."),
    row("static_headers", Kind::Headers, "More headers of requests, none of them secret."),
    row("description", Kind::Text, "What models read about the server."),
    row("required", Kind::Flag, "Whether ptc stops when the server does not start."),
    row("disabled", Kind::Flag, "Leave the server out."),
    row("enabled", Kind::Flag, "False leaves the server out."),
    row("tools", Kind::ToolRule, "Which of its tools programs may call."),
    row("handshake_timeout_ms", Kind::Positive, "How long a start may take, listing its tools included."),
    row("unresponsive_timeout_ms", Kind::Positive, "How long it may answer nothing once a call was given up, before it is replaced."),
    row("request_timeout_ms", Kind::Positive, "How long one call may take."),
    row("max_response_bytes", Kind::Positive, "The largest answer, refused before it is decoded."),
    row("max_concurrent_calls", Kind::Positive, "Calls in flight; more wait."),
    row("max_calls_per_program", Kind::Positive, "Calls that one program may make to it."),
    row("on_large", Kind::Text, "spill keeps results that are too large for programs to look into; refuse is the default."),
];

/// Keys that hosts write in addition. In the hosts' shapes they are accepted without a warning.
pub const HOST_KEYS: &[KeyRow] = &[
    row("type", Kind::Text, "The hosts' name for transport."),
    row("serverUrl", Kind::Text, "Windsurf's name for url."),
    row("httpUrl", Kind::Text, "Gemini's name for url, of a server that speaks Streamable HTTP."),
    row("headers", Kind::Variables, "HTTP headers, secrets included; ${VAR} is filled."),
    row(
        "oauth",
        Kind::Foreign,
        "A client for logins: clientId, clientSecret, scopes, callbackPort; false: no login.",
    ),
    row("timeout", Kind::Foreign, "The host's own limit."),
    row("alwaysAllow", Kind::Approval, APPROVALS),
    row("autoApprove", Kind::Approval, APPROVALS),
    row("alwaysApprove", Kind::Approval, APPROVALS),
    row("autoAllow", Kind::Approval, APPROVALS),
    row("trust", Kind::Approval, APPROVALS),
    row("disabledTools", Kind::Without, "Tools that programs may not call."),
    row("disabled_tools", Kind::Without, "Tools that programs may not call."),
    row("excludeTools", Kind::Without, "Tools that programs may not call."),
    row("enabledTools", Kind::Only, "The only tools that programs may call."),
    row("enabled_tools", Kind::Only, "The only tools that programs may call."),
    row("includeTools", Kind::Only, "The only tools that programs may call."),
    row("allowedTools", Kind::Only, "The only tools that programs may call."),
    row("icon", Kind::Foreign, "How the host shows it."),
    row("dev", Kind::Foreign, "How the host develops it."),
    row("gallery", Kind::Foreign, "Where the host found it."),
    row("version", Kind::Foreign, "What the host installed."),
];

const APPROVALS: &str = "Approvals of the host; programs call every tool without asking.";

/// A list under `tools`, as Copilot writes it.
static TOOL_LIST: KeyRow = row("tools", Kind::Only, "The only tools that programs may call.");

/// Keys with which hosts select tools, or approve calls of them. Allow lists come first: of several rules that refuse a
/// tool, the first one is the reason.
pub fn choices() -> impl Iterator<Item = &'static KeyRow> {
    let rows = |kind| HOST_KEYS.iter().filter(move |row| row.kind == kind);
    let kinds = [Kind::Only, Kind::Without, Kind::Approval];
    std::iter::once(&TOOL_LIST).chain(kinds.into_iter().flat_map(rows))
}

/// The row of a key.
pub(super) fn find(name: &str, hosts: bool) -> Option<&'static KeyRow> {
    let foreign = if hosts { HOST_KEYS } else { &HOST_KEYS[..1] };
    ENTRY_KEYS.iter().chain(foreign).find(|row| row.name == name)
}

/// Longer names are not compared: no key is that long.
const LONGEST: usize = 64;

/// The known key that the author most likely meant.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    if name.len() > LONGEST {
        return None;
    }
    let lower = name.to_ascii_lowercase().replace('-', "_");
    ENTRY_KEYS
        .iter()
        .map(|row| (strsim::levenshtein(&lower, &row.name.to_ascii_lowercase()), row.name))
        .min()
        .filter(|(distance, known)| *distance <= 1 + known.len() / 4)
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_the_pen_are_recognised() {
        assert_eq!(nearest("comand"), Some("command"));
        assert_eq!(nearest("Args"), Some("args"));
        assert_eq!(nearest("handshake-timeout-ms"), Some("handshake_timeout_ms"));
        assert_eq!(nearest("inheritenv"), Some("inheritEnv"));
        assert_eq!(nearest("sandboxing"), None);
        assert_eq!(nearest(&"x".repeat(10_000)), None);
    }
}
