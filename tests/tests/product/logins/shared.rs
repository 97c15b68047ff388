//! A person's login acts for clients with different tokens only where the configuration says so.

use super::User;
use ptc_tests::oauth::{Habits, OAuthServer};
use ptc_tests::web::{WebServer, program, sha256, stateless_body, stateless_headers};
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
