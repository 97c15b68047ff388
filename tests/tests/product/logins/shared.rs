//! A person's login acts for clients with different tokens only where the configuration says so.

use super::User;
use ptc_tests::oauth::{Habits, OAuthServer, Reply, visit};
use ptc_tests::web::{SessionClient, WebServer, program, sha256, stateless_body, stateless_headers};
use serde_json::{Value, json};

const CALL: &str =
    "(let [r (tool/call {:server \"hosted\" :tool \"echo\" :args {:a 1}})] [(:ok r) (:message r)])";

/// What a client with this token gets from a server with so many tokens.
fn called(user: &User, tokens: &[&str]) -> String {
    let file = user.path("tokens.toml");
    let lines = tokens.iter().map(|token| format!("[{token}]\nsha256 = \"{}\"\n", sha256(token)));
    std::fs::write(&file, lines.collect::<String>()).unwrap();
    let flags = ["serve", "--http", "127.0.0.1:0", "--startup", "lenient", "--http-tokens"];
    let server = WebServer::from_command(user.command(&[&flags[..], &[file.to_str().unwrap()]].concat()));
    let bearer = format!("Bearer {}", tokens[0]);
    let headers = [&stateless_headers("tools/call", "lisp_eval")[..], &[("authorization", &bearer)]].concat();
    let body = stateless_body(1, "tools/call", program(CALL));
    server.ask("POST", &headers, &body).json()["result"]["content"][0]["text"].as_str().unwrap().to_owned()
}

fn user(server: &OAuthServer, identity: Value) -> User {
    let mut scheme = json!({ "scheme": "oauth" });
    if !identity.is_null() {
        scheme["identity"] = identity;
    }
    let entry = json!({ "transport": "mcp_http", "url": server.url("/mcp"), "auth": [scheme] });
    let user = User::with(json!({ "hosted": entry }), json!({}));
    assert_eq!(user.login(&[]).code, Some(0));
    user
}

/// A server over HTTP with these tokens, named `t0`, `t1`, ….
fn serve(user: &User, tokens: &[&str]) -> WebServer {
    let file = user.path("tokens.toml");
    let lines = tokens.iter().enumerate();
    let lines = lines.map(|(at, token)| format!("[t{at}]\nsha256 = \"{}\"\n", sha256(token)));
    std::fs::write(&file, lines.collect::<String>()).unwrap();
    let flags =
        ["serve", "--http", "127.0.0.1:0", "--startup", "lenient", "--timeout", "20s", "--http-tokens"];
    WebServer::from_command(user.command(&[&flags[..], &[file.to_str().unwrap()]].concat()))
}

#[test]
fn each_caller_has_a_login_of_its_own() {
    // `echo` says whose token was shown.
    let server = OAuthServer::answering(Habits::default(), |_, asked| {
        let message = asked.json();
        let shown = asked.header("authorization").unwrap_or_default();
        (message["params"]["name"] == "echo" && !shown.is_empty()).then(|| {
            let id = message["id"].clone();
            let text = json!([{ "type": "text", "text": sha256(shown) }]);
            Reply::json(&json!({ "jsonrpc": "2.0", "id": id, "result": { "content": text } }))
        })
    });
    let entry = json!({
        "transport": "mcp_http", "url": server.url("/mcp"), "auth": [{ "scheme": "oauth", "identity": "user" }],
    });
    let user = User::with(json!({ "hosted": entry }), json!({}));
    let tokens = ["first-token-of-a-client", "second-token-of-a-client"];
    let web = serve(&user, &tokens);
    let call = "(let [r (tool/call {:server \"hosted\" :tool \"echo\" :args {:a 1}})] [(:ok r) (or (:value r) (:message r))])";
    let called = |token: &str| {
        let bearer = format!("Bearer {token}");
        let headers =
            [&stateless_headers("tools/call", "lisp_eval")[..], &[("authorization", &bearer)]].concat();
        let body = stateless_body(1, "tools/call", program(call));
        web.ask("POST", &headers, &body).json()["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    };
    // A client that cannot be asked hears what to do.
    let said = called(tokens[0]);
    assert!(said.contains("ptc login hosted --owner t0"), "{said}");
    // The operator logs in for the first; the second asks its own client, which opens the address.
    assert_eq!(user.login(&["--owner", "t0"]).code, Some(0));
    let first = called(tokens[0]);
    assert!(first.starts_with("[true"), "{first}");
    assert!(called(tokens[1]).contains("--owner t1"));
    let bearer = format!("Bearer {}", tokens[1]);
    let headers = [("authorization", bearer.as_str())];
    let offered = json!({ "elicitation": { "url": {} } });
    let mut client = SessionClient::offering(&web, "2025-11-25", &offered, &headers);
    let mut browser = client.begin_program(&web, call);
    let head = browser.head().unwrap();
    let question = browser.event(&head).unwrap();
    assert_eq!(client.respond(&web, &question, &json!({ "result": { "action": "accept" } })), 202);
    let (_, login) = visit(question["params"]["url"].as_str().unwrap());
    assert_eq!(visit(&visit(&login.unwrap()).1.unwrap()).0, 200);
    let second = ptc_tests::serve::text_of(&browser.event(&head).unwrap()["result"]);
    assert!(second.starts_with("[true") && second != first, "{second}");
    // Each goes on with its own, and neither sees the other's.
    assert_eq!((called(tokens[0]), called(tokens[1])), (first, second));
    assert_eq!(user.stored().len(), 2);
    let said = user.run(&["auth", "--json"]);
    assert!(said.stdout.contains("\"t0\"") && said.stdout.contains("\"t1\""), "{said:?}");
    // The logout of one leaves the other.
    assert_eq!(user.run(&["logout", "hosted", "--owner", "t0"]).code, Some(0));
    ptc_tests::processes::eventually("the logout is known", || called(tokens[0]).contains("--owner t0"));
    assert!(called(tokens[1]).starts_with("[true"));
}

#[test]
fn a_login_acts_for_many_tokens_only_where_that_is_written() {
    let server = OAuthServer::start(Habits::default());
    let tokens = ["first-token-of-a-client", "second-token-of-a-client"];
    let said = called(&user(&server, json!("shared")), &tokens);
    assert!(said.starts_with("[true"), "{said}");
    let calls = server.asked("/mcp").len();
    let said = called(&user(&server, Value::Null), &tokens);
    assert!(said.starts_with("[false") && said.contains("\\\"identity\\\": \\\"shared\\\""), "{said}");
    let sent = server.asked("/mcp").split_off(calls);
    assert!(sent.iter().all(|asked| asked.header("authorization").is_none()), "a token was sent");
}
