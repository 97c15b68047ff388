//! Per-token limits of a server over HTTP, and what operators see of them.

#![expect(clippy::unwrap_used, reason = "test helpers: what is broken should be loud")]

use ptc_tests::processes::eventually;
use ptc_tests::upstreams::{Upstreams, stdio};
use ptc_tests::web::{
    self, Browser, SessionClient, WebServer, after_a_call, program, sha256, stateless_body, stateless_headers,
};
use serde_json::{Value, json};

/// Lets programs run until they are stopped.
const ENDLESS: [&str; 4] = ["--timeout", "600s", "--fuel", "1000000000000000"];
const LOOP: &str = "(loop [] (recur))";

fn authorization(token: &str) -> String {
    format!("Bearer {}", token.repeat(32))
}

/// A token file; each entry has further keys.
fn tokens(entries: &[(&str, &str)]) -> tempfile::NamedTempFile {
    let table = |(name, more): &(&str, &str)| {
        format!("[{name}]\nsha256 = \"{}\"\n{more}\n", sha256(&name.repeat(32)))
    };
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), entries.iter().map(table).collect::<String>()).unwrap();
    file
}

/// Sends a program over a new connection without waiting.
fn post(server: &WebServer, token: &str, text: &str) -> Browser {
    let authorization = authorization(token);
    let mut headers = stateless_headers("tools/call", "lisp_eval");
    headers.extend([("Authorization", &*authorization), ("Accept", "application/json")]);
    let mut browser = server.connect();
    browser.send("POST", &headers, &stateless_body(1, "tools/call", program(text)));
    browser
}

fn number(server: &WebServer, token: &str, name: &str) -> u64 {
    let authorization = authorization(token);
    let numbers = server.connect().at("/metrics").ask("GET", &[("Authorization", &authorization)], "").body;
    let line = numbers.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name}: {numbers}")).parse().unwrap()
}

fn text_of(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap()
}

#[test]
fn who_floods_waits_by_the_limits_of_their_token_and_others_do_not() {
    let file = tokens(&[("a", "max_concurrent = 1"), ("b", "")]);
    let path = file.path().to_str().unwrap();
    let flags = ["--http-tokens", path, "--http-metrics", "--http-max-queued-per-owner", "1"];
    let config = Upstreams::probe().write();
    let server = WebServer::start(&config.flags(&[&flags[..], &ENDLESS].concat()));
    let theirs = authorization("a");
    let mut headers = stateless_headers("tools/call", "lisp_eval");
    headers.push(("Authorization", &theirs));
    let running = web::begin(&server, &headers, &stateless_body(1, "tools/call", after_a_call(LOOP)));
    // A program that does not end at once.
    let mut waiting = post(&server, "a", "(count (range 100000))");
    eventually("the next one waits", || number(&server, "b", "ptc_queued_calls") == 1);
    let busy = post(&server, "a", "(count (range 100001))").answer();
    assert_eq!((busy.status, busy.header("retry-after")), (200, Some("1")), "{busy:?}");
    let told = busy.json();
    assert!(
        text_of(&told).contains("busy") && text_of(&told).contains("http-max-queued-per-owner"),
        "{told}"
    );
    assert_eq!(text_of(&post(&server, "b", "(count (range 100000))").answer().json()), "100000");
    // A closed connection frees its slot for the next call.
    drop(running);
    assert_eq!(text_of(&waiting.answer().json()), "100000");
}

#[test]
fn sessions_are_bounded_and_end_with_their_calls() {
    let flags = ["--http-max-sessions-per-owner", "1", "--http-max-sessions", "2"];
    let file = tokens(&[("a", ""), ("b", ""), ("c", "")]);
    let flags = [&flags[..], &["--http-tokens", file.path().to_str().unwrap()], &ENDLESS].concat();
    let config = Upstreams::probe().write();
    let server = WebServer::start(&config.flags(&flags));
    let begin = |token: &str| {
        let authorization = authorization(token);
        SessionClient::begin(&server, "2025-11-25", &[("Authorization", &authorization)])
    };
    let refused = |token: &str| {
        let authorization = authorization(token);
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        let body = json!({ "jsonrpc": "2.0", "id": 7, "method": "initialize", "params": params }).to_string();
        let answer = server.ask("POST", &[("Authorization", &authorization)], &body);
        (answer.status, answer.json())
    };
    let mut first = begin("a");
    let body = first.body("tools/call", after_a_call(LOOP));
    let (mut running, running_head) = web::begin(&server, &first.headers(), &body);
    let (status, body) = refused("a");
    assert_eq!((status, &body["error"]["code"], &body["id"]), (429, &json!(-32000), &json!(7)), "{body}");
    let second = begin("b");
    let (status, body) = refused("c");
    assert_eq!((status, &body["error"]["message"]), (503, &json!("server saturated")));
    assert_eq!(server.get("/ready").status, 503);
    // A session of one token does not exist for another.
    let mut foreign = second.headers();
    foreign.retain(|(name, _)| *name != "Authorization");
    let theirs = authorization("a");
    foreign.push(("Authorization", &theirs));
    assert_eq!(server.ask("DELETE", &foreign, "").status, 404);
    // Deleting a session ends its calls and its listening stream.
    let mut listening = server.connect();
    listening.send("GET", &first.headers(), "");
    let head = listening.head().unwrap();
    listening.until(&head, "id: ");
    assert_eq!(server.ask("DELETE", &first.headers(), "").status, 204);
    running.until(&running_head, "cancelled");
    while listening.piece(&head).is_some() {}
    eventually("it is ready again", || server.get("/ready").status == 200);
    begin("a");
}

#[test]
fn the_session_that_has_been_idle_for_longest_gives_way() {
    let config = Upstreams::probe().write();
    let server = WebServer::start(&config.flags(
        &[&["--http-max-sessions", "2", "--http-max-sessions-per-owner", "2"], &ENDLESS[..]].concat(),
    ));
    let begin = || SessionClient::begin(&server, "2025-11-25", &[]);
    let ping = |client: &mut SessionClient| client.ask(&server, "ping", json!({})).status;
    let (mut first, mut second) = (begin(), begin());
    // There is room for any client: an idle session gives way, once its last request is over.
    eventually("both are idle", || server.get("/ready").status == 200);
    assert_eq!((ping(&mut second), ping(&mut first)), (200, 200));
    let mut third = begin();
    assert_eq!((ping(&mut first), ping(&mut second), ping(&mut third)), (200, 404, 200));
    // One with a call or a stream does not.
    let body = first.body("tools/call", after_a_call(LOOP));
    let _running = web::begin(&server, &first.headers(), &body);
    let mut listening = server.connect();
    listening.send("GET", &third.headers(), "");
    let head = listening.head().unwrap();
    listening.until(&head, "id: ");
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let body = json!({ "jsonrpc": "2.0", "id": 7, "method": "initialize", "params": params }).to_string();
    let refused = server.ask("POST", &[], &body);
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")), "{refused:?}");
    drop(listening);
    eventually("the stream has ended", || server.ask("POST", &[], &body).status == 200);
    assert_eq!(ping(&mut first), 200);
}

#[test]
fn an_answer_that_takes_long_becomes_a_stream() {
    let server = WebServer::start(&ENDLESS);
    let mut client = SessionClient::begin(&server, "2025-11-25", &[]);
    let mut waiting = server.connect();
    let body = client.body("tools/call", program(LOOP));
    waiting.send("POST", &client.headers(), &body);
    let head = waiting.head().unwrap();
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")), "{head:?}");
    let id = serde_json::from_str::<Value>(&body).unwrap()["id"].clone();
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
    assert_eq!(server.ask("POST", &client.headers(), &cancel.to_string()).status, 202);
    assert!(waiting.until(&head, "\"id\"").contains("cancelled"));
    // A GET is answered with an event stream only.
    let mut headers = client.headers();
    headers.push(("Accept", "application/json"));
    assert_eq!(server.ask("GET", &headers, "").status, 406);
}

#[test]
fn who_guesses_tokens_is_refused_for_a_while_only() {
    let server = WebServer::start(&[
        "--http-auth-token",
        &"t".repeat(32),
        "--http-auth-rate-limit-max-failures",
        "2",
        "--http-auth-rate-limit-block",
        "1s",
    ]);
    let guess = || server.ask("POST", &[("Authorization", "Bearer wrong")], "{}").status;
    assert_eq!(guess(), 401);
    eventually("too many", || guess() == 429);
    eventually("it may try again", || guess() == 401);
}

#[test]
fn origins_that_are_allowed_are_the_only_ones() {
    let server = WebServer::start(&["--http-allowed-origin", "https://app.example,https://other.example"]);
    let from = |origin: &str| server.ask("POST", &[("Origin", origin)], "{").status;
    assert_eq!([from("https://app.example"), from("https://other.example:443")], [400, 400]);
    for foreign in ["http://app.example", "https://app.example.evil.example", "http://localhost", "null", ""]
    {
        assert_eq!(from(foreign), 403, "{foreign}");
    }
    let twice = [("Origin", "https://app.example"), ("Origin", "https://evil.example")];
    assert_eq!(server.ask("POST", &twice, "{").status, 403);
}

#[test]
fn a_server_is_not_ready_before_those_that_it_needs() {
    let config = Upstreams::default().add("slow", stdio("sleep", &["600"])).write();
    let server = WebServer::start(&config.flags(&[]));
    assert_eq!(server.get("/health").status, 200);
    let ready = server.get("/ready");
    assert_eq!((ready.status, &ready.json()["status"]), (503, &json!("starting")));
}

#[test]
fn numbers_are_those_of_the_documentation_and_few() {
    let file = tokens(&[("a", "")]);
    let config = Upstreams::probe().write();
    let path = file.path().to_str().unwrap();
    let flags = ["--http-tokens", path, "--http-metrics", "--log-level", "info", "--timeout", "120s"];
    let server = WebServer::start(&config.flags(&flags));
    let call = r#"(:value (tool/call {:server "probe" :tool "echo" :args {:v 1}}))"#;
    assert_eq!(text_of(&post(&server, "a", call).answer().json()), "1");
    // Invented names are not stored.
    for number in 0..100 {
        assert_eq!(server.ask(&format!("METHOD{number}"), &[], "").status, 401);
        let tool = format!("tool-{number}");
        let token = authorization("a");
        let mut headers = stateless_headers("tools/call", &tool);
        headers.push(("Authorization", &token));
        let body = stateless_body(1, "tools/call", json!({ "name": tool, "arguments": {} }));
        server.ask("POST", &headers, &body);
        let text = format!("(tool/call {{:server \"nobody-{number}\" :tool \"x\" :args {{}}}})");
        post(&server, "a", &text).answer();
    }
    let token = authorization("a");
    let numbers = server.connect().at("/metrics").ask("GET", &[("Authorization", &token)], "").body;
    for made_up in ["METHOD", "tool-1", "nobody"] {
        assert!(!numbers.contains(made_up), "{made_up}: {numbers}");
    }
    assert!(numbers.contains(r#"ptc_http_requests_total{method="other",status="401"} 100"#), "{numbers}");
    let documented = std::fs::read_to_string(ptc_tests::workspace().join("docs/deploy.md")).unwrap();
    let names: Vec<&str> = documented
        .split('`')
        .filter(|word| word.starts_with("ptc_"))
        .map(|word| word.split('{').next().unwrap())
        .collect();
    assert!(names.len() > 10, "{names:?}");
    for name in names {
        assert!(numbers.contains(name), "{name}: {numbers}");
    }
    // The log names the owner of a request, never the token.
    let mut log = Vec::new();
    eventually("the log names the token", || {
        log.extend(server.log());
        log.iter().any(|line| line.contains("http_request_stop") && line.contains("\"token\":\"a\""))
    });
    let secrets = ["a".repeat(32), sha256(&"a".repeat(32))];
    assert!(!log.iter().any(|line| secrets.iter().any(|secret| line.contains(secret.as_str()))), "{log:?}");
}
