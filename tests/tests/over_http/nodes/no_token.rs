//! A node that has a call and cannot answer for it says so: silence would mean that no node has it.
#![allow(clippy::unwrap_used, reason = "a broken answer should be loud")]

use crate::any_node::{FORM, offering_with, request};
use crate::issued_tokens::servers;
use crate::issuer::{Guarded, Issuer};
use ptc_tests::binary::run_ptc;
use ptc_tests::postgres::Database;
use ptc_tests::processes::eventually;
use ptc_tests::web::program;
use serde_json::json;

#[test]
fn a_node_that_has_not_seen_the_token_of_an_issuer_says_that_it_has_the_call() {
    let Some(database) = Database::start() else { return };
    let state = database.url();
    // The database may still be starting.
    while run_ptc(&["runs", "--state", &state], "").code != Some(0) {}
    let issuer = Issuer::start();
    let start = || Guarded::start(&issuer, servers(), &["--state", &state, "--upstream-call-timeout", "60s"]);
    let [first, other] = [start(), start()];
    let token = format!("Bearer {}", issuer.token(&issuer.claims("ann", "mcp:open")));
    let mut client = offering_with(&first.server, &[("Authorization", &token)]);
    // The question is in doubt at the next node, which then waits for a call.
    let text = format!("[{} (tool/call 'open/hold {{}})]", FORM.replace("probe/", "open/"));
    let mut params = program(&text);
    params["task"] = json!({});
    let begun = request(&first.server, &mut client, "tools/call", params);
    let named = json!({ "taskId": begun["result"]["task"]["taskId"] });
    eventually("the task asks", || {
        let seen = request(&other.server, &mut client, "tasks/get", named.clone());
        seen["result"]["status"] == "input_required"
    });
    // Its run goes on at the node that starts next.
    let Guarded { server, .. } = first;
    server.terminate();
    server.ended();
    let next = start();
    eventually("it has the task", || next.server.get("/ready").status == 200);
    let ask = client.body("tasks/get", named);
    eventually("it says that it has the task", || {
        let answer = other.server.ask("POST", &client.headers(), &ask);
        assert_eq!(answer.status, 503, "{answer:?}");
        assert!(answer.header("retry-after").is_some(), "{answer:?}");
        answer.body.contains("does not know this token yet")
    });
    // Any request with the token makes it known.
    assert_eq!(next.server.ask("POST", &client.headers(), &ask).status, 200);
    assert_eq!(other.server.ask("POST", &client.headers(), &ask).status, 200);
}
