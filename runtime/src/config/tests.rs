use super::*;
use crate::upstream::{CallLimits, NameRule, ToolPattern, ToolPolicy};
use secrecy::ExposeSecret;
use std::time::Duration;

fn parse(text: &str) -> Result<Config, ConfigError> {
    let variables = |name: &str| match name {
        "TOKEN" => Some("s3cret-token".to_owned()),
        "HOME" => Some("/home/me".to_owned()),
        _ => None,
    };
    Config::parse_with(text, "u.json", &SecretRegistry::new(), &variables)
}

fn error(text: &str) -> String {
    match parse(text) {
        Ok(_) => panic!("no error for {text}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn the_documented_shape() {
    let text = r#"{"upstreams": {"fs": {"transport": "mcp_stdio", "command": "npx", "args": ["-y", "x"],
        "env": {"A": "p-${TOKEN}", "N": 5}, "cd": "/tmp", "description": "Files", "handshake_timeout_ms": 250}}}"#;
    let config = parse(text).ok().unwrap();
    let fs = &config.servers[0];
    assert_eq!((&*fs.name, fs.description.as_deref()), ("fs", Some("Files")));
    assert_eq!(fs.stdio.command, "npx");
    assert_eq!(fs.stdio.arguments, ["-y", "x"]);
    let variables: Vec<_> = fs.stdio.variables.iter().map(|(k, v)| (k.as_str(), v.expose_secret())).collect();
    assert_eq!(variables, [("A", "p-s3cret-token"), ("N", "5")]);
    assert_eq!(fs.stdio.directory.as_deref(), Some(Path::new("/tmp")));
    assert_eq!(fs.handshake_timeout.as_millis(), 250);
    assert_eq!(fs.startup, Startup::Strict);
}

#[test]
fn host_shapes_are_lenient_and_disabled_entries_are_left_out() {
    let text = r#"{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y", "disabled": true},
        "c": {"command": "z", "required": true}}}"#;
    let config = parse(text).ok().unwrap();
    let starts: Vec<_> = config.servers.iter().map(|entry| (&*entry.name, entry.startup)).collect();
    assert_eq!(starts, [("a", Startup::Lenient), ("c", Startup::Strict)]);
    let code = parse(r#"{"servers": {"a": {"type": "stdio", "command": "x", "cwd": "/"}}, "inputs": []}"#);
    assert_eq!(code.ok().unwrap().shape, Shape::Servers);
}

#[test]
fn values_of_variables_become_secrets_except_harmless_ones() {
    let secrets = SecretRegistry::new();
    let variables = |name: &str| Some(format!("value-of-{name}"));
    let text = r#"{"mcpServers": {"a": {"command": "x", "env": {"A": "${TOKEN}", "B": "${HOME}"}}}}"#;
    assert!(Config::parse_with(text, "u", &secrets, &variables).is_ok());
    assert_eq!(secrets.scrub("value-of-TOKEN value-of-HOME"), "[REDACTED] value-of-HOME");
}

#[test]
fn errors_name_file_line_and_column() {
    assert_eq!(
        error("{\"upstreams\": {\n  \"fs\": {\"command\": \"x\",}\n}}"),
        "u.json:2:25: upstreams config JSON decode failed: trailing comma"
    );
    assert_eq!(
        error("{\"upstreams\": {\n  \"fs\": {\"command\": \"x\", \"args\": \"y\"}\n}}"),
        "u.json:2:26: upstream fs: args must be a list of strings"
    );
    assert_eq!(
        error("{\"mcpServers\": {\n  \"fs\": {\"command\": \"x\",\n   \"env\": {\"K\": \"${NOPE}\"}}\n}}"),
        "u.json:3:12: upstreams_config: env var NOPE is not set (referenced as ${NOPE})"
    );
    assert_eq!(error("[]"), "u.json:1:1: upstreams config must be a JSON object");
    assert_eq!(error("{\"upstreams\": 1}"), "u.json:1:2: upstreams must be an object");
    assert!(error("{}").contains("no servers"));
    assert!(error(r#"{"upstreams": {}, "servers": {}}"#).contains("keep one"));
}

#[test]
fn transports_that_are_not_built_are_refused_by_name() {
    let one = |entry: &str| error(&format!("{{\"upstreams\": {{\"s\": {entry}}}}}"));
    assert!(
        one(r#"{"transport": "mcp_http", "url": "http://x"}"#).contains("transport mcp_http is not built")
    );
    assert!(one(r#"{"transport": "openapi"}"#).contains("transport openapi is not built"));
    assert!(one(r#"{"url": "http://x"}"#).contains("transport mcp_http is not built"));
    assert!(one(r#"{"transport": "stdio", "command": "x"}"#).contains("uses old transport \"stdio\""));
    assert!(one(r#"{"transport": "carrier pigeon", "command": "x"}"#).contains("unsupported transport"));
    assert!(one(r#"{}"#).contains("requires explicit transport"));
    assert!(one(r#"{"transport": "mcp_stdio"}"#).contains("upstream s requires command"));
}

#[test]
fn placeholders_outside_env_are_literal() {
    let config =
        parse(r#"{"mcpServers": {"a": {"command": "${TOKEN}", "args": ["${TOKEN}"]}}}"#).ok().unwrap();
    assert_eq!(config.servers[0].stdio.command, "${TOKEN}");
    assert_eq!(config.servers[0].stdio.arguments, ["${TOKEN}"]);
}

#[test]
fn limits_and_tool_lists_of_a_server() {
    let text = r#"{"tools": {"block": ["db/*"]}, "upstreams": {"fs": {"transport": "mcp_stdio", "command": "x",
        "tools": {"allow": ["read*"]}, "request_timeout_ms": 1500, "max_response_bytes": 10,
        "max_concurrent_calls": 4, "max_calls_per_program": 7}}}"#;
    let config = parse(text).ok().unwrap();
    let fs = &config.servers[0];
    let limits = CallLimits {
        timeout: Some(Duration::from_millis(1500)),
        max_response_bytes: Some(10),
        max_concurrent: Some(4),
        max_calls_per_program: Some(7),
    };
    assert_eq!(fs.limits, limits);
    let policy = ToolPolicy::default()
        .with_rule(NameRule::Allow(vec![ToolPattern::new("read*")]))
        .with_rule(NameRule::Block(vec![ToolPattern::new("db/*")]));
    assert_eq!(fs.tools, policy);
    let both = r#"{"upstreams": {"a": {"command": "x", "transport": "mcp_stdio",
 "tools": {"allow": ["b"], "block": ["c"]}}}}"#;
    assert_eq!(error(both), "u.json:2:28: upstream a: tools.allow and tools.block exclude each other");
    let odd = "{\"upstreams\": {},\n \"tools\": {\"allow\": [1]}}";
    assert_eq!(error(odd), "u.json:2:12: tools.allow must be a list of tool names");
    let zero = r#"{"mcpServers": {"a": {"command": "x", "max_concurrent_calls": 0}}}"#;
    assert!(error(zero).ends_with("upstream a: max_concurrent_calls must be a positive number"));
}
