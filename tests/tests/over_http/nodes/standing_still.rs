//! A database that accepts connections and statements and does not answer holds no request up without end.
#![allow(clippy::unwrap_used, reason = "a broken answer should be loud")]

use crate::any_node::{Nodes, eval, node_is_in_touch, offering};
use ptc_tests::processes::eventually;
use ptc_tests::web::{program, sha256, stateless_body, stateless_headers};
use serde_json::json;

const WRITE: &str = "(:reason (tool/call 'probe/echo {:v 1}))";

#[test]
fn requests_are_answered_while_the_database_stands_still() {
    let Some(Nodes { nodes, _config, _database: database }) = Nodes::start(2, &["--state-patience", "1s"])
    else {
        return;
    };
    let mut client = offering(&nodes[0], "2025-11-25");
    offering(&nodes[1], "2025-11-25");
    database.pause();
    for node in &nodes {
        eventually("it says so", || node.get("/ready").json()["state"] == "unavailable");
    }
    for _ in 0..2 {
        let unknown = client.body("tasks/get", json!({ "taskId": "unknown" }));
        // There is an answer: an error, or that the database is away.
        let answer = nodes[0].ask("POST", &client.headers(), &unknown);
        assert!(answer.status == 503 || answer.json().get("error").is_some(), "{answer:?}");
        assert_eq!(eval(&nodes[0], &mut client, WRITE), ":state_unavailable");
        // A node that does not know the session reads it from its id.
        assert_eq!(eval(&nodes[1], &mut client, "(+ 1 2)"), "3");
    }
    database.go_on();
    for node in &nodes {
        eventually("it is back", || node_is_in_touch(node));
        eventually("it writes", || eval(node, &mut client, WRITE) != ":state_unavailable");
    }
}

#[test]
fn calls_that_are_counted_go_on_while_the_database_stands_still() {
    let token = "t".repeat(40);
    let tokens = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(tokens.path(), format!("[one]\nsha256 = \"{}\"\nevals_per_minute = 60\n", sha256(&token)))
        .unwrap();
    let flags = ["--http-tokens", tokens.path().to_str().unwrap()];
    let Some(Nodes { nodes, _config, _database: database }) = Nodes::start(1, &flags) else { return };
    let authorization = format!("Bearer {token}");
    let door = nodes[0].door();
    let call = || {
        let headers = [("Authorization", authorization.as_str())];
        let headers = [&headers, &*stateless_headers("tools/call", "lisp_eval")].concat();
        let body = stateless_body(1, "tools/call", program("(+ 1 2)"));
        door.try_connect().unwrap().ask("POST", &headers, &body)
    };
    assert_eq!(call().status, 200);
    database.pause();
    std::thread::scope(|scope| {
        let calls: Vec<_> = (0..20).map(|_| scope.spawn(call)).collect();
        for called in calls {
            assert_eq!(called.join().unwrap().status, 200);
        }
    });
}
