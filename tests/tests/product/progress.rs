//! Progress of upstream tools reaches the client while the tools work, and only the client that asks for it.

#![expect(clippy::unwrap_used, reason = "test helpers: what is broken should be loud")]

use ptc_tests::binary::ptc;
use ptc_tests::model::ModelServer;
use ptc_tests::serve::Server;
use ptc_tests::terminal::Terminal;
use ptc_tests::upstreams::{Upstreams, stdio};
use ptc_tests::web::{
    SessionClient, WebServer, program, stateless_body, stateless_headers, stateless_params,
};
use serde_json::{Value, json};

/// Reports three steps, and is answered when two of its calls are under way.
const GATHER: &str =
    r#"(:value (tool/call {:server "probe" :tool "gather" :args {:n 2 :steps 3 :say "Reading"}}))"#;

/// The parameters of a program whose client wants progress.
fn followed(text: &str) -> Value {
    let mut params = program(text);
    params["_meta"] = json!({ "progressToken": "p" });
    params
}

/// A program that calls a tool that reports this many steps.
fn steps(count: u64) -> String {
    format!(r#"(:value (tool/call {{:server "probe" :tool "echo" :args {{:v 1 :steps {count}}}}}))"#)
}

/// The numbers and texts of the progress notifications among these messages.
fn progress(messages: &[Value]) -> Vec<(u64, &str)> {
    let notes = messages.iter().filter(|message| message["method"] == "notifications/progress");
    notes
        .map(|note| {
            let params = &note["params"];
            assert_eq!(params["progressToken"], "p", "{note}");
            (params["progress"].as_u64().unwrap(), params["message"].as_str().unwrap())
        })
        .collect()
}

/// The steps among them, which come in order and before the calls that end.
fn assert_steps(messages: &[Value], count: u64) {
    let notes = progress(messages);
    for step in 1..=count {
        let want = (step, format!("probe/echo: {step} of {count}"));
        let (number, text) = notes[usize::try_from(step).unwrap() - 1];
        assert_eq!((number, text.to_owned()), want, "{notes:?}");
    }
    assert!(notes.is_sorted_by(|one, next| one.0 < next.0), "{notes:?}");
    assert!(notes.len() as u64 <= count + 1, "{notes:?}");
}

/// Messages of the server up to the answer to this request.
fn until_answer(server: &mut Server, id: u64) -> Vec<Value> {
    let mut messages = vec![server.receive()];
    while messages.last().is_some_and(|message| message["id"] != id) {
        messages.push(server.receive());
    }
    messages
}

#[test]
fn steps_arrive_while_the_tool_works() {
    let config = Upstreams::probe().write();
    let mut server = Server::start(&config.flags(&["--timeout", "120s"]));
    let first = server.begin("tools/call", followed(GATHER));
    let steps: Vec<Value> = (0..3).map(|_| server.receive()).collect();
    let text = |step| format!("probe/gather: {step} of 3: Reading");
    assert_eq!(progress(&steps), [(1, &*text(1)), (2, &*text(2)), (3, &*text(3))]);
    // Only now its answer is possible.
    let second = server.begin("tools/call", program(GATHER));
    let mut answered = Vec::new();
    while answered.len() < 2 {
        answered.extend(server.receive()["id"].as_u64());
    }
    answered.sort_unstable();
    assert_eq!(answered, [first, second]);
    assert_eq!(server.end(), Some(0));
}

#[test]
fn all_steps_arrive_in_order_before_the_answer_over_stdio() {
    let config = Upstreams::probe().write();
    let flags = config.flags(&["--timeout", "120s"]);
    let mut server = Server::start(&flags);
    let id = server.begin("tools/call", followed(&steps(200)));
    assert_steps(&until_answer(&mut server, id), 200);
    // No token, no progress: neither is the upstream asked for it.
    let id = server.begin("tools/call", program(&steps(5)));
    assert_eq!(until_answer(&mut server, id).len(), 1);
    let meta = r#"(:value (tool/call {:server "probe" :tool "echo" :args {:meta true}}))"#;
    assert_eq!(server.text(meta), "nil");
    assert_eq!(server.end(), Some(0));
    // The stateless revision.
    let arguments: Vec<&str> = ["serve"].into_iter().chain(flags).collect();
    let mut server = Server::silent(ptc(&arguments));
    let id = server.begin("tools/call", stateless_params(followed(&steps(200)), json!({})));
    assert_steps(&until_answer(&mut server, id), 200);
    assert_eq!(server.end(), Some(0));
}

#[test]
fn all_steps_arrive_in_order_before_the_answer_over_http() {
    let config = Upstreams::probe().write();
    let server = WebServer::start(&config.flags(&["--timeout", "120s"]));
    for version in ["2025-06-18", "2025-11-25"] {
        let mut client = SessionClient::begin(&server, version, &[]);
        let answer = client.ask(&server, "tools/call", followed(&steps(200)));
        assert_steps(&answer.events(), 200);
    }
    let body = stateless_body(7, "tools/call", followed(&steps(200)));
    let answer = server.ask("POST", &stateless_headers("tools/call", "lisp_eval"), &body);
    let events = answer.events();
    assert_steps(&events, 200);
    assert_eq!(events.last().unwrap()["id"], 7);
}

#[test]
fn proxy_dispatch_passes_progress_on_too() {
    let config = Upstreams::probe().write();
    let mut server = Server::start(&config.flags(&["--tools", "proxy-dispatch"]));
    let call =
        json!({ "action": "call", "connection": "c1", "tool": "echo", "arguments": { "v": 1, "steps": 20 } });
    let params = json!({ "name": "proxy-dispatch", "arguments": call, "_meta": { "progressToken": "p" } });
    let id = server.begin("tools/call", params);
    assert_steps(&until_answer(&mut server, id), 20);
    assert_eq!(server.end(), Some(0));
}

#[test]
fn programs_of_a_session_pass_progress_on_too() {
    let config = Upstreams::probe().write();
    let mut server = Server::start(&config.flags(&["--sessions", "--timeout", "120s"]));
    let started = server.request("tools/call", json!({ "name": "lisp_session_start", "arguments": {} }));
    let session = &started["result"]["structuredContent"]["session_id"];
    assert!(session.is_string(), "{started}");
    let params = json!({ "name": "lisp_session_eval", "arguments": { "session_id": session, "program": steps(20) },
        "_meta": { "progressToken": "p" } });
    let id = server.begin("tools/call", params);
    assert_steps(&until_answer(&mut server, id), 20);
    assert_eq!(server.end(), Some(0));
}

#[test]
fn steps_of_several_tools_are_one_increasing_count() {
    let config = Upstreams::probe().write();
    let mut server = Server::start(&config.flags(&["--timeout", "120s"]));
    let text = r#"(pmap (fn [n] (:value (tool/call {:server "probe" :tool "echo" :args {:v n :steps 10}}))) (range 10))"#;
    let id = server.begin("tools/call", followed(text));
    let messages = until_answer(&mut server, id);
    let notes = progress(&messages);
    assert_eq!(notes.iter().filter(|note| note.1.starts_with("probe/echo: ")).count(), 100, "{notes:?}");
    assert!(notes.is_sorted_by(|one, next| one.0 < next.0), "{notes:?}");
    assert_eq!(server.end(), Some(0));
}

#[test]
fn a_flood_of_steps_stays_bounded() {
    let config = Upstreams::probe().write();
    let mut server = Server::start(&config.flags(&["--timeout", "120s", "--upstream-call-timeout", "120s"]));
    let text = r#"(:value (tool/call {:server "probe" :tool "echo" :args {:v 1 :steps 100000}}))"#;
    let id = server.begin("tools/call", followed(text));
    let messages = until_answer(&mut server, id);
    let notes = progress(&messages);
    // The first 256, then ten a second; the last one always.
    assert!((257..5_000).contains(&notes.len()), "{}", notes.len());
    assert!(notes.iter().any(|note| note.1 == "probe/echo: 100000 of 100000"), "{:?}", notes.last());
    assert!(notes.is_sorted_by(|one, next| one.0 < next.0));
    assert_eq!(server.end(), Some(0));
}

#[test]
fn a_terminal_shows_the_steps_of_a_call() {
    let config = Upstreams::probe().write();
    // It never answers: another call would have to come.
    let call = ["call", "probe/gather", "n=2", "steps=3"];
    let screen = Terminal::start(&ptc(&[&call[..], &config.flags(&[])].concat()));
    screen.until("the last step", |text| text.contains("probe/gather: 3 of 3"));
}

#[test]
fn a_step_is_one_line_without_control_characters() {
    let config = Upstreams::probe().write();
    let mut server = Server::start(&config.flags(&["--timeout", "120s"]));
    let text = r#"(tool/call {:server "probe" :tool "echo" :args {:v 1 :steps 1 :say "a\nb\u001b[2J"}})"#;
    let id = server.begin("tools/call", followed(text));
    let messages = until_answer(&mut server, id);
    assert_eq!(progress(&messages)[0].1, r"probe/echo: 1 of 1: a\u000ab\u001b[2J");
    assert_eq!(server.end(), Some(0));
}

/// A server of revision 2025-06-18 that names its variable `KEY` in each step.
const OLD_SERVER: &str = r#"
import json, os, sys
def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        send({"id": message["id"], "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "old", "version": "1"}}})
    elif method == "tools/list":
        send({"id": message["id"], "result": {"tools": [{"name": "work", "inputSchema": {"type": "object"}}]}})
    elif method == "tools/call":
        token = params["_meta"]["progressToken"]
        for step in range(1, 4):
            send({"method": "notifications/progress", "params": {"progressToken": token, "progress": step,
                "total": 3, "message": "with " + os.environ["KEY"]}})
        send({"id": message["id"], "result": {"content": [{"type": "text", "text": "done"}]}})
    else:
        send({"id": message["id"], "error": {"code": -32601, "message": "no"}})
"#;

#[test]
fn an_older_server_reports_too_and_no_step_has_a_secret() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("old.py");
    std::fs::write(&script, OLD_SERVER).unwrap();
    let mut old = stdio("python3", &[script.to_str().unwrap()]);
    old["env"] = json!({ "KEY": "${PTC_TEST_STEP_KEY}" });
    let config = Upstreams::default().add("old", old).write();
    let arguments: Vec<&str> = ["serve"].into_iter().chain(config.flags(&["--timeout", "120s"])).collect();
    let mut command = ptc(&arguments);
    command.env("PTC_TEST_STEP_KEY", "planted-key-8f3a91c2d4");
    let mut server = Server::silent(command);
    let text = r#"(:value (tool/call {:server "old" :tool "work"}))"#;
    let id = server.begin("tools/call", stateless_params(followed(text), json!({})));
    let messages = until_answer(&mut server, id);
    let notes = progress(&messages);
    for (step, note) in (1..=3).zip(&notes) {
        assert!(note.1.starts_with(&format!("old/work: {step} of 3: with ")), "{notes:?}");
        assert!(!note.1.contains("planted"), "{notes:?}");
    }
    assert_eq!(server.end(), Some(0));
}

#[test]
fn a_server_over_http_reports_too() {
    let inner_config = Upstreams::probe().write();
    let inner = WebServer::start(&inner_config.flags(&["--timeout", "120s"]));
    let url = format!("http://{}/mcp", inner.address());
    let config = Upstreams::default().add("inner", json!({ "transport": "mcp_http", "url": url })).write();
    let mut server = Server::start(&config.flags(&["--timeout", "120s"]));
    let inside = Value::String(steps(20)).to_string();
    let text =
        format!(r#"(:ok (tool/call {{:server "inner" :tool "lisp_eval" :args {{:program {inside}}}}}))"#);
    let id = server.begin("tools/call", followed(&text));
    let messages = until_answer(&mut server, id);
    let notes = progress(&messages);
    for step in 1..=20 {
        let want = format!("inner/lisp_eval: {step}: probe/echo: {step} of 20");
        assert!(notes.iter().any(|note| note.1 == want), "{want}: {notes:?}");
    }
    assert_eq!(server.end(), Some(0));
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn tools_of_scripts_report_too() {
    let config = Upstreams::probe().write();
    let mut server = Server::start(&config.flags(&["--tools", "execute_program", "--timeout", "120s"]));
    let code = "print(await mcp__probe__echo(v=1, steps=30))";
    let params = json!({ "name": "execute_program", "arguments": { "code": code }, "_meta": { "progressToken": "p" } });
    let id = server.begin("tools/call", params);
    assert_steps(&until_answer(&mut server, id), 30);
    assert_eq!(server.end(), Some(0));
}

#[test]
fn a_terminal_shows_the_steps_of_the_programs_of_a_task() {
    let config = Upstreams::probe().write();
    // It never ends: another call would have to come.
    let gather = r#"(return (:value (tool/call {:server "probe" :tool "gather" :args {:n 2 :steps 3}})))"#;
    let model = ModelServer::with_programs(&[gather]);
    let model_flags =
        ["--agentic-model", "some-model", "--agentic-base-url", model.url(), "--agentic-allow-writes"];
    let flags = config.flags(&model_flags);
    let screen = Terminal::start(&ptc(&[&["task", "Gather."][..], &flags].concat()));
    screen.until("the last step", |text| text.contains("probe/gather: 3 of 3"));
}

#[test]
fn steps_come_through_the_servers_that_are_kept_running() {
    let config = Upstreams::probe().write();
    let state = tempfile::tempdir().unwrap();
    let command = |words: &[&str]| {
        let mut command = ptc(&[words, &config.flags(&[])].concat());
        command.env("XDG_STATE_HOME", state.path()).env_remove("XDG_RUNTIME_DIR");
        command
    };
    assert!(command(&["up"]).status().unwrap().success());
    let screen = Terminal::start(&command(&["call", "probe/gather", "n=2", "steps=3", "say=Reading"]));
    screen.until("the last step", |text| text.contains("probe/gather: 3 of 3: Reading"));
    let mut down = ptc(&["down"]);
    down.env("XDG_STATE_HOME", state.path()).env_remove("XDG_RUNTIME_DIR");
    assert!(down.status().unwrap().success());
}
