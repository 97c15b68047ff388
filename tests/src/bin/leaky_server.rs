//! An MCP server over stdio that repeats its secrets wherever it can, in every form that the tests know.
//!
//! The variable `S<n>` holds its n-th secret. The secrets appear in its name, in names, descriptions and schemas of
//! its tools, on its stderr, in results and in errors. With the argument `die` it exits after printing them.
#![expect(clippy::unwrap_used, reason = "a test helper: what is broken should be loud")]

use ptc_tests::leaks::{SECRETS, forms};
use serde_json::{Value, json};
use std::io::{BufRead, Write};

fn main() {
    let secrets: Vec<String> =
        (0..SECRETS.len()).map(|index| std::env::var(format!("S{index}")).unwrap_or_default()).collect();
    let dies = std::env::args().nth(1).is_some_and(|argument| argument == "die");
    for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
        eprintln!("the key is {secret}");
        eprintln!("{}", all(secret, " ; "));
        // The line is cut in the middle of the secret.
        eprintln!("{}{secret}", "x".repeat(4096 - secret.len() / 2));
    }
    if dies {
        let about = std::env::args().nth(2).and_then(|index| index.parse::<usize>().ok()).unwrap_or_default();
        eprintln!("bad key: {}", all(&secrets[about], " "));
        std::process::exit(1);
    }
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let message: Value = serde_json::from_str(&line).unwrap();
        let (id, params) = (&message["id"], &message["params"]);
        match message["method"].as_str().unwrap_or_default() {
            "initialize" => reply(
                id,
                &json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                    "serverInfo": { "name": secrets[0], "version": all(&secrets[1], ",") } }),
            ),
            "tools/list" => reply(id, &json!({ "tools": tools(&secrets) })),
            "tools/call" => call(id, params, &secrets),
            _ if id.is_null() => {}
            _ => send(
                &json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "unknown" } }),
            ),
        }
    }
}

fn all(secret: &str, between: &str) -> String {
    forms(secret).into_iter().map(|form| form.planted).collect::<Vec<_>>().join(between)
}

fn tools(secrets: &[String]) -> Vec<Value> {
    let any = json!({ "type": "object" });
    let fixed = ["give", "say", "refuse", "fail"];
    let mut tools: Vec<Value> =
        fixed.iter().map(|name| json!({ "name": name, "inputSchema": any, "annotations": {} })).collect();
    for (index, secret) in secrets.iter().enumerate() {
        for (at, form) in forms(secret).into_iter().enumerate() {
            let text = form.planted;
            // Descriptions are cut after 80, 100, 120 and some more characters.
            let cut = |room: usize| format!("{} {text}", "word ".repeat(room / 5));
            tools.push(json!({
                "name": format!("t{index}-{at}-{text}"), "title": text,
                "description": if at % 2 == 0 { format!("Of {text}") } else { cut([70, 90, 110, 280][at % 4]) },
                "inputSchema": { "type": "object", "required": [text], "properties": {
                    "a": { "type": "string", "description": cut(110), "default": text, "enum": [text, "b"] },
                    "b": { "const": text, "title": text },
                    text.clone(): { "type": "integer", "description": text },
                } },
                "outputSchema": { "type": "object", "properties": { text.clone(): { "type": "string" } } },
            }));
        }
        tools.push(json!({ "name": format!("d{index}"), "description": secret, "inputSchema": any }));
    }
    tools
}

fn call(id: &Value, params: &Value, secrets: &[String]) {
    let arguments = &params["arguments"];
    let secret = &secrets[arguments["secret"].as_u64().unwrap_or_default() as usize];
    let texts: Vec<String> = forms(secret).into_iter().map(|form| form.planted).collect();
    let form = arguments["form"].as_u64().unwrap_or_default() as usize;
    match params["name"].as_str().unwrap() {
        "give" => {
            let value = json!({ "plain": secret, "forms": texts });
            reply(id, &json!({ "content": [], "structuredContent": value }));
        }
        "say" => reply(id, &json!({ "content": [{ "type": "text", "text": texts[form] }] })),
        "refuse" => {
            let text = format!("refused {}", texts[form]);
            reply(id, &json!({ "isError": true, "content": [{ "type": "text", "text": text }] }));
        }
        _ => {
            // Errors are cut, too.
            let message = format!("{} {}", "word ".repeat(95), texts[form]);
            let data = json!({ "key": texts[form] });
            let error = json!({ "code": -32000, "message": message, "data": data });
            send(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
        }
    }
}

fn reply(id: &Value, result: &Value) {
    send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
}

fn send(message: &Value) {
    let mut out = std::io::stdout().lock();
    // A failed write means that the client is gone; then the input ends too.
    drop(writeln!(out, "{message}").and_then(|()| out.flush()));
}
