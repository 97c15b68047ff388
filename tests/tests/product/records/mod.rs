//! Records of calls: in memory and in files.
//!
//! - `debug`: `lisp_debug`. `traces`: records in files. `disk`: a disk that is full.

#![allow(clippy::unwrap_used, reason = "a broken server should be loud")]

mod debug;
#[cfg(target_os = "linux")]
mod disk;
mod otlp;
mod traces;

use ptc_tests::serve::Server;
use serde_json::{Value, json};

/// The result of a call; notifications before it are skipped.
fn call(server: &mut Server, tool: &str, arguments: Value) -> Value {
    let id = server.begin("tools/call", json!({ "name": tool, "arguments": arguments }));
    answer(server, &json!(id))["result"].clone()
}

fn answer(server: &mut Server, id: &Value) -> Value {
    loop {
        let answer = server.receive();
        if answer["id"] == *id {
            return answer;
        }
    }
}

/// The answer of `lisp_debug`.
fn ask(server: &mut Server, question: Value) -> Value {
    let answer = call(server, "lisp_debug", question);
    assert_eq!(answer["isError"], false, "{answer}");
    let text = answer["content"][0]["text"].as_str().unwrap();
    let mirrored: Value = serde_json::from_str(text).unwrap();
    assert_eq!(mirrored, answer["structuredContent"]);
    assert_eq!(mirrored["redaction_applied"], true);
    mirrored
}
