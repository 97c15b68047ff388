//! W3C Trace Context passes from clients to upstream servers, to the log and to records, and is absent if no client
//! sent it.

#![expect(clippy::unwrap_used, reason = "test helpers: what is broken should be loud")]

use ptc_tests::binary::ptc;
use ptc_tests::processes::eventually;
use ptc_tests::upstreams::{Upstreams, probe_server};
use ptc_tests::web::{SessionClient, WebServer, stateless_body, stateless_headers};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

const HEADER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const OWN: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
const STATE: &str = "rojo=00f067aa0ba902b7, congo=\"a\\b\"";

/// Starts servers that answer each call with the trace context they received: over MCP with a handshake, and as a
/// plain service.
fn telltale() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || tell(stream));
        }
    });
    format!("http://{address}")
}

fn tell(stream: TcpStream) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).is_ok_and(|read| read > 0) {
                match line.trim_end() {
                    "" => break,
                    line => head.push(line.to_owned()),
                }
            } else {
                return;
            }
        }
        let header = |name: &str| {
            head.iter().find_map(|line| {
                let (known, value) = line.split_once(':')?;
                known.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
            })
        };
        let length = header("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let headers = json!({ "parent": header("traceparent"), "state": header("tracestate") });
        let message: Value = serde_json::from_slice(&body).unwrap_or_default();
        let told = json!({ "headers": headers, "meta": message["params"]["_meta"] });
        let answer = match message["method"].as_str() {
            None if head[0].contains("/openapi.json") => json!({
                "openapi": "3.1.0", "info": { "title": "t", "version": "1" },
                "paths": { "/told": { "get": { "operationId": "told",
                    "responses": { "200": { "description": "d", "content": { "application/json": {} } } } } } },
            }),
            None => told,
            Some("initialize") => json!({ "jsonrpc": "2.0", "id": message["id"], "result": {
                "protocolVersion": "2025-11-25", "capabilities": { "tools": {} }, "serverInfo": { "name": "t", "version": "1" } } }),
            Some("tools/list") => json!({ "jsonrpc": "2.0", "id": message["id"],
                "result": { "tools": [{ "name": "told", "inputSchema": { "type": "object" } }] } }),
            Some("tools/call") => json!({ "jsonrpc": "2.0", "id": message["id"],
                "result": { "content": [], "structuredContent": told } }),
            Some(_) if message["id"].is_null() => Value::Null,
            Some(_) => {
                json!({ "jsonrpc": "2.0", "id": message["id"], "error": { "code": -32601, "message": "unknown" } })
            }
        };
        let (status, text) = match answer {
            Value::Null => ("202 Accepted", String::new()),
            answer => ("200 OK", answer.to_string()),
        };
        let length = text.len();
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{text}"
        );
        if reader.get_mut().write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn upstreams() -> Upstreams {
    let url = telltale();
    let remote = json!({ "transport": "mcp_http", "url": format!("{url}/mcp"), "allow_insecure_http": true,
        "handshake_timeout_ms": 120_000 });
    let service = json!({ "transport": "openapi", "base_url": url, "schema_url": format!("{url}/openapi.json"),
        "include_operations": ["told"], "allow_insecure_http": true, "handshake_timeout_ms": 120_000 });
    Upstreams::default().add("remote", remote).add("service", service).add("local", probe_server(&[]))
}

/// What each of them received, as JSON.
const PROGRAM: &str = r#"{:remote (:value (tool/call {:server "remote" :tool "told" :args {}}))
 :service (:value (tool/call {:server "service" :tool "told" :args {}}))
 :local (:value (tool/call {:server "local" :tool "echo" :args {:meta true}}))}"#;

fn expected(parent: Option<&str>, state: Option<&str>) -> Value {
    let headers = json!({ "parent": parent, "state": state });
    let meta = match (parent, state) {
        (None, _) => Value::Null,
        (Some(parent), None) => json!({ "traceparent": parent }),
        (Some(parent), Some(state)) => json!({ "traceparent": parent, "tracestate": state }),
    };
    json!({
        "remote": { "headers": headers, "meta": meta },
        "service": { "headers": headers, "meta": null },
        "local": meta,
    })
}

fn arguments(program: &str) -> Value {
    json!({ "program": program, "output_schema": { "type": "object" } })
}

fn value(answer: &Value) -> Value {
    let structured = &answer["result"]["structuredContent"];
    // Over HTTP, inside a session of programs, the value has a name; otherwise it stands alone.
    let value = structured.get("validated").unwrap_or(structured).clone();
    assert!(value.is_object(), "{answer}");
    value
}

#[test]
fn upstream_servers_are_told_the_trace_of_a_client() {
    let config = upstreams().write();
    let folder = tempfile::tempdir().unwrap();
    let traces = folder.path().to_str().unwrap();
    let more = ["--timeout", "120s", "--log-level", "info", "--debug-tool", "--trace-dir", traces];
    let server = WebServer::start(&config.flags(&more));
    let tool = |name: &str, arguments: Value, headers: &[(&str, &str)], meta: Value| {
        let mut all = stateless_headers("tools/call", name);
        all.extend(headers);
        let params = json!({ "name": name, "arguments": arguments, "_meta": meta });
        server.ask("POST", &all, &stateless_body(1, "tools/call", params)).json()
    };
    let call =
        |headers: &[(&str, &str)], meta: Value| value(&tool("lisp_eval", arguments(PROGRAM), headers, meta));
    assert_eq!(call(&[], json!({})), expected(None, None), "none is invented");
    let header = [("traceparent", HEADER), ("tracestate", STATE)];
    assert_eq!(call(&header, json!({})), expected(Some(HEADER), Some(STATE)));
    let split = [("traceparent", HEADER), ("tracestate", "a=1"), ("tracestate", "b=2")];
    assert_eq!(call(&split, json!({})), expected(Some(HEADER), Some("a=1,b=2")));
    let own = json!({ "traceparent": OWN });
    assert_eq!(call(&header, own), expected(Some(OWN), None), "the request knows better than a header");
    let wrong = json!({ "traceparent": 7, "tracestate": [] });
    assert_eq!(call(&header, wrong), expected(Some(HEADER), Some(STATE)));
    assert_eq!(call(&[("traceparent", "00-0-0-0"), ("tracestate", STATE)], json!({})), expected(None, None));
    assert_eq!(
        call(&[("traceparent", HEADER), ("traceparent", OWN)], json!({})),
        expected(None, None),
        "two are none"
    );
    assert_eq!(
        call(&[("traceparent", HEADER), ("tracestate", "=")], json!({})),
        expected(Some(HEADER), None)
    );
    // In an MCP session as well, where each request has its own trace.
    let mut client = SessionClient::begin(&server, "2025-11-25", &[]);
    let params =
        json!({ "name": "lisp_eval", "arguments": arguments(PROGRAM), "_meta": { "traceparent": OWN } });
    assert_eq!(value(&client.ask(&server, "tools/call", params).json()), expected(Some(OWN), None));
    let params = json!({ "name": "lisp_eval", "arguments": arguments(PROGRAM) });
    assert_eq!(value(&client.ask(&server, "tools/call", params).json()), expected(None, None));
    // Also in the log and in records.
    let trace_id = &OWN[3..35];
    let mut log = Vec::new();
    eventually("the log names the trace", || {
        log.extend(server.log());
        log.iter().any(|line| line.contains("http_request_stop") && line.contains(trace_id))
    });
    let debug = tool("lisp_debug", json!({ "op": "recent" }), &[], json!({}));
    assert!(debug.to_string().contains(OWN), "{debug}");
    eventually("a trace is written", || {
        std::fs::read_dir(folder.path())
            .unwrap()
            .filter_map(|entry| std::fs::read_to_string(entry.unwrap().path()).ok())
            .any(|text| {
                text.lines().count() > 3
                    && text.lines().all(|line| {
                        serde_json::from_str::<Value>(line).is_ok_and(|line| line["trace_id"] == trace_id)
                    })
            })
    });
}

#[test]
fn every_tool_that_calls_servers_says_the_trace() {
    let config = upstreams().write();
    let server = WebServer::start(&config.flags(&[
        "--timeout",
        "120s",
        "--tools",
        "lisp_eval,proxy-dispatch",
        "--sessions",
    ]));
    let call = |name: &str, arguments: Value| {
        let mut headers = stateless_headers("tools/call", name);
        headers.push(("traceparent", HEADER));
        let params = json!({ "name": name, "arguments": arguments });
        server.ask("POST", &headers, &stateless_body(1, "tools/call", params)).json()
    };
    let session = call("lisp_session_start", json!({}))["result"]["structuredContent"]["session_id"].clone();
    let mut arguments = arguments(PROGRAM);
    arguments["session_id"] = session;
    assert_eq!(value(&call("lisp_session_eval", arguments)), expected(Some(HEADER), None));
    let listed = call(
        "proxy-dispatch",
        json!({ "action": "call", "connection": "remote", "tool": "told", "arguments": {} }),
    );
    assert!(listed.to_string().contains(HEADER), "{listed}");
}

#[test]
fn over_standard_input_requests_say_it_themselves() {
    let config = upstreams().write();
    let mut server =
        ptc_tests::serve::Server::from_command(ptc(
            &[&["serve"][..], &config.flags(&["--timeout", "120s"])].concat()
        ));
    let params = json!({ "name": "lisp_eval", "arguments": arguments(PROGRAM),
        "_meta": { "traceparent": OWN, "tracestate": STATE } });
    let answer = server.request("tools/call", params);
    assert_eq!(value(&answer), expected(Some(OWN), Some(STATE)));
}
