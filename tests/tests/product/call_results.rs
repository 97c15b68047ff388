//! What a program gets from its calls, and what its caller sees of values and prints.

use ptc_tests::binary::{eval, run_ptc, value};
use ptc_tests::serve::Server;
use ptc_tests::upstreams::Upstreams;
use serde_json::{Value, json};

#[test]
fn a_call_with_a_bang_is_its_value_or_ends_the_program() {
    let config = Upstreams::probe().write();
    let flags = config.flags(&[]);
    let is = |program: &str, wanted: &str| assert_eq!(value(program, &flags), wanted, "{program}");
    is("(tool/call! 'probe/echo {:v {:a [1 nil]}})", "{\"a\" [1 nil]}");
    is("(tool/call! {:server \"probe\" :tool \"echo\" :args {:v 1}})", "1");
    is("(tool/call! :server \"probe\" :tool \"echo\" :args {:v 1})", "1");
    is("(map (partial tool/call! 'probe/echo) [{:v 1} {:v 2}])", "[1 2]");
    is("(pmap #(tool/call! 'probe/echo {:v %}) [3 1 2])", "[3 1 2]");
    is("(tool/call! {:server \"probe\" :tool \"flood\" :args {:bytes 3}})", "\"xxx\"");
    // A result without a value is its content.
    let image = "(count (tool/call! 'probe/echo {:result {:content [{:type \"image\" :data \"AA==\" :mimeType \"image/png\"}]}}))";
    is(image, "1");
    let spilled = "(:lines (spill/stat (tool/call! {:server \"probe\" :tool \"flood\" :args {:rows 60000} :on-large :spill})))";
    is(spilled, "60002");
    let fails = |program: &str, reason: &str, message: &str| {
        let ended = eval(program, &flags);
        assert_eq!(ended["error"], reason, "{program}: {ended}");
        assert!(ended["message"].as_str().unwrap().contains(message), "{program}: {ended}");
        ended
    };
    let ended = fails("(do 1\n  (tool/call! 'probe/refuse {}))", "tool_error", "probe/refuse: no");
    let report = &ended["diagnostics"][0];
    assert_eq!((&report["line"], &report["column"], &ended["notes"]), (&2.into(), &3.into(), &Value::Null));
    fails("(tool/call! 'probe/flood {:bytes 3000000})", "tool_error", "probe/flood: :response_too_large, ");
    let last = "(dotimes [n 51] (tool/call! 'probe/echo {:v n}))";
    fails(
        last,
        "tool_call_limit_exceeded",
        "probe/echo: :cap_exhausted, a program may make 50 tool calls (--max-upstream-calls)",
    );
    let branch = "(pmap (fn [n] (if (= n 2) (tool/call! 'probe/refuse {}) n)) [1 2 3])";
    fails(branch, "pmap_error", "probe/refuse: no");
    fails("(tool/call! 'absent/x {})", "unknown_tool", "absent");
    fails("(tool/call! 5)", "runtime_error", "tool/call! requires a map, got 5");
}

#[test]
fn calls_with_a_bang_are_checked_counted_and_listed_as_calls() {
    let config = Upstreams::probe().write();
    let mut server = Server::start(&config.flags(&["--response-profile", "debug"]));
    let result = server
        .run("(let [a (tool/call! 'probe/echo {:v 1}) b (tool/call 'probe/echo {:v 2})] (budget/remaining))");
    let data = &result["structuredContent"];
    assert_eq!(data["value"], json!({ "upstream-calls": 48 }), "{data}");
    assert_eq!(data["upstream_calls"].as_array().map(Vec::len), Some(2), "{data}");
    let result = server.run("(do (tool/call! 'probe/echo {:v 1}) (tool/call! 'probe/refuse {}))");
    let data = &result["structuredContent"];
    assert_eq!((&data["reason"], &data["error_kind"]), (&"runtime_error".into(), &"tool_error".into()));
    assert_eq!(data["upstream_calls"][1]["status"], "error", "{data}");
    assert_eq!(server.end(), Some(0));
}

#[test]
fn the_last_of_equal_json_keys_counts() {
    let is = |program: &str, wanted: &str| assert_eq!(value(program, &[]), wanted, "{program}");
    is(r#"(json/parse-string "{\"a\":1,\"b\":2,\"a\":3}")"#, r#"{"a" 3 "b" 2}"#);
    is(r#"(json/parse-string "{\"a\":1,\"\\u0061\":[3]}")"#, r#"{"a" [3]}"#);
    is(
        r#"(json/parse-string "[{\"a\":1,\"b\":2},{\"a\":1,\"a\":2},{\"a\":1,\"b\":3}]")"#,
        r#"[{"a" 1 "b" 2} {"a" 2} {"a" 1 "b" 3}]"#,
    );
    // Beyond the size of small maps.
    let many = r#"(get (json/parse-string (str "{" (str/join "," (map #(str "\"k" (mod % 40) "\":" %) (range 400))) "}")) "k7")"#;
    is(many, "367");
}

#[test]
fn prints_are_whole_while_the_answer_has_room_and_cuts_say_so() {
    let mut server = Server::start(&[]);
    let mut text = |program: &str| server.text(program);
    let long = text("(do (println (apply str (repeat 9000 \"x\"))) 1)");
    assert_eq!(long.len(), "<prints>\n\n\n<result>\n1".len() + 9_000, "{long}");
    let many = text("(do (dotimes [n 900] (println n)) :done)");
    assert!(many.contains("\n899\n\n<result>\n:done") && !many.contains("cut"), "{many}");
    let cut = text("(do (println (apply str (repeat 50000 \"y\"))) 7)");
    assert!(
        cut.contains("<result>\n7\n\n[prints cut: 32767 of 50001 bytes shown; return it as the value]"),
        "{cut}"
    );
    // A large result leaves prints a quarter of the room.
    let both = text("(do (println (apply str (repeat 50000 \"y\"))) (apply str (repeat 50000 \"z\")))");
    assert!(both.contains("[prints cut: 8192 of 50001 bytes"), "{}", &both[both.len() - 400..]);
    assert!(both.contains("[truncated: 24576 of 50002 bytes"), "{}", &both[both.len() - 400..]);
    let failed = text("(do (println (apply str (repeat 50000 \"y\"))) (fail \"x\"))");
    assert!(failed.starts_with("fail: x") && failed.contains(" of 50001 bytes shown; return"), "{failed}");
    assert_eq!(server.end(), Some(0));
    let mut server = Server::start(&["--max-print-bytes", "1000"]);
    let cut = server.text("(do (println (apply str (repeat 1500 \"y\"))) (println 5) 7)");
    assert!(
        cut.contains("[note: prints end after 1000 bytes (--max-print-bytes), 502 more bytes were cut: return it as the value]"),
        "{cut}"
    );
    assert_eq!(server.end(), Some(0));
}

/// The limit of prints counts what was printed. Lines without a byte are limited by their number.
#[test]
fn the_limit_of_prints_counts_the_bytes_of_the_lines() {
    let printed = |program: &str, most: &str| {
        let words = ["eval", program, "--output", "json", "--max-print-bytes", most];
        let answer: Value = serde_json::from_str(&run_ptc(&words, "").stdout).unwrap();
        (answer["prints"].clone(), answer["notes"].to_string())
    };
    let (prints, notes) = printed("(println \"abcdé\")", "6");
    assert_eq!((prints, notes.contains("prints end")), (json!(["abcdé"]), false), "{notes}");
    let (prints, notes) = printed("(dotimes [_ 20] (println \"abcde\"))", "100");
    assert_eq!((prints, notes.contains("prints end")), (json!(vec!["abcde"; 20]), false), "{notes}");
    let (prints, notes) = printed("(dotimes [_ 21] (println \"abcde\"))", "102");
    assert_eq!(prints[20], "ab");
    assert!(
        notes.contains("prints end after 102 bytes (--max-print-bytes), 3 more bytes were cut"),
        "{notes}"
    );
    let (prints, notes) = printed("(dotimes [_ 100000] (println))", "100");
    assert_eq!(prints.as_array().unwrap().len(), 32_768);
    assert!(notes.contains("prints end after 32768 lines"), "{notes}");
}

#[test]
fn ptc_call_shows_all_content_and_saves_binary_data() {
    let config = Upstreams::probe().write();
    let folder = tempfile::tempdir().unwrap();
    let (save, result) = (
        folder.path().to_str().unwrap(),
        json!({ "result": { "content": [
        { "type": "text", "text": "first" },
        { "type": "image", "mimeType": "image/png", "data": "AAEC" },
        { "type": "audio", "mimeType": "audio/wav", "data": "AA==" },
        { "type": "resource_link", "uri": "file:///x", "name": "x" },
        { "type": "resource", "resource": { "uri": "file:///y", "text": "inside" } },
        { "type": "text", "text": "last" },
    ] } }),
    );
    let arguments = result.to_string();
    let call = |more: &[&str]| {
        let words = [&["call", "probe/echo", &arguments], &config.flags(more)[..]].concat();
        let finished = run_ptc(&words, "");
        assert_eq!(finished.code, Some(0), "{finished:?}");
        finished.stdout
    };
    let lines = "first\n[image image/png 3 bytes; --save DIR writes it]\n[audio audio/wav 1 bytes; --save DIR writes it]\n\
                 [link file:///x x]\n[resource file:///y]\ninside\nlast\n";
    assert_eq!(call(&[]), lines);
    let saved = call(&["--save", save]);
    assert!(saved.contains(&format!("[image image/png 3 bytes: {save}/2.png]")), "{saved}");
    assert_eq!(std::fs::read(folder.path().join("3.wav")).unwrap(), [0]);
    // Next to JSON, the rest goes to standard error.
    let json_first = json!({ "result": {
        "content": [{ "type": "text", "text": "in words" }, result["result"]["content"][1]],
        "structuredContent": { "a": 1 },
    } });
    let in_text = json!({ "result": {
        "content": [{ "type": "text", "text": "{\"a\": 1}" }, result["result"]["content"][1]],
    } });
    let image = "[image image/png 3 bytes; --save DIR writes it]\n";
    for (given, rest) in [(json_first, format!("in words\n{image}")), (in_text, image.to_owned())] {
        let given = given.to_string();
        let words = [&["call", "probe/echo", &given], &config.flags(&[])[..]].concat();
        let finished = run_ptc(&words, "");
        let value: Value = serde_json::from_str(&finished.stdout).expect("one document");
        assert_eq!((value, finished.stderr), (json!({ "a": 1 }), rest));
    }
    let whole: Value = serde_json::from_str(&call(&["--output", "json"])).unwrap();
    assert_eq!((&whole["value"], &whole["content"]), (&"first".into(), &result["result"]["content"]));
}
