//! An MCP server that misbehaves in every way that can hurt its client. Each call is done before the next line is
//! read.
//!
//! Arguments: `--list FILE` answers `tools/list` with the lines that FILE has then verbatim, one a page; `--pages N BYTES`
//! gives N pages of tools with BYTES bytes together (N = 0: endless); `--about FILE` has its instructions.
//!
//! Tools: `echo {v}`; `pid`; `stop` (SIGSTOP); `deaf` (stops reading); `chatter {kind}` (stops reading and sends
//! without pause); `bomb {n, kind}` (sends n messages without reading, then answers); `raw {text}` and `bytes {list}`
//! (written verbatim, `@` stands for the id); `fork {how}` (leaves a process behind and gives its id).

#![expect(clippy::unwrap_used, reason = "a test server: what is broken should be loud")]

use serde_json::{Value, json};
use std::io::{BufRead, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

const TOOLS: [&str; 10] = ["echo", "pid", "stop", "deaf", "chatter", "bomb", "raw", "bytes", "fork", "crash"];

struct Server {
    /// A file with the pages of the tool list, verbatim.
    list: Option<String>,
    /// Number of pages, and bytes of each.
    fat: Option<(usize, usize)>,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let after = |flag: &str, place: usize| {
        let at = arguments.iter().position(|argument| argument == flag)?;
        arguments.get(at + place).cloned()
    };
    let number = |flag: &str, place: usize| after(flag, place).map(|text| text.parse::<usize>().unwrap());
    let server = Server { list: after("--list", 1), fat: number("--pages", 1).zip(number("--pages", 2)) };
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let message: Value = serde_json::from_str(&line).unwrap();
        let (id, params) = (&message["id"], &message["params"]);
        match message["method"].as_str().unwrap_or_default() {
            "initialize" => reply(
                id,
                &json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                    "instructions": after("--about", 1).map(|file| std::fs::read_to_string(file).unwrap()),
                    "serverInfo": { "name": "hostile", "version": "1" } }),
            ),
            "tools/list" => server.page(id, page_of(&params["cursor"])),
            "tools/call" => call(id, params),
            "ping" => reply(id, &json!({})),
            _ if id.is_null() => {}
            _ => send(
                &json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "unknown" } }),
            ),
        }
    }
}

/// The page that a cursor names: a number, in any form.
fn page_of(cursor: &Value) -> usize {
    let number = cursor.as_str().map_or_else(|| cursor.as_u64(), |text| text.parse().ok());
    number.unwrap_or(0) as usize
}

impl Server {
    fn page(&self, id: &Value, page: usize) {
        if let Some(list) = &self.list {
            let pages = std::fs::read_to_string(list).unwrap();
            let result = pages.lines().nth(page).unwrap_or("{\"tools\":[]}");
            return line(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}").as_bytes());
        }
        let usual = TOOLS.map(|name| json!({ "name": name, "inputSchema": { "type": "object" } }));
        let mut result = json!({ "tools": usual });
        if let Some((pages, bytes)) = self.fat {
            let text = "d".repeat(1000);
            let more =
                (0..bytes / 1000).map(|n| json!({ "name": format!("t{page}-{n}"), "description": text }));
            result["tools"].as_array_mut().unwrap().extend(more);
            if pages == 0 || page + 1 < pages {
                result["nextCursor"] = json!((page + 1).to_string());
            }
        }
        reply(id, &result);
    }
}

fn call(id: &Value, params: &Value) {
    let arguments = &params["arguments"];
    match params["name"].as_str().unwrap() {
        "echo" => text(id, &arguments["v"].to_string()),
        "pid" => text(id, &std::process::id().to_string()),
        "stop" => {
            text(id, "stopping");
            signal("STOP");
        }
        "deaf" => {
            text(id, "deaf from now on");
            std::thread::sleep(Duration::MAX);
        }
        "chatter" => {
            text(id, "deaf from now on");
            let kind = arguments["kind"].as_str().unwrap().to_owned();
            for n in 0.. {
                chat(&kind, n);
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        "bomb" => {
            for n in 0..arguments["n"].as_u64().unwrap() {
                chat(arguments["kind"].as_str().unwrap(), n);
            }
            text(id, "after the bomb");
        }
        "raw" => line(arguments["text"].as_str().unwrap().replace('@', &id.to_string()).as_bytes()),
        "bytes" => {
            let bytes = arguments["list"].as_array().unwrap().iter().map(|byte| byte.as_u64().unwrap() as u8);
            let id = id.to_string();
            line(
                &bytes
                    .flat_map(|byte| if byte == b'@' { id.as_bytes().to_vec() } else { vec![byte] })
                    .collect::<Vec<u8>>(),
            );
        }
        "fork" => text(id, &fork(arguments["how"].as_str().unwrap()).to_string()),
        "crash" => std::process::abort(),
        other => panic!("{other}"),
    }
}

/// Sends a message that was not requested.
fn chat(kind: &str, n: u64) {
    match kind {
        "ping" => send(&json!({ "jsonrpc": "2.0", "id": format!("p{n}"), "method": "ping" })),
        "long-ping" => send(&json!({ "jsonrpc": "2.0", "id": "p".repeat(200), "method": "ping" })),
        "roots" => send(&json!({ "jsonrpc": "2.0", "id": n, "method": "roots/list" })),
        "note" => {
            send(&json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "data": n } }))
        }
        "changed" => send(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" })),
        "late" => send(&json!({ "jsonrpc": "2.0", "id": 1, "result": {} })),
        "noise" => line(format!("still here, {n}").as_bytes()),
        "junk" => line(&vec![b'{'; 10_000]),
        other => panic!("{other}"),
    }
}

/// Leaves a process behind that holds our pipes; gives its id.
fn fork(how: &str) -> u32 {
    let script = match how {
        // In a session of its own, a child of this process.
        "setsid" => "exec setsid sleep 600",
        // The same, but its parent has exited.
        "daemon" => "exec 4>&1; setsid sleep 600 >&3 3>&- 4>&- & echo $! >&4",
        // The same, and without this process's environment.
        "nameless" => "exec 4>&1; env -i setsid sleep 600 >&3 3>&- 4>&- & echo $! >&4",
        other => panic!("{other}"),
    };
    // File descriptor 3 of the shell is our output.
    let mut command = Command::new("sh");
    let own = format!("exec 3>/proc/{}/fd/1; {script}", std::process::id());
    command.args(["-c", if how == "setsid" { script } else { &own }]);
    if how == "setsid" {
        return command.stdin(Stdio::null()).spawn().unwrap().id();
    }
    let told = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output().unwrap();
    String::from_utf8(told.stdout).unwrap().trim().parse().unwrap()
}

fn signal(name: &str) {
    Command::new("kill").args([&format!("-{name}"), &std::process::id().to_string()]).status().unwrap();
}

fn text(id: &Value, text: &str) {
    reply(id, &json!({ "content": [{ "type": "text", "text": text }] }));
}

fn reply(id: &Value, result: &Value) {
    send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
}

fn send(message: &Value) {
    line(message.to_string().as_bytes());
}

fn line(line: &[u8]) {
    let mut out = std::io::stdout().lock();
    // A failed write means that the client is gone; then the input ends too.
    drop(out.write_all(line).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()));
}
