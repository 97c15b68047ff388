//! Upstream requests for clients without a handshake (2026-07-28), which cannot receive requests: the response to
//! their call carries the request, the program stays parked, and the repeated call resumes it.

use ptc_tests::binary::ptc;
use ptc_tests::processes::{eventually, signal};
use ptc_tests::serve::{Server, text_of};
use ptc_tests::upstreams::{ConfigFile, Upstreams, probe_server};
use ptc_tests::web::{
    Answer, WebServer, program, sha256, stateless_body, stateless_headers, stateless_params,
};
use serde_json::{Value, json};

const FORM: &str = r#"(:value (tool/call 'probe/ask {:message "Delete it?"
    :requestedSchema {:type "object" :properties {:sure {:type "boolean"}}} :secret 1}))"#;

const UNKNOWN: &str = "unknown requestState";

/// A server and its transport.
enum Way {
    Stdio(Box<Server>),
    Http(WebServer),
}

/// A client of that server.
struct Client {
    way: Way,
    _config: ConfigFile,
    capabilities: Value,
    token: Option<String>,
    next_id: u64,
}

/// Starts a client of one transport, with its upstreams, the timeout of a program, and further flags.
type Start = fn(Upstreams, &str, &[&str]) -> Client;

const TRANSPORTS: [Start; 2] = [stdio, http];

fn flags<'f>(timeout: &'f str, more: &[&'f str]) -> Vec<&'f str> {
    let flags = ["--timeout", timeout, "--upstream-call-timeout", "120s", "--catalog-snapshot-mode", "live"];
    [&flags, more].concat()
}

fn stdio(upstreams: Upstreams, timeout: &str, more: &[&str]) -> Client {
    let config = upstreams.write();
    let arguments = [&["serve"][..], &config.flags(&flags(timeout, more))].concat();
    let way = Way::Stdio(Box::new(Server::silent(ptc(&arguments))));
    Client::new(way, config)
}

fn http(upstreams: Upstreams, timeout: &str, more: &[&str]) -> Client {
    let config = upstreams.write();
    let way = Way::Http(WebServer::start(&config.flags(&flags(timeout, more))));
    Client::new(way, config)
}

impl Client {
    fn new(way: Way, config: ConfigFile) -> Client {
        Client { way, _config: config, capabilities: json!({ "elicitation": {} }), token: None, next_id: 0 }
    }

    /// The answer to a request.
    fn request(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let name = params["name"].as_str().unwrap_or_default().to_owned();
        let params = stateless_params(params, self.capabilities.clone());
        let message = json!({ "jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params });
        match &mut self.way {
            Way::Stdio(server) => {
                server.send(&message);
                loop {
                    let answer = server.receive();
                    assert!(answer["id"].is_null() || answer["method"].is_null(), "a request: {answer}");
                    if answer["id"] == self.next_id {
                        return answer;
                    }
                }
            }
            Way::Http(server) => {
                let bearer = self.token.as_ref().map(|token| format!("Bearer {token}"));
                let mut headers = stateless_headers(method, &name);
                headers.extend(bearer.as_deref().map(|bearer| ("Authorization", bearer)));
                message_of(&server.ask("POST", &headers, &message.to_string()))
            }
        }
    }

    fn call(&mut self, params: Value) -> Value {
        self.request("tools/call", params)
    }

    fn text(&mut self, text: &str) -> String {
        text_of(&self.call(program(text))["result"])
    }

    /// Makes a call that is answered with a request for input.
    fn asked(&mut self, params: &Value) -> Round {
        Round::new(params, self.call(params.clone()))
    }

    /// Answers every request until the call is over.
    fn answer_all(&mut self, mut message: Value, params: &Value) -> (Value, usize) {
        let mut answered = 0;
        while message["result"]["resultType"] == "input_required" {
            let round = Round::new(params, message);
            answered += round.names().len();
            let responses: serde_json::Map<_, _> =
                round.names().into_iter().map(|name| (name, json!({ "action": "decline" }))).collect();
            message = self.call(round.answered(Value::Object(responses)));
        }
        (message, answered)
    }
}

/// A call that was answered with a request for input.
struct Round {
    params: Value,
    result: Value,
}

impl Round {
    fn new(params: &Value, message: Value) -> Round {
        let result = message["result"].clone();
        assert_eq!(result["resultType"], "input_required", "{message}");
        assert!(result["requestState"].as_str().is_some_and(|state| state.len() > 40), "{message}");
        Round { params: params.clone(), result }
    }

    fn names(&self) -> Vec<String> {
        self.result["inputRequests"].as_object().expect("requests").keys().cloned().collect()
    }

    /// The only request.
    fn question(&self) -> &Value {
        let requests = self.result["inputRequests"].as_object().expect("requests");
        assert_eq!(requests.len(), 1, "{}", self.result);
        requests.values().next().expect("a request")
    }

    /// Repeats the call with these responses.
    fn answered(&self, responses: Value) -> Value {
        let mut params = self.params.clone();
        params["requestState"] = self.result["requestState"].clone();
        params["inputResponses"] = responses;
        params
    }

    /// Repeats the call with this response to the only request.
    fn with(&self, response: &Value) -> Value {
        self.question();
        self.answered(json!({ (&self.names()[0]): response }))
    }
}

/// The message of an answer, which is a stream if it took long.
fn message_of(answer: &Answer) -> Value {
    match answer.header("content-type") {
        Some("text/event-stream") => answer.events().pop().expect("an answer"),
        _ => answer.json(),
    }
}

fn error_of(message: &Value) -> (i64, String) {
    let error = &message["error"];
    (
        error["code"].as_i64().unwrap_or_else(|| panic!("no error: {message}")),
        error["message"].as_str().expect("a message").to_owned(),
    )
}

fn is_unknown(message: &Value) -> bool {
    let (code, text) = error_of(message);
    code == -32602 && text.contains(UNKNOWN)
}

#[test]
fn the_answer_to_a_call_asks_and_the_call_again_goes_on() {
    for start in TRANSPORTS {
        let mut client = start(Upstreams::probe(), "120s", &[]);
        // Effects of the program before the request happen once.
        let text = format!(
            "(do (tool/call 'probe/echo {{:v 1}}) [{FORM} (:calls (:value (tool/call 'probe/stats {{}})))])"
        );
        let params = program(&text);
        for (calls, said) in [
            (3, json!({ "action": "accept", "content": { "sure": true } })),
            (6, json!({ "action": "decline" })),
        ] {
            let round = client.asked(&params);
            let form = json!({ "message": "probe: Delete it?",
                "requestedSchema": { "type": "object", "properties": { "sure": { "type": "boolean" } } } });
            assert_eq!(*round.question(), json!({ "method": "elicitation/create", "params": form }));
            let over = client.call(round.with(&said));
            assert_eq!(over["result"]["resultType"], "complete", "{over}");
            let said: String = match said["content"].is_object() {
                true => r#"{"action" "accept" "content" {"sure" true}}"#.into(),
                false => r#"{"action" "decline"}"#.into(),
            };
            assert_eq!(text_of(&over["result"]), format!("[[{said} nil] {calls}]"));
        }
    }
}

#[test]
fn roots_are_asked_for_in_the_same_way() {
    for start in TRANSPORTS {
        let mut client = start(Upstreams::probe(), "120s", &[]);
        client.capabilities = json!({ "roots": {} });
        let round = client.asked(&program("(:value (tool/call 'probe/roots {}))"));
        assert_eq!(*round.question(), json!({ "method": "roots/list", "params": {} }));
        let over = client.call(round.with(&json!({ "roots": [{ "uri": "file:///work" }] })));
        assert_eq!(text_of(&over["result"]), r#"[{"roots" [{"uri" "file:///work"}]} nil]"#);
        // A client that does not declare the capability again is not asked a third time.
        let round = client.asked(&program("(:value (tool/call 'probe/roots {}))"));
        let again = Round::new(&round.params, client.call(round.answered(json!({}))));
        let over = client.call(again.answered(json!({})));
        assert_eq!(text_of(&over["result"]), r#"[nil "the client does not answer"]"#);
    }
}

#[test]
fn what_is_left_out_is_asked_once_more_and_then_cancelled() {
    for start in TRANSPORTS {
        let mut client = start(Upstreams::probe(), "120s", &[]);
        let round = client.asked(&program(FORM));
        let again = Round::new(&round.params, client.call(round.answered(json!({ "other": {} }))));
        assert_eq!(again.result["inputRequests"], round.result["inputRequests"]);
        assert_ne!(again.result["requestState"], round.result["requestState"]);
        let over = client.call(again.answered(json!({})));
        assert_eq!(text_of(&over["result"]), r#"[{"action" "cancel"} nil]"#);
    }
}

#[test]
fn two_questions_one_after_the_other_and_two_at_once() {
    for start in TRANSPORTS {
        let mut client = start(Upstreams::probe(), "120s", &[]);
        let in_turn = format!("[{FORM} {FORM}]");
        let at_once = format!("(pmap (fn [_] {FORM}) [1 2])");
        for text in [in_turn, at_once] {
            let params = program(&text);
            let message = client.call(params.clone());
            let (over, answered) = client.answer_all(message, &params);
            assert_eq!(answered, 2);
            assert_eq!(
                text_of(&over["result"]),
                r#"[[{"action" "decline"} nil] [{"action" "decline"} nil]]"#
            );
        }
    }
}

#[test]
fn a_state_is_good_once_for_its_own_call() {
    for start in TRANSPORTS {
        let mut client = start(Upstreams::probe(), "120s", &[]);
        let round = client.asked(&program(FORM));
        let accept = json!({ "action": "accept", "content": {} });
        let state = round.result["requestState"].as_str().unwrap().to_owned();
        for wrong in ["", "x", &state[1..], &format!("{state}A"), &state.to_lowercase()] {
            let mut tampered = round.with(&accept);
            tampered["requestState"] = wrong.into();
            assert!(is_unknown(&client.call(tampered)), "{wrong}");
        }
        let mut other = round.with(&accept);
        other["arguments"]["program"] = "(+ 1 2)".into();
        let (code, text) = error_of(&client.call(other));
        assert!(code == -32602 && text.contains("belongs to another call"), "{text}");
        // A malformed response does not use up the request.
        for (key, wrong) in
            [("requestState", json!(7)), ("inputResponses", json!([])), ("inputResponses", json!({ "a": 1 }))]
        {
            let mut broken = round.with(&accept);
            broken[key] = wrong;
            let (code, text) = error_of(&client.call(broken));
            assert!(code == -32602 && text.contains(key), "{text}");
        }
        let over = client.call(round.with(&accept));
        assert_eq!(text_of(&over["result"]), r#"[{"action" "accept" "content" {}} nil]"#);
        assert!(is_unknown(&client.call(round.with(&accept))));
    }
}

#[test]
fn a_call_is_known_by_its_arguments_however_they_are_written_and_however_deep() {
    let nested = |depth: usize, inner: &str| (0..depth).fold(json!(inner), |value, _| json!([value]));
    for start in TRANSPORTS {
        let mut client = start(Upstreams::probe(), "120s", &[]);
        let accept = json!({ "action": "accept", "content": {} });
        let told = r#"[{"action" "accept" "content" {}} nil]"#;
        let with = |context: Value| {
            let mut params = program(FORM);
            params["arguments"]["context"] = context;
            params
        };
        // The same values in another order.
        let round = client.asked(&with(json!({ "a": 1, "b": { "c": 2, "d": [3] } })));
        let mut again = round.with(&accept);
        again["arguments"] = json!({ "context": { "b": { "d": [3], "c": 2 }, "a": 1 }, "program": FORM });
        assert_eq!(text_of(&client.call(again)["result"]), told);
        // Other values, nested too deeply to be read.
        for depth in [100, 200] {
            let round = client.asked(&with(json!({ "deep": nested(depth, "one") })));
            for other in [with(json!({ "deep": nested(depth, "two") })), with(Value::Null), program(FORM)] {
                let mut wrong = round.with(&accept);
                wrong["arguments"] = other["arguments"].clone();
                let (code, text) = error_of(&client.call(wrong));
                assert!(code == -32602 && text.contains("belongs to another call"), "{depth}: {text}");
            }
            assert_eq!(text_of(&client.call(round.with(&accept))["result"]), told, "{depth}");
        }
    }
}

#[test]
fn nobody_else_goes_on_with_a_run() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let (own, foreign) = ("a".repeat(32), "b".repeat(32));
    let text = format!("[a]\nsha256 = \"{}\"\n[b]\nsha256 = \"{}\"\n", sha256(&own), sha256(&foreign));
    std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
    let mut client = http(Upstreams::probe(), "120s", &["--http-tokens", file.path().to_str().unwrap()]);
    client.token = Some(own.clone());
    let round = client.asked(&program(FORM));
    client.token = Some(foreign);
    let decline = json!({ "action": "decline" });
    assert!(is_unknown(&client.call(round.with(&decline))));
    client.token = Some(own);
    let over = client.call(round.with(&decline));
    assert_eq!(text_of(&over["result"]), r#"[{"action" "decline"} nil]"#);
}

#[test]
fn only_what_a_client_declares_is_asked() {
    for start in TRANSPORTS {
        let mut client = start(Upstreams::probe(), "120s", &[]);
        // The servers know that the client supports forms, but this call does not declare it.
        let round = client.asked(&program(&format!("[{FORM} {FORM}]")));
        client.capabilities = json!({ "elicitation": { "url": {} }, "sampling": {} });
        let declined = r#"[nil "the client whose call is under way does not offer this"]"#;
        let over = client.call(round.with(&json!({ "action": "decline" })));
        assert_eq!(text_of(&over["result"]), format!(r#"[[{{"action" "decline"}} nil] {declined}]"#));
        assert_eq!(client.text(FORM), declined);
    }
}

#[test]
fn a_run_that_ends_meanwhile_tells_its_end() {
    for start in TRANSPORTS {
        let upstreams = Upstreams::probe().add("other", probe_server(&[]));
        let mut client = start(upstreams, "120s", &["--max-concurrent", "1", "--max-suspended", "0"]);
        let process = client.text("(get (:value (tool/call 'probe/stats {})) :pid)");
        let round = client.asked(&program(&format!("[:over {}]", FORM.replace("(:value", "(:ok"))));
        signal(process.parse().expect("a process id"), "KILL");
        // There is one slot, which is free once the run has ended.
        assert_eq!(client.text("(:value (tool/call 'other/echo {:v 7}))"), "7");
        let over = client.call(round.with(&json!({ "action": "accept", "content": {} })));
        assert_eq!(over["result"]["resultType"], "complete", "{over}");
        assert!(text_of(&over["result"]).starts_with("[:over false]"), "{over}");
        assert!(is_unknown(&client.call(round.with(&json!({ "action": "accept" })))));
    }
}

#[test]
fn a_client_that_does_not_come_back_ends_its_run() {
    for start in TRANSPORTS {
        let mut client = start(Upstreams::probe(), "120s", &["--max-parked-time", "1s"]);
        // A form, and a call that ends only with its run.
        let held = format!("(pcalls (fn [] (tool/call 'probe/hold {{}})) (fn [] {FORM}))");
        let round = client.asked(&program(&held));
        eventually("the run is over", || {
            client.text("(get (:value (tool/call 'probe/stats {})) :cancelled)") != "0"
        });
        assert!(is_unknown(&client.call(round.with(&json!({ "action": "accept", "content": {} })))));
        assert_eq!(client.text("(+ 1 2)"), "3");
    }
}

#[test]
fn as_many_wait_as_may_and_each_has_its_place() {
    for start in TRANSPORTS {
        let mut client =
            start(Upstreams::probe().add("other", probe_server(&[])), "120s", &["--max-parked", "1"]);
        let first = client.asked(&program(FORM));
        let elsewhere = FORM.replace("'probe/", "'other/");
        let busy = client.text(&elsewhere);
        assert!(busy.starts_with("[nil \"busy: as many calls wait"), "{busy}");
        let over = client.call(first.with(&json!({ "action": "decline" })));
        assert_eq!(text_of(&over["result"]), r#"[{"action" "decline"} nil]"#);
        let second = client.asked(&program(&elsewhere));
        let over = client.call(second.with(&json!({ "action": "decline" })));
        assert_eq!(text_of(&over["result"]), r#"[{"action" "decline"} nil]"#);
    }
}

#[test]
fn a_run_keeps_its_place_and_needs_no_other_one() {
    let more = ["--max-concurrent", "1", "--max-suspended", "0", "--http-metrics"];
    let mut client = http(Upstreams::probe(), "120s", &more);
    let round = client.asked(&program(FORM));
    let Way::Http(server) = &client.way else { panic!("over HTTP") };
    let mut other = server.connect();
    let params = program("(tool/call 'probe/echo {:v 7})");
    other.send(
        "POST",
        &stateless_headers("tools/call", "lisp_eval"),
        &stateless_body(1, "tools/call", params),
    );
    eventually("the other call waits", || server.get("/metrics").body.contains("ptc_queued_calls 1\n"));
    let over = client.call(round.with(&json!({ "action": "decline" })));
    assert_eq!(text_of(&over["result"]), r#"[{"action" "decline"} nil]"#);
    assert!(text_of(&message_of(&other.answer())["result"]).contains('7'));
}

#[test]
fn of_many_who_go_on_at_the_same_time_one_does() {
    let mut client = http(Upstreams::probe(), "120s", &[]);
    let round = client.asked(&program(FORM));
    let params = stateless_params(round.with(&json!({ "action": "decline" })), client.capabilities.clone());
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let Way::Http(server) = &client.way else { panic!("over HTTP") };
    let mut browsers: Vec<_> = (0..8).map(|_| server.connect()).collect();
    for browser in &mut browsers {
        browser.send("POST", &stateless_headers("tools/call", "lisp_eval"), &body);
    }
    let answers: Vec<Value> = browsers.iter_mut().map(|browser| message_of(&browser.answer())).collect();
    let (over, wrong): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer["result"].is_object());
    assert_eq!((over.len(), wrong.len()), (1, 7), "{answers:?}");
    assert_eq!(text_of(&over[0]["result"]), r#"[{"action" "decline"} nil]"#);
    assert!(wrong.into_iter().all(is_unknown), "{answers:?}");
}

#[test]
fn every_tool_that_calls_servers_asks() {
    for start in TRANSPORTS {
        let more = ["--tools", "lisp_eval,execute_program,proxy-dispatch", "--sessions"];
        let mut client = start(Upstreams::probe(), "120s", &more);
        let started = client.call(json!({ "name": "lisp_session_start", "arguments": {} }));
        let session = started["result"]["structuredContent"]["session_id"].clone();
        assert!(session.is_string(), "{started}");
        let form =
            json!({ "message": "Delete it?", "requestedSchema": { "type": "object", "properties": {} } });
        let code = "print(await mcp__probe__ask(message='Delete it?', requestedSchema={'type': 'object', 'properties': {}}))";
        let calls = [
            json!({ "name": "lisp_session_eval", "arguments": { "session_id": session, "program": FORM } }),
            json!({ "name": "proxy-dispatch",
                "arguments": { "action": "call", "connection": "probe", "tool": "ask", "arguments": form } }),
            json!({ "name": "execute_program", "arguments": { "code": code } }),
        ];
        for params in calls {
            let round = client.asked(&params);
            assert_eq!(round.question()["params"]["message"], "probe: Delete it?");
            let over = client.call(round.with(&json!({ "action": "decline" })));
            assert!(over["result"].to_string().contains("decline"), "{over}");
        }
    }
}

#[test]
fn questions_hold_no_secrets() {
    let secret = "correct-horse-battery-staple-9";
    for start in TRANSPORTS {
        let mut probe = probe_server(&[]);
        probe["env"] = json!({ "API_KEY": secret });
        let mut client = start(Upstreams::default().add("probe", probe), "120s", &[]);
        let round = client.asked(&program(&FORM.replace("Delete it?", secret)));
        assert!(!round.result.to_string().contains(secret), "{}", round.result);
        let over = client.call(round.with(&json!({ "action": "cancel" })));
        assert_eq!(text_of(&over["result"]), r#"[{"action" "cancel"} nil]"#);
    }
}

#[test]
fn a_server_that_ends_waits_for_nobody() {
    for start in TRANSPORTS {
        let mut client = start(Upstreams::probe(), "120s", &[]);
        client.asked(&program(FORM));
        match client.way {
            Way::Stdio(server) => assert_eq!(server.end(), Some(0)),
            Way::Http(server) => {
                server.terminate();
                assert_eq!(server.ended(), Some(0));
            }
        }
    }
}
