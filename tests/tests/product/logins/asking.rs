//! `ptc serve` asks its client for a login, while the program waits in its call.

use super::User;
use ptc_tests::oauth::{Habits, OAuthServer, Reply, visit};
use ptc_tests::serve::{Server, text_of};
use ptc_tests::web::{SessionClient, WebServer, program, stateless_headers, stateless_params};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use url::Url;

const CALL: &str =
    "(let [r (tool/call {:server \"hosted\" :tool \"echo\" :args {:a 1}})] [(:ok r) (:reason r)])";

fn serve(user: &User, capabilities: Value) -> Server {
    Server::offering(user.command(&["serve", "--timeout", "20s"]), capabilities)
}

/// The next message with an id.
fn next(server: &mut Server) -> Value {
    loop {
        let message = server.receive();
        if message.get("id").is_some() {
            return message;
        }
    }
}

fn answer(server: &mut Server, request: &Value, action: &str) {
    server.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": { "action": action } }));
}

#[test]
fn the_program_waits_while_its_person_logs_in() {
    let server = OAuthServer::start(Habits::default());
    let user = User::of(&server);
    let mut serve = serve(&user, json!({ "elicitation": { "url": {} } }));
    let branches = format!("(count (filter first (pmap (fn [_] {CALL}) (range 3))))");
    let id = serve.begin_program(&branches);
    let question = next(&mut serve);
    assert_eq!(
        (question["method"].as_str(), &question["params"]["mode"]),
        (Some("elicitation/create"), &json!("url"))
    );
    let start = question["params"]["url"].as_str().unwrap();
    assert!(start.starts_with("http://127.0.0.1:") && !start.contains("state"), "{question}");
    answer(&mut serve, &question, "accept");
    let (_, login) = visit(start);
    let (_, back) = visit(&login.unwrap());
    assert_eq!(visit(&back.unwrap()).0, 200);
    let result = next(&mut serve);
    assert_eq!((&result["id"], text_of(&result["result"]).as_str()), (&json!(id), "3"), "{result}");
    assert_eq!(user.stored().len(), 1);
    // A login that ends later is asked for by the call that finds out, and that call goes on.
    server.end_access();
    server.end_refresh();
    let id = serve.begin_program(CALL);
    log_in(&mut serve);
    let result = next(&mut serve);
    assert_eq!((&result["id"], text_of(&result["result"]).as_str()), (&json!(id), "[true nil]"), "{result}");
    server.end_access();
    server.end_refresh();
    serve.begin_program(CALL);
    let question = next(&mut serve);
    answer(&mut serve, &question, "decline");
    let result = next(&mut serve);
    assert_eq!(text_of(&result["result"]), "[false :login_required]");
    assert_eq!(serve.end(), Some(0));
}

/// Answers the question for a login, and logs in; gives the question.
fn log_in(serve: &mut Server) -> Value {
    let question = next(serve);
    answer(serve, &question, "accept");
    let (_, login) = visit(question["params"]["url"].as_str().unwrap());
    let (_, back) = visit(&login.unwrap());
    assert_eq!(visit(&back.unwrap()).0, 200);
    question
}

#[test]
fn a_call_that_needs_more_scopes_waits_for_them() {
    let server = OAuthServer::start(Habits::default());
    let user = User::of(&server);
    assert_eq!(user.login(&[]).code, Some(0));
    let mut serve = serve(&user, json!({ "elicitation": { "url": {} } }));
    assert_eq!(serve.text(CALL), "[true nil]");
    let id = serve.begin_program(&CALL.replace("echo", "admin"));
    let question = log_in(&mut serve);
    assert!(question["params"]["message"].as_str().unwrap().contains("with the scopes admin"), "{question}");
    let result = next(&mut serve);
    assert_eq!((&result["id"], text_of(&result["result"]).as_str()), (&json!(id), "[true nil]"), "{result}");
    // The union of what was asked for before and what was missed.
    assert_eq!(user.stored()[0].1["requested"], "read admin");
    assert_eq!(serve.end(), Some(0));
}

#[test]
fn a_server_that_wants_other_scopes_each_time_is_not_followed_for_ever() {
    let count = std::sync::atomic::AtomicUsize::new(0);
    let server = OAuthServer::answering(Habits::default(), move |server, asked| {
        let is_admin = asked.json()["params"]["name"] == "admin" && asked.header("authorization").is_some();
        is_admin.then(|| {
            let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let challenge = server.challenge();
            let challenge = format!("{challenge}, error=\"insufficient_scope\", scope=\"admin{number}\"");
            Reply::status(403).header("www-authenticate", &challenge)
        })
    });
    let user = User::of(&server);
    assert_eq!(user.login(&[]).code, Some(0));
    let mut serve = serve(&user, json!({ "elicitation": { "url": {} } }));
    serve.begin_program(&CALL.replace("echo", "admin"));
    log_in(&mut serve);
    log_in(&mut serve);
    assert_eq!(text_of(&next(&mut serve)["result"]), "[false :login_required]");
    assert_eq!(serve.end(), Some(0));
}

const TOKEN: &str = "the-only-token-of-this-server-0123456789";

/// A server over HTTP with one token.
fn over_http(user: &User) -> WebServer {
    let flags = ["serve", "--http", "127.0.0.1:0", "--startup", "lenient", "--timeout", "20s"];
    let mut command = user.command(&flags);
    command.env("PTC_HTTP_AUTH_TOKEN", TOKEN);
    WebServer::from_command(command)
}

/// Follows the address of a login to its end.
fn follow(address: &str) {
    let (_, login) = visit(address);
    let (_, back) = visit(&login.unwrap());
    assert_eq!(visit(&back.unwrap()).0, 200);
}

#[test]
fn a_client_over_http_logs_in_while_its_program_waits() {
    let server = OAuthServer::start(Habits::default());
    let user = User::of(&server);
    let web = over_http(&user);
    let bearer = format!("Bearer {TOKEN}");
    let headers = [("authorization", bearer.as_str())];
    let offered = json!({ "elicitation": { "url": {} } });
    let mut client = SessionClient::offering(&web, "2025-11-25", &offered, &headers);
    let mut browser = client.begin_program(&web, CALL);
    let head = browser.head().unwrap();
    let question = browser.event(&head).unwrap();
    assert_eq!(question["params"]["mode"], "url", "{question}");
    assert_eq!(client.respond(&web, &question, &json!({ "result": { "action": "accept" } })), 202);
    follow(question["params"]["url"].as_str().unwrap());
    let result = browser.event(&head).unwrap();
    assert_eq!(text_of(&result["result"]), "[true nil]", "{result}");
}

#[test]
fn a_client_without_sessions_is_asked_by_input_required() {
    let server = OAuthServer::start(Habits::default());
    let user = User::of(&server);
    let web = over_http(&user);
    let bearer = format!("Bearer {TOKEN}");
    let headers = [&stateless_headers("tools/call", "lisp_eval")[..], &[("authorization", &bearer)]].concat();
    let ask = |id: u64, more: Value| {
        let mut params = program(CALL);
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let params = stateless_params(params, json!({ "elicitation": { "url": {} } }));
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        web.ask("POST", &headers, &body.to_string()).json()["result"].clone()
    };
    let asked = ask(1, json!({}));
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let (key, question) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(question["params"]["mode"], "url", "{asked}");
    follow(question["params"]["url"].as_str().unwrap());
    let answers = json!({ (key): { "action": "accept" } });
    let result = ask(2, json!({ "inputResponses": answers, "requestState": asked["requestState"] }));
    assert_eq!(text_of(&result), "[true nil]", "{result}");
}

#[test]
fn a_client_that_cannot_lead_its_user_to_an_address_is_not_asked() {
    let server = OAuthServer::start(Habits::default());
    let user = User::of(&server);
    for capabilities in [json!({}), json!({ "elicitation": {} }), json!({ "elicitation": { "form": {} } })] {
        let mut serve = serve(&user, capabilities);
        assert_eq!(serve.text(CALL), "[false :login_required]");
        assert_eq!(serve.end(), Some(0));
    }
}

/// What the listener of a login answers to a request with this path and these lines: the status, or `None` if it closes.
fn listened(start: &Url, request: &str) -> Option<u16> {
    let mut stream = TcpStream::connect(("127.0.0.1", start.port().unwrap())).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut said = String::new();
    let _ = stream.read_to_string(&mut said);
    said.split(' ').nth(1)?.parse().ok()
}

#[test]
fn the_listener_of_a_login_shows_nothing_to_others_and_takes_one_answer() {
    let server = OAuthServer::start(Habits::default());
    let user = User::of(&server);
    let mut serve = serve(&user, json!({ "elicitation": { "url": {} } }));
    let id = serve.begin_program(CALL);
    let question = next(&mut serve);
    let address = question["params"]["url"].as_str().unwrap();
    let start = Url::parse(address).unwrap();
    let host = format!("127.0.0.1:{}", start.port().unwrap());
    // Connections that say nothing delay nothing.
    let idle: Vec<_> =
        (0..5).map(|_| TcpStream::connect(("127.0.0.1", start.port().unwrap())).unwrap()).collect();
    let get =
        |path: &str, host: &str| listened(&start, &format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n\r\n"));
    assert_eq!(get("/", &host), Some(404), "the address of the login is not guessable");
    // A name that leads here (DNS rebinding).
    assert_eq!(get(start.path(), "evil.example"), Some(404));
    assert_eq!(get(start.path(), &format!("evil.example:{}", start.port().unwrap())), Some(404));
    assert_eq!(listened(&start, &format!("GET {} HTTP/1.1\r\n\r\n", start.path())), None, "no Host");
    assert_eq!(listened(&start, &format!("POST {} HTTP/1.1\r\nhost: {host}\r\n\r\n", start.path())), None);
    assert_eq!(get("/callback?code=stolen-code-Zq7Xw9&state=guessed", &host), Some(400));
    let (_, login) = visit(address);
    let (_, back) = visit(&login.unwrap());
    let back = back.unwrap();
    assert_eq!(visit(&back).0, 200);
    answer(&mut serve, &question, "accept");
    assert_eq!(next(&mut serve)["id"], json!(id));
    assert!(TcpStream::connect(("127.0.0.1", start.port().unwrap())).is_err(), "the listener has ended");
    assert_eq!((server.grants("authorization_code"), server.asked("/token").len()), (1, 1));
    drop(idle);
    assert_eq!(serve.end(), Some(0));
}
