//! Event streams over HTTP, tokens with limits, metrics for Prometheus, and shutdown.

use ptc_tests::processes::eventually;
use ptc_tests::upstreams::{Upstreams, probes};
use ptc_tests::web::{
    self, Answer, Browser, SessionClient, WebServer, after_a_call, program, sha256, stateless_body,
    stateless_headers,
};
use serde_json::{Value, json};

const CALLS: &str =
    r#"(mapv (fn [n] (:value (tool/call {:server "probe" :tool "echo" :args {:v n}}))) (range 3))"#;

#[test]
fn progress_and_log_messages_make_an_answer_a_stream() {
    let config = Upstreams::probe().write();
    let server = WebServer::start(&config.flags(&["--timeout", "120s"]));
    let mut params = program(CALLS);
    params["_meta"] = json!({ "progressToken": "p", "io.modelcontextprotocol/logLevel": "debug" });
    let body = stateless_body(7, "tools/call", params);
    let mut headers = stateless_headers("tools/call", "lisp_eval");
    let answer = server.ask("POST", &headers, &body);
    let events = answer.events();
    assert_eq!(answer.header("x-accel-buffering"), Some("no"));
    let methods: Vec<&str> = events.iter().filter_map(|event| event["method"].as_str()).collect();
    assert!(
        methods.contains(&"notifications/progress") && methods.contains(&"notifications/message"),
        "{events:?}"
    );
    assert_eq!(events.last().unwrap()["id"], 7, "the answer is the last event: {events:?}");
    // A client that does not accept streams gets the answer alone.
    headers.push(("Accept", "application/json"));
    let alone = server.ask("POST", &headers, &body).json();
    assert_eq!(alone["result"]["content"][0]["text"], "[0 1 2]", "{alone}");
}

#[test]
fn who_listens_hears_of_other_tools_also_after_coming_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("upstreams.json");
    let write = |names: &[&str]| std::fs::write(&path, probes(names)).unwrap();
    write(&["a"]);
    let server = WebServer::start(&[
        "--upstreams-config",
        path.to_str().unwrap(),
        "--timeout",
        "120s",
        "--config-reload",
        "watch",
    ]);
    let mut client = SessionClient::begin(&server, "2025-11-25", &[]);
    client.ask(&server, "tools/list", json!({}));
    let mut listener = server.connect();
    listener.send("GET", &client.headers(), "");
    let head = listener.head().unwrap();
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")), "{head:?}");
    let first = listener.until(&head, "id: ");
    // A second stream of the session has ids of its own.
    let mut second = server.connect();
    second.send("GET", &client.headers(), "");
    let second_head = second.head().unwrap();
    assert_ne!(second.until(&second_head, "id: "), first);
    let mut subscriber = server.connect();
    let listen =
        stateless_body(5, "subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }));
    subscriber.send("POST", &stateless_headers("subscriptions/listen", ""), &listen);
    let subscribed = subscriber.head().unwrap();
    subscriber.until(&subscribed, "notifications/subscriptions/acknowledged");

    write(&["a", "b"]);
    // Of two streams only the newer one is notified; after it has closed, the other one.
    second.until(&second_head, "notifications/tools/list_changed");
    drop(second);
    let told = subscriber.until(&subscribed, "notifications/tools/list_changed");
    assert!(told.contains("\"io.modelcontextprotocol/subscriptionId\":5"), "{told}");

    // The server takes a moment to notice the closed stream.
    std::thread::sleep(std::time::Duration::from_millis(700));
    write(&["a"]);
    let changed = listener.until(&head, "notifications/tools/list_changed");
    assert_eq!(changed.matches("list_changed").count(), 1, "{changed}");

    // A client that resumes from the first id has missed that notification, and receives it at once.
    let id = first.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().to_owned();
    let mut again = server.connect();
    let mut headers = client.headers();
    headers.push(("Last-Event-ID", &id));
    again.send("GET", &headers, "");
    let head = again.head().unwrap();
    again.until(&head, "notifications/tools/list_changed");

    // The orderly end of a subscription is its answer.
    server.terminate();
    assert!(subscriber.until(&subscribed, "\"id\":5").contains("\"resultType\":\"complete\""));
    assert_eq!(server.ended(), Some(0));
}

/// Begins a program that has called a tool before it runs `rest`.
fn begin(server: &WebServer, rest: &str) -> (Browser, Answer) {
    let body = stateless_body(1, "tools/call", after_a_call(rest));
    web::begin(server, &stateless_headers("tools/call", "lisp_eval"), &body)
}

#[test]
fn requests_in_flight_are_answered_before_the_end_and_others_told() {
    let config = Upstreams::probe().write();
    let server = WebServer::start(&config.flags(&[
        "--timeout",
        "600s",
        "--fuel",
        "1000000000000000",
        "--http-shutdown-grace",
        "3s",
    ]));
    let mut late = server.connect();
    let (mut endless, endless_head) = begin(&server, "(loop [] (recur))");
    let (mut working, working_head) = begin(&server, "(reduce + (range 200000))");
    server.terminate();
    eventually("it drains", || server.get("/ready").json()["status"] == "draining");
    let headers = stateless_headers("tools/call", "lisp_eval");
    let told = late.ask("POST", &headers, &stateless_body(2, "tools/call", program("1")));
    assert_eq!((told.status, &told.json()["error"]["code"]), (503, &json!(-32000)));
    assert_eq!(told.header("connection"), Some("close"));
    working.until(&working_head, "19999900000");
    // Calls still in flight at the end get an error; none is dropped silently.
    endless.until(&endless_head, "\"code\":-32000");
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn tokens_of_a_file_have_limits_and_may_change() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.toml");
    let hash_of = |text: &str| sha256(&text.repeat(32));
    let write = |entries: &str| std::fs::write(&path, entries).unwrap();
    let entry = |name: &str, more: &str| format!("[{name}]\nsha256 = \"{}\"\n{more}\n", hash_of(name));
    write(&format!(
        "{}{}{}",
        entry("a", ""),
        entry("b", "evals_per_minute = 2"),
        entry("c", "expires = 2020-01-01")
    ));
    let server = WebServer::start(&[
        "--http-tokens",
        path.to_str().unwrap(),
        "--sessions",
        "--http-auth-rate-limit",
        "false",
    ]);
    let call = |name: &str, tool: &str, arguments: Value| {
        let authorization = format!("Bearer {}", name.repeat(32));
        let mut headers = stateless_headers("tools/call", tool);
        headers.push(("Authorization", &authorization));
        let params = json!({ "name": tool, "arguments": arguments });
        server.ask("POST", &headers, &stateless_body(1, "tools/call", params))
    };
    let one = |name: &str| call(name, "lisp_eval", json!({ "program": "1" }));
    assert_eq!([one("a").status, one("c").status, one("d").status], [200, 401, 401]);
    for _ in 0..2 {
        assert_eq!(one("b").json()["result"]["isError"], false);
    }
    let busy = one("b");
    assert_eq!((busy.status, busy.header("retry-after")), (200, Some("30")), "{busy:?}");
    let text = busy.json()["result"]["content"][0]["text"].to_string();
    assert!(text.contains("busy") && text.contains("evals_per_minute"), "{text}");
    // Another token does not see what this one owns.
    let started = call("a", "lisp_session_start", json!({})).json();
    let session = started["result"]["structuredContent"]["session_id"].clone();
    write(&format!("{}{}", entry("a", ""), entry("b", "")));
    eventually("the file is read again", || one("b").json()["result"]["isError"] == false);
    let close = |name: &str| call(name, "lisp_session_close", json!({ "session_id": session })).json();
    assert_eq!(close("b")["result"]["structuredContent"]["reason"], "session_not_found");
    assert_eq!(close("a")["result"]["structuredContent"]["closed"], true);
    write("[a]\nsha256 = 7");
    eventually("the log says what is wrong", || {
        server.log().iter().any(|line| line.contains("are not used"))
    });
    assert_eq!(one("a").status, 200);
}

#[test]
fn numbers_and_names_of_requests() {
    let config = Upstreams::probe().write();
    let server =
        WebServer::start(&config.flags(&["--http-metrics", "--timeout", "120s", "--log-level", "info"]));
    let headers = stateless_headers("tools/call", "lisp_eval");
    let mut named = headers.clone();
    named.push(("X-Request-Id", "my-request"));
    let answer = server.ask("POST", &named, &stateless_body(1, "tools/call", program(CALLS)));
    assert_eq!(answer.header("x-request-id"), Some("my-request"));
    let other = server.ask("POST", &headers, &stateless_body(1, "tools/call", program("(fail 1)")));
    assert!(other.header("x-request-id").is_some_and(|name| !name.is_empty()));
    let numbers = server.get("/metrics").body;
    for line in [
        r#"ptc_calls_total{tool="lisp_eval",reason="ok"} 1"#,
        r#"ptc_upstream_calls_total{server="probe",reason="ok"} 3"#,
        r#"ptc_http_requests_total{method="POST",status="200"} 2"#,
        "ptc_http_sessions 0",
        "# EOF",
    ] {
        assert!(numbers.contains(line), "{line}\n{numbers}");
    }
    eventually("the log names the request", || {
        server.log().iter().any(|line| line.contains("http_request_stop") && line.contains("my-request"))
    });
}
