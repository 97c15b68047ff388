//! An MCP server over stdio for tests that reads its tools from a file: `listing_server TOOLS.json [LOG]`.
//!
//! Every call answers with its own arguments. With a log, the server adds a line for each `tools/call` before
//! it answers, so that a test can prove that none arrived. `--dead` makes it exit at once.
#![expect(clippy::disallowed_methods, reason = "a server of its own, not a part of the runtime")]
#![expect(clippy::unwrap_used, reason = "a test helper: a broken test should be loud")]

use serde_json::{Value, json};
use std::io::{BufRead, Write};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let tools = arguments.next().unwrap();
    if tools == "--dead" {
        std::process::exit(3);
    }
    let tools: Value = serde_json::from_str(&std::fs::read_to_string(tools).unwrap()).unwrap();
    let log = arguments.next();
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        let message: Value = serde_json::from_str(&line).unwrap();
        let id = &message["id"];
        let result = match message["method"].as_str() {
            Some("initialize") => json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "listing", "version": "1"}}),
            Some("tools/list") => json!({ "tools": tools }),
            Some("tools/call") => {
                let params = &message["params"];
                if let Some(log) = &log {
                    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
                    writeln!(file, "{}", params["name"]).unwrap();
                }
                json!({"content": [], "structuredContent": {"args": params["arguments"]}})
            }
            _ if id.is_null() => continue,
            _ => {
                reply(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown"}}));
                continue;
            }
        };
        reply(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }
}

fn reply(message: &Value) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{message}").and_then(|()| out.flush()).unwrap();
}
