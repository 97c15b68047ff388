//! Tokens that are revoked, expire or lose rights while their calls run, or are parked until their clients call
//! again.

use ptc_tests::processes::eventually;
use ptc_tests::serve::text_of;
use ptc_tests::upstreams::{ConfigFile, Upstreams, probe_server};
use ptc_tests::web::{
    Answer, Browser, SessionClient, WebServer, program, sha256, stateless_headers, stateless_params,
};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

/// A call that asks its client for input. The server asks only while no other client calls it.
const FORM: &str =
    r#"(:value (tool/call 'probe/ask {:message "Sure?" :requestedSchema {:type "object" :properties {}}}))"#;

/// A call that its server answers when there is a second one.
const GATHER: &str = "(:ok (tool/call 'probe/gather {:n 2}))";

/// A server that rereads its token file on request.
struct Tokens {
    server: WebServer,
    file: std::path::PathBuf,
    _folder: tempfile::TempDir,
    _config: ConfigFile,
}

fn bearer(token: &str) -> String {
    format!("Bearer {}", token.repeat(32))
}

fn write(file: &std::path::Path, tokens: &[(&str, &str)]) {
    let entry = |(name, more): &(&str, &str)| {
        format!("[{name}]\nsha256 = \"{}\"\n{more}\n", sha256(&name.repeat(32)))
    };
    std::fs::write(file, tokens.iter().map(entry).collect::<String>()).expect("written");
}

impl Tokens {
    fn start(tokens: &[(&str, &str)]) -> Tokens {
        let config =
            Upstreams::probe().add("other", probe_server(&[])).add("third", probe_server(&[])).write();
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("tokens.toml");
        write(&file, tokens);
        let path = file.to_str().expect("a path").to_owned();
        let flags = ["--http-tokens", &path, "--config-reload", "sighup", "--log-level", "info"];
        let times =
            ["--timeout", "120s", "--upstream-call-timeout", "120s", "--catalog-snapshot-mode", "live"];
        let server = WebServer::start(&config.flags(&[&flags[..], &times].concat()));
        Tokens { server, file, _folder: folder, _config: config }
    }

    /// Edits the file, and waits until the change is in effect.
    fn replace(&self, tokens: &[(&str, &str)]) {
        drop(self.server.log());
        write(&self.file, tokens);
        self.server.signal("HUP");
        eventually("the tokens are read", || {
            self.server.log().iter().any(|line| line.contains("tokens reloaded"))
        });
    }

    fn send(&self, token: &str, params: Value) -> Browser {
        let bearer = bearer(token);
        let mut headers = stateless_headers("tools/call", "lisp_eval");
        headers.push(("Authorization", &bearer));
        let mut browser = self.server.connect();
        browser.send("POST", &headers, &call_of(params));
        browser
    }

    /// Sends the head of a call, and waits until the server reads its body, so the token was good.
    fn send_head(&self, token: &str, body: &str) -> Browser {
        let (bearer, length) = (bearer(token), body.len().to_string());
        let mut headers = stateless_headers("tools/call", "lisp_eval");
        headers.extend([
            ("Authorization", bearer.as_str()),
            ("Content-Length", &length),
            ("Expect", "100-continue"),
        ]);
        let mut browser = self.server.connect();
        browser.send("POST", &headers, "");
        assert_eq!(browser.head().expect("a head").status, 100);
        browser
    }

    fn ask(&self, token: &str, params: Value) -> Answer {
        self.send(token, params).answer()
    }

    fn call(&self, token: &str, params: Value) -> Value {
        message_of(&self.ask(token, params))
    }

    fn text(&self, token: &str, text: &str) -> String {
        text_of(&self.call(token, program(text))["result"])
    }

    /// Parks a call's run; gives what is needed to resume it.
    fn parked(&self, token: &str, text: &str) -> Value {
        let params = program(text);
        let asked = self.call(token, params.clone())["result"].clone();
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        let (name, _) =
            asked["inputRequests"].as_object().and_then(|all| all.iter().next()).expect("a question");
        let mut again = params;
        again["requestState"] = asked["requestState"].clone();
        again["inputResponses"] = json!({ name: { "action": "decline" } });
        again
    }

    /// Waits until the probe has seen so many calls in flight, or cancelled.
    fn until(&self, what: &str, count: u64) {
        let text = format!("(get (:value (tool/call 'probe/stats {{}})) :{what})");
        eventually(what, || self.text("watch", &text) == count.to_string());
    }
}

/// The body of a call by a client that answers questions.
fn call_of(params: Value) -> String {
    let params = stateless_params(params, json!({ "elicitation": {} }));
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string()
}

/// The message of an answer, which is a stream if it took long.
fn message_of(answer: &Answer) -> Value {
    match answer.header("content-type") {
        Some("text/event-stream") => answer.events().pop().expect("an answer"),
        _ => answer.json(),
    }
}

fn is_cancelled(message: &Value) -> bool {
    let told = text_of(&message["result"]);
    message["result"]["isError"] == true
        && told == "cancelled: the token of the call is good no longer, so it was cancelled"
}

const WATCH: (&str, &str) = ("watch", "");

#[test]
fn a_token_that_is_taken_away_ends_its_calls_and_its_parked_runs_and_no_others() {
    let tokens = Tokens::start(&[("gone", ""), ("stays", ""), WATCH]);
    let hold = "(tool/call 'probe/hold {})";
    // A form, and a call that ends only with its run.
    let form = FORM.replace("probe", "other");
    let again = tokens.parked("gone", &format!("(pcalls (fn [] {hold}) (fn [] {form}))"));
    let others = tokens.parked("stays", &FORM.replace("probe", "third"));
    let mut held = tokens.send("gone", program(hold));
    let authorization = bearer("gone");
    let mut session =
        SessionClient::begin(&tokens.server, "2025-11-25", &[("Authorization", &authorization)]);
    let mut in_session = session.begin_program(&tokens.server, hold);
    let mut waits = tokens.send("stays", program(GATHER));
    // Three that hold, one that gathers, and the call that counts.
    tokens.until("in_flight", 5);
    tokens.replace(&[("stays", ""), WATCH]);
    assert!(is_cancelled(&message_of(&held.answer())));
    assert!(is_cancelled(&message_of(&in_session.answer())));
    tokens.until("cancelled", 3);
    assert_eq!(tokens.ask("gone", again).status, 401);
    let over = tokens.call("stays", others);
    assert_eq!(text_of(&over["result"]), r#"[{"action" "decline"} nil]"#);
    assert_eq!(tokens.text("stays", GATHER), "true");
    assert_eq!(text_of(&message_of(&waits.answer())["result"]), "true");
    tokens.until("cancelled", 3);
}

#[test]
fn a_token_that_is_taken_away_while_its_call_arrives_starts_nothing() {
    let tokens = Tokens::start(&[("gone", ""), WATCH]);
    let body = call_of(program("(mapv (fn [n] (tool/call 'probe/echo {:v n})) (range 20))"));
    let mut goes_on = tokens.send_head("gone", &body);
    goes_on.send_raw(body.as_bytes()).expect("sent");
    assert_eq!(message_of(&goes_on.answer())["result"]["isError"], false);
    tokens.until("calls", 21);
    // A tiny program, which by now would run before its request waits for anything.
    for _ in 0..3 {
        assert_eq!(tokens.text("watch", "(+ 1 2)"), "3");
    }
    let tiny = call_of(program("(+ 1 2)"));
    let mut late = [&body, &tiny].map(|body| (tokens.send_head("gone", body), body));
    tokens.replace(&[WATCH]);
    for (call, body) in &mut late {
        call.send_raw(body.as_bytes()).expect("sent");
        assert!(is_cancelled(&message_of(&call.answer())), "{body}");
    }
    tokens.until("calls", 22);
}

#[test]
fn an_edit_ends_what_the_token_may_no_longer_do() {
    let servers = |names: &str| format!("servers = [{names}]");
    let (both, one) = (servers(r#""probe", "other""#), servers(r#""probe""#));
    let rows: [(&str, &str, bool); 5] = [
        // Other limits twice, more servers, fewer servers, one server instead of all.
        ("", "evals_per_minute = 6000", true),
        (&both, &format!("max_concurrent = 3\n{both}"), true),
        (&one, &both, true),
        (&both, &one, false),
        ("", &one, false),
    ];
    for (before, after, goes_on) in rows {
        let tokens = Tokens::start(&[("some", before), WATCH]);
        let again = tokens.parked("some", FORM);
        let mut waits = tokens.send("some", program(GATHER));
        tokens.until("in_flight", 3);
        tokens.replace(&[("some", after), WATCH]);
        let over = match goes_on {
            true => {
                let over = tokens.call("some", again);
                assert_eq!(text_of(&over["result"]), r#"[{"action" "decline"} nil]"#, "{after}");
                assert_eq!(tokens.text("watch", GATHER), "true");
                text_of(&message_of(&waits.answer())["result"]) == "true"
            }
            false => {
                let unknown = tokens.call("some", again);
                assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
                is_cancelled(&message_of(&waits.answer()))
            }
        };
        assert!(over, "{before} {after}");
    }
}

#[test]
fn a_call_that_outlives_edits_ends_with_its_token() {
    let tokens = Tokens::start(&[("some", ""), WATCH]);
    let mut held = tokens.send("some", program("(tool/call 'probe/hold {})"));
    tokens.until("in_flight", 2);
    for edit in ["evals_per_minute = 6000", "max_concurrent = 5", ""] {
        tokens.replace(&[("some", edit), WATCH]);
    }
    tokens.until("in_flight", 2);
    tokens.replace(&[WATCH]);
    assert!(is_cancelled(&message_of(&held.answer())));
    tokens.until("cancelled", 1);
}

#[test]
fn a_token_whose_time_is_over_ends_as_one_that_is_taken_away() {
    let tokens = Tokens::start(&[("short", ""), WATCH]);
    for left in [0_i64, 2] {
        tokens.replace(&[("short", ""), WATCH]);
        let mut held = tokens.send("short", program("(tool/call 'probe/hold {})"));
        tokens.until("in_flight", 2);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_secs();
        let end = moment(now.saturating_add_signed(left));
        tokens.replace(&[("short", &format!("expires = {end}")), WATCH]);
        assert!(is_cancelled(&message_of(&held.answer())), "{left}");
        assert_eq!(tokens.ask("short", program("1")).status, 401);
    }
}

/// A time, in seconds since 1970, as TOML writes it.
fn moment(seconds: u64) -> String {
    let date = std::process::Command::new("date")
        .args(["-u", "-d", &format!("@{seconds}"), "+%Y-%m-%dT%H:%M:%SZ"])
        .output()
        .expect("date runs");
    String::from_utf8(date.stdout).expect("a date").trim().to_owned()
}
