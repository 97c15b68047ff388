//! Upstream requests over HTTP: forwarded only to the client with calls in flight.

use ptc_tests::processes::eventually;
use ptc_tests::serve::text_of;
use ptc_tests::tasking::Tasking;
use ptc_tests::upstreams::Upstreams;
use ptc_tests::web::{Answer, Browser, SessionClient, WebServer};
use serde_json::{Value, json};

const FORM: &str = r#"(:value (tool/call 'probe/ask {:message "Delete it?"
    :requestedSchema {:type "object" :properties {:sure {:type "boolean"}}} :secret 1}))"#;

fn serve(upstreams: Upstreams, timeout: &str, flags: &[&str]) -> WebServer {
    let config = upstreams.write();
    let flags = [&["--timeout", timeout, "--upstream-call-timeout", "120s"], flags].concat();
    WebServer::start(&config.flags(&flags))
}

fn client(server: &WebServer, capabilities: Value) -> SessionClient {
    SessionClient::offering(server, "2025-11-25", &capabilities, &[])
}

/// A program in flight.
struct Running(Browser, Answer);

impl Running {
    fn begin(client: &mut SessionClient, server: &WebServer, program: &str) -> Running {
        let mut browser = client.begin_program(server, program);
        let head = browser.head().expect("an answer");
        Running(browser, head)
    }

    /// The next request for the client.
    fn next(&mut self) -> Value {
        let Running(browser, head) = self;
        match head.header("content-type") {
            Some("text/event-stream") => browser.event(head).expect("one more message"),
            _ => serde_json::from_str(&browser.piece(head).expect("a body")).expect("JSON"),
        }
    }

    fn text(&mut self) -> String {
        text_of(&self.next()["result"])
    }
}

fn text(client: &mut SessionClient, server: &WebServer, program: &str) -> String {
    Running::begin(client, server, program).text()
}

/// Waits until a call of another client is in flight at the probe.
fn until_somebody_calls(client: &mut SessionClient, server: &WebServer) {
    eventually("another call", || {
        text(client, server, "(get (:value (tool/call 'probe/stats {})) :most_in_flight)") == "2"
    });
}

#[test]
fn a_form_reaches_the_client_that_calls_and_its_answer_the_server() {
    let server = serve(Upstreams::probe(), "120s", &[]);
    for version in ["2025-06-18", "2025-11-25"] {
        let mut client = SessionClient::offering(&server, version, &json!({ "elicitation": {} }), &[]);
        for (said, want) in [
            (
                json!({ "result": { "action": "accept", "content": { "sure": true } } }),
                r#"[{"action" "accept" "content" {"sure" true}} nil]"#,
            ),
            (json!({ "result": { "action": "decline" } }), r#"[{"action" "decline"} nil]"#),
            (
                json!({ "error": { "code": -1, "message": "no person is here" } }),
                r#"[nil "no person is here"]"#,
            ),
        ] {
            let mut run = Running::begin(&mut client, &server, FORM);
            let request = run.next();
            assert_eq!(request["method"], "elicitation/create", "{request}");
            let form = json!({ "message": "probe: Delete it?",
                "requestedSchema": { "type": "object", "properties": { "sure": { "type": "boolean" } } } });
            assert_eq!(request["params"], form);
            assert_eq!(client.respond(&server, &request, &said), 202);
            assert_eq!(run.text(), want);
        }
    }
}

/// A server of 2026-07-28 asks in the answer to a call, or in its task.
#[test]
fn a_question_in_an_answer_or_a_task_reaches_the_client_that_calls() {
    for (when, name) in [("ask-first", "q0"), ("ask", "q1")] {
        let folder = tempfile::tempdir().expect("a folder");
        let tasking = Tasking::start(folder.path(), &["extension", when]);
        std::fs::write(folder.path().join("log.done"), "").expect("a file");
        let server = serve(Upstreams::default().add("job", tasking.entry()), "120s", &[]);
        let mut other = client(&server, json!({ "elicitation": {} }));
        assert_eq!(text(&mut other, &server, "1"), "1");
        let mut asked = client(&server, json!({ "elicitation": {} }));
        let mut run = Running::begin(&mut asked, &server, "(tool/call! 'job/work {:k 1})");
        let request = run.next();
        assert_eq!(request["method"], "elicitation/create", "{when}: {request}");
        assert_eq!(request["params"]["message"], "job: Go on?");
        let answer = json!({ "action": "accept", "content": { "sure": true } });
        assert_eq!(asked.respond(&server, &request, &json!({ "result": answer })), 202);
        assert_eq!(run.text(), "1");
        let log = std::fs::read_to_string(folder.path().join("log")).expect("a log");
        let told = format!("{{\"{name}\": {{\"action\": \"accept\", \"content\": {{\"sure\": true}}}}}}");
        assert!(log.contains(&told), "{log}");
    }
}

#[test]
fn roots_reach_the_server_whose_calls_are_all_of_one_owner() {
    let server = serve(Upstreams::probe(), "120s", &[]);
    let mut client = client(&server, json!({ "roots": {} }));
    let mut run = Running::begin(&mut client, &server, "(:value (tool/call 'probe/roots {}))");
    let request = run.next();
    assert_eq!(request["method"], "roots/list", "{request}");
    client.respond(&server, &request, &json!({ "result": { "roots": [{ "uri": "file:///work" }] } }));
    assert_eq!(run.text(), r#"[{"roots" [{"uri" "file:///work"}]} nil]"#);
}

#[test]
fn what_nobody_can_be_asked_is_declined_and_the_log_says_so() {
    let server = serve(Upstreams::probe(), "120s", &[]);
    let mut mute = client(&server, json!({ "elicitation": { "url": {} }, "roots": {} }));
    let declined = text(&mut mute, &server, FORM);
    assert_eq!(declined, r#"[nil "the client whose call is under way does not offer this"]"#);

    // Two clients have calls in flight, so the request could be for either of them.
    let mut able = client(&server, json!({ "elicitation": {} }));
    let held = mute.begin_program(&server, "(tool/call 'probe/hold {})");
    until_somebody_calls(&mut able, &server);
    let declined = text(&mut able, &server, FORM);
    assert!(declined.contains("calls of several clients are under way"), "{declined}");
    drop(held);
    eventually("the other call has ended", || {
        text(&mut able, &server, "(get (:value (tool/call 'probe/stats {})) :cancelled)") == "1"
    });

    // Two calls of one client count as one client. The request goes to the call that began last, which is not the
    // held one.
    let held = able.begin_program(&server, "(tool/call 'probe/hold {})");
    eventually("another call is under way", || {
        text(&mut able, &server, "(get (:value (tool/call 'probe/stats {})) :in_flight)") == "2"
    });
    let mut declined = 2;
    eventually("a question", || {
        let mut run = Running::begin(&mut able, &server, FORM);
        let request = run.next();
        if request["method"].is_null() {
            // Its server has seen the end of the other client's call; only then does `ptc` forget that call.
            declined += 1;
            return false;
        }
        able.respond(&server, &request, &json!({ "result": { "action": "cancel" } }));
        assert_eq!(run.text(), r#"[{"action" "cancel"} nil]"#);
        true
    });
    drop(held);
    let log = server.log();
    let told = log.iter().filter(|line| line.contains("a request of the server was declined"));
    assert_eq!(told.count(), declined, "{log:?}");
}

#[test]
fn only_the_client_that_was_asked_answers_and_once() {
    let server = serve(Upstreams::probe(), "120s", &[]);
    let mut asked = client(&server, json!({ "elicitation": {} }));
    let other = client(&server, json!({ "elicitation": {} }));
    let mut run = Running::begin(&mut asked, &server, FORM);
    let request = run.next();
    let answer = |action: &str| json!({ "result": { "action": action } });
    assert_eq!(other.respond(&server, &request, &answer("accept")), 202);
    let mut forged = request.clone();
    forged["id"] = json!("ptc-1-2");
    assert_eq!(asked.respond(&server, &forged, &answer("accept")), 202);
    assert_eq!(asked.respond(&server, &request, &answer("decline")), 202);
    assert_eq!(asked.respond(&server, &request, &answer("accept")), 202);
    assert_eq!(run.text(), r#"[{"action" "decline"} nil]"#);
}

#[test]
fn a_client_that_goes_or_says_nothing_ends_the_question_only() {
    let server = serve(Upstreams::probe(), "8s", &[]);
    let mut gone = client(&server, json!({ "elicitation": {} }));
    let mut run = Running::begin(&mut gone, &server, FORM);
    run.next();
    drop(run);
    let mut silent = client(&server, json!({ "elicitation": {} }));
    // Until the server knows that one client has gone, two clients have calls in flight.
    let (mut run, request) = loop {
        let mut run = Running::begin(&mut silent, &server, &FORM.replace(":value", ":reason"));
        let message = run.next();
        if message["method"] == "elicitation/create" {
            break (run, message);
        }
    };
    // The deadline of the run is also the deadline of its request.
    assert!(run.next()["method"] == "notifications/cancelled" || run.0.piece(&run.1).is_none());
    assert_eq!(silent.respond(&server, &request, &json!({ "result": { "action": "accept" } })), 202);
    assert_eq!(text(&mut silent, &server, "(+ 1 2)"), "3");
}

#[test]
fn questions_without_end_and_answers_without_end_are_bounded() {
    let server = serve(Upstreams::probe(), "120s", &[]);
    let mut client = client(&server, json!({ "elicitation": {} }));
    let mut run = Running::begin(&mut client, &server, "(:value (tool/call 'probe/pester {}))");
    let pestered = loop {
        let message = run.next();
        if message["method"] != "elicitation/create" {
            break text_of(&message["result"]);
        }
        client.respond(&server, &message, &json!({ "result": { "action": "accept", "content": {} } }));
    };
    assert_eq!(pestered, r#"[101 "the client was asked too often in one call"]"#);

    let mut run = Running::begin(&mut client, &server, FORM);
    let request = run.next();
    let huge = json!({ "result": { "action": "accept", "content": { "text": "x".repeat(300_000) } } });
    assert_eq!(client.respond(&server, &request, &huge), 202);
    assert_eq!(run.text(), r#"[nil "the answer of the client is too large to be passed on"]"#);
}

#[test]
fn questions_hold_no_secrets_and_are_answered_at_the_end_of_the_server() {
    let secret = "correct-horse-battery-staple-9";
    let mut probe = ptc_tests::upstreams::probe_server(&[]);
    probe["env"] = json!({ "API_KEY": secret });
    let server = serve(Upstreams::default().add("probe", probe), "120s", &["--http-shutdown-grace", "60s"]);
    let mut client = client(&server, json!({ "elicitation": {} }));
    let program = FORM.replace("Delete it?", secret);
    let mut run = Running::begin(&mut client, &server, &program);
    let request = run.next();
    assert!(!request.to_string().contains(secret), "{request}");
    client.respond(&server, &request, &json!({ "result": { "action": "cancel" } }));
    run.text();

    // A call in flight at shutdown may still ask and be answered; no new call begins.
    let mut run = Running::begin(&mut client, &server, &format!("[{FORM} {FORM}]"));
    let first = run.next();
    server.terminate();
    eventually("it drains", || server.get("/ready").json()["status"] == "draining");
    let answer = json!({ "result": { "action": "decline" } });
    assert_eq!(client.ask(&server, "tools/list", json!({})).status, 503);
    assert_eq!(client.respond(&server, &first, &answer), 202);
    let second = run.next();
    assert_eq!(client.respond(&server, &second, &answer), 202);
    assert_eq!(run.text(), r#"[[{"action" "decline"} nil] [{"action" "decline"} nil]]"#);
    assert_eq!(server.ended(), Some(0));
}
