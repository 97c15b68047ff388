//! `lisp_debug`: one record for each call of any tool, and aggregates over many.

use super::{answer, ask, call};
use ptc_tests::serve::Server;
use ptc_tests::upstreams::Upstreams;
use serde_json::{Value, json};

fn program(text: &str) -> Value {
    json!({ "program": text })
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn without_the_flag_there_is_no_such_tool() {
    let mut server = Server::start(&[]);
    let answer = call(&mut server, "lisp_debug", json!({ "op": "stats" }));
    assert_eq!(answer["isError"], true);
    assert!(answer["content"][0]["text"].as_str().unwrap().starts_with("unknown_tool"), "{answer}");
}

#[test]
fn the_ops_of_the_reference() {
    let mut server = Server::start(&["--debug-tool"]);
    let empty = ask(&mut server, json!({ "op": "stats" }));
    assert_eq!(empty["window"], json!({ "from": null, "to": null, "calls": 0 }));
    call(&mut server, "lisp_eval", program("(+ 1 2)"));
    call(&mut server, "lisp_eval", program("(/ 1 0)"));
    call(&mut server, "nothing", json!({}));
    let stats = ask(&mut server, json!({ "op": "stats" }));
    assert_eq!(
        keys(&stats),
        [
            "op",
            "payload_policy",
            "redaction_applied",
            "debug_source",
            "ring_size",
            "ring_count",
            "trace_dir_enabled",
            "window",
            "by_tool",
            "errors"
        ]
    );
    assert_eq!((&stats["ring_size"], &stats["ring_count"]), (&json!(500), &json!(2)));
    assert_eq!(stats["window"]["calls"], 2);
    assert!(stats["window"]["from"].as_str() <= stats["window"]["to"].as_str());
    let tool = &stats["by_tool"]["lisp_eval"];
    assert_eq!(keys(tool), ["calls", "ok", "error", "error_rate", "duration_ms"]);
    assert_eq!((&tool["calls"], &tool["ok"], &tool["error"]), (&json!(2), &json!(1), &json!(1)));
    assert_eq!(tool["error_rate"], 0.5);
    assert_eq!(keys(&tool["duration_ms"]), ["p50", "p95", "max"]);
    assert_eq!(stats["errors"], json!({ "by_reason": { "runtime_error": 1 } }));
    let recent = ask(&mut server, json!({ "op": "recent", "limit": 1 }));
    assert_eq!(recent["count"], 1);
    let failed = &recent["calls"][0];
    assert_eq!(
        keys(failed),
        [
            "request_id",
            "ts",
            "tool",
            "status",
            "reason",
            "duration_ms",
            "program",
            "context",
            "result_bytes",
            "prints_count",
            "signature_present",
            "protocol_version",
            "upstream_calls"
        ]
    );
    assert_eq!(
        failed["program"],
        json!({
            "sha256": "6c30b1cbdcc3b61cefb06fcf3c13a55f258c9529faab02e6b64b99539226d36b",
            "bytes": 7, "preview": "(/ 1 0)",
        })
    );
    assert_eq!((&failed["status"], &failed["reason"]), (&json!("error"), &json!("runtime_error")));
    assert_eq!((&failed["result_bytes"], &failed["upstream_calls"]), (&Value::Null, &json!(0)));
    assert_eq!(failed["protocol_version"], "2025-11-25");
    let ok = ask(&mut server, json!({ "op": "recent" }))["calls"][1].clone();
    assert_eq!(
        (&ok["status"], &ok["result_bytes"], &ok["prints_count"]),
        (&json!("ok"), &json!(1), &json!(0))
    );
    let id = ok["request_id"].clone();
    let got = ask(&mut server, json!({ "op": "get", "request_id": id }));
    assert_eq!((&got["found"], &got["source"]), (&json!(true), &json!("ring_buffer")));
    assert_eq!(got["record"]["upstream_calls"], json!([]));
    assert_eq!(got["record"]["program"], ok["program"]);
    let missing = ask(&mut server, json!({ "op": "get", "request_id": "no such" }));
    assert_eq!((&missing["found"], missing.get("record")), (&json!(false), None));
}

#[test]
fn one_record_whatever_tool_was_called() {
    let config = Upstreams::probe().write();
    let flags =
        ["--debug-tool", "--sessions", "--tools", "lisp_eval,proxy-dispatch", "--trace-payloads", "full"];
    let mut server = Server::start(&config.flags(&flags));
    let echo = r#"(:value (tool/call {:server "probe" :tool "echo" :args {:v (range 500)}}))"#;
    call(&mut server, "lisp_eval", program(&format!("(println \"hi\") (count {echo})")));
    let started = call(&mut server, "lisp_session_start", json!({ "title": "t" }));
    let session = started["structuredContent"]["session_id"].clone();
    let eval = |text: &str| json!({ "session_id": session, "program": text, "context": { "k": [1] } });
    call(&mut server, "lisp_session_eval", eval(&format!("(def rows {echo}) (first rows)")));
    call(&mut server, "lisp_session_eval", eval("(nothing-there)"));
    let echo = json!({ "action": "call", "tool": "echo", "arguments": { "v": "x" } });
    call(&mut server, "proxy-dispatch", echo);
    call(&mut server, "lisp_eval", json!({ "program": 5 }));
    let recent = ask(&mut server, json!({ "op": "recent" }));
    let rows: Vec<String> = recent["calls"]
        .as_array()
        .unwrap()
        .iter()
        .rev()
        .map(|call| {
            let text = |key: &str| call[key].as_str().unwrap_or("-").to_owned();
            format!(
                "{} {} {} calls={} {}",
                text("tool"),
                text("status"),
                text("reason"),
                call["upstream_calls"],
                text("program")
            )
        })
        .collect();
    assert!(rows[0].starts_with("lisp_eval ok - calls=1 (println"), "{rows:#?}");
    assert_eq!(rows[1], "lisp_session_start ok - calls=0 -");
    assert!(rows[2].starts_with("lisp_session_eval ok - calls=1 (def rows"), "{rows:#?}");
    assert_eq!(rows[3], "lisp_session_eval error unbound_var calls=0 (nothing-there)");
    assert_eq!(rows[4], "proxy-dispatch ok - calls=1 -");
    assert_eq!(rows[5], "lisp_eval error args_error calls=0 -");
    let calls = recent["calls"].as_array().unwrap();
    assert_eq!((&calls[5]["prints_count"], &calls[3]["context"]), (&json!(1), &json!({ "k": [1] })));
    assert_eq!(calls[4]["arguments"], json!({ "title": "t" }));
    // One upstream call each: 500 numbers became "500", and "0".
    let metrics = &calls[5]["ptc_metrics"];
    assert_eq!((&metrics["final_result_bytes"], &metrics["upstream_call_count"]), (&json!(3), &json!(1)));
    let whole = ask(&mut server, json!({ "op": "get", "request_id": calls[5]["request_id"] }));
    let upstream = &whole["record"]["upstream_calls"][0];
    assert_eq!(
        keys(upstream),
        ["server", "tool", "status", "duration_ms", "reason", "result_bytes", "oversize"]
    );
    let bytes = upstream["result_bytes"].as_u64().unwrap();
    assert!(bytes > 1_500, "{upstream}");
    let stats = ask(&mut server, json!({ "op": "stats" }));
    assert_eq!(
        stats["upstream_calls"]["by_server"]["probe"],
        json!({ "total": 3, "ok": 3, "by_reason": {} })
    );
    let reduction = &stats["payload_reduction"];
    assert_eq!(
        keys(reduction),
        [
            "schema_version",
            "calls_with_metrics",
            "total_final_result_bytes",
            "total_upstream_result_bytes",
            "total_upstream_error_bytes",
            "total_upstream_oversize_bytes",
            "total_upstream_calls",
            "reduction_ratio",
            "estimated_tokens",
            "top_reducers"
        ]
    );
    assert_eq!(
        (&reduction["calls_with_metrics"], &reduction["total_upstream_calls"]),
        (&json!(3), &json!(3))
    );
    let round = |ratio: f64| (ratio * 100.0).round() / 100.0;
    let top = reduction["top_reducers"].as_array().unwrap();
    let ratios: Vec<f64> = top.iter().map(|row| row["ratio"].as_f64().unwrap()).collect();
    assert_eq!((ratios[0], ratios[1]), (bytes as f64, round(bytes as f64 / 3.0)));
    assert_eq!(top[0]["tool"], "lisp_session_eval");
    let ratio = &reduction["reduction_ratio"];
    assert_eq!(
        (&ratio["p50"], &ratio["p95"], &ratio["max"]),
        (&json!(ratios[1]), &json!(ratios[0]), &json!(ratios[0]))
    );
    let total = |what: &str| reduction[format!("total_{what}_bytes")].as_u64().unwrap() as f64;
    assert_eq!(ratio["weighted"], json!(round(total("upstream_result") / total("final_result"))));
    let errors = ask(&mut server, json!({ "op": "recent", "errors_only": true }));
    assert_eq!(errors["count"], 2);
    assert_eq!(
        ask(&mut server, json!({ "op": "stats", "errors_only": true, "since_seconds": 3600 }))["errors"],
        json!({ "by_reason": { "args_error": 1, "unbound_var": 1 } })
    );
}

#[test]
fn the_ring_keeps_the_last_and_a_cancelled_call_is_one_of_them() {
    let mut server = Server::start(&["--debug-tool", "--debug-ring-size", "3", "--timeout", "60s"]);
    server.has_logged("out of bounds");
    for number in 0..20 {
        call(&mut server, "lisp_eval", program(&number.to_string()));
    }
    let stats = ask(&mut server, json!({ "op": "stats" }));
    assert_eq!((&stats["ring_size"], &stats["ring_count"]), (&json!(10), &json!(10)));
    let endless = json!({ "name": "lisp_eval", "arguments": program("(loop [] (recur))") });
    let id = server.begin("tools/call", endless);
    let cancelled = json!({ "requestId": id });
    server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled }));
    let recorded = loop {
        let question = json!({ "op": "get", "request_id": id.to_string() });
        let got = ask(&mut server, question);
        if got["found"] == true {
            break got;
        }
    };
    assert_eq!(recorded["record"]["reason"], "cancelled");
    // A long id is truncated.
    let id = json!("é".repeat(500));
    server.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": { "name": "lisp_eval", "arguments": program("1") } }));
    answer(&mut server, &id);
    let recent = ask(&mut server, json!({ "op": "recent", "limit": 1 }));
    let kept = format!("{}…(1000B id, truncated)", "é".repeat(64));
    assert_eq!(recent["calls"][0]["request_id"], json!(kept));
}

#[test]
fn no_answer_is_longer_than_it_may_be() {
    let mut server = Server::start(&["--debug-tool", "--max-debug-response-bytes", "4k"]);
    for number in 0..60 {
        call(&mut server, "lisp_eval", program(&format!("(str \"\\\"{}\" {number})", "\\\\".repeat(50))));
    }
    for question in [
        json!({ "op": "recent", "limit": 200 }),
        json!({ "op": "stats" }),
        json!({ "op": "get", "request_id": "20" }),
    ] {
        for id in ["1".to_owned(), "x".repeat(2_000)] {
            server.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
                "params": { "name": "lisp_debug", "arguments": question } }));
            let answer = answer(&mut server, &json!(id));
            assert!(answer.to_string().len() < 4_096, "{answer}");
            let shown = &answer["result"]["structuredContent"];
            if question["op"] == "recent" {
                let count = shown["count"].as_u64().unwrap();
                assert!((1..60).contains(&count) && shown["truncated"] == true, "{shown}");
                assert_eq!(shown["calls"].as_array().unwrap().len() as u64, count);
            }
        }
    }
}

#[test]
fn secrets_are_in_no_record() {
    let config = Upstreams::probe()
        .credential("key", json!({ "source": "literal", "value": "correct-horse-battery" }));
    let config = config.write();
    for policy in ["none", "summary", "full"] {
        let mut server = Server::start(&config.flags(&["--debug-tool", "--trace-payloads", policy]));
        let told = |n: usize| format!("\"{}correct-horse-battery\"", "x".repeat(n));
        for n in [0, 240, 250, 255] {
            let arguments = json!({ "program": format!("(println {0}) {0}", told(n)),
                "context": { "correct-horse-battery": { "a": "correct-horse-battery" } } });
            call(&mut server, "lisp_eval", arguments);
        }
        for question in [json!({ "op": "recent" }), json!({ "op": "stats" })] {
            let shown = ask(&mut server, question).to_string();
            assert!(!shown.contains("correct") && !shown.contains("battery"), "{policy}: {shown}");
        }
        let shown = ask(&mut server, json!({ "op": "recent" }));
        assert_eq!(shown["count"], 4, "{policy}");
    }
}
