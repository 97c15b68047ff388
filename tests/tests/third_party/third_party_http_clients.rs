//! Third-party clients over HTTP, each in every protocol era it supports: the Python SDK, fastmcp, the TypeScript
//! SDK, the inspector, mcporter and langchain-mcp-adapters.

use ptc_tests::binary::run;
use ptc_tests::third_party::{inspector, installed, mcporter, new_node, python, python_with_langchain};
use ptc_tests::web::WebServer;
use ptc_tests::workspace;
use serde_json::{Value, json};
use std::process::{Command, Stdio};

const STATELESS: &str = "2026-07-28";
const HANDSHAKE: &str = "2025-11-25";

/// A server that logs its requests, with its tools as every client should see them.
fn server() -> WebServer {
    WebServer::start(&["--timeout", "5s", "--http-metrics"])
}

/// The output of a client.
fn drive(mut command: Command) -> String {
    command
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .env("XDG_STATE_HOME", "/dev/null")
        .current_dir(installed());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let shown = format!("{command:?}");
    let finished = run(command, "");
    assert_eq!(finished.code, Some(0), "{shown}: {finished:?}");
    finished.stdout
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn script(name: &str) -> std::path::PathBuf {
    workspace().join("tests/third_party").join(name)
}

/// The value of a metric in `/metrics`.
fn number(server: &WebServer, name: &str) -> u64 {
    let numbers = server.get("/metrics").body;
    let line = numbers.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name}: {numbers}"))
}

/// Checks the report that both SDKs give of the same session of work.
fn check(report: &Value, protocol: &str) {
    assert_eq!((&report["protocol"], &report["server"]), (&json!(protocol), &json!("ptc")), "{report:#}");
    assert_eq!(report["tools"][0]["name"], "lisp_eval");
    assert_eq!(report["value"]["text"], "5050");
    assert_eq!(report["context"]["text"], "[\"é\" \"b\"]");
    assert_eq!(report["failed"]["error"], true);
    assert_eq!(report["schema"]["structured"]["validated"], json!({ "n": 3 }));
    let squares: Vec<String> = (0..50).map(|n| (n * n).to_string()).collect();
    assert_eq!(report["parallel"], json!(squares));
    assert_eq!(report["after_cancel"]["text"], "\"still here\"");
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn the_python_sdk() {
    for (mode, protocol) in [("auto", STATELESS), ("legacy", HANDSHAKE)] {
        let server = server();
        let mut command = Command::new(python());
        command.arg(script("client.py")).args([mode, &server.url()]);
        check(&parsed(&drive(command)), protocol);
        assert_eq!(number(&server, "ptc_http_sessions"), 0, "it has closed what it began");
    }
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn the_typescript_sdk() {
    let server = server();
    let text = std::fs::read_to_string(script("client.mjs")).expect("the script");
    let mut command = Command::new(new_node());
    command.args(["--input-type=module", "-e", &text, "--", &server.url()]);
    check(&parsed(&drive(command)), HANDSHAKE);
    assert_eq!(number(&server, "ptc_http_sessions"), 0, "it has closed what it began");
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn fastmcp() {
    for mode in ["auto", "legacy"] {
        let server = server();
        let mut command = Command::new(python());
        command.arg(script("fastmcp_client.py")).args([mode, &server.url()]);
        let report = parsed(&drive(command));
        assert_eq!(report["tools"], json!(["lisp_eval"]), "{mode}");
        assert_eq!((&report["value"]["text"], &report["failed"]["error"]), (&json!("5050"), &json!(true)));
        assert_eq!(report["schema"]["structured"], json!({ "validated": { "n": 3 } }));
    }
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn the_inspector() {
    let server = server();
    for (era, is_stateless) in [("legacy", false), ("auto", true), ("modern", true)] {
        let ask = |arguments: &[&str]| {
            let mut command = Command::new(new_node());
            command.arg(inspector()).args(["--cli", "--protocol-era", era]);
            command.args(["--transport", "http", "--server-url", &server.url()]).args(arguments);
            parsed(&drive(command))
        };
        assert_eq!(ask(&["--strict", "--method", "tools/list"])["tools"][0]["name"], "lisp_eval", "{era}");
        let call = ["--method", "tools/call", "--tool-name", "lisp_eval", "--tool-arg", "program=(+ 1 2)"];
        let called = ask(&call);
        assert_eq!(called["content"][0]["text"], "3", "{era}");
        assert_eq!(called["_meta"]["io.modelcontextprotocol/serverInfo"].is_object(), is_stateless, "{era}");
    }
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn mcporter_and_langchain() {
    let server = server();
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("mcporter.json");
    let servers = json!({ "mcpServers": { "ptc": { "url": server.url() } } });
    std::fs::write(&config, servers.to_string()).expect("written");
    let porter = |arguments: &[&str]| {
        let mut command = Command::new(new_node());
        command.arg(mcporter()).arg("--config").arg(&config).args(arguments);
        drive(command)
    };
    assert!(porter(&["list", "ptc", "--schema"]).contains("function lisp_eval(program: string"));
    let called = porter(&["call", "ptc.lisp_eval", "program={:a (+ 1 1)}"]);
    assert!(called.contains("{:a 2}"), "{called}");

    let mut command = Command::new(python_with_langchain());
    command.arg(script("langchain_client.py")).args([&server.url(), "(reduce + (range 101))"]);
    assert_eq!(parsed(&drive(command)), json!({ "tools": ["lisp_eval"], "text": "5050" }));
}
