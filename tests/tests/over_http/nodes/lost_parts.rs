//! An answer that comes from another node in parts is not taken for whole when a part of it is lost.
#![allow(clippy::unwrap_used, reason = "a broken answer should be loud")]

use crate::any_node::{FORM, Nodes, Pending, offering, request};
use ptc_tests::processes::eventually;
use ptc_tests::web::program;
use serde_json::json;

#[test]
fn a_stream_from_another_node_breaks_when_its_answer_is_lost() {
    let Some(Nodes { nodes, _config, _database: mut database }) = Nodes::start(2, &[]) else { return };
    let mut client = offering(&nodes[0], "2025-11-25");
    let mut params = program(FORM);
    params["task"] = json!({});
    let begun = request(&nodes[0], &mut client, "tools/call", params);
    let named = json!({ "taskId": begun["result"]["task"]["taskId"] });
    eventually("the task asks", || {
        let state = request(&nodes[1], &mut client, "tasks/get", named.clone());
        state["result"]["status"] == "input_required"
    });
    let body = client.body("tasks/result", named);
    let mut browser = nodes[1].connect();
    browser.send("POST", &client.headers(), &body);
    let head = browser.head().unwrap();
    let mut waiting = Pending(browser, head);
    let question = waiting.next();
    database.stop();
    // The task ends, and its result has no way to the other node.
    client.respond(&nodes[0], &question, &json!({ "result": { "action": "decline" } }));
    assert!(!waiting.0.ends_whole());
}
