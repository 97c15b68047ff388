//! An MCP server over stdio with tools that return rows of a file: `table-server FILE NAME`.
//!
//! `FILE` holds for each name its `tables` and its `tools`. A tool has a `description` and arguments (`args`: name to
//! type, optional unless listed in `required`), and gives one of
//! - `rows`: the rows of that table with members equal to the given arguments. With `page` it gives so many at once, by
//!   number (`{"items", "page", "pages"}`) or, if the tool takes a `cursor`, as `{"items", "next_cursor"}`;
//! - `one`: the first such row, or the tool's own error;
//! - `texts`: the text of that table that the argument `path` names, or the tool's own error.
//!
//! `annotations` are passed on unchanged.
//!
//! `as` is `text` if JSON comes as text only. `refuse` (a member, its value, a message) answers such a row with the
//! tool's own error, `break` with a protocol error.
#![expect(clippy::unwrap_used, reason = "a test helper: what is broken should be loud")]

use serde_json::{Map, Value, json};
use std::io::{BufRead, Write};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let file: Value = serde_json::from_str(&std::fs::read_to_string(&arguments[1]).unwrap()).unwrap();
    let server = &file[&arguments[2]];
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let message: Value = serde_json::from_str(&line).unwrap();
        let (id, params) = (&message["id"], &message["params"]);
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => Ok(json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                "serverInfo": { "name": arguments[2], "version": "1" } })),
            "tools/list" => Ok(json!({ "tools": tools(server) })),
            "tools/call" => call(server, params).map_err(|message| (-32000, message)),
            "ping" => Ok(json!({})),
            _ if id.is_null() => continue,
            _ => Err((-32601, "unknown method".to_owned())),
        };
        let answer = match result {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err((code, message)) => {
                json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
            }
        };
        let mut out = std::io::stdout().lock();
        // A failed write means that the client is gone; then the input ends too.
        drop(writeln!(out, "{answer}").and_then(|()| out.flush()));
    }
}

fn tools(server: &Value) -> Vec<Value> {
    let tool = |(name, tool): (&String, &Value)| {
        let properties: Map<String, Value> =
            object(&tool["args"]).map(|(name, kind)| (name.clone(), json!({ "type": kind }))).collect();
        json!({ "name": name, "description": tool["description"], "annotations": tool["annotations"], "inputSchema": { "type": "object",
            "properties": properties, "required": tool.get("required").unwrap_or(&json!([])) } })
    };
    object(&server["tools"]).map(tool).collect()
}

fn object(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// The result of a call, or the message of a protocol error.
fn call(server: &Value, params: &Value) -> Result<Value, String> {
    let tool = &server["tools"][params["name"].as_str().unwrap()];
    let arguments = &params["arguments"];
    let table = |kind: &str| tool[kind].as_str().map(|name| &server["tables"][name]);
    if let Some(texts) = table("texts") {
        let path = arguments["path"].as_str().unwrap_or_default();
        return Ok(texts[path].as_str().map_or_else(|| refusal(&format!("no such file: {path}")), text));
    }
    let is_asked_for = |row: &&Value| {
        let mut by = object(arguments).filter(|(name, _)| !["page", "cursor"].contains(&name.as_str()));
        by.all(|(name, wanted)| row[name] == *wanted)
    };
    if let Some(rows) = table("one") {
        let Some(row) = rows.as_array().unwrap().iter().find(is_asked_for) else {
            return Ok(refusal(&format!("nothing found for {arguments}")));
        };
        let meets = |rule: &str| {
            let rule = tool[rule].as_array()?;
            (row[rule[0].as_str().unwrap()] == rule[1]).then(|| rule[2].as_str().unwrap())
        };
        return match (meets("break"), meets("refuse")) {
            (Some(message), _) => Err(message.to_owned()),
            (None, Some(message)) => Ok(refusal(message)),
            (None, None) => Ok(shown(tool, row)),
        };
    }
    let rows: Vec<&Value> = table("rows").unwrap().as_array().unwrap().iter().filter(is_asked_for).collect();
    let Some(size) = tool["page"].as_u64().map(|size| size as usize) else {
        return Ok(shown(tool, &json!(rows)));
    };
    let pages = rows.len().div_ceil(size);
    let with_cursor = tool["args"].get("cursor").is_some();
    let page = match arguments["cursor"].as_str() {
        Some(cursor) => cursor.trim_start_matches("after-").parse::<usize>().unwrap() / size + 1,
        None => arguments["page"].as_u64().unwrap_or(1) as usize,
    };
    let items: Vec<&Value> = rows.into_iter().skip((page - 1) * size).take(size).collect();
    let next = (page < pages).then(|| format!("after-{}", page * size));
    Ok(shown(
        tool,
        &match with_cursor {
            true => json!({ "items": items, "next_cursor": next }),
            false => json!({ "items": items, "page": page, "pages": pages }),
        },
    ))
}

/// The value as structured content, which must be an object, or as text.
fn shown(tool: &Value, value: &Value) -> Value {
    let mut result = text(&value.to_string());
    if tool["as"] != "text" && value.is_object() {
        result["structuredContent"] = value.clone();
    }
    result
}

fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

fn refusal(message: &str) -> Value {
    let mut result = text(message);
    result["isError"] = true.into();
    result
}
