//! The texts of `proxy-dispatch`: previews, parts, errors, and results cached for equal calls.

use super::{ONLY_PROXY, dispatch, server_in};
use ptc_tests::scripts::counter;
use ptc_tests::serve::{Server, text_of};
use ptc_tests::upstreams::Upstreams;
use ptc_tests::web::{SessionClient, WebServer};
use serde_json::{Value, json};

fn call(tool: &str, arguments: Value) -> Value {
    json!({ "action": "call", "tool": tool, "arguments": arguments })
}

#[test]
fn previews_keep_the_ends_of_lines_and_say_what_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let rows: Value = (0..300).map(|id| json!({ "id": id, "name": format!("user-{id:06}") })).collect();
    let lines: String = (0..200).map(|n| format!("line {n} of the text\n")).collect();
    for (more, kind) in [(&["--proxy-toon"][..], "TOON"), (&[], "JSON")] {
        let config = counter().add("probe", ptc_tests::upstreams::probe_server(&[])).write();
        let flags = [&ONLY_PROXY[..], &["--proxy-threshold", "1000"], more].concat();
        let mut server = server_in(dir.path(), &config.flags(&flags));
        let value = json!({ "rows": rows, "total": 300 });
        let kept = dispatch(&mut server, call("echo", json!({ "v": value })));
        let text = text_of(&kept);
        let beginning = format!("Result auto-spilled to temporary {kind} file (exceeded 1000 bytes): ");
        assert!(text.starts_with(&beginning), "{text}");
        assert!(text.contains("\nTop-level keys: [rows, total]\n"), "{text}");
        let preview = match kind {
            "TOON" => "\nPreview: rows[300]{id,name}:\n  0,user-000000\n  1,user-000001\n",
            _ => "\nPreview: {\"rows\":[{\"id\":0,\"name\":\"user-000000\"},{\"id\":1,",
        };
        assert!(text.contains(preview), "{text}");
        let list = text_of(&dispatch(&mut server, call("echo", json!({ "v": rows }))));
        assert!(list.contains("\nTop level: a list\n"), "{list}");
        let text = text_of(&dispatch(&mut server, call("text", json!({ "text": lines }))));
        assert!(text.starts_with("Result auto-spilled to temporary text file"), "{text}");
        assert!(text.contains("\nPreview: line 0 of the text\nline 1 of the text\nline 2"), "{text}");
    }
}

#[test]
fn what_is_missing_is_said_in_the_text() {
    let dir = tempfile::tempdir().unwrap();
    let config = Upstreams::probe().write();
    let mut server = server_in(dir.path(), &config.flags(&ONLY_PROXY));
    let large = 3_000_000;
    let kept = dispatch(&mut server, call("flood", json!({ "bytes": large })))["resultFile"].clone();
    let read = |server: &mut Server, more: Value| {
        let mut arguments = json!({ "action": "readresult", "resultFile": kept });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answer = dispatch(server, arguments);
        (text_of(&answer), answer)
    };
    for whole in [
        json!({ "op": "read" }),
        json!({ "op": "read", "maxBytes": 0 }),
        json!({ "op": "head", "maxBytes": 0 }),
    ] {
        let (text, answer) = read(&mut server, whole.clone());
        assert_eq!((text.trim_end().len(), answer.get("truncated")), (large, None), "{whole}");
    }
    let (text, answer) = read(&mut server, json!({ "op": "head" }));
    let note = format!("[cut: {} bytes are shown, of a result of {large} bytes; ", 2 << 20);
    assert!(text.contains(&note) && answer["truncated"] == true);
    let (text, answer) = read(&mut server, json!({ "op": "grep", "pattern": "nothing like it" }));
    assert_eq!((text.as_str(), &answer["matchCount"]), ("[no match in 1 line]", &json!(0)));
    let (text, answer) = read(&mut server, json!({ "op": "slice", "fromLine": 7, "toLine": 9 }));
    assert_eq!((text.as_str(), &answer["isError"]), ("[no line 7: the result has 1 line]", &json!(false)));
    let (text, answer) = read(&mut server, json!({ "op": "slice", "fromLine": 9, "toLine": 7 }));
    assert_eq!((text.as_str(), &answer["isError"]), ("fromLine 9 is after toLine 7", &json!(true)));
    assert_eq!(answer["reason"], "args_error");
    let (text, answer) = read(&mut server, json!({ "op": "grep", "pattern": "x", "maxBytes": 100 }));
    assert!(
        text.contains("[cut: of 1 matching line not all are shown; ") && answer["truncated"] == true,
        "{answer}"
    );
}

#[test]
fn every_error_has_a_reason_and_no_note_says_it_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut gone = ptc_tests::upstreams::stdio("/nonexistent/server", &[]);
    gone["required"] = false.into();
    let config = counter().add("gone", gone).add("probe", ptc_tests::upstreams::probe_server(&[])).write();
    let flags = config.flags(&[&ONLY_PROXY[..], &["--proxy-threshold", "100"]].concat());
    let mut server = server_in(dir.path(), &flags);
    let kept = dispatch(&mut server, call("text", json!({ "text": "x".repeat(200) })))["resultFile"].clone();
    let named = |connection: &str| json!({ "action": "call", "tool": "x", "connection": connection });
    for (asked, reason) in [
        (call("fail", json!({})), "tool_error"),
        (call("strict", json!({})), "args_error"),
        (call("strict", json!({ "ticker": 1 })), "args_error"),
        (call("nosuch", json!({})), "args_error"),
        (named("counter"), "args_error"),
        (named("nosuch"), "args_error"),
        (named("gone"), "upstream_unavailable"),
        // A part of a spilled result that is large enough to be spilled again.
        (
            call("text", json!({ "text": format!("{}{}", kept.as_str().unwrap(), " ".repeat(200)) })),
            "args_error",
        ),
        (json!({ "action": "call", "tool": "look", "argumentsFile": "/etc/passwd" }), "args_error"),
        (json!({ "action": "list", "connection": "c9" }), "args_error"),
        (json!({ "action": "list", "tool": "look" }), "args_error"),
        (json!({ "action": "nosuch" }), "args_error"),
        (json!({ "action": "readresult", "resultFile": "r77.json" }), "args_error"),
    ] {
        let answer = dispatch(&mut server, asked.clone());
        assert_eq!(
            (&answer["isError"], &answer["reason"]),
            (&json!(true), &json!(reason)),
            "{asked}: {answer}"
        );
        assert!(answer.get("notes").is_none(), "{asked}: {answer}");
    }
}

#[test]
fn equal_calls_of_programs_and_of_this_tool_make_one_call() {
    let dir = tempfile::tempdir().unwrap();
    let config = counter().write();
    let flags = [
        "--tools",
        "proxy-dispatch,lisp_eval",
        "--response-profile",
        "debug",
        "--max-upstream-calls",
        "5000",
    ];
    for is_kept in [true, false] {
        let more: &[&str] = if is_kept { &["--tool-cache-ttl", "10m"] } else { &[] };
        let mut server = server_in(dir.path(), &config.flags(&[&flags[..], more].concat()));
        let program = "(count (pmap (fn [_] (tool/call {:server \"counter\" :tool \"look\" :args {:b 2 :a 1}})) (range 1000)))";
        let answer =
            server.request("tools/call", json!({ "name": "lisp_eval", "arguments": { "program": program } }));
        let cached =
            |calls: &Value| calls.as_array().unwrap().iter().filter(|call| call["cached"] == true).count();
        let calls = &answer["result"]["structuredContent"]["upstream_calls"];
        assert!((cached(calls) > 0) == is_kept, "{calls}");
        for arguments in [json!({ "a": 1, "b": 2 }), json!({ "b": 2, "a": 1 })] {
            let answer = dispatch(&mut server, call("look", arguments));
            assert_eq!(cached(&answer["upstream_calls"]), usize::from(is_kept), "{answer}");
        }
        for tool in ["fail", "fail", "strict", "counts", "counts"] {
            let answer = dispatch(&mut server, call(tool, json!({ "ticker": "A" })));
            assert_eq!(cached(&answer["upstream_calls"]), 0, "{answer}");
        }
        let counts: Value =
            serde_json::from_str(&text_of(&dispatch(&mut server, call("counts", json!({}))))).unwrap();
        let looks = if is_kept { 1 } else { 1_002 };
        assert_eq!(counts, json!({ "look": looks, "fail": 2, "strict": 1, "counts": 3 }));
        // A tool that may change data clears the cached results of its server.
        dispatch(&mut server, call("write", json!({})));
        dispatch(&mut server, call("look", json!({ "a": 1, "b": 2 })));
        dispatch(&mut server, call("write", json!({})));
        let counts: Value =
            serde_json::from_str(&text_of(&dispatch(&mut server, call("counts", json!({}))))).unwrap();
        assert_eq!((&counts["look"], &counts["write"]), (&json!(looks + 1), &json!(2)));
    }
}

#[test]
fn a_result_is_not_given_to_another_owner() {
    let dir = tempfile::tempdir().unwrap();
    let tokens = dir.path().join("tokens.toml");
    // The hashes of 32 times the letter a, and of b.
    let hashes = [
        "3ba3f5f43b92602683c19aee62a20342b084dd5971ddd33808d81a328879a547",
        "bdb339768bc5e4fecbe55a442056919b2b325907d49bcbf3bf8de13781996a83",
    ];
    let text = format!("[a]\nsha256 = \"{}\"\n[b]\nsha256 = \"{}\"\n", hashes[0], hashes[1]);
    std::fs::write(&tokens, text).unwrap();
    let config = counter().write();
    let flags = ["--http", "127.0.0.1:0", "--tools", "proxy-dispatch,lisp_eval", "--tool-cache-ttl", "10m"];
    let flags = [&flags[..], &["--http-tokens", tokens.to_str().unwrap()]].concat();
    let server =
        WebServer::from_command(ptc_tests::binary::ptc(&[&["serve"][..], &config.flags(&flags)].concat()));
    let bearer = |letter: &str| format!("Bearer {}", letter.repeat(32));
    let begin = |token: &str| SessionClient::begin(&server, "2025-11-25", &[("Authorization", token)]);
    let proxied = |client: &mut SessionClient| {
        let asked = json!({ "name": "proxy-dispatch", "arguments": call("look", json!({ "a": 1 })) });
        text_of(&client.ask(&server, "tools/call", asked).json()["result"])
    };
    let programmed = |client: &mut SessionClient| {
        let program = "(:value (tool/call {:server \"counter\" :tool \"look\" :args {:a 1}}))";
        let asked = json!({ "name": "lisp_eval", "arguments": { "program": program } });
        text_of(&client.ask(&server, "tools/call", asked).json()["result"])
    };
    let (a, b) = (bearer("a"), bearer("b"));
    let (mut first, mut again, mut other) = (begin(&a), begin(&a), begin(&b));
    for _ in 0..2 {
        assert_eq!(proxied(&mut first), "{\"call\": 1}");
        assert_eq!(proxied(&mut again), "{\"call\": 1}");
        assert_eq!(proxied(&mut other), "{\"call\": 2}");
        assert_eq!(programmed(&mut other), "{\"call\" 2}");
        assert_eq!(programmed(&mut again), "{\"call\" 1}");
    }
}
