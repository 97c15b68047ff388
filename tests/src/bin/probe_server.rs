//! An MCP server over stdio that shows the tests which calls and messages reach it.
//!
//! It has one thread and answers a call when the call's condition holds, so nothing depends on time:
//! - `echo` answers at once with its argument `v` as structured content, or with its argument `result` as the whole result,
//! - `gather` answers when `n` of its calls are in flight,
//! - `hold` never answers,
//! - `flood` answers with `bytes` bytes of text, `rows` rows of JSON, or `blocks` times the content block `block`,
//! - `stats` gives the number of calls in flight (itself included), the most so far, how many came, and which were
//!   cancelled,
//! - `pester` sends requests to its client until one is refused.
//!
//! A call with `steps` first reports that many steps of progress, if its client asks for progress; `say` is their text.
//! It also has two resources, a template and a prompt. `--about TEXT` is the description of the first resource and of the
//! prompt. With `--keeps-requests` it does not withdraw its requests when their calls are cancelled.
#![expect(clippy::unwrap_used, reason = "a test helper: what is broken should be loud")]

use serde_json::{Value, json};
use std::io::{BufRead, Write};

#[derive(Default)]
struct Probe {
    /// Ids of the calls without an answer.
    in_flight: Vec<Value>,
    most_in_flight: usize,
    calls: usize,
    cancelled: usize,
    /// `gather` calls without an answer.
    gathered: Vec<Value>,
    /// The capabilities that the client declared.
    offered: Value,
    /// The server has one more tool than at the start.
    has_grown: bool,
    /// Description of the first resource and of the prompt.
    about: Option<String>,
}

const TOOLS: [&str; 6] = ["echo", "gather", "hold", "flood", "stats", "refuse"];

/// Tools for clients with a capability: each sends the client a request and answers with the client's response.
const ASKING: [(&str, &str, &str); 3] = [
    ("ask", "elicitation", "elicitation/create"),
    ("roots", "roots", "roots/list"),
    ("pester", "elicitation", "elicitation/create"),
];

fn main() {
    let about = std::env::args().skip_while(|argument| argument != "--about").nth(1);
    let mut probe = Probe { about, ..Probe::default() };
    let keeps_requests = std::env::args().any(|argument| argument == "--keeps-requests");
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let message: Value = serde_json::from_str(&line).unwrap();
        let (id, params) = (&message["id"], &message["params"]);
        match message["method"].as_str().unwrap_or_default() {
            "initialize" => {
                probe.offered = params["capabilities"].clone();
                let answer = json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {}, "resources": {}, "prompts": {} },
                    "serverInfo": { "name": "probe", "version": "1" },
                    "instructions": "Ask it for\nechoes." });
                reply(id, &answer);
            }
            "tools/list" => {
                let asking = ASKING.iter().filter(|(_, offer, _)| probe.offered[*offer].is_object());
                let grown = probe.has_grown.then_some("grown");
                let names = TOOLS.into_iter().chain(asking.map(|(name, ..)| *name)).chain(grown);
                // Facts that only its client may state.
                let facts = json!({ "_ptc": { "transport": "openapi", "defaultArgs": { "v": "added" } } });
                let tools = names.map(|name| {
                    json!({ "name": name, "description": format!("The {name} tool"), "inputSchema": { "type": "object" }, "_meta": facts })
                });
                reply(id, &json!({ "tools": tools.collect::<Vec<_>>() }));
            }
            // The response to our own request; its id contains the id of the call.
            "" => {
                let call: Value = serde_json::from_str(id.as_str().unwrap()).unwrap();
                if let [call, asked] = call.as_array().map(Vec::as_slice).unwrap_or_default() {
                    probe.pester(call, asked.as_u64().unwrap(), &message["error"]["message"]);
                    continue;
                }
                probe.answer(&call, &structured(&json!([message["result"], message["error"]["message"]])));
            }
            "tools/call" => probe.call(id, params),
            "notifications/cancelled" => {
                let before = probe.in_flight.len();
                probe.in_flight.retain(|id| *id != params["requestId"]);
                probe.gathered.retain(|id| *id != params["requestId"]);
                probe.cancelled += before - probe.in_flight.len();
                if keeps_requests {
                    continue;
                }
                let asked = json!({ "requestId": params["requestId"].to_string() });
                send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": asked }));
            }
            "ping" => reply(id, &json!({})),
            "resources/list" => reply(
                id,
                &json!({ "resources": [
                    probe.described(json!({ "uri": "memo://notes", "name": "notes", "mimeType": "text/plain" })),
                    { "uri": "memo://dot", "name": "dot", "mimeType": "image/png" },
                ] }),
            ),
            "resources/templates/list" => reply(
                id,
                &json!({ "resourceTemplates": [{ "uriTemplate": "memo://numbers/{n}", "name": "numbers" }] }),
            ),
            "resources/read" => resource(id, &params["uri"]),
            "prompts/list" => reply(
                id,
                &json!({ "prompts": [probe.described(json!({ "name": "greet", "arguments": [{ "name": "who", "required": true }] }))] }),
            ),
            "prompts/get" => {
                let text = format!("Greet {}.", params["arguments"]["who"].as_str().unwrap_or("nobody"));
                let message = json!({ "role": "user", "content": { "type": "text", "text": text } });
                reply(id, &json!({ "description": "A greeting", "messages": [message] }));
            }
            _ if id.is_null() => {}
            _ => send(
                &json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "unknown" } }),
            ),
        }
    }
}

impl Probe {
    fn described(&self, mut entry: Value) -> Value {
        if let Some(about) = &self.about {
            entry["description"] = json!(about);
        }
        entry
    }

    fn call(&mut self, id: &Value, params: &Value) {
        let arguments = &params["arguments"];
        self.calls += 1;
        self.in_flight.push(id.clone());
        self.most_in_flight = self.most_in_flight.max(self.in_flight.len());
        let (token, say) = (&params["_meta"]["progressToken"], &arguments["say"]);
        for step in (1..=arguments["steps"].as_u64().unwrap_or_default()).filter(|_| !token.is_null()) {
            let step = json!({ "progressToken": token, "progress": step, "total": arguments["steps"], "message": say });
            send(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": step }));
        }
        match params["name"].as_str().unwrap() {
            // `_meta` of the call.
            "echo" if arguments["meta"] == true => self.answer(id, &structured(&params["_meta"])),
            // From now on there is one more tool; the server announces it before it answers.
            "echo" if arguments["grow"] == true => {
                self.has_grown = true;
                send(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
                self.answer(id, &structured(&json!("grown")));
            }
            // From now on the first resource and the prompt have another description, which is announced likewise.
            "echo" if arguments["about"].is_string() => {
                self.about = arguments["about"].as_str().map(str::to_owned);
                for list in ["resources", "prompts"] {
                    let method = format!("notifications/{list}/list_changed");
                    send(&json!({ "jsonrpc": "2.0", "method": method }));
                }
                self.answer(id, &structured(&json!("described")));
            }
            "echo" if arguments["result"].is_object() => self.answer(id, &arguments["result"]),
            "echo" => self.answer(id, &structured(&arguments["v"])),
            "gather" => {
                self.gathered.push(id.clone());
                if self.gathered.len() as u64 >= arguments["n"].as_u64().unwrap() {
                    for id in std::mem::take(&mut self.gathered) {
                        self.answer(&id, &structured(&json!("together")));
                    }
                }
            }
            "hold" => {}
            "flood" if arguments["rows"].is_u64() => {
                let row = |n: u64| json!({ "n": n, "pad": "x".repeat(24) });
                let rows: Vec<Value> = (0..arguments["rows"].as_u64().unwrap()).map(row).collect();
                self.answer(id, &json!({ "content": [{ "type": "text", "text": json!(rows).to_string() }] }));
            }
            "flood" if arguments["blocks"].is_u64() => {
                let blocks = vec![&arguments["block"]; arguments["blocks"].as_u64().unwrap() as usize];
                self.answer(id, &json!({ "content": blocks }));
            }
            "flood" => {
                let text = "x".repeat(arguments["bytes"].as_u64().unwrap() as usize);
                self.answer(id, &json!({ "content": [{ "type": "text", "text": text }] }));
            }
            "refuse" => {
                self.answer(id, &json!({ "isError": true, "content": [{ "type": "text", "text": "no" }] }));
            }
            "pester" => self.pester(id, 0, &Value::Null),
            name if ASKING.iter().any(|(known, ..)| *known == name) => {
                let (_, _, method) = ASKING.iter().find(|(known, ..)| *known == name).unwrap();
                send(
                    &json!({ "jsonrpc": "2.0", "id": id.to_string(), "method": method, "params": arguments }),
                );
            }
            _ => {
                let stats = json!({ "in_flight": self.in_flight.len(), "most_in_flight": self.most_in_flight, "calls": self.calls,
                    "cancelled": self.cancelled, "pid": std::process::id() });
                self.answer(id, &structured(&stats));
            }
        }
    }

    /// Asks once more until the client refuses; then answers with the number of requests and the refusal.
    fn pester(&mut self, call: &Value, asked: u64, refused: &Value) {
        if !refused.is_null() {
            return self.answer(call, &structured(&json!([asked, refused])));
        }
        let form = json!({ "message": "Again?", "requestedSchema": { "type": "object", "properties": {} } });
        let id = json!([call, asked + 1]).to_string();
        send(&json!({ "jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": form }));
    }

    fn answer(&mut self, id: &Value, result: &Value) {
        self.in_flight.retain(|waiting| waiting != id);
        reply(id, result);
    }
}

/// A text, an image, a number as JSON.
fn resource(id: &Value, uri: &Value) {
    let uri_text = uri.as_str().unwrap_or_default();
    let contents = match uri_text.strip_prefix("memo://") {
        Some("notes") => json!({ "uri": uri, "mimeType": "text/plain", "text": "Buy milk." }),
        Some("dot") => json!({ "uri": uri, "mimeType": "image/png", "blob": "iVBORw0KGgo=" }),
        Some(path) if path.starts_with("numbers/") => {
            json!({ "uri": uri, "mimeType": "application/json", "text": format!("{{\"n\": {}}}", &path[8..]) })
        }
        _ => {
            let error = json!({ "code": -32002, "message": "Resource not found", "data": { "uri": uri } });
            return send(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
        }
    };
    reply(id, &json!({ "contents": [contents] }));
}

fn structured(value: &Value) -> Value {
    json!({ "content": [{ "type": "text", "text": value.to_string() }], "structuredContent": value })
}

fn reply(id: &Value, result: &Value) {
    send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
}

fn send(message: &Value) {
    let mut out = std::io::stdout().lock();
    // A failed write means that the client is gone; then the input ends too.
    drop(writeln!(out, "{message}").and_then(|()| out.flush()));
}
