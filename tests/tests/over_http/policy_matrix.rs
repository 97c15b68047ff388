//! No way around a rule: every front end, every verdict, and every spelling that reaches a tool.

#![expect(clippy::unwrap_used, reason = "test helpers: what is broken should be loud")]

use ptc_tests::bridge::probe_over_http;
use ptc_tests::model::ModelServer;
use ptc_tests::scripts::engine;
use ptc_tests::upstreams::{ConfigFile, Upstreams};
use ptc_tests::web::{WebServer, sha256, stateless_body, stateless_headers};
use serde_json::{Value, json};

/// The tokens stand for the verdicts.
const POLICY: &str = r#"
default = { read = "deny", write = "deny", destructive = "deny" }
[[rule]]
do = "allow"
tools = ["probe/*"]
who = ["token:allow"]
[[rule]]
do = "ask"
tools = ["mcp__probe__*"]
who = ["token:ask"]
"#;

/// Programs that reach the server in different ways.
const PROGRAMS: [&str; 9] = [
    "(tool/call 'probe/stats {})",
    "(tool/call {:server \"probe\" :tool \"stats\" :args {}})",
    "(tool/call {:server (subs \"-probe\" 1) :tool (str \"st\" \"ats\") :args {}})",
    "(mapv #(tool/call % {}) ['probe/stats])",
    "(pmap (fn [s] (tool/call {:server s :tool \"stats\" :args {}})) [\"probe\"])",
    "(try-it/stats)",
    "(resource/read {:server \"probe\" :uri \"memo://notes\"})",
    "(resource/list {:server \"probe\"})",
    "(prompt/get {:server \"probe\" :name \"greet\" :args {:who \"me\"}})",
];

/// What only an answer of the server contains.
const REACHED: [&str; 4] = ["most_in_flight", "Buy milk", "memo://dot", "Greet me"];

/// What a refused call says.
const REFUSED: [&str; 3] = ["denied", "approval_unavailable", "a person has to approve it"];

fn contains(text: &str, any: &[&str]) -> bool {
    any.iter().any(|part| text.contains(part))
}

#[test]
#[cfg_attr(not(scripts), ignore = "no engine runs scripts here")]
fn every_front_end_obeys_every_verdict() {
    obeys_every_verdict(&Upstreams::probe().write());
}

#[test]
#[cfg_attr(not(scripts), ignore = "no engine runs scripts here")]
fn every_front_end_obeys_every_verdict_about_servers_over_http() {
    obeys_every_verdict(&Upstreams::default().add("probe", probe_over_http()).write());
}

/// Calls the server in every way, with a token for each verdict.
fn obeys_every_verdict(config: &ConfigFile) {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let token = |name: &str| name.repeat(16);
    let entries =
        ["allow", "ask", "deny"].map(|name| format!("[{name}]\nsha256 = \"{}\"\n", sha256(&token(name))));
    let tokens = at("tokens.toml", &entries.concat());
    let policy = at("policy.toml", POLICY);
    let prelude = at("try-it.clj", "(ns try-it)\n(defn stats \"Asks.\" [] (tool/call 'probe/stats {}))\n");
    let model = ModelServer::with_programs(&["(return (tool/call 'probe/stats {}))"]);
    let server = WebServer::start(&config.flags(&[
        "--http-tokens",
        &tokens,
        "--policy",
        &policy,
        "--prelude",
        &prelude,
        "--tools",
        "lisp_eval,execute_program,proxy-dispatch",
        "--python-engine",
        engine(),
        "--sessions",
        "--agentic",
        "--agentic-allow-writes",
        "--agentic-model",
        "some-model",
        "--agentic-base-url",
        model.url(),
        "--timeout",
        "120s",
        "--python-timeout",
        "120s",
    ]));
    let call = |name: &str, tool: &str, arguments: &Value| {
        let authorization = format!("Bearer {}", token(name));
        let mut headers = stateless_headers("tools/call", tool);
        headers.push(("Authorization", &authorization));
        let params = json!({ "name": tool, "arguments": arguments });
        let answer = server.ask("POST", &headers, &stateless_body(1, "tools/call", params));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body
    };
    for name in ["allow", "ask", "deny"] {
        let begun: Value = serde_json::from_str(&call(name, "lisp_session_start", &json!({}))).unwrap();
        let session = begun["result"]["structuredContent"]["session_id"].clone();
        let mut ways = Vec::new();
        for program in PROGRAMS {
            ways.push(("lisp_eval", json!({ "program": program })));
            ways.push(("lisp_session_eval", json!({ "program": program, "session_id": session })));
        }
        ways.push(("execute_program", json!({ "code": "print(await mcp__probe__stats())" })));
        let action = json!({ "action": "call", "connection": "probe", "tool": "stats", "arguments": {} });
        ways.push(("proxy-dispatch", action));
        ways.push(("lisp_task", json!({ "task": "Look." })));
        for (tool, arguments) in ways {
            let answer = call(name, tool, &arguments);
            match name {
                "allow" => assert!(contains(&answer, &REACHED), "{tool} {arguments}: {answer}"),
                _ => assert!(
                    !contains(&answer, &REACHED) && contains(&answer, &REFUSED),
                    "{name} {tool} {arguments}: {answer}"
                ),
            }
        }
    }
}
