//! An MCP server with one tool that returns very many rows, for `ptc-bench spill`.

use serde_json::{Value, json};
use std::io::{self, BufRead, Write};

/// One row of the result.
fn row(number: u64) -> String {
    format!(
        "{{\\\"id\\\":{number},\\\"name\\\":\\\"row {number}\\\",\\\"state\\\":\\\"open\\\",\\\"value\\\":{}}}",
        number % 1_000
    )
}

/// Serves the tool, which returns a list of rows of about the requested size as a text.
///
/// # Errors
/// Broken pipes.
pub fn serve(input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    for line in input.lines() {
        let message: Value = serde_json::from_str(&line?).unwrap_or_default();
        let id = &message["id"];
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                "serverInfo": { "name": "rows", "version": "1" } }),
            "tools/list" => json!({ "tools": [{ "name": "rows", "inputSchema": { "type": "object" } }] }),
            "tools/call" => {
                write!(
                    output,
                    "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"["
                )?;
                let (mut left, mut number) =
                    (message["params"]["arguments"]["bytes"].as_i64().unwrap_or(0), 0);
                let mut rows = String::new();
                while left > 0 {
                    rows.clear();
                    while rows.len() < 64 << 10 {
                        if number > 0 {
                            rows.push(',');
                        }
                        rows.push_str(&row(number));
                        number += 1;
                    }
                    output.write_all(rows.as_bytes())?;
                    left -= rows.len() as i64;
                }
                output.write_all(b"]\"}]}}\n")?;
                output.flush()?;
                continue;
            }
            _ if id.is_null() => continue,
            _ => json!({}),
        };
        writeln!(output, "{}", json!({ "jsonrpc": "2.0", "id": id, "result": result }))?;
        output.flush()?;
    }
    Ok(())
}
