//! No command passes a server's terminal control characters to a person's terminal, while a program that reads a
//! result gets every byte.

mod served;

use ptc_calls::tools::visible::visible;
use ptc_tests::binary::{ptc, run_ptc};
use ptc_tests::terminal::Terminal;
use ptc_tests::upstreams::{ConfigFile, Upstreams};
use serde_json::{Value, json};

/// Moves the cursor, sets the title, rings, returns to the beginning of the line, reverses letters, hides.
const OBEYED: &str = "\u{1b}[2J\u{1b}]0;title\u{7}\u{9b}31m\rX\u{8}\u{7f}\u{202e}gpj.exe\u{2066}\u{200b}\u{feff}\u{e0041}\u{2028}end";

/// A server with these characters in every text.
const SERVER: &str = r#"
import json, sys
bad = json.loads(sys.argv[1])
tool = {"name": "say", "title": bad, "description": "says " + bad, "inputSchema": {"type": "object", "properties": {"p" + bad: {"type": "string", "description": bad, "enum": [bad]}}}}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "n" + bad, "version": bad}, "instructions": bad}
    elif method == "tools/list":
        result = {"tools": [tool, {**tool, "name": "evil" + bad}, {**tool, "name": "fail"}]}
    elif method == "tools/call":
        result = {"isError": params["name"] == "fail", "content": [{"type": "text", "text": "r" + bad}]}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": bad}}), flush=True)
        continue
    sys.stderr.write(bad + "\n")
    sys.stderr.flush()
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

fn config() -> ConfigFile {
    let text = Value::from(OBEYED).to_string();
    let entry = json!({ "transport": "mcp_stdio", "command": "python3", "args": ["-c", SERVER, text] });
    // A server that does not start gives its reason.
    let broken = json!({ "transport": "mcp_stdio", "command": "python3", "args": ["-c", "import sys; sys.exit(sys.argv[1])", OBEYED.replace('\u{0}', "")] });
    Upstreams::default().add("odd", entry).add("broken", broken).write()
}

fn is_obeyed(letter: char) -> bool {
    (letter.is_control() && letter != '\n' && letter != '\t')
        || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0001}'..='\u{e007f}')
}

#[test]
fn a_person_is_shown_nothing_that_a_terminal_obeys() {
    let config = config();
    for command in [
        &["tools"][..],
        &["tools", "odd"],
        &["tools", "odd/say"],
        &["doctor"],
        &["call", "odd/fail"],
        &["call", "odd/nothing"],
        &["eval", "(fail (:message (tool/call 'odd/fail {})))"],
        &["eval", "(tool/call 'odd/say {:q 1})", "--log-level", "debug"],
    ] {
        let (command, more) = command.split_at(1);
        let report = run_ptc(&[command, &config.flags(&[])[..], more].concat(), "");
        for text in [&report.stdout, &report.stderr] {
            // A result is data, and JSON has escapes of its own.
            let is_exact =
                text.starts_with('{') || (command[0] == "eval" && std::ptr::eq(text, &report.stdout));
            let found: Vec<char> = text.chars().filter(|letter| is_obeyed(*letter)).collect();
            assert!(is_exact || found.is_empty(), "{command:?} {more:?}: {found:?} in {text:?}");
        }
        assert!(!(report.stdout + &report.stderr).is_empty());
    }
}

#[test]
fn a_program_gets_every_byte() {
    let config = config();
    let exact = format!("r{OBEYED}");
    let report = run_ptc(&[&["call", "odd/say"][..], &config.flags(&[])].concat(), "");
    assert_eq!(report.stdout, format!("{exact}\n"));
    let report = run_ptc(&[&["call", "odd/say", "--output", "json"][..], &config.flags(&[])].concat(), "");
    assert_eq!(serde_json::from_str::<Value>(&report.stdout).expect("JSON"), json!(exact));
    let report = run_ptc(&[&["tools", "--output", "json"][..], &config.flags(&[])].concat(), "");
    let tools: Value = serde_json::from_str(&report.stdout).expect("JSON");
    let odd = tools["servers"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|server| server["name"] == "odd")
        .expect("odd");
    // Tool descriptions are cleaned on arrival, since models read them too.
    assert_eq!(odd["tools"][0]["description"], *visible(&format!("says {OBEYED}")));
}

#[test]
fn a_terminal_shows_marks_in_their_place() {
    let config = config();
    for command in ["call", "tools"] {
        let more: &[&str] = if command == "call" { &["odd/say"] } else { &[] };
        let terminal = Terminal::start(&ptc(&[&[command][..], more, &config.flags(&[])].concat()));
        // The screen was not erased, and nothing was overwritten.
        let marked = if command == "call" { r"r\u001b[2J\u001b]0;title" } else { r"says \u001b[2J" };
        terminal.until(marked, |screen| screen.contains(marked));
    }
}
