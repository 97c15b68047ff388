//! `ptc serve` asks its client for a login, while the program waits in its call.

use super::User;
use ptc_tests::oauth::{Habits, OAuthServer, visit};
use ptc_tests::serve::{Server, text_of};
use serde_json::{Value, json};

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
    // A login that ends later is asked for with the next call after the one that has noticed it.
    server.end_access();
    server.end_refresh();
    assert_eq!(serve.text(CALL), "[false :login_required]");
    serve.begin_program(CALL);
    let question = next(&mut serve);
    answer(&mut serve, &question, "decline");
    let result = next(&mut serve);
    assert_eq!(text_of(&result["result"]), "[false :login_required]");
    assert_eq!(serve.end(), Some(0));
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
