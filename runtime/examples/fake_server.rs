//! A small MCP server over stdio for tests: it answers, delays, floods, hangs and crashes on request.
//!
//! Arguments: `--die-at-start`, `--mute` (never answers initialize), `--pages N`, `--loop-cursor`,
//! `--grandchild FILE` (starts a process that outlives stdin and writes its id to FILE).
#![expect(clippy::unwrap_used, reason = "a test helper: a broken test should be loud")]
#![expect(clippy::zombie_processes, reason = "the grandchild is meant to outlive its parent's care")]

use serde_json::{Value, json};
use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

#[derive(Default)]
struct State {
    in_flight: AtomicUsize,
    most_in_flight: AtomicUsize,
    cancelled: Mutex<Vec<Value>>,
    replies: Mutex<Vec<Value>>,
    changed: Condvar,
    extra_tool: Mutex<bool>,
    /// `gather` calls that have arrived.
    gathered: Mutex<usize>,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let value_of = |flag: &str| {
        let at = arguments.iter().position(|argument| argument == flag)?;
        arguments.get(at + 1).cloned()
    };
    if has("--die-at-start") {
        eprintln!("fatal: no licence key {}", std::env::var("LICENCE").unwrap_or_default());
        std::process::exit(3);
    }
    if let Some(file) = value_of("--grandchild") {
        let child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        std::fs::write(file, child.id().to_string()).unwrap();
    }
    println!("fake server is ready (this line is not JSON)");
    eprintln!("listening on stdin");
    let pages: usize = value_of("--pages").and_then(|n| n.parse().ok()).unwrap_or(1);
    let state = Arc::new(State::default());
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let message: Value = serde_json::from_str(&line).unwrap();
        let id = message["id"].clone();
        match message["method"].as_str() {
            Some("initialize") if has("--mute") => {}
            Some("initialize") => answer(
                &id,
                json!({"protocolVersion": "2024-11-05", "capabilities": {"tools": {}},
                "serverInfo": {"name": "fake", "version": "9"}}),
            ),
            Some("notifications/cancelled") => {
                state.cancelled.lock().unwrap().push(message["params"].clone());
                state.changed.notify_all();
            }
            Some("tools/list") => {
                let page: usize = message["params"]["cursor"].as_str().map_or(0, |c| c.parse().unwrap());
                let mut tools =
                    if page == 0 { tools(&state) } else { vec![json!({"name": format!("page-{page}")})] };
                if let Ok(secret) = std::env::var("LICENCE") {
                    tools.push(json!({"name": "leaky", "description": format!("key is {secret}")}));
                }
                let mut result = json!({ "tools": tools });
                if has("--loop-cursor") {
                    result["nextCursor"] = json!("1");
                } else if page + 1 < pages {
                    result["nextCursor"] = json!((page + 1).to_string());
                }
                answer(&id, result);
            }
            Some("tools/call") => {
                let state = state.clone();
                // Calls overlap: each has its own thread.
                std::thread::spawn(move || call(&state, &id, &message["params"]));
            }
            Some(_) if !id.is_null() => write(&json!({"jsonrpc": "2.0", "id": id,
                "error": {"code": -32601, "message": "unknown"}})),
            Some(_) => {}
            None => {
                state.replies.lock().unwrap().push(message);
                state.changed.notify_all();
            }
        }
    }
}

fn tools(state: &State) -> Vec<Value> {
    let names = [
        "echo",
        "add",
        "delay",
        "gather",
        "big",
        "hang",
        "crash",
        "exit",
        "noise",
        "fail",
        "rpc-error",
        "structured",
        "image",
        "stats",
        "ask",
        "env",
        "null",
        "grow",
        "id-last",
        "number",
    ];
    let mut tools: Vec<Value> =
        names.iter().map(|name| json!({"name": name, "inputSchema": {"type": "object"}})).collect();
    tools[1] = json!({"name": "add", "description": "Adds a and b", "inputSchema": {"type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "with-hyphen": {}, "under_score": {}},
        "required": ["a", "b"]}, "annotations": {"readOnlyHint": true}});
    if *state.extra_tool.lock().unwrap() {
        tools.push(json!({"name": "grown"}));
    }
    tools
}

fn call(state: &State, id: &Value, params: &Value) {
    let now = state.in_flight.fetch_add(1, Ordering::SeqCst) + 1;
    state.most_in_flight.fetch_max(now, Ordering::SeqCst);
    let arguments = &params["arguments"];
    match params["name"].as_str().unwrap_or("") {
        "echo" => text(id, &arguments.to_string()),
        "add" => answer(
            id,
            json!({"structuredContent":
            {"sum": arguments["a"].as_i64().unwrap() + arguments["b"].as_i64().unwrap()},
            "content": [{"type": "text", "text": "a sum"}]}),
        ),
        "delay" => {
            std::thread::sleep(Duration::from_millis(arguments["ms"].as_u64().unwrap()));
            // No longer in flight before the client can know of the answer.
            state.in_flight.fetch_sub(1, Ordering::SeqCst);
            return text(id, "\"late\"");
        }
        "gather" => {
            // Answers only when `n` calls are in flight at the same time.
            let n = arguments["n"].as_u64().unwrap() as usize;
            let mut gathered = state.gathered.lock().unwrap();
            *gathered += 1;
            state.changed.notify_all();
            while *gathered < n {
                gathered = state.changed.wait(gathered).unwrap();
            }
            drop(gathered);
            text(id, "\"together\"");
        }
        "big" => text(id, &"x".repeat(arguments["bytes"].as_u64().unwrap() as usize)),
        "id-last" => {
            let padding = "y".repeat(arguments["bytes"].as_u64().unwrap() as usize);
            line(&format!(
                "{{\"jsonrpc\":\"2.0\",\"result\":{{\"content\":[],\"p\":\"{padding}\"}},\"id\":{id}}}"
            ));
        }
        "hang" => return,
        "crash" => std::process::abort(),
        "exit" => std::process::exit(arguments["code"].as_i64().unwrap_or(0) as i32),
        "noise" => {
            line("debug: something {\"id\": 1}");
            line("[]");
            text(id, "after noise");
        }
        "fail" => answer(id, json!({"isError": true, "content": [{"type": "text", "text": "no such row"}]})),
        "rpc-error" => write(
            &json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": "database is down"}}),
        ),
        "structured" => answer(
            id,
            json!({"content": [{"type": "text", "text": "ignored"}],
            "structuredContent": {"rows": [{"id": 1, "name": "é"}, {"id": 2, "name": null}]}}),
        ),
        "image" => {
            answer(id, json!({"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}]}))
        }
        "number" => text(id, "42"),
        "null" => answer(id, Value::Null),
        "stats" => answer(
            id,
            json!({"content": [], "structuredContent": {
            "most_in_flight": state.most_in_flight.load(Ordering::SeqCst),
            "pid": std::process::id(),
            "cancelled": *state.cancelled.lock().unwrap()}}),
        ),
        "ask" => {
            write(&json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}));
            write(&json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list"}));
            write(&json!({"jsonrpc": "2.0", "id": 2, "method": "sampling/createMessage", "params": {}}));
            let mut replies = state.replies.lock().unwrap();
            while replies.len() < 3 {
                replies = state.changed.wait(replies).unwrap();
            }
            answer(id, json!({"structuredContent": {"replies": *replies}}));
        }
        "env" => {
            let mut names: Vec<String> = std::env::vars().map(|(name, _)| name).collect();
            names.sort();
            answer(
                id,
                json!({"structuredContent": {"names": names, "cwd": std::env::current_dir().unwrap()}}),
            );
        }
        "grow" => {
            *state.extra_tool.lock().unwrap() = true;
            write(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
            text(id, "grown");
        }
        _ => {
            write(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": "Unknown tool"}}))
        }
    }
    state.in_flight.fetch_sub(1, Ordering::SeqCst);
}

fn text(id: &Value, text: &str) {
    answer(id, json!({"content": [{"type": "text", "text": text}]}));
}

fn answer(id: &Value, result: Value) {
    write(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

fn write(message: &Value) {
    line(&message.to_string());
}

fn line(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(line.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
}
