//! Tests of `ptc serve` from the view of a client.

use crate::binary::support::Server;
use serde_json::json;

#[test]
fn a_client_with_handshake_lists_and_calls() {
    let mut server = Server::start(&[]);
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let answer = server.ask(1, "initialize", params);
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
    server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let tools = server.ask(2, "tools/list", json!({}))["result"]["tools"].clone();
    assert_eq!(tools.as_array().map(Vec::len), Some(1));
    let result = server.eval(3, json!({ "program": "(+ 1 2)" }));
    assert_eq!(result, json!({ "content": [{ "type": "text", "text": "3" }], "isError": false }));
    assert_eq!(server.end(), Some(0));
}

#[test]
fn a_stateless_client_discovers_and_calls() {
    let mut server = Server::start(&[]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let answer = server.ask(1, "server/discover", json!({ "_meta": meta }));
    assert_eq!(answer["result"]["supportedVersions"], json!(["2026-07-28", "2025-11-25", "2025-06-18"]));
    let params = json!({ "name": "lisp_eval", "arguments": { "program": "(count data/xs)", "context": { "xs": [1, 2] } },
        "_meta": meta });
    let result = server.ask(2, "tools/call", params)["result"].clone();
    assert_eq!((&result["resultType"], &result["content"][0]["text"]), (&json!("complete"), &json!("2")));
    assert_eq!(server.end(), Some(0));
}

#[test]
fn a_schema_makes_the_result_json() {
    let mut server = Server::start(&[]);
    let schema = json!({ "type": "object", "properties": { "total_sum": { "type": "integer" } }, "required": ["total_sum"] });
    let result =
        server.eval(1, json!({ "program": "{:total-sum (reduce + [1 2 3])}", "output_schema": schema }));
    assert_eq!(result["structuredContent"], json!({ "validated": { "total_sum": 6 } }));
    let result = server.eval(2, json!({ "program": "{:other 1}", "output_schema": schema }));
    assert_eq!(result["isError"], true);
    let text = result["content"][0]["text"].as_str().expect("text");
    assert_eq!(text, "validation_error: return.total_sum: expected field, got nil");
    assert_eq!(server.end(), Some(0));
}

/// Sends the same tiny program in every kind of request, repeatedly: caching must not change an answer.
#[test]
fn a_cached_program_answers_as_its_request_asks() {
    let mut server = Server::start(&[]);
    let program = "(inc (get data/m :n 1))";
    let schema = |kind: &str| json!({ "type": kind });
    let stateless = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let mut first = None;
    for round in 0..4 {
        let at = |request: u64| round * 10 + request;
        let mut context = |n: i64, id: u64| {
            let arguments = json!({ "program": program, "context": { "m": { "n": n } } });
            server.eval(id, arguments)["content"][0]["text"].clone()
        };
        assert_eq!((context(4, at(0)), context(5, at(1))), (json!("5"), json!("6")));
        let without = server.eval(at(2), json!({ "program": program }));
        assert_eq!(without["isError"], true, "{without}");
        let fits = json!({ "program": "(+ 1 2)", "output_schema": schema("integer") });
        assert_eq!(server.eval(at(3), fits)["structuredContent"], json!({ "validated": 3 }));
        let misfits = json!({ "program": "(+ 1 2)", "output_schema": schema("string") });
        assert_eq!(server.eval(at(4), misfits)["isError"], true);
        let plain = server.eval(at(5), json!({ "program": "(+ 1 2)" }));
        assert_eq!(plain, json!({ "content": [{ "type": "text", "text": "3" }], "isError": false }));
        let mut with_meta = |id: u64, meta: &serde_json::Value| {
            let arguments = json!({ "program": "(+ 1 2)" });
            let params = json!({ "name": "lisp_eval", "arguments": arguments, "_meta": meta });
            server.ask(id, "tools/call", params)["result"].clone()
        };
        assert_eq!(with_meta(at(6), &json!({ "progressToken": 7 })), plain);
        let complete = with_meta(at(7), &stateless);
        assert_eq!((&complete["resultType"], &complete["content"]), (&json!("complete"), &plain["content"]));
        assert_eq!(first.get_or_insert_with(|| complete.clone()), &complete);
    }
    assert_eq!(server.end(), Some(0));
}

#[test]
fn failures_have_a_class_and_a_kind() {
    let mut server = Server::start(&["--response-profile", "structured"]);
    for (id, (program, reason, kind)) in [
        ("(+ 1", "parse_error", "parse_error"),
        ("fooo", "runtime_error", "unbound_var"),
        ("(/ 1 0)", "runtime_error", "arithmetic_error"),
        ("(fail {:a 1})", "fail", "fail"),
        ("data/absent", "runtime_error", "runtime_error"),
    ]
    .into_iter()
    .enumerate()
    {
        let result = server.eval(id as u64, json!({ "program": program }));
        assert_eq!(result["isError"], true, "{program}");
        let content = &result["structuredContent"];
        assert_eq!((&content["reason"], &content["error_kind"]), (&json!(reason), &json!(kind)), "{program}");
    }
    assert_eq!(server.end(), Some(0));
}

#[test]
fn limits_end_a_program_and_the_server_answers_the_next_request() {
    let mut server = Server::start(&["--timeout", "200ms", "--memory", "2M"]);
    let text = |result: serde_json::Value| result["content"][0]["text"].as_str().expect("text").to_owned();
    assert!(text(server.eval(1, json!({ "program": "(loop [] (recur))" }))).starts_with("timeout: "));
    assert!(
        text(server.eval(2, json!({ "program": "(reduce conj [] (range 10000000))" })))
            .starts_with("memory_limit: ")
    );
    assert_eq!(text(server.eval(3, json!({ "program": "(str \"still\" \" here\")" }))), "\"still here\"");
    assert_eq!(server.end(), Some(0));
}

#[test]
fn a_running_program_can_be_cancelled() {
    let mut server = Server::start(&["--timeout", "60s"]);
    let params = json!({ "name": "lisp_eval", "arguments": { "program": "(loop [] (recur))" } });
    server.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }));
    server.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }),
    );
    let result = server.eval(2, json!({ "program": "(inc 1)" }));
    assert_eq!(result["content"][0]["text"], "2");
    assert_eq!(server.end(), Some(0));
}

#[test]
fn the_debug_profile_mirrors_everything_into_the_text() {
    let mut server = Server::start(&["--response-profile", "debug"]);
    let result = server.eval(1, json!({ "program": "(println \"hi\") {:a 1}" }));
    let text = result["content"][0]["text"].as_str().expect("text");
    let mirrored: serde_json::Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(mirrored, result["structuredContent"]);
    assert_eq!((&mirrored["status"], &mirrored["prints"]), (&json!("ok"), &json!(["hi"])));
    assert_eq!(server.end(), Some(0));
}

/// Resident memory of a process, in MB.
fn resident(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("a process");
    let line = status.lines().find(|line| line.starts_with("VmRSS")).expect("a size");
    line.split_whitespace().nth(1).and_then(|size| size.parse::<u64>().ok()).expect("a number") / 1024
}

#[test]
fn memory_of_large_programs_goes_back_to_the_system_when_nothing_runs() {
    let mut server = Server::start(&["--memory", "100M", "--timeout", "60s"]);
    server.eval(1, json!({ "program": "(+ 1 2)" }));
    let before = resident(server.id());
    for id in 2..8 {
        let result =
            server.eval(id, json!({ "program": "(count (mapv (fn [i] [i (str i)]) (range 400000)))" }));
        assert_eq!(result["content"][0]["text"], "400000");
    }
    // Only the number of attempts is bounded: the time until memory is returned depends on the machine.
    let mut looks = 0;
    while resident(server.id()) > before + 20 {
        looks += 1;
        assert!(looks < 600, "{} MB, {before} MB before", resident(server.id()));
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert_eq!(server.end(), Some(0));
}
