//! Tests of the two protocol eras, which the shape of each message tells apart.

use ptc_calls::limits::Limits;
use ptc_calls::options::RunOptions;
use ptc_calls::outcome::{CallFault, CallRecord, CallStatus, Effect, Outcome, RenderedValue};
use ptc_calls::watcher::RunWatcher;
use ptc_server::protocol::Frame;
use ptc_server::server::{Action, ConnectionState, Handler, Outbox, Route, Surface};
use ptc_server::tools::lisp_eval::Evaluator;
use ptc_server::tools::registry::MoreTools;
use ptc_server::tools::{Cancel, Facts, Registry};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Answers every program at once; `late` after an upstream call that timed out.
struct AtOnce;

impl Evaluator for AtOnce {
    fn try_run(
        &self,
        program: &str,
        _: Option<&str>,
        _: &RunOptions,
        look: &mut dyn FnMut(&Outcome),
    ) -> bool {
        let call = CallRecord {
            server: "fs".into(),
            tool: "read".into(),
            status: CallStatus::Error { reason: CallFault::Timeout, error: "late".into() },
            begun: Duration::ZERO,
            duration: Duration::from_millis(5),
            result_bytes: None,
            effect: Effect::Read,
            arguments_hash: None,
            cached: false,
            ruling: None,
            number: None,
            place: None,
        };
        let answer = RenderedValue::from_text("1".into());
        let upstream_calls = if program == "late" { vec![call] } else { Vec::new() };
        look(&Outcome { result: Ok(answer), upstream_calls, ..Outcome::default() });
        true
    }

    fn submit(&self, program: String, _: RunOptions, _: Box<dyn RunWatcher>) -> Cancel {
        panic!("{program} ran at once")
    }
}

fn handler() -> Handler {
    Handler::new(Surface {
        registry: Registry::of_server(Arc::new(AtOnce), Limits::default(), MoreTools::default()),
        facts: Facts::default(),
        changes: false,
        instructions: "hello".into(),
        ready: true,
        recorder: None,
    })
    .expect("handler")
}

/// Collects sent messages.
#[derive(Default)]
struct Sent(Vec<Value>);

impl Outbox for Sent {
    fn write(&mut self, _: Route<'_>, write: impl FnOnce(&mut Vec<u8>)) {
        let mut message = Vec::new();
        write(&mut message);
        assert!(!message.contains(&b'\n'), "a message is no line");
        self.0.push(serde_json::from_slice(&message).expect("every message is JSON"));
    }
}

/// Handles a message; returns the action and the messages sent.
fn handle(handler: &Handler, line: &[u8], session: &mut ConnectionState) -> (Action, Vec<Value>) {
    let (mut frame, mut sent) = (Frame::default(), Sent::default());
    let message = frame.read(line).expect("message");
    (handler.handle(message, session, &mut sent), sent.0)
}

fn ask(method: &str, params: Value) -> Value {
    let line = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    handle(&handler(), line.as_bytes(), &mut ConnectionState::default()).1.pop().expect("an answer")
}

fn stateless(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    });
    params
}

#[test]
fn initialize_negotiates_a_version_with_handshake() {
    for (requested, answered) in [
        (json!("2025-06-18"), "2025-06-18"),
        (json!("2025-11-25"), "2025-11-25"),
        (json!("2024-11-05"), "2025-11-25"),
        (json!("2026-07-28"), "2025-11-25"),
        (json!(7), "2025-11-25"),
        (Value::Null, "2025-11-25"),
    ] {
        let answer = ask("initialize", json!({ "protocolVersion": requested, "capabilities": {} }));
        assert_eq!(answer["result"]["protocolVersion"], answered, "{requested}");
        assert_eq!(answer["result"]["capabilities"]["tools"], json!({ "listChanged": false }));
        assert_eq!(answer["result"]["serverInfo"]["name"], "ptc");
    }
}

#[test]
fn discover_offers_the_stateless_version_with_cache_hints() {
    let result = &ask("server/discover", stateless(json!({})))["result"];
    assert_eq!(result["supportedVersions"], json!(["2026-07-28", "2025-11-25", "2025-06-18"]));
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result["cacheScope"], "public");
    assert!(result["ttlMs"].is_u64());
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "ptc");
}

#[test]
fn a_stateless_request_must_be_complete_and_of_a_known_version() {
    let mut params = stateless(json!({}));
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
    let error = &ask("tools/list", params)["error"];
    assert_eq!(error["code"], -32022);
    assert_eq!(
        error["data"],
        json!({ "supported": ["2026-07-28", "2025-11-25", "2025-06-18"], "requested": "2099-01-01" })
    );

    let params = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } });
    assert_eq!(ask("tools/list", params)["error"]["code"], -32602);
    let mut params = stateless(json!({}));
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!(5);
    assert_eq!(ask("tools/list", params)["error"]["code"], -32602);
    assert_eq!(ask("server/discover", json!({}))["error"]["code"], -32602);
}

#[test]
fn lists_are_equal_in_both_eras_except_for_the_envelope() {
    let mut plain = ask("tools/list", json!({}))["result"].clone();
    // Clients with a handshake ask for tasks.
    let execution = plain["tools"][0].as_object_mut().and_then(|tool| tool.remove("execution"));
    assert_eq!(execution, Some(json!({ "taskSupport": "optional" })));
    let list = ask("tools/list", stateless(json!({})))["result"].clone();
    assert_eq!(plain["tools"], list["tools"]);
    assert_eq!(list["resultType"], "complete");
    assert!(plain.get("resultType").is_none() && plain.get("ttlMs").is_none());
    assert_eq!(plain["tools"][0]["name"], "lisp_eval");
}

#[test]
fn methods_that_a_revision_dropped_are_unknown_there() {
    for method in ["ping", "initialize", "logging/setLevel", "shutdown"] {
        assert_eq!(ask(method, stateless(json!({})))["error"]["code"], -32601, "{method}");
    }
    assert_eq!(ask("ping", json!({}))["result"], json!({}));
    assert_eq!(ask("logging/setLevel", json!({ "level": "info" }))["result"], json!({}));
    assert_eq!(ask("logging/setLevel", json!({ "level": "loud" }))["error"]["code"], -32602);
}

#[test]
fn wrong_calls_are_tool_results_and_not_protocol_errors() {
    let text = |params| {
        let answer = ask("tools/call", params);
        assert_eq!(answer["result"]["isError"], true);
        answer["result"]["content"][0]["text"].as_str().expect("text").to_owned()
    };
    assert_eq!(text(json!({ "name": "lisp_eval" })), "args_error: argument `program` is required");
    assert_eq!(
        text(json!({ "name": "other", "arguments": {} })),
        "unknown_tool: unknown tool: other; there is: lisp_eval"
    );
    let answer = ask("tools/call", stateless(json!({ "name": "lisp_eval" })));
    assert_eq!(answer["result"]["resultType"], "complete");
}

#[test]
fn the_advertised_description_is_under_two_kilobytes() {
    let list = ask("tools/list", json!({}));
    let description = list["result"]["tools"][0]["description"].as_str().expect("text");
    assert!(description.len() < 2_048);
}

/// Flips, drops and doubles bytes of valid messages, in a fixed sequence.
#[test]
fn no_line_makes_the_handler_panic() {
    let handler = handler();
    let good = [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#,
        r#"{"jsonrpc":"2.0","id":"é","method":"tools/call","params":{"name":"lisp_eval","arguments":{"program":"1","context":{"a":[1,{}]},"output_schema":{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"}}}}}}}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"\u0041"}}"#,
    ];
    let mut seed = 1_u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below.max(1)
    };
    let mut session = ConnectionState::default();
    for round in 0..20_000 {
        let mut line = good[round % good.len()].as_bytes().to_vec();
        for _ in 0..=random(3) {
            let place = random(line.len());
            match random(4) {
                0 => line[place] = random(256) as u8,
                1 if line.len() > 1 => drop(line.remove(place)),
                2 => line.insert(place, b"{}[]\",:0-e\\n"[random(12)]),
                _ => line.truncate(place.max(1)),
            }
        }
        if let Ok(message) = Frame::default().read(&line) {
            handler.handle(message, &mut session, &mut Sent::default());
        }
    }
}

#[test]
fn one_page_is_all_there_is() {
    assert_eq!(ask("tools/list", json!({ "cursor": "x" }))["error"]["code"], -32602);
    assert!(ask("tools/list", json!({ "cursor": null }))["result"]["tools"].is_array());
}

#[test]
fn a_surface_that_cannot_change_promises_no_changes() {
    let capabilities = ask("initialize", json!({}))["result"]["capabilities"].clone();
    assert_eq!(capabilities["tools"], json!({ "listChanged": false }));
    assert!(capabilities.get("resources").is_none() && capabilities.get("prompts").is_none());
    let listen = stateless(json!({ "notifications": { "toolsListChanged": true } }));
    let line = json!({ "jsonrpc": "2.0", "id": "s", "method": "subscriptions/listen", "params": listen });
    match handle(&handler(), line.to_string().as_bytes(), &mut ConnectionState::default()).0 {
        Action::Listen(subscription) => assert!(!subscription.tools_list_changed),
        _ => panic!("the request is no subscription"),
    }
}

#[test]
fn log_messages_come_before_the_answer_and_only_when_asked_for() {
    let handler = handler();
    let lines = |session: &mut ConnectionState, params: Value| -> Vec<Value> {
        let line = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
        handle(&handler, line.as_bytes(), session).1
    };
    let call = |program: &str| json!({ "name": "lisp_eval", "arguments": { "program": program } });
    let mut session = ConnectionState::default();
    assert_eq!(lines(&mut session, call("late")).len(), 1, "nobody asked");
    let line = br#"{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"warning"}}"#;
    handle(&handler, line, &mut session);
    let told = lines(&mut session, call("late"));
    assert_eq!(told.len(), 2);
    assert_eq!(
        (&told[0]["method"], &told[0]["params"]["level"]),
        (&json!("notifications/message"), &json!("warning"))
    );
    assert_eq!(told[0]["params"]["data"]["reason"], "timeout");
    assert_eq!(told[1]["id"], 1);
    assert_eq!(lines(&mut session, call("1")).len(), 1, "nothing to warn of");
    // In the stateless era each request asks for log messages; the connection's level does not count.
    assert_eq!(lines(&mut session, stateless(call("late"))).len(), 1);
    let mut params = stateless(call("late"));
    params["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
    assert_eq!(lines(&mut session, params.clone()).len(), 3);
    params["_meta"]["io.modelcontextprotocol/logLevel"] = json!("loud");
    assert_eq!(ask("tools/call", params)["error"]["code"], -32602);
}
