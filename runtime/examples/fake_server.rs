//! A small MCP server over stdio for tests: it answers, delays, floods, hangs and crashes on request.
//!
//! Arguments: `--die-at-start`, `--mute` (never answers initialize), `--pages N`, `--loop-cursor`, `--many N`
//! (this many additional tools), `--grandchild FILE` (starts a process that outlives stdin and writes its id
//! to FILE), `--undying` (ignores the end of stdin and SIGTERM), `--slow MS` (answers nothing before that),
//! `--starts FILE` (adds a line at each start).
//!
//! Eras: by default it knows `initialize` only. `--stateless` knows `server/discover` only, `--deaf` does not
//! answer unknown methods, `--strict` ends when the first message is not `initialize`, `--future` is
//! stateless and speaks no revision that `ptc` knows. `--speaks REVISION` answers `initialize` with this
//! revision, `--refuses REVISION` refuses it, since it speaks this one only.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a server of its own, not a part of the runtime"
)]
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
    /// Number of additional tools.
    many: u64,
    /// Number of `tools/list` requests so far.
    listed: AtomicUsize,
    /// The id of `subscriptions/listen`.
    subscription: Mutex<Option<Value>>,
    /// Number of `gather` calls that have arrived.
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
    if let Some(file) = value_of("--starts") {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(file).unwrap();
        writeln!(file, "started").unwrap();
    }
    if has("--undying") {
        // SAFETY: ignoring a signal installs no handler.
        unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
    }
    println!("fake server is ready (this line is not JSON)");
    eprintln!("listening on stdin");
    let number_of = |flag: &str| value_of(flag).and_then(|n| n.parse::<u64>().ok());
    std::thread::sleep(Duration::from_millis(number_of("--slow").unwrap_or(0)));
    let pages = number_of("--pages").unwrap_or(1);
    let state = Arc::new(State { many: number_of("--many").unwrap_or(0), ..State::default() });
    let mut first = true;
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let message: Value = serde_json::from_str(&line).unwrap();
        let id = message["id"].clone();
        let method = message["method"].as_str();
        if std::mem::take(&mut first) && has("--strict") && method != Some("initialize") {
            eprintln!("expected initialize");
            std::process::exit(1);
        }
        let stateless = has("--stateless");
        let versioned = message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28";
        if stateless && !versioned && !id.is_null() && method.is_some() {
            write(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": "no version"}}));
            continue;
        }
        match method {
            Some("initialize") if has("--mute") => {}
            Some("initialize") if value_of("--refuses").is_some() => {
                write(&json!({"jsonrpc": "2.0", "id": id,
                "error": {"code": -32602, "message": "Unsupported protocol version",
                "data": {"supported": [value_of("--refuses")], "requested": "2025-11-25"}}}))
            }
            Some("initialize") if !stateless && !has("--future") => answer(
                &id,
                json!({"protocolVersion": value_of("--speaks").unwrap_or("2024-11-05".to_owned()), "capabilities": {"tools": {}},
                "serverInfo": {"name": "fake", "version": "9"}}),
            ),
            Some("server/discover") if has("--future") => write(&json!({"jsonrpc": "2.0", "id": id,
                "error": {"code": -32022, "message": "Unsupported protocol version",
                "data": {"supported": ["2031-01-01"], "requested": "2026-07-28"}}})),
            Some("server/discover") if stateless => answer(
                &id,
                json!({"resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {"listChanged": true}}, "ttlMs": 0, "cacheScope": "public",
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "fake", "version": "10"}}}),
            ),
            Some("subscriptions/listen") if stateless => {
                *state.subscription.lock().unwrap() = Some(id.clone());
                notify(&state, "notifications/subscriptions/acknowledged");
            }
            Some("notifications/cancelled") => {
                state.cancelled.lock().unwrap().push(message["params"].clone());
                state.changed.notify_all();
            }
            Some("tools/list") => {
                state.listed.fetch_add(1, Ordering::SeqCst);
                let page: u64 = message["params"]["cursor"].as_str().map_or(0, |c| c.parse().unwrap());
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
            Some(_) if has("--deaf") => {}
            Some("ping") => answer(&id, json!({})),
            Some(_) if !id.is_null() => write(&json!({"jsonrpc": "2.0", "id": id,
                "error": {"code": -32601, "message": "unknown"}})),
            Some(_) => {}
            None => {
                state.replies.lock().unwrap().push(message);
                state.changed.notify_all();
            }
        }
    }
    while has("--undying") {
        std::thread::park();
    }
}

/// Sends a notification, with the id of the subscription if there is one.
fn notify(state: &State, method: &str) {
    let mut message = json!({"jsonrpc": "2.0", "method": method});
    if let Some(id) = &*state.subscription.lock().unwrap() {
        message["params"] = json!({"_meta": {"io.modelcontextprotocol/subscriptionId": id}});
    }
    write(&message);
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
        "half-line",
        "garbage",
        "wrong-ids",
        "twice",
        "storm",
        "stderr-flood",
        "freeze",
        "long-line",
        "mixed",
    ];
    let mut tools: Vec<Value> =
        names.iter().map(|name| json!({"name": name, "inputSchema": {"type": "object"}})).collect();
    tools[1] = json!({"name": "add", "description": "Adds a and b", "inputSchema": {"type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "with-hyphen": {}, "under_score": {}},
        "required": ["a", "b"]}, "annotations": {"readOnlyHint": true}});
    if *state.extra_tool.lock().unwrap() {
        tools.push(json!({"name": "grown"}));
    }
    tools.extend((0..state.many).map(|n| {
        json!({"name": format!("tool-{n}"), "description": "One of many", "inputSchema": {"type": "object",
            "properties": {"path": {"type": "string"}}, "required": ["path"]}})
    }));
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
            "content": [{"type": "text", "text": "{}"}]}),
        ),
        "delay" => {
            std::thread::sleep(Duration::from_millis(arguments["ms"].as_u64().unwrap()));
            // Counted before the client can know of the answer.
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
            json!({"content": [],
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
            "listed": state.listed.load(Ordering::SeqCst),
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
            notify(state, "notifications/tools/list_changed");
            text(id, "grown");
        }
        "storm" => {
            *state.extra_tool.lock().unwrap() = true;
            for _ in 0..arguments["n"].as_u64().unwrap() {
                notify(state, "notifications/tools/list_changed");
            }
            text(id, "storm is over");
        }
        "half-line" => {
            let mut out = std::io::stdout().lock();
            let _ = write!(out, "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"cont")
                .and_then(|()| out.flush());
            std::process::exit(5);
        }
        "garbage" => {
            let mut out = std::io::stdout().lock();
            for n in 0..arguments["lines"].as_u64().unwrap() {
                let _ = out.write_all(&[0xff, 0x00, b'{', b'"', (n % 10) as u8 + b'0', b'\n']);
            }
            drop(out);
            text(id, "after garbage");
        }
        "wrong-ids" => {
            for wrong in [json!(999_999_999), json!("abc"), json!(-1), json!(1.5), json!(null), json!([1])] {
                text(&wrong, "not for you");
            }
            return text(id, "for you");
        }
        "twice" => {
            text(id, "first");
            text(id, "second");
        }
        "stderr-flood" => {
            let line = "e".repeat(1023);
            for _ in 0..arguments["kilobytes"].as_u64().unwrap() {
                eprintln!("{line}");
            }
            text(id, "flooded");
        }
        "freeze" => {
            // Stops this process, as a deadlock would: it neither reads nor answers any more.
            // SAFETY: the signal stops this process; no handler runs.
            unsafe { libc::raise(libc::SIGSTOP) };
            text(id, "thawed");
        }
        "long-line" => {
            let chunk = "z".repeat(1 << 20);
            let mut out = std::io::stdout().lock();
            for _ in 0..arguments["megabytes"].as_u64().unwrap() {
                let _ = out.write_all(chunk.as_bytes());
            }
            let _ = out.write_all(b"\n");
            drop(out);
            text(id, "after a long line");
        }
        "mixed" => answer(
            id,
            json!({"content": [{"type": "text", "text": "see the picture"},
                {"type": "image", "data": "AAAA", "mimeType": "image/png"},
                {"type": "resource_link", "uri": "file:///notes.md", "name": "notes"}]}),
        ),
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
