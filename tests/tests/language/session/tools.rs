//! Session tools as a client sees them.
#![allow(clippy::unwrap_used, reason = "a broken server should be loud")]

use ptc_tests::serve::{Server, text_of};
use serde_json::{Value, json};

fn server(flags: &[&str]) -> Server {
    let mut all = vec!["--sessions"];
    all.extend(flags);
    Server::start(&all)
}

fn call(server: &mut Server, tool: &str, arguments: Value) -> Value {
    server.request("tools/call", json!({ "name": tool, "arguments": arguments }))["result"].clone()
}

fn start(server: &mut Server) -> String {
    let started = call(server, "lisp_session_start", json!({}));
    assert_eq!(started["structuredContent"]["status"], "ok", "{started}");
    started["structuredContent"]["session_id"].as_str().unwrap().to_owned()
}

fn eval(server: &mut Server, id: &str, program: &str) -> String {
    text_of(&call(server, "lisp_session_eval", json!({ "session_id": id, "program": program })))
}

fn reason(answer: &Value) -> &str {
    assert_eq!(answer["isError"], true, "{answer}");
    answer["structuredContent"]["reason"].as_str().unwrap()
}

#[test]
fn programs_build_on_each_other() {
    let mut server = server(&[]);
    let id = start(&mut server);
    assert!(id.starts_with("ptcs_") && id.len() == 29, "{id}");
    assert!(eval(&mut server, &id, "(def x [1 2 3])").ends_with("[stored: x]"));
    assert_eq!(eval(&mut server, &id, "(count x)"), "3");
    assert_eq!(eval(&mut server, &id, "(+ *1 10)"), "13");
    assert_eq!(eval(&mut server, &id, "[*1 *2]"), "[13 3]");
    // A function of an earlier program sees the current values of global names.
    eval(&mut server, &id, "(def step 2) (defn up [n] (+ n step))");
    assert_eq!(eval(&mut server, &id, "(up 1)"), "3");
    eval(&mut server, &id, "(def step 40)");
    assert_eq!(eval(&mut server, &id, "(up 2)"), "42");
    // A closure retains the values that it closed over.
    eval(&mut server, &id, "(def kept (let [s step] (fn [] s))) (def step 0)");
    assert_eq!(eval(&mut server, &id, "[(kept) (up 1)]"), "[40 1]");
    // Another session does not see them.
    let other = start(&mut server);
    assert!(eval(&mut server, &other, "x").starts_with("unbound_var: Undefined variable: x"));
}

#[test]
fn what_does_not_end_well_leaves_everything_as_it_was() {
    let mut server = server(&["--timeout", "300ms"]);
    let id = start(&mut server);
    eval(&mut server, &id, "(def x 1)");
    eval(&mut server, &id, "(println \"kept\") :first");
    let failing = [
        "(println \"lost\") (def x 2) (/ 1 0)",
        "(def x 2) (fail :no)",
        "(def x 2) (loop [] (recur))",
        "(def x 2) (undefined-function)",
        "(def x (range 1000000000000)) (vec x)",
        "(def y (vec (range 200000)))",
    ];
    for program in failing {
        let text = eval(&mut server, &id, program);
        assert!(text.ends_with("[rolled back]"), "{program}: {text}");
        assert_eq!(eval(&mut server, &id, "x"), "1", "{program}");
        // This query is the last result now.
        assert_eq!(eval(&mut server, &id, "[*1 *2]").split_whitespace().next(), Some("[1"), "{program}");
    }
    let arguments =
        json!({ "session_id": id, "program": "(def x 2) \"text\"", "output_schema": { "type": "integer" } });
    let refused = text_of(&call(&mut server, "lisp_session_eval", arguments));
    assert!(refused.starts_with("validation_error") && refused.ends_with("[rolled back]"), "{refused}");
    assert_eq!(eval(&mut server, &id, "x"), "1");
    let prints = call(&mut server, "lisp_session_inspect", json!({ "session_id": id, "view": "prints" }));
    assert_eq!(prints["structuredContent"]["prints"], json!(["kept"]));
}

#[test]
fn one_program_at_a_time_and_cancelled_ones_leave_nothing() {
    let mut server = server(&["--timeout", "60s"]);
    let id = start(&mut server);
    let arguments = json!({ "session_id": id, "program": "(def x 1) (loop [] (recur))" });
    let running = server.begin("tools/call", json!({ "name": "lisp_session_eval", "arguments": arguments }));
    let busy = call(&mut server, "lisp_session_eval", json!({ "session_id": id, "program": "1" }));
    assert_eq!(reason(&busy), "session_busy");
    assert_eq!(busy["structuredContent"]["session_id"], json!(id));
    let busy = call(&mut server, "lisp_session_forget", json!({ "session_id": id, "bindings": ["x"] }));
    assert_eq!(reason(&busy), "session_busy");
    server.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": running } }),
    );
    // The next program waits until the cancelled one has ended.
    let text = eval(&mut server, &id, "x");
    assert!(text.starts_with("unbound_var"), "{text}");
    for _ in 0..20 {
        let arguments = json!({ "session_id": id, "program": "(loop [] (recur))" });
        let running =
            server.begin("tools/call", json!({ "name": "lisp_session_eval", "arguments": arguments }));
        server.send(
            &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": running } }),
        );
        assert_eq!(eval(&mut server, &id, "(+ 1 2)"), "3");
    }
}

#[test]
fn a_start_that_is_cancelled_leaves_no_session() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("store.redb");
    let constants: String = (0..20).map(|n| format!("(def c{n} (reduce + (range 20000))) ")).collect();
    let text = format!("(ns costly) {constants}");
    let written = ptc_engine::prelude_store::PreludeStore::open(&store).expect("a store");
    written.write("costly", &text, serde_json::Map::new(), None).expect("written");
    let mut server = server(&["--prelude-store", store.to_str().expect("a path")]);
    let arguments = json!({ "name": "lisp_session_start", "arguments": { "preludes": ["costly"] } });
    let mut answered = 0;
    // The cancellation arrives before, during and after the start.
    for turn in 0..15 {
        let starting = server.begin("tools/call", arguments.clone());
        std::thread::sleep(std::time::Duration::from_millis(turn * 4));
        server.send(
            &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": starting } }),
        );
    }
    for attempt in 0.. {
        let listing = server.begin("tools/call", json!({ "name": "lisp_session_list", "arguments": {} }));
        let listed = loop {
            let message = server.receive();
            if message["id"] == json!(listing) {
                break message;
            }
            answered += u64::from(message["result"]["structuredContent"]["session_id"].is_string());
        };
        let count = listed["result"]["structuredContent"]["count"].as_u64().expect("a number");
        // A started session is listed before its answer is written.
        if count == answered {
            break;
        }
        assert!(attempt < 200, "{count} sessions are open, {answered} were answered");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn results_and_names_that_are_too_large() {
    let mut server = server(&["--response-profile", "structured", "--max-session-bindings", "2"]);
    let id = start(&mut server);
    let large =
        call(&mut server, "lisp_session_eval", json!({ "session_id": id, "program": "(vec (range 20000))" }));
    let notice = &large["structuredContent"]["history_notices"][0];
    assert_eq!(notice["reason"], "max_history_entry_bytes", "{large}");
    let program = "[(:lisp_session_preview *1) (:reason *1) (:max_bytes *1)]";
    assert_eq!(eval(&mut server, &id, program), "[true :max_history_entry_bytes 65536]");
    // A result that is too large is counted as well.
    let whole =
        call(&mut server, "lisp_session_eval", json!({ "session_id": id, "program": "(vec (range 20000))" }));
    assert_eq!(whole["structuredContent"]["history_notices"][0]["bytes"], 108_891, "{whole}");
    assert_eq!(eval(&mut server, &id, "(:bytes *1)"), "108891");
    let binding = json!({ "session_id": id, "program": "(def big (vec (range 100000)))" });
    let refused = call(&mut server, "lisp_session_eval", binding);
    assert_eq!(reason(&refused), "session_limit_exceeded");
    let text = text_of(&refused);
    assert!(text.contains("binding `big` needs 588891, max_binding_bytes is 262144"), "{text}");
    let memory = json!({ "session_id": id, "program": "(def many (vec (repeatedly 70000 (fn [] 1)))) 1" });
    let text = text_of(&call(&mut server, "lisp_session_eval", memory));
    assert!(
        text.contains("memory needs 2") && text.contains("max_session_memory_bytes is 1048576"),
        "{text}"
    );
    let count = json!({ "session_id": id, "program": "(def a 1) (def b 2) (def c 3)" });
    assert_eq!(reason(&call(&mut server, "lisp_session_eval", count)), "session_limit_exceeded");
    let fits = json!({ "session_id": id, "program": "(def a 1) (def b 2)" });
    let fits = call(&mut server, "lisp_session_eval", fits);
    assert_eq!(fits["structuredContent"]["memory"]["stored_keys"], json!(["a", "b"]), "{fits}");
    assert_eq!(fits["structuredContent"]["session"]["binding_count"], 2);
}

#[test]
fn looking_forgetting_and_closing() {
    let mut server = server(&[]);
    let id = start(&mut server);
    eval(&mut server, &id, "(def x [1 2 3]) (defn f [n] n) (println \"line\") :done");
    let view = |server: &mut Server, view: &str| {
        call(server, "lisp_session_inspect", json!({ "session_id": id, "view": view }))["structuredContent"]
            .clone()
    };
    assert_eq!(view(&mut server, "overview")["stored_keys"], json!(["f", "x"]));
    assert!(view(&mut server, "memory")["text"].as_str().unwrap().contains(";; x = [1 2 3]"));
    assert!(view(&mut server, "history")["text"].as_str().unwrap().contains("*1 :done"));
    assert_eq!(view(&mut server, "unknown")["view"], "overview");
    let limits = view(&mut server, "limits");
    assert_eq!(limits["limits"].as_object().unwrap().len(), 11);
    assert_eq!(limits["top_bindings"].as_array().unwrap().len(), 2);
    let forgotten = call(
        &mut server,
        "lisp_session_forget",
        json!({ "session_id": id, "bindings": ["x", "none"], "clear": ["history", "prints"] }),
    );
    let forgotten = &forgotten["structuredContent"];
    assert_eq!(forgotten["removed_bindings"], json!(["x"]), "{forgotten}");
    assert_eq!(forgotten["stored_keys"], json!(["f"]));
    assert_eq!(forgotten["usage"]["history_count"], 0);
    assert_eq!(eval(&mut server, &id, "[*1 (f 2)]"), "[nil 2]");
    assert!(eval(&mut server, &id, "x").starts_with("unbound_var"));
    let wrong = call(&mut server, "lisp_session_forget", json!({ "session_id": id, "clear": ["all"] }));
    assert_eq!(reason(&wrong), "session_args_error");
    let closed = call(&mut server, "lisp_session_close", json!({ "session_id": id }));
    assert_eq!(closed["structuredContent"]["reason"], "closed");
    for tool in ["lisp_session_inspect", "lisp_session_close"] {
        assert_eq!(reason(&call(&mut server, tool, json!({ "session_id": id }))), "session_closed");
    }
    let unknown =
        call(&mut server, "lisp_session_eval", json!({ "session_id": "ptcs_nope", "program": "1" }));
    assert_eq!(reason(&unknown), "session_not_found");
    assert_eq!(call(&mut server, "lisp_session_list", json!({}))["structuredContent"]["count"], 0);
}

#[test]
fn a_session_that_forgets_has_room_again() {
    let mut server = server(&[]);
    let id = start(&mut server);
    let usage = |server: &mut Server, arguments: Value| {
        call(server, "lisp_session_forget", arguments)["structuredContent"]["usage"].clone()
    };
    for at in 0..60 {
        let keys = format!("(count (into {{}} (map (fn [n] [(keyword (str \"k{at}_\" n)) 1]) (range 500))))");
        assert_eq!(eval(&mut server, &id, &keys), "500", "{at}");
        eval(&mut server, &id, &format!("(def name{at} [:a{at} :b{at}])"));
        usage(&mut server, json!({ "session_id": id, "bindings": [format!("name{at}")] }));
    }
    let all = ["memory", "history", "prints", "tool_calls", "upstream_calls"];
    let left = usage(&mut server, json!({ "session_id": id, "clear": all }));
    assert_eq!(left["memory_bytes"], 0, "{left}");
}

#[test]
fn names_that_are_gone_and_names_of_results() {
    let mut server = server(&[]);
    let id = start(&mut server);
    eval(&mut server, &id, "(def rate 2) (defn scaled [n] (* n rate))");
    call(&mut server, "lisp_session_forget", json!({ "session_id": id, "bindings": ["rate"] }));
    let text = eval(&mut server, &id, "(scaled 1)");
    assert!(text.contains("not defined in this session (any more)") && !text.contains("move the"), "{text}");
    eval(&mut server, &id, "(def rate 3)");
    assert_eq!(eval(&mut server, &id, "(scaled 1)"), "3");
    for program in ["(def *1 5)", "(defn *2 [] 5)", "(defonce *3 5)"] {
        let text = eval(&mut server, &id, program);
        assert!(text.contains("cannot define *") && text.ends_with("[rolled back]"), "{text}");
    }
    assert_eq!(eval(&mut server, &id, "*1"), "3");
}

/// The answer of a program in a session that expires after `ttl_ms`, or is closed.
fn ended_under_way(server: &mut Server, ttl_ms: Option<u64>) -> String {
    let started =
        call(server, "lisp_session_start", ttl_ms.map_or(json!({}), |ttl| json!({ "ttl_ms": ttl })));
    let id = started["structuredContent"]["session_id"].as_str().unwrap().to_owned();
    let arguments = json!({ "session_id": id, "program": "(loop [] (recur))" });
    let running = server.begin("tools/call", json!({ "name": "lisp_session_eval", "arguments": arguments }));
    if ttl_ms.is_none() {
        let arguments = json!({ "session_id": id });
        server.begin("tools/call", json!({ "name": "lisp_session_close", "arguments": arguments }));
    }
    let answers = 1 + usize::from(ttl_ms.is_none());
    let answers: Vec<Value> = (0..answers).map(|_| server.receive()).collect();
    text_of(&answers.iter().find(|answer| answer["id"] == running).unwrap()["result"])
}

#[test]
fn a_program_is_told_why_its_session_ended() {
    let mut server = server(&["--timeout", "60s"]);
    let closed = ended_under_way(&mut server, None);
    assert!(closed.contains("it was closed") && !closed.contains("gave up"), "{closed}");
    // The program must begin before the session expires.
    let mut ttl_ms = 250;
    let expired = loop {
        let text = ended_under_way(&mut server, Some(ttl_ms));
        if !text.contains("session is closed") {
            break text;
        }
        ttl_ms *= 2;
    };
    assert!(expired.contains("end of its lifetime (ttl)") && !expired.contains("gave up"), "{expired}");
}

#[test]
fn messages_of_wrong_arguments_are_those_of_the_contract() {
    let mut server = server(&["--max-sessions", "1"]);
    let id = start(&mut server);
    let rows = [
        ("lisp_session_start", json!({}), "maximum number of sessions reached"),
        ("lisp_session_start", json!({ "owner": "me" }), "unexpected lisp_session_start argument: owner"),
        ("lisp_session_list", json!({ "a": 1 }), "lisp_session_list takes no arguments"),
        ("lisp_session_eval", json!({ "program": "1" }), "session_id must be a non-empty string"),
        (
            "lisp_session_eval",
            json!({ "session_id": id, "program": "" }),
            "program must be a non-empty string",
        ),
        (
            "lisp_session_eval",
            json!({ "session_id": id, "program": "1", "context": null }),
            "context must be an object when supplied",
        ),
        (
            "lisp_session_eval",
            json!({ "session_id": id, "program": "1", "context": { "": 1 } }),
            "context keys must be non-empty",
        ),
        (
            "lisp_session_eval",
            json!({ "session_id": id, "program": "1", "context": { "a/b": 1 } }),
            "context keys may not contain `/`",
        ),
    ];
    for (tool, arguments, message) in rows {
        let answer = call(&mut server, tool, arguments);
        assert_eq!(answer["structuredContent"]["message"], message, "{tool}");
        assert_eq!(answer["structuredContent"]["feedback"], message, "{tool}");
        assert_eq!(answer["isError"], true);
    }
}

#[test]
fn a_session_ends_when_its_time_is_over() {
    let mut server = server(&[]);
    let started = call(&mut server, "lisp_session_start", json!({ "ttl_ms": 1 }));
    let id = started["structuredContent"]["session_id"].as_str().unwrap().to_owned();
    loop {
        let seen = call(&mut server, "lisp_session_inspect", json!({ "session_id": id }));
        if seen["isError"] == true {
            assert_eq!(reason(&seen), "session_closed");
            break;
        }
    }
    // Its slot is free again once its timer has run.
    while call(&mut server, "lisp_session_list", json!({}))["structuredContent"]["count"] != 0 {}
}
