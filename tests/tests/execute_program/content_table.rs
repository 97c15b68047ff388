//! What arrives of each content type of the MCP specification, through every front end: the table of `docs/tools.md`.
#![allow(clippy::unwrap_used, reason = "a broken helper should be loud")]

#[path = "../../src/document_section.rs"]
mod document_section;

use document_section::{assert_section, head, row};
use ptc_tests::binary::run_ptc;
use ptc_tests::serve::{Server, text_of};
use ptc_tests::upstreams::Upstreams;
use ptc_tests::web::{WebServer, stateless_body, stateless_headers};
use serde_json::{Value, json};

/// The results: what they contain, and the result itself.
fn results() -> Vec<(&'static str, Value)> {
    let text = json!({ "type": "text", "text": "a" });
    let image = json!({ "type": "image", "data": "AAEC", "mimeType": "image/png" });
    let audio = json!({ "type": "audio", "data": "AAEC", "mimeType": "audio/wav" });
    let link = json!({ "type": "resource_link", "uri": "file:///x", "name": "x" });
    let inside = json!({ "type": "resource", "resource": { "uri": "file:///y", "text": "b" } });
    let blob = json!({ "type": "resource", "resource": { "uri": "file:///z", "blob": "AAEC" } });
    let content = |blocks: &[&Value]| json!({ "content": blocks });
    let all = [&text, &image, &audio, &link, &inside, &blob];
    let mut mixed = content(&all);
    mixed["structuredContent"] = json!({ "n": 1 });
    vec![
        ("text", content(&[&text])),
        ("two texts", content(&[&text, &text])),
        ("image", content(&[&image])),
        ("audio", content(&[&audio])),
        ("resource link", content(&[&link])),
        ("embedded text", content(&[&inside])),
        ("embedded blob", content(&[&blob])),
        ("structured content", json!({ "content": [], "structuredContent": { "n": 1 } })),
        ("all blocks", content(&all)),
        ("all blocks and structured content", mixed),
        ("nothing", content(&[])),
    ]
}

/// A front end over one transport: the result of a `tools/call`.
type Call<'a> = &'a mut dyn FnMut(&str, Value) -> Value;

/// The types of the content blocks of a result.
fn kinds(result: &Value) -> String {
    let kinds: Vec<&str> =
        result["content"].as_array().unwrap().iter().map(|block| block["type"].as_str().unwrap()).collect();
    kinds.join(", ")
}

/// A value, and how many blocks its content has; they are those of the result.
fn cell(name: &str, parts: &Value, blocks: usize) -> String {
    let [value, count, same] = &parts.as_array().unwrap()[..] else { panic!("{name}: {parts}") };
    assert_eq!(*same, true, "{name}: {parts}");
    let count = count.as_u64().unwrap();
    assert!(count == 0 || count == blocks as u64, "{name}: {parts}");
    let content = if count > 0 { format!(", content of {count}") } else { String::new() };
    let value = if value.is_array() { "its blocks".to_owned() } else { format!("`{value}`") };
    value + &content
}

/// The cells of a result in every front end that is a tool.
fn cells(name: &str, result: &Value, call: Call<'_>) -> [String; 4] {
    let blocks = result["content"].as_array().unwrap().len();
    let quoted = Value::String(result.to_string()).to_string();
    let lisp = |rest: &str| json!({ "program": format!("(let [all (json/parse-string {quoted}) r (tool/call 'probe/echo {{:result all}})] {rest})") });
    let parts =
        "[(:value r) (count (:content r)) (or (nil? (:content r)) (= (:content r) (get all \"content\")))]";
    let program = call("lisp_eval", lisp(parts));
    let shown = call("lisp_eval", lisp("r"));
    for uri in ["file:///x", "file:///y", "file:///z"].into_iter().filter(|uri| quoted.contains(uri)) {
        assert!(text_of(&shown).contains(uri), "{name}: {shown}");
    }
    let code = format!(
        "import json\nall = json.loads({quoted})\nr = await mcp__probe__echo(result=all)\nb = await content_of(mcp__probe__echo(result=all))\n\
         same = b == all['content'] or (len(b), 'structuredContent' in all) == (1, True)\nprint(json.dumps([r, len(b), same]))"
    );
    let script = call("execute_program", json!({ "code": code }));
    let printed: Value =
        serde_json::from_str(script["structuredContent"]["result"].as_str().unwrap()).unwrap();
    let passed = call(
        "proxy-dispatch",
        json!({ "action": "call", "tool": "echo", "arguments": { "result": result } }),
    );
    [
        cell(name, &program["structuredContent"]["value"], blocks),
        kinds(&shown),
        cell(name, &printed, blocks.max(1)),
        kinds(&passed),
    ]
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn the_table_says_what_arrives_of_each_type_of_content() {
    let config = Upstreams::probe().write();
    let flags = config.flags(&[
        "--tools",
        "lisp_eval,execute_program,proxy-dispatch",
        "--response-profile",
        "structured",
    ]);
    let mut server = Server::start(&flags);
    let mut piped = |name: &str, arguments: Value| {
        server.request("tools/call", json!({ "name": name, "arguments": arguments }))["result"].clone()
    };
    let web = WebServer::start(&flags);
    let mut over_http = |name: &str, arguments: Value| {
        let body = stateless_body(1, "tools/call", json!({ "name": name, "arguments": arguments }));
        web.ask("POST", &stateless_headers("tools/call", name), &body).json()["result"].clone()
    };
    let mut table = head(&[
        "result",
        "program",
        "client of `lisp_eval`",
        "script",
        "`ptc call`",
        "client of `proxy-dispatch`",
    ]);
    for (name, result) in results() {
        let ours = cells(name, &result, &mut piped);
        assert_eq!(ours, cells(name, &result, &mut over_http), "{name}: over HTTP");
        let arguments = json!({ "result": result }).to_string();
        let called = run_ptc(&[&["call", "probe/echo", &arguments], &config.flags(&[])[..]].concat(), "");
        let shown = called.stdout.lines().map(|line| format!("`{line}`"));
        // Next to JSON, further content goes to standard error.
        let rest = called.stderr.lines().map(|line| format!("stderr: `{line}`"));
        let lines: Vec<String> = shown.chain(rest).collect();
        let [program, client, script, proxy] = &ours;
        table.push_str(&row(&[name, program, client, script, &lines.join("<br>"), proxy]));
    }
    assert_section("tools.md", "content", &table);
}
