//! Calls over HTTP that go on without their requests: they belong to the token that made them.

#![allow(clippy::unwrap_used, reason = "a broken server should be loud")]

use ptc_tests::processes::eventually;
use ptc_tests::serve::text_of;
use ptc_tests::upstreams::Upstreams;
use ptc_tests::web::{
    Answer, SessionClient, WebServer, program, sha256, stateless_headers, stateless_params,
};
use serde_json::{Value, json};

const HOLD: &str = "(tool/call 'probe/hold {})";

const ASK: &str = r#"(:value (tool/call 'probe/ask {:message "Go on?"
    :requestedSchema {:type "object" :properties {:sure {:type "boolean"}}} :secret 1}))"#;

/// Two tokens, and a file of both.
struct Tokens {
    file: tempfile::NamedTempFile,
    all: [String; 2],
}

impl Tokens {
    fn new() -> Tokens {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let all = ["a".repeat(32), "b".repeat(32)];
        let text = format!("[a]\nsha256 = \"{}\"\n[b]\nsha256 = \"{}\"\n", sha256(&all[0]), sha256(&all[1]));
        std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
        Tokens { file, all }
    }

    fn serve(&self, more: &[&str]) -> (WebServer, ptc_tests::upstreams::ConfigFile) {
        let config = Upstreams::probe().write();
        let tokens = self.file.path().to_str().unwrap();
        let flags = ["--http-tokens", tokens, "--timeout", "120s", "--upstream-call-timeout", "120s"];
        let server = WebServer::start(&config.flags(&[&flags[..], more].concat()));
        (server, config)
    }
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

/// A request of 2026-07-28 of a client that knows tasks. `name` is that of the header.
fn ask(server: &WebServer, token: &str, method: &str, name: &str, params: Value) -> Answer {
    let capabilities = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method,
        "params": stateless_params(params, capabilities) });
    let bearer = bearer(token);
    let mut headers = stateless_headers(method, name);
    headers.push(("Authorization", &bearer));
    server.ask("POST", &headers, &body.to_string())
}

fn message(answer: &Answer) -> Value {
    match answer.header("content-type") {
        Some("text/event-stream") => answer.events().pop().unwrap(),
        _ => answer.json(),
    }
}

fn task(server: &WebServer, token: &str, id: &str, method: &str) -> Value {
    message(&ask(server, token, method, id, json!({ "taskId": id, "inputResponses": {} })))
}

/// Calls that were cancelled at the server behind.
fn cancelled(server: &WebServer, token: &str) -> u64 {
    let answer =
        ask(server, token, "tools/call", "lisp_eval", program("(:cancelled (tool/call! 'probe/stats {}))"));
    text_of(&message(&answer)["result"]).parse().unwrap()
}

#[test]
fn a_task_does_not_exist_for_another_token() {
    let tokens = Tokens::new();
    let [own, other] = &tokens.all;
    let (server, _config) = tokens.serve(&["--detach-after", "50ms"]);
    let begun = message(&ask(&server, own, "tools/call", "lisp_eval", program(HOLD)));
    assert_eq!(begun["result"]["resultType"], "task", "{begun}");
    let id = begun["result"]["taskId"].as_str().unwrap();
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        assert_eq!(task(&server, other, id, method)["error"]["code"], -32602, "{method}");
        let unnamed = ask(&server, own, method, "another", json!({ "taskId": id, "inputResponses": {} }));
        assert_eq!((unnamed.status, &unnamed.json()["error"]["code"]), (400, &json!(-32020)), "{method}");
    }
    assert_eq!(task(&server, own, id, "tasks/get")["result"]["status"], "working");
    let run = |token: &str, action: &str| {
        let arguments = json!({ "run_id": id, "action": action });
        let params = json!({ "name": "lisp_run", "arguments": arguments });
        message(&ask(&server, token, "tools/call", "lisp_run", params))["result"].clone()
    };
    assert!(text_of(&run(other, "cancel")).contains("there is no run"));
    assert!(text_of(&run(own, "get")).starts_with("the program still runs"));
    let bearer = bearer(other);
    let mut client = SessionClient::begin(&server, "2025-11-25", &[("Authorization", &bearer)]);
    let listed = client.ask(&server, "tasks/list", json!({})).json();
    assert_eq!(listed["result"]["tasks"], json!([]), "{listed}");
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let refused = client.ask(&server, method, json!({ "taskId": id })).json();
        assert_eq!(refused["error"]["code"], -32602, "{method}: {refused}");
    }
    assert_eq!(task(&server, own, id, "tasks/cancel")["result"]["resultType"], "complete");
    assert_eq!(task(&server, own, id, "tasks/get")["result"]["status"], "cancelled");
    eventually("its call is cancelled", || cancelled(&server, own) == 1);
}

#[test]
fn a_task_ends_with_its_token() {
    let tokens = Tokens::new();
    let (server, _config) = tokens.serve(&["--detach-after", "50ms"]);
    let own = &tokens.all[0];
    let begun = message(&ask(&server, own, "tools/call", "lisp_eval", program(HOLD)));
    let id = begun["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{begun}")).to_owned();
    let rest = std::fs::read_to_string(tokens.file.path()).unwrap();
    let rest = rest.split_once("[b]").unwrap().1;
    std::fs::write(tokens.file.path(), format!("[b]{rest}")).unwrap();
    server.signal("HUP");
    eventually("the token is gone", || {
        ask(&server, own, "tasks/get", &id, json!({ "taskId": id })).status == 401
    });
    eventually("its call is cancelled", || cancelled(&server, &tokens.all[1]) == 1);
}

#[test]
fn a_server_that_does_not_know_its_clients_lists_no_tasks() {
    let server = WebServer::start(&[]);
    let mut client = SessionClient::begin(&server, "2025-11-25", &[]);
    assert_eq!(client.ask(&server, "tasks/list", json!({})).json()["error"]["code"], -32601);
    let begun = client.ask(&server, "tools/call", {
        let mut params = program("(+ 1 2)");
        params["task"] = json!({});
        params
    });
    let id = begun.json()["result"]["task"]["taskId"].clone();
    let result = message(&client.ask(&server, "tasks/result", json!({ "taskId": id })));
    assert_eq!(text_of(&result["result"]), "3", "{result}");
}

#[test]
fn a_task_asks_on_the_stream_of_its_result() {
    let tokens = Tokens::new();
    let (server, _config) = tokens.serve(&[]);
    let bearer = bearer(&tokens.all[0]);
    let headers = [("Authorization", bearer.as_str())];
    let mut client = SessionClient::offering(&server, "2025-11-25", &json!({ "elicitation": {} }), &headers);
    let mut params = program(ASK);
    params["task"] = json!({ "ttl": 60_000 });
    let begun = client.ask(&server, "tools/call", params).json();
    let id = begun["result"]["task"]["taskId"].as_str().unwrap_or_else(|| panic!("{begun}")).to_owned();
    let named = json!({ "taskId": id });
    eventually("the task asks", || {
        client.ask(&server, "tasks/get", named.clone()).json()["result"]["status"] == "input_required"
    });
    let body = client.body("tasks/result", named.clone());
    let mut browser = server.connect();
    browser.send("POST", &client.headers(), &body);
    let head = browser.head().unwrap();
    let question = browser.event(&head).unwrap();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    assert_eq!(question["params"]["_meta"]["io.modelcontextprotocol/related-task"], named);
    let accept = json!({ "result": { "action": "accept", "content": { "sure": true } } });
    assert_eq!(client.respond(&server, &question, &accept), 202);
    let result = browser.event(&head).unwrap();
    assert!(text_of(&result["result"]).contains("\"sure\" true"), "{result}");
    assert_eq!(result["result"]["_meta"]["io.modelcontextprotocol/related-task"], named);
}
