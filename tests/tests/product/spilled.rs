//! Programs read spilled results, which are too large to be carried, over every transport.

use ptc_tests::binary::{eval, value};
use ptc_tests::processes::{eventually, kept_results};
use ptc_tests::serve::{Server, text_of};
use ptc_tests::upstreams::{Upstreams, probe_server};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

const ROWS: u64 = 60_000;

/// The rows that the tool `flood` of our own stdio server gives.
fn rows(count: u64) -> Value {
    let row = |n: u64| json!({ "n": n, "pad": "x".repeat(24) });
    (0..count).map(row).collect()
}

/// A server that gives the rows by path: `/json`, `/event` and `/lines` over Streamable HTTP, the last as an event
/// with one line for each line of its JSON; `/sse` over one stream; `/rows` as plain JSON.
fn start() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let stream = Arc::<Mutex<Option<TcpStream>>>::default();
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let stream = stream.clone();
            // An error means that the client closed the connection.
            std::thread::spawn(move || serve(connection, &stream));
        }
    });
    port
}

fn serve(mut output: TcpStream, stream: &Mutex<Option<TcpStream>>) -> Option<()> {
    let mut input = BufReader::new(output.try_clone().ok()?);
    loop {
        let mut line = String::new();
        input.read_line(&mut line).ok().filter(|&bytes| bytes > 0)?;
        let (method, path) = (line.split(' ').next()?.to_owned(), line.split(' ').nth(1)?.to_owned());
        let mut length = 0;
        loop {
            let mut line = String::new();
            input.read_line(&mut line).ok()?;
            match line.trim_end().split_once(": ") {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.parse().ok()?
                }
                None => break,
                _ => {}
            }
        }
        let mut body = vec![0; length];
        input.read_exact(&mut body).ok()?;
        let message: Value = serde_json::from_slice(&body).unwrap_or_default();
        if path == "/rows" {
            answer(&mut output, "200 OK", "application/json", &rows(ROWS).to_string())?;
            continue;
        }
        if method == "GET" && path == "/sse" {
            write!(
                output,
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nevent: endpoint\ndata: /sse\n\n"
            )
            .ok()?;
            *stream.lock().expect("whole") = Some(output.try_clone().ok()?);
            continue;
        }
        let result = match message["method"].as_str() {
            Some("initialize") => json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
                "serverInfo": { "name": "rows", "version": "1" } }),
            Some("tools/list") => json!({ "tools": [{ "name": "flood", "inputSchema": {} }] }),
            Some("tools/call") => {
                let count = message["params"]["arguments"]["rows"].as_u64().unwrap_or(ROWS);
                json!({ "content": [{ "type": "text", "text": rows(count).to_string() }] })
            }
            // Notifications are accepted; there is no stateless era and no stream of server messages.
            _ => {
                let status = if message["method"].is_string() && message["id"].is_null() {
                    "202 Accepted"
                } else {
                    "405 No"
                };
                answer(&mut output, status, "text/plain", "")?;
                continue;
            }
        };
        let message = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
        let event =
            |text: &str| text.lines().map(|line| format!("data: {line}\n")).collect::<String>() + "\n";
        match path.as_str() {
            "/event" => answer(&mut output, "200 OK", "text/event-stream", &event(&message.to_string()))?,
            "/lines" => answer(&mut output, "200 OK", "text/event-stream", &event(&format!("{message:#}")))?,
            "/sse" => {
                let mut stream = stream.lock().expect("whole");
                stream.as_mut()?.write_all(event(&message.to_string()).as_bytes()).ok()?;
                answer(&mut output, "202 Accepted", "text/plain", "")?;
            }
            _ => answer(&mut output, "200 OK", "application/json", &message.to_string())?,
        }
    }
}

fn answer(output: &mut TcpStream, status: &str, kind: &str, body: &str) -> Option<()> {
    let length = body.len();
    write!(output, "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n{body}").ok()
}

/// Sums all rows by slices of lines, with far less memory than the rows take.
const AGGREGATE: &str = r#"
    (let [r (tool/call {:server "rows" :tool TOOL :args ARGS :on-large :spill})
          size (spill/stat r)
          row (fn [line] (json/parse-string (str/replace line #",$" "")))
          sum (fn [from] (reduce + (map #(:n (row %)) (:lines (spill/slice r from (min (+ from 999) (dec (:lines size))))))))]
      [(:ok r) (:value_kind r) (:spill r) (= (:bytes r) (:bytes size)) (subs (:preview r) 0 9)
       (:lines size) (reduce + (map sum (range 2 (:lines size) 1000)))
       (spill/json-path r "$[59999].n") (spill/json-path (:spill r) "$[0:3].n") (spill/json-path r "$[60000]")
       (:matches (spill/grep r "\"n\":5999\\d")) (:text (spill/grep r "\"n\":777,"))
       (:lines (spill/head r 1)) (:lines (spill/tail r 1)) (:truncated (spill/read r 10))])"#;

#[test]
fn rows_that_are_too_large_are_added_up_by_slices_over_every_transport() {
    let port = start();
    let url = |path: &str| format!("http://127.0.0.1:{port}{path}");
    let http = |transport: &str, path: &str| json!({ "transport": transport, "url": url(path), "allow_insecure_http": true });
    let document = tempfile::Builder::new().suffix(".json").tempfile().expect("a file");
    let operation = json!({ "operationId": "flood", "responses": { "200": { "description": "rows" } } });
    let text = json!({ "openapi": "3.1.0", "info": { "title": "Rows", "version": "1" }, "paths": { "/rows": { "get": operation } } });
    std::fs::write(document.path(), text.to_string()).expect("written");
    let openapi = json!({ "transport": "openapi", "base_url": url("/"), "schema_file": document.path(),
        "include_operations": ["flood"], "allow_insecure_http": true });
    let entries = [
        ("stdio", probe_server(&[])),
        ("json", http("mcp_http", "/json")),
        ("event", http("mcp_http", "/event")),
        ("lines", http("mcp_http", "/lines")),
        ("sse", http("sse", "/sse")),
        ("openapi", openapi),
    ];
    let all: u64 = (0..ROWS).sum();
    for (name, entry) in entries {
        let config = Upstreams::default().add("rows", entry).write();
        let args = if name == "stdio" { format!("{{:rows {ROWS}}}") } else { "{}".to_owned() };
        let program = AGGREGATE.replace("ARGS", &args).replace("TOOL", "\"flood\"");
        let want = format!(
            "[true :spilled \"r1\" true \"[\\n {{\\\"n\\\":0\" 60002 {all} 59999 [0 1 2] nil 10 \
             \"779: {{\\\"n\\\":777,\\\"pad\\\":\\\"xxxxxxxxxxxxxxxxxxxxxxxx\\\"}},\\n\" [\"[\"] [\"]\"] true]"
        );
        assert_eq!(value(&program, &config.flags(&[])), want, "{name}");
    }
}

/// A connection that many calls share reads more than one of them takes.
#[test]
fn rows_slightly_above_the_limit_of_their_server_are_spilled_over_every_transport() {
    let port = start();
    let http = |transport: &str, path: &str| {
        json!({ "transport": transport,
        "url": format!("http://127.0.0.1:{port}{path}"), "allow_insecure_http": true })
    };
    let call = "(tool/call {:server \"rows\" :tool \"flood\" :args {:rows 500} :on-large :spill})";
    for (name, mut entry) in [
        ("stdio", probe_server(&[])),
        ("json", http("mcp_http", "/json")),
        ("event", http("mcp_http", "/event")),
        ("sse", http("sse", "/sse")),
    ] {
        entry["max_response_bytes"] = 20_000.into();
        let config = Upstreams::default().add("rows", entry).write();
        let got = value(&format!("((juxt :ok :spill) {call})"), &config.flags(&[]));
        assert_eq!(got, "[true \"r1\"]", "{name}");
    }
}

const CALL: &str = "(tool/call {:server \"probe\" :tool \"flood\" :args {:rows 60000} :on-large :spill})";

#[test]
fn it_is_kept_only_where_somebody_says_so() {
    let plain = Upstreams::probe().write();
    let call = "(select-keys (tool/call {:server \"probe\" :tool \"flood\" :args {:rows 60000}}) [:ok :reason :spill])";
    assert_eq!(value(call, &plain.flags(&[])), "{:ok false :reason :response_too_large}");
    let mut entry = probe_server(&[]);
    entry["on_large"] = "spill".into();
    let config = Upstreams::default().add("probe", entry.clone()).write();
    assert_eq!(value(call, &config.flags(&[])), "{:ok true :spill \"r1\"}");
    // A small result is not spilled.
    let small = "(tool/call {:server \"probe\" :tool \"flood\" :args {:rows 1} :on-large :spill})";
    assert_eq!(value(&format!("(:value_kind {small})"), &plain.flags(&[])), ":json");
    entry["on_large"] = "keep".into();
    let config = Upstreams::default().add("probe", entry).write();
    let report = ptc_tests::binary::run_ptc(&[&["tools"][..], &config.flags(&[])].concat(), "");
    assert!(report.stderr.contains("on_large is \"refuse\" or \"spill\", got \"keep\""), "{report:?}");
}

#[test]
fn a_wrong_look_says_what_is_wrong() {
    let config = Upstreams::probe().write();
    for (look, said) in [
        ("(spill/stat \"r2\")", "spill/stat: there is no kept result \"r2\""),
        ("(spill/stat {:ok true})", "spill/stat: there is no kept result"),
        ("(spill/head r -1)", "spill/head: takes numbers from 0, got -1"),
        ("(spill/grep r \"(\")", "the pattern is wrong"),
        ("(spill/grep r 7)", "spill/grep: takes a text"),
        ("(spill/json-path r \"rows\")", "cannot be read: it is written like $.items[0].name"),
        ("(spill/json-path r \"$[*]\")", "it finds more than 2097152 bytes: ask for less"),
        (
            "(tool/call {:server \"probe\" :tool \"echo\" :on-large true})",
            "tool/call :on-large must be :spill, got true",
        ),
    ] {
        let report = eval(&format!("(let [r {CALL}] {look})"), &config.flags(&[]));
        assert_eq!(report["ok"], false, "{look}");
        assert!(report.to_string().contains(&said.replace('"', "\\\"")), "{look}: {report:#}");
    }
}

#[test]
fn it_goes_with_its_program() {
    let config = Upstreams::probe().write();
    let mut server = Server::start(&config.flags(&["--timeout", "120s"]));
    assert_eq!(server.text(&format!("(:lines (spill/stat {CALL}))")), "60002");
    assert!(server.text("(spill/stat \"r1\")").contains("there is no kept result"));
    eventually("the result is gone", || kept_results(server.id()) == 0);
    assert_eq!(server.end(), Some(0));
}

#[test]
fn it_goes_with_its_session() {
    let config = Upstreams::probe().write();
    let mut server = Server::start(&config.flags(&["--sessions", "--timeout", "120s"]));
    let mut call = |tool: &str, arguments: Value| {
        server.request("tools/call", json!({ "name": tool, "arguments": arguments }))["result"].clone()
    };
    let started = call("lisp_session_start", json!({}));
    let id = started["structuredContent"]["session_id"].clone();
    let mut eval =
        |program: &str| text_of(&call("lisp_session_eval", json!({ "session_id": id, "program": program })));
    let keep = format!("(def r (:spill {CALL}))");
    assert!(eval(&keep).contains("[stored: r;"));
    assert_eq!(eval("[r (:lines (spill/stat r))]"), "[\"r1\" 60002]");
    // The results that a failed program has spilled are removed with it.
    assert!(eval(&format!("(def r (:spill {CALL})) (fail r)")).contains("r2"));
    assert_eq!(eval("(:lines (spill/stat r))"), "60002");
    assert!(eval("(spill/stat \"r2\")").contains("there is no kept result"));
    call("lisp_session_close", json!({ "session_id": id }));
    eventually("the result is gone", || kept_results(server.id()) == 0);
    assert_eq!(server.end(), Some(0));
}
