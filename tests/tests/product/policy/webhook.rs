//! A service that approves calls (`--approval-webhook`), whatever it answers.

use super::approvals::{answer, asks, decide, serve};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// An HTTP server that gives one answer to all requests.
struct Hook {
    address: String,
    /// The bodies that it has received.
    got: Arc<Mutex<Vec<Value>>>,
}

impl Hook {
    /// `response` is what follows `HTTP/1.1 `; `None`: it does not answer.
    fn start(response: Option<String>) -> Hook {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let got: Arc<Mutex<Vec<Value>>> = Arc::default();
        let kept = got.clone();
        std::thread::spawn(move || {
            let mut open = Vec::new();
            for stream in listener.incoming().map_while(Result::ok) {
                let body = body_of(&stream);
                kept.lock().unwrap().push(serde_json::from_str(&body).unwrap_or_default());
                match &response {
                    Some(response) => drop((&stream).write_all(format!("HTTP/1.1 {response}").as_bytes())),
                    None => open.push(stream),
                }
            }
        });
        Hook { address, got }
    }

    /// Answers with this status and body.
    fn answering(status: &str, body: &str) -> Hook {
        let length = body.len();
        Hook::start(Some(format!("{status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")))
    }

    fn url(&self) -> String {
        format!("http://{}/ask", self.address)
    }
}

fn body_of(stream: &TcpStream) -> String {
    let (mut reader, mut length) = (BufReader::new(stream), 0);
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|size| size > 2) {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    String::from_utf8(body).unwrap()
}

const CALL: &str = "(let [r (tool/call 'probe/echo {:v 1})] [(:reason r :made) (:message r)])";

/// The answer of a program whose call this service is asked about.
fn said(hook: &Hook) -> String {
    let policy = asks("call");
    let mut server = serve(&policy, &["--approval-webhook", &hook.url()], json!({}));
    server.begin_program(CALL);
    let said = answer(&mut server);
    assert_eq!(server.end(), Some(0));
    said
}

#[test]
fn only_a_clear_yes_approves() {
    let yes = "{\"decision\": \"approve\", \"by\": \"Ada\"}";
    let hook = Hook::answering("200 OK", yes);
    assert!(said(&hook).starts_with("[:made "));
    let got = hook.got.lock().unwrap().clone();
    let [question] = got.as_slice() else { panic!("{got:?}") };
    assert_eq!(question["call"], "probe/echo");
    assert_eq!(question["calls"][0]["arguments"], "{\"v\":1}");
    assert_eq!(question["calls"][0]["digest"], ptc_tests::web::sha256("{\"v\":1}"));
    assert!(question["text"].as_str().unwrap().starts_with("May ptc call probe/echo"), "{question}");
    let moved = "307 Temporary Redirect\r\nlocation: http://127.0.0.1:9/yes";
    for (status, body, want, why) in [
        ("200 OK", "{\"decision\": \"deny\", \"by\": \"Ada\"}", ":denied", "Ada denied it"),
        ("200 OK", "{\"decision\": \"APPROVE\"}", ":denied", "127.0.0.1 denied it"),
        (
            "200 OK",
            "{\"decision\": \"deny\", \"decision\": \"approve\"}",
            ":approval_unavailable",
            "without a decision",
        ),
        ("200 OK", "{\"by\": \"Ada\"}", ":approval_unavailable", "without a decision"),
        ("200 OK", "approve", ":approval_unavailable", "without a decision"),
        ("500 Internal Server Error", yes, ":approval_unavailable", "500"),
        ("403 Forbidden", yes, ":approval_unavailable", "403"),
        (moved, yes, ":approval_unavailable", "another origin, which is sent nothing"),
    ] {
        let hook = Hook::answering(status, body);
        let said = said(&hook);
        assert!(said.starts_with(&format!("[{want} ")) && said.contains(why), "{status} {body}: {said}");
        assert_eq!(hook.got.lock().unwrap().len(), 1, "{status} {body}");
    }
    let large = format!("{{\"decision\": \"approve\", \"by\": \"{}\"}}", "x".repeat(100_000));
    assert!(said(&Hook::answering("200 OK", &large)).starts_with("[:approval_unavailable "));
    // The name of a person is text of a service.
    let named = "{\"decision\": \"deny\", \"by\": \"A\\u001b[2J\\nda\\u202e\"}";
    let said = said(&Hook::answering("200 OK", named));
    assert!(said.contains("A\\\\u001b[2J\\\\u000ada\\\\u202e denied it"), "{said}");
}

#[test]
fn the_first_of_a_slow_service_and_a_client_decides() {
    let (policy, slow) = (asks("call"), Hook::start(None));
    let mut server = serve(&policy, &["--approval-webhook", &slow.url()], json!({ "elicitation": {} }));
    for (decision, want) in [("approve", "[:made "), ("deny", "[:denied ")] {
        server.begin_program(CALL);
        decide(&mut server, decision);
        assert!(answer(&mut server).starts_with(want), "{decision}");
    }
    assert_eq!(server.end(), Some(0));
    let late = &["--approval-webhook", &slow.url(), "--approval-timeout", "1s"];
    let mut server = serve(&policy, late, json!({}));
    server.begin_program(CALL);
    let said = answer(&mut server);
    assert!(said.starts_with("[:approval_unavailable ") && said.contains("no answer within 1 s"), "{said}");
    assert_eq!(server.end(), Some(0));
}
