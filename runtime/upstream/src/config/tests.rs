//! Tests of reading configuration files: our shape and the shapes of hosts, keys, locations of errors,
//! merging.

#![allow(clippy::disallowed_methods, reason = "tests write files as they need them")]
use super::*;
use crate::{CallLimits, HttpProtocol, HttpSpec, StdioSpec};
use ptc_calls::policy::{NameRule, ToolPattern, ToolPolicy};
use std::any::Any;
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
        // An invalid entry of a host's file is a server that never starts.
        Ok(config) => match config.servers.iter().find_map(|server| server.transport.why_unusable()) {
            Some(why) => why.to_owned(),
            None => panic!("no error for {text}"),
        },
        Err(error) => error.to_string(),
    }
}

fn stdio(entry: &ServerEntry) -> &StdioSpec {
    let transport: &dyn Any = &*entry.transport;
    transport.downcast_ref().unwrap_or_else(|| panic!("{:?}", entry.transport.why_unusable()))
}

#[test]
fn the_documented_shape() {
    let text = r#"{"upstreams": {"fs": {"transport": "mcp_stdio", "command": "npx", "args": ["-y", "x"],
        "env": {"A": "p-${TOKEN}", "N": 5}, "cd": "/tmp", "description": "Files", "handshake_timeout_ms": 250}}}"#;
    let config = parse(text).ok().unwrap();
    let fs = &config.servers[0];
    assert_eq!((&*fs.name, fs.description.as_deref()), ("fs", Some("Files")));
    assert_eq!(stdio(fs).command, "npx");
    assert_eq!(stdio(fs).arguments, ["-y", "x"]);
    let variables: Vec<_> = stdio(fs).variables.iter().map(|(k, v)| (k.as_str(), v.expose())).collect();
    assert_eq!(variables, [("A", "p-s3cret-token"), ("N", "5")]);
    assert_eq!(stdio(fs).directory.as_deref(), Some(Path::new("/tmp")));
    assert_eq!(fs.handshake_timeout.as_millis(), 250);
    assert_eq!(fs.startup, Startup::Strict);
}

#[test]
fn values_of_yaml_are_those_of_its_version_1_2() {
    let text = "upstreams:\n  fs:\n    command: x\n    env: {A: y, B: 0755, C: on, D: 00123, E: 5, F: 'no', G: true}\n";
    let config = Config::parse_with(text, "c.yaml", &SecretRegistry::new(), &|_| None).ok().unwrap();
    let variables = &stdio(&config.servers[0]).variables;
    let values: Vec<_> = variables.iter().map(|(_, value)| value.expose()).collect();
    assert_eq!(values, ["y", "0755", "on", "00123", "5", "no", "true"]);
}

/// Their digits would change on the way.
#[test]
fn variables_that_are_no_whole_numbers_are_written_as_texts() {
    for number in ["1.10", "1e3", "12345678901234567890123"] {
        let json =
            format!("{{\"upstreams\": {{\"fs\": {{\"command\": \"x\", \"env\": {{\"A\": {number}}}}}}}}}");
        let yaml = format!("upstreams:\n  fs:\n    command: x\n    env: {{A: {number}}}\n");
        for (text, name) in [(json, "c.json"), (yaml, "c.yaml")] {
            let read = Config::parse_with(&text, name, &SecretRegistry::new(), &|_| None);
            let why = read.err().unwrap().to_string();
            assert!(why.contains("env value of A must be a string; write the number in quotes"), "{why}");
        }
    }
    let text = "{\"upstreams\": {\"fs\": {\"command\": \"x\", \"env\": {\"A\" :\n 1.5, \"B\": 2.5}}}}";
    let config = Config::parse_with(text, "c.json", &SecretRegistry::new(), &|_| None).ok().unwrap();
    let variables = &stdio(&config.servers[0]).variables;
    assert!(variables.iter().map(|(_, value)| value.expose()).eq(["1.5", "2.5"]));
    let yaml = "upstreams:\n  fs:\n    command: x\n    env: {A: &a 1.5, 'B:C': !!float 2.5}\n";
    assert!(Config::parse_with(yaml, "c.yaml", &SecretRegistry::new(), &|_| None).is_ok());
    let elsewhere = "upstreams:\n  fs:\n    command: x\n    env: {A: 1.10} # and 1.1\n";
    assert!(Config::parse_with(elsewhere, "c.yaml", &SecretRegistry::new(), &|_| None).is_err());
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
    let text = r#"{"mcpServers": {"a": {"command": "x", "env": {"A": "${TOKEN}", "B": "${HOME}", "C": "${PWD}",
        "D": "${XDG_CACHE_HOME}"}}}}"#;
    assert!(Config::parse_with(text, "u", &secrets, &variables).is_ok());
    let public = "value-of-HOME value-of-PWD value-of-XDG_CACHE_HOME";
    assert_eq!(secrets.scrub(&format!("value-of-TOKEN {public}")), format!("[REDACTED] {public}"));
}

#[test]
fn errors_name_file_line_and_column() {
    assert_eq!(
        error("{\"upstreams\": {\n  \"fs\": {\"command\": \"x\" \"args\": []}\n}}"),
        "u.json:2:24: upstreams config JSON decode failed: Expected comma"
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
}

#[test]
fn transports_are_known_by_name() {
    let one = |entry: &str| error(&format!("{{\"upstreams\": {{\"s\": {entry}}}}}"));
    assert!(one(r#"{"transport": "stdio", "command": "x"}"#).contains("uses old transport \"stdio\""));
    assert!(one(r#"{"transport": "carrier pigeon", "command": "x"}"#).contains("unsupported transport"));
    assert!(one(r#"{}"#).contains("requires explicit transport"));
    assert!(one(r#"{"transport": "mcp_stdio"}"#).contains("upstream s requires command"));
}

#[test]
fn placeholders_outside_env_are_literal() {
    let config =
        parse(r#"{"upstreams": {"a": {"command": "${TOKEN}", "args": ["${TOKEN}"]}}}"#).ok().unwrap();
    assert_eq!(stdio(&config.servers[0]).command, "${TOKEN}");
    assert_eq!(stdio(&config.servers[0]).arguments, ["${TOKEN}"]);
}

#[test]
fn limits_and_tool_lists_of_a_server() {
    let text = r#"{"tools": {"block": ["db/*"]}, "upstreams": {"fs": {"transport": "mcp_stdio", "command": "x",
        "tools": {"allow": ["read*"]}, "request_timeout_ms": 1500, "max_response_bytes": 10,
        "max_concurrent_calls": 4, "max_calls_per_program": 7, "on_large": "spill"}}}"#;
    let config = parse(text).ok().unwrap();
    let fs = &config.servers[0];
    let limits = CallLimits {
        timeout: Some(Duration::from_millis(1500)),
        max_response_bytes: Some(10),
        max_concurrent: Some(4),
        max_calls_per_program: Some(7),
        spills_large: true,
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

#[test]
fn hosts_fill_placeholders_in_every_text() {
    let text = r#"{"mcpServers": {"a": {"command": "${HOME}/run", "args": ["--key=${env:TOKEN}", "${NOPE:-x}"],
        "env": {"K": "${NOPE:-y}"}, "cwd": "${HOME}"}}}"#;
    let secrets = SecretRegistry::new();
    let variables = |name: &str| match name {
        "TOKEN" => Some("s3cret-token".to_owned()),
        "HOME" => Some("/home/me".to_owned()),
        _ => None,
    };
    let config = Config::parse_with(text, "u", &secrets, &variables).ok().unwrap();
    let stdio = stdio(&config.servers[0]);
    assert_eq!(
        (stdio.command.as_str(), stdio.directory.as_deref()),
        ("/home/me/run", Some(Path::new("/home/me")))
    );
    assert_eq!(stdio.arguments, ["--key=s3cret-token", "x"]);
    assert_eq!(stdio.variables[0].1.expose(), "y");
    assert_eq!(secrets.scrub("s3cret-token /home/me"), "[REDACTED] /home/me");
    let missing = error("{\"servers\": {\"a\": {\n \"command\": \"${NOPE}\"}}}");
    assert_eq!(missing, "u.json:2:2: upstreams_config: env var NOPE is not set (referenced as ${NOPE})");
}

#[test]
fn unknown_keys_are_warned_about_by_name_and_place() {
    let text = "{\"upstreams\": {\n  \"fs\": {\"command\": \"x\", \"arg\": [], \"sandbox\": 1}},\n \"credential\": {}}";
    let warnings: Vec<String> =
        parse(text).ok().unwrap().warnings.iter().map(ConfigError::to_string).collect();
    assert_eq!(
        warnings,
        [
            "u.json:3:2: unknown key \"credential\"",
            "u.json:2:26: upstream fs: unknown key \"arg\"; did you mean \"args\"?",
            "u.json:2:37: upstream fs: unknown key \"sandbox\"",
        ]
    );
    let host = r#"{"mcpServers": {"a": {"type": "stdio", "command": "x", "alwaysAllow": [], "timeout": 5, "cwd": null}}, "inputs": []}"#;
    assert!(parse(host).ok().unwrap().warnings.is_empty());
}

#[test]
fn comments_are_allowed_and_places_stay() {
    let text = "// servers\n{\"upstreams\": { /* one */ \"fs\": {\"command\": 5}}}";
    assert_eq!(error(text), "u.json:2:34: upstream fs: command must be a string");
}

#[test]
fn the_parser_keeps_to_the_table_of_keys() {
    use super::keys::{ENTRY_KEYS, Kind};
    for row in ENTRY_KEYS {
        /// The required keys of an entry with an OpenAPI document.
        const SERVICE: [(&str, &str); 5] = [
            ("client_certificate", "\"c\""),
            ("transport", "\"openapi\""),
            ("base_url", "\"https://h\""),
            ("schema_file", "\"s\""),
            ("include_operations", "[\"a\"]"),
        ];
        const OF_SERVICES: [&str; 17] = [
            "idle_timeout_ms",
            "proxy",
            "ca_file",
            "client_certificate",
            "client_key",
            "base_url",
            "schema_file",
            "schema_url",
            "schema_max_bytes",
            "include_operations",
            "operation_overrides",
            "allow_operations_with_effects",
            "allow_insecure_http",
            "allow_insecure_auth",
            "connect_timeout_ms",
            "auth",
            "static_headers",
        ];
        let of_service = |value: &str| {
            let others = SERVICE.into_iter().filter(|(key, _)| *key != row.name);
            let others = others.filter(|(key, _)| (*key, row.name) != ("schema_file", "schema_url"));
            let members: Vec<String> =
                others.chain([(row.name, value)]).map(|(key, value)| format!("\"{key}\": {value}")).collect();
            format!(r#"{{"mcpServers": {{"s": {{{}}}}}}}"#, members.join(", "))
        };
        let of_local = |value: &str| {
            const BOTH: [(&str, &str); 2] =
                [("folder", "\"x\""), ("handlers", r#"[{"name": "a", "file": "read"}]"#)];
            let others = BOTH.into_iter().filter(|(key, _)| *key != row.name);
            let members: Vec<String> = others
                .chain([("transport", "\"local\""), (row.name, value)])
                .map(|(key, value)| format!("\"{key}\": {value}"))
                .collect();
            format!(r#"{{"mcpServers": {{"s": {{{}}}}}}}"#, members.join(", "))
        };
        let entry = |value: &str| match row.name {
            "folder" | "handlers" => of_local(value),
            name if OF_SERVICES.contains(&name) => of_service(value),
            "command" | "url" => format!(r#"{{"mcpServers": {{"s": {{"{}": {value}}}}}}}"#, row.name),
            name => format!(r#"{{"mcpServers": {{"s": {{"command": "x", "{name}": {value}}}}}}}"#),
        };
        let (right, wrong): (&[&str], &[&str]) = match row.kind {
            Kind::Text if row.name == "transport" => (&["\"mcp_stdio\""], &["5", "\"nope\""]),
            Kind::Text if row.name == "proxy" => (&["\"http://x:1\""], &["5", "\"x\"", "\"https://x\""]),
            Kind::Text if row.name == "url" => (&["\"https://x\""], &["5", "\"x\"", "\"ftp://x\""]),
            Kind::Text if row.name.ends_with("_url") => (&["\"https://x\""], &["5", "\"x\"", "\"ftp://x\""]),
            Kind::Text => (&["\"x\""], &["5", "[]", "true"]),
            Kind::Texts if row.name == "include_operations" => {
                (&["[\"x\"]"], &["[]", "\"x\"", "[1]", "[\"\"]"])
            }
            Kind::Overrides => {
                (&["{}", "{\"a\": {\"name\": \"x\"}}"], &["[]", "{\"b\": {}}", "{\"a\": {\"x\": 1}}"])
            }
            Kind::Texts => (&["[]", "[\"x\"]"], &["\"x\"", "[1]", "{}"]),
            Kind::Variables => (&["{}", "{\"A\": 1, \"B\": true, \"C\": \"c\"}"], &["[]", "{\"A\": []}"]),
            Kind::Flag => (&["true", "false"], &["\"true\"", "1"]),
            Kind::Positive => (&["1", "60000"], &["0", "-1", "1.5", "\"1\""]),
            Kind::Emitters => (&["[]", "{}"], &["\"x\"", "[1]", "[{\"scheme\": \"bearer\"}]"]),
            Kind::Headers => {
                (&["{}", "{\"X-Tenant\": \"a\"}"], &["[]", "{\"Cookie\": \"a\"}", "{\"X-A\": 1}"])
            }
            Kind::ToolRule => {
                (&["{}", "{\"allow\": [\"a*\"]}"], &["5", "{\"allow\": 1}", "{\"allow\": [], \"block\": []}"])
            }
            Kind::Handlers => (
                &[r#"[{"name": "a", "command": ["wc", "{path}"], "description": "x", "parameters": {}}]"#],
                &[
                    "{}",
                    "[]",
                    "[1]",
                    r#"[{"name": "a"}]"#,
                    r#"[{"file": "read"}]"#,
                    r#"[{"name": "a", "file": "erase"}]"#,
                    r#"[{"name": "a", "file": "read", "odd": 1}]"#,
                    r#"[{"name": "a", "file": "read", "command": ["x"]}]"#,
                    r#"[{"name": "a", "command": "wc x"}]"#,
                    r#"[{"name": "a", "command": ["{program}"]}]"#,
                    r#"[{"name": "a", "file": "read"}, {"name": "a", "file": "list"}]"#,
                ],
            ),
            Kind::Only | Kind::Without | Kind::Approval | Kind::Foreign => (&["1", "[]"], &[]),
        };
        for value in right {
            let config = parse(&entry(value)).unwrap_or_else(|error| panic!("{}: {error}", row.name));
            assert!(config.warnings.is_empty(), "{}", row.name);
        }
        for value in wrong {
            let error = error(&entry(value));
            assert!(error.starts_with("u.json:1:") && error.contains(row.name), "{}: {error}", row.name);
        }
    }
}

#[test]
fn the_schema_in_the_repository_is_the_one_of_the_parser() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/upstreams.schema.json");
    let written = std::fs::read_to_string(path).unwrap_or_default();
    let current = format!("{:#}\n", json_schema());
    assert!(written == current, "run: ptc config schema > docs/upstreams.schema.json");
    assert_eq!(current.matches("\"handshake_timeout_ms\"").count(), 2);
}

#[test]
fn several_files_are_merged_and_the_later_one_wins() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let first = write("a.json", r#"{"upstreams": {"x": {"command": "old"}, "y": {"command": "y"}}}"#);
    let second = write("b.json", r#"{"mcpServers": {"x": {"command": "new"}, "z": {"command": "z"}}}"#);
    let configs = Config::load_all(&[first, second], &SecretRegistry::new()).ok().unwrap();
    let servers: Vec<_> = configs
        .iter()
        .flat_map(|config| &config.servers)
        .map(|server| (&*server.name, stdio(server).command.as_str(), server.startup))
        .collect();
    use Startup::{Lenient, Strict};
    assert_eq!(servers, [("y", "y", Strict), ("x", "new", Lenient), ("z", "z", Lenient)]);
    assert!(configs[1].warnings[0].message.contains("upstream x replaces the one in"));
}

#[test]
fn in_a_hosts_file_one_bad_entry_costs_itself_only() {
    let own = std::env::current_exe().unwrap();
    let text = serde_json::json!({ "mcpServers": {
        "good": { "command": "x" },
        "unset": { "command": "x", "env": { "KEY": "${NOPE}" } },
        "pigeon": { "type": "pigeon", "command": "x", "args": ["--api-key=sk-literal-secret"] },
        "number": 5,
        "self": { "command": own },
        "needed": { "command": 5, "required": true },
    } });
    let secrets = SecretRegistry::new();
    let config = Config::parse_with(&text.to_string(), "u", &secrets, &|_| None).ok().unwrap();
    let seen: Vec<_> = config
        .servers
        .iter()
        .map(|server| (&*server.name, server.transport.why_unusable().is_some(), server.startup))
        .collect();
    use Startup::{Lenient, Strict};
    assert_eq!(
        seen,
        [
            ("good", false, Lenient),
            ("unset", true, Lenient),
            ("pigeon", true, Lenient),
            ("number", true, Lenient),
            ("self", true, Lenient),
            ("needed", true, Strict),
        ]
    );
    assert_eq!(secrets.scrub("sk-literal-secret"), "[REDACTED]", "also of an entry that is not used");
    assert!(parse(&text.to_string().replace("mcpServers", "upstreams")).is_err(), "not in the strict shape");
}

#[test]
fn a_hosts_choice_of_tools_is_taken_over_or_told() {
    let text = r#"{"mcpServers": {"a": {"command": "x", "includeTools": ["read*"], "excludeTools": ["read_all"]},
        "b": {"command": "x", "disabledTools": ["rm"], "autoApprove": ["ls"]}, "c": {"command": "x", "tools": ["*"]},
        "d": {"command": "x", "trust": false}}}"#;
    let config = parse(text).ok().unwrap();
    let rules = |allowed: &[&str], blocked: &[&str]| {
        let names = |names: &[&str]| names.iter().map(|name| ToolPattern::new(*name)).collect::<Vec<_>>();
        let allow = (!allowed.is_empty()).then(|| NameRule::Allow(names(allowed)));
        let block = (!blocked.is_empty()).then(|| NameRule::Block(names(blocked)));
        allow.into_iter().chain(block).fold(ToolPolicy::default(), ToolPolicy::with_rule)
    };
    let policies: Vec<_> = config.servers.iter().map(|server| &server.tools).collect();
    assert_eq!(
        policies,
        [&rules(&["read*"], &["read_all"]), &rules(&[], &["rm"]), &rules(&["*"], &[]), &rules(&[], &[])]
    );
    let warnings: Vec<String> = config.warnings.iter().map(ConfigError::to_string).collect();
    assert!(
        matches!(&warnings[..], [one] if one.contains("upstream b: autoApprove has no effect")),
        "{warnings:?}"
    );
}

fn remote(entry: &ServerEntry) -> &HttpSpec {
    let transport: &dyn Any = &*entry.transport;
    transport.downcast_ref().expect("remote")
}

#[test]
fn remote_servers_of_our_own_shape() {
    let text = r#"{"credentials": {"t": {"source": "literal", "value": "tok-12345678"}}, "upstreams": {
        "a": {"transport": "mcp_http", "url": "https://h.example/mcp", "auth": [{"scheme": "bearer", "binding": "t"}],
              "proxy": "http://p:3128", "ca_file": "ca.pem", "client_certificate": "c.pem",
              "connect_timeout_ms": 70, "idle_timeout_ms": 80},
        "b": {"transport": "sse", "url": "http://127.0.0.1:9/sse", "allow_insecure_http": true}}}"#;
    let config = parse(text).ok().unwrap();
    let a = remote(&config.servers[0]);
    assert_eq!((a.url.as_str(), a.protocol), ("https://h.example/mcp", HttpProtocol::Streamable));
    assert!(a.headers.contains("authorization"));
    assert_eq!(a.client.connect_timeout.map(|time| time.as_millis()), Some(70));
    assert_eq!(a.client.tls.client_certificate.as_ref().unwrap().key, Path::new("c.pem"));
    assert_eq!(remote(&config.servers[1]).protocol, HttpProtocol::Sse);
    let entry = |keys: &str| format!(r#"{{"upstreams": {{"a": {{{keys}}}}}}}"#);
    let table = [
        (r#""transport": "mcp_http""#, "upstream a requires url"),
        (r#""url": "https://h/mcp""#, "requires explicit transport: mcp_http or sse"),
        (r#""transport": "mcp_http", "url": "http://h/mcp""#, "without allow_insecure_http"),
        (r#""transport": "mcp_http", "url": "ftp://h/mcp""#, "unsupported URL scheme"),
        (r#""transport": "mcp_http", "url": "https://h", "headers": {"a": "b"}"#, "use static_headers"),
        (r#""transport": "mcp_http", "url": "https://h", "proxy": "https://p""#, "write http://host:port"),
        (r#""transport": "mcp_http", "url": "https://h", "proxy": "http://u:p@p:1""#, "user or password"),
        (r#""transport": "mcp_http", "url": "https://h", "client_key": "k""#, "needs client_certificate"),
        (
            r#""transport": "carrier-pigeon", "url": "https://h""#,
            "use mcp_stdio, mcp_http, sse, openapi or local",
        ),
    ];
    for (keys, why) in table {
        let told = error(&entry(keys));
        assert!(told.contains(why), "{told}");
    }
}

#[test]
fn remote_servers_as_hosts_write_them() {
    let secrets = SecretRegistry::new();
    let variables = |name: &str| match name {
        "TOKEN" | "API_KEY" => Some(format!("value-of-{name}")),
        _ => None,
    };
    let parse = |text: &str| Config::parse_with(text, "mcp.json", &secrets, &variables);
    let text = r#"{"mcpServers": {
        "bare": {"url": "http://localhost:3000/mcp"},
        "http": {"type": "http", "url": "https://${HOST:-h.example}/mcp", "headers": {"Authorization": "Bearer literal-token-1"}},
        "name": {"type": "streamable-http", "url": "https://h.example/mcp", "headers": {"X-Key": "${env:TOKEN}", "X-Plain": "p"}},
        "sse": {"type": "sse", "url": "http://h.example/sse", "headers": {"Authorization": "Bearer ${input:api-key}"}}}}"#;
    let config = parse(text).map_err(|error| error.to_string()).unwrap();
    let protocols: Vec<HttpProtocol> = config.servers.iter().map(|entry| remote(entry).protocol).collect();
    let (either, http, sse) = (HttpProtocol::Either, HttpProtocol::Streamable, HttpProtocol::Sse);
    assert_eq!(protocols, [either, http, http, sse]);
    assert_eq!(remote(&config.servers[1]).url.as_str(), "https://h.example/mcp");
    let told =
        secrets.scrub("literal-token-1 and value-of-TOKEN and value-of-API_KEY, not Bearer p").into_owned();
    assert_eq!(told, "[REDACTED] and [REDACTED] and [REDACTED], not Bearer p");
    let warned: Vec<String> = config.warnings.iter().map(ToString::to_string).collect();
    assert!(warned.len() == 1 && warned[0].contains("sends a secret over http://"), "{warned:?}");
    let table = [
        (r#"{"url": "h.example"}"#, "has malformed url"),
        (r#"{"url": "https://h", "headers": {"A": "${NOPE}"}}"#, "env var NOPE is not set"),
        (
            r#"{"url": "https://h", "headers": {"A": "${input:my-key}"}}"#,
            "set the environment variable MY_KEY",
        ),
        (r#"{"url": "https://h", "headers": {"A": {}}}"#, "must be a string"),
        (r#"{"url": "https://h", "headers": {"A b": "x"}}"#, "is no name of a header"),
        (r#"{"url": "https://h", "headers": {"a": "x", "A": "y"}}"#, "given twice"),
    ];
    for (entry, why) in table {
        let config = parse(&format!(r#"{{"servers": {{"a": {entry}}}}}"#)).ok().unwrap();
        let told = config.servers[0].transport.why_unusable().unwrap().to_owned();
        assert!(told.contains(why), "{told}");
    }
}

#[test]
fn inputs_of_hosts_are_filled_wherever_variables_are() {
    let secrets = SecretRegistry::new();
    let variables = |name: &str| (name == "API_KEY").then(|| "value-of-key".to_owned());
    let parse = |text: &str| Config::parse_with(text, "mcp.json", &secrets, &variables).ok().unwrap();
    let config = parse(
        r#"{"servers": {"a": {"command": "x-${input:api-key}", "args": ["--k=${input:api-key}", "$input:b"],
        "cwd": "/${input:api-key}/${input:API_KEY}", "env": {"K": "${input:api-key}"}}}}"#,
    );
    let spec = stdio(&config.servers[0]);
    assert_eq!(spec.command, "x-value-of-key");
    assert_eq!(spec.arguments, ["--k=value-of-key", "$input:b"]);
    assert_eq!(spec.directory.as_deref(), Some(std::path::Path::new("/value-of-key/value-of-key")));
    assert_eq!(secrets.scrub("value-of-key"), "[REDACTED]");
    for entry in [
        r#""command": "${input:my-key}""#,
        r#""command": "x", "args": ["${input:my-key}"]"#,
        r#""command": "x", "cwd": "${input:my-key}""#,
        r#""command": "x", "env": {"A": "b ${input:my-key}"}"#,
    ] {
        let config = parse(&format!(r#"{{"mcpServers": {{"a": {{{entry}}}}}}}"#));
        let said = config.servers[0].transport.why_unusable().unwrap_or_default().to_owned();
        assert!(said.contains("set the environment variable MY_KEY"), "{entry}: {said}");
    }
}

#[test]
fn a_list_of_servers_in_yaml_and_in_json() {
    let yaml = "servers:\n  - name: a-b\n    transport: stdio\n    command: x\n    args: [\"1\"]\n  - {name: remote, \
                transport: sse, url: 'http://127.0.0.1:1/mcp', description: \"${TOKEN}\"}\n\
                tools:\nexecution: {timeout_seconds: 5, max_output_bytes: 9}\n";
    let secrets = SecretRegistry::new();
    let config = Config::parse_with(yaml, "c.yml", &secrets, &|_| None).ok().unwrap();
    assert_eq!((config.shape, config.warnings), (Shape::Listed, vec![]));
    let names: Vec<_> = config.servers.iter().map(|entry| (&*entry.name, entry.startup)).collect();
    assert_eq!(names, [("a-b", Startup::Lenient), ("remote", Startup::Lenient)]);
    assert_eq!(stdio(&config.servers[0]).arguments, ["1"]);
    let spec = remote(&config.servers[1]);
    assert_eq!(spec.protocol, HttpProtocol::Sse);
    let five = ScriptSettings { timeout: Some(Duration::from_secs(5)), max_output_bytes: Some(9) };
    assert_eq!(config.execution, five);
    assert_eq!(ScriptSettings { timeout: None, max_output_bytes: Some(1) }.or(five).timeout, five.timeout);
    let json = r#"{"servers": [{"name": "a", "command": "x"}]}"#;
    assert_eq!(parse(json).ok().unwrap().shape, Shape::Listed);
    assert_eq!(
        error(r#"{"servers": [{"name": "a"}]}"#),
        "u.json:1:14: upstream a requires explicit transport: stdio, http, sse, openapi or local"
    );
    assert_eq!(error(r#"{"servers": [1]}"#), "u.json:1:14: each of servers must have a name and a transport");
    let quoted = Config::parse_with("servers: [\n  s3cret: {", "c.yaml", &secrets, &|_| None)
        .err()
        .unwrap()
        .to_string();
    assert!(quoted.starts_with("c.yaml:") && !quoted.contains("s3cret"), "{quoted}");
    let twice =
        Config::parse_with("servers: []\nservers: []\n", "c.yaml", &secrets, &|_| None).err().unwrap();
    assert_eq!(twice.to_string(), "c.yaml:2:1: upstreams config YAML decode failed: a key is given twice");
}

#[test]
fn a_file_may_have_our_shape_and_a_hosts_and_each_keeps_its_meaning() {
    let text = r#"{"upstreams": {"a": {"command": "${TOKEN}"}, "b": {"command": "ours"}},
 "mcpServers": {"c": {"command": "${NOPE:-x}"}, "d": {"command": "${NOPE}"},
 "b": {"command": "theirs"}}}"#;
    let config = parse(text).ok().unwrap();
    let seen: Vec<_> = config.servers.iter().map(|server| (&*server.name, server.startup)).collect();
    use Startup::{Lenient, Strict};
    assert_eq!(seen, [("a", Strict), ("b", Strict), ("c", Lenient), ("d", Lenient)]);
    let commands: Vec<_> = config.servers[..3].iter().map(|server| stdio(server).command.as_str()).collect();
    assert_eq!(commands, ["${TOKEN}", "ours", "x"]);
    assert!(config.servers[3].transport.why_unusable().is_some());
    let warnings: Vec<_> = config.warnings.iter().map(ConfigError::to_string).collect();
    assert_eq!(warnings, ["u.json:3:2: b is in upstreams and in mcpServers; the first is used"]);
}

#[test]
fn hosts_own_words_are_understood_and_other_files_are_told_how_to_be_imported() {
    let text = r#"{"mcpServers": {
        "windsurf": {"serverUrl": "https://h/mcp", "headers": {"A": null}}, "gemini": {"httpUrl": "https://h/mcp"},
        "copilot": {"type": "local", "command": "x", "tools": []}, "code": {"command": "x", "env": {"Z": null}}}}"#;
    let config = parse(text).ok().unwrap();
    assert_eq!(config.warnings, []);
    let either = [HttpProtocol::Either, HttpProtocol::Streamable];
    assert_eq!([0, 1].map(|at| remote(&config.servers[at]).protocol), either);
    let none = ToolPolicy::default().with_rule(NameRule::Allow(vec![]));
    assert_eq!((&config.servers[2].tools, stdio(&config.servers[3]).variables.len()), (&none, 0));
    assert!(error(r#"{"upstreams": {"a": {"transport": "streamable_http"}}}"#).contains("unsupported"));
    for (name, text, host) in [
        ("s.json", r#"{"context_servers": {"a": {}}}"#, "zed"),
        ("o.json", r#"{"mcp": {}}"#, "opencode"),
        ("c.yaml", "extensions: {}", "goose"),
        ("c.toml", "[mcp_servers.a]", "codex"),
    ] {
        let secrets = SecretRegistry::new();
        let told = Config::parse_with(text, name, &secrets, &|_| None).err().unwrap().to_string();
        assert!(told.contains(&format!("`ptc config import --from {host} ")), "{told}");
    }
    assert!(error(r#"{"mcpServers": []}"#).contains("a list of servers is under servers"));
}
