//! What `ptc call` sends and shows: numbers keep their digits, and output that cannot be written is an error.

#![expect(clippy::unwrap_used, reason = "test helpers: what is broken should be loud")]

use ptc_tests::binary::{self, Finished, ptc, run};
use serde_json::json;
use std::fs;
use std::process::Command;
use tempfile::TempDir;

/// A server with a tool that gives the arguments back as they were written.
const SERVER: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method = message["method"]
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "n", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
    else:
        text = line[line.index('"arguments":') + 12:]
        depth = 0
        for at, letter in enumerate(text):
            depth += {"{": 1, "}": -1}.get(letter, 0)
            if depth == 0:
                break
        result = {"content": [{"type": "text", "text": text[:at + 1]}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

fn folder() -> TempDir {
    let private: fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    let folder = tempfile::Builder::new().permissions(private).tempdir().unwrap();
    let script = folder.path().join("server.py");
    fs::write(&script, SERVER).unwrap();
    let servers = json!({ "mcpServers": { "s": { "command": "python3", "args": [script] } } });
    fs::write(folder.path().join("c.json"), servers.to_string()).unwrap();
    folder
}

fn called(folder: &TempDir, arguments: &[&str], input: &str) -> Finished {
    let mut command = ptc(&[&["call", "s/echo"], arguments].concat());
    command.env("PTC_UPSTREAMS", folder.path().join("c.json"));
    run(command, input)
}

#[test]
fn numbers_keep_their_digits() {
    let folder = folder();
    let long = "{\"a\":18446744073709551616,\"b\":[0.12345678901234567890123]}";
    for (arguments, input) in [
        (&[long, "--output", "json"][..], ""),
        (&["-", "--output", "json"], long),
        (&["a=18446744073709551616", "b=[0.12345678901234567890123]", "--output", "json"], ""),
    ] {
        let answer = called(&folder, arguments, input);
        assert_eq!(answer.stdout, format!("{long}\n"), "{arguments:?}: {answer:?}");
    }
    let shown = called(&folder, &["a=-123456789012345678901234567890"], "");
    assert_eq!(shown.stdout, "{\n  \"a\": -123456789012345678901234567890\n}\n", "{shown:?}");
}

#[test]
fn the_mark_of_utf_8_before_arguments_is_skipped() {
    let answer = called(&folder(), &["-", "--output", "json"], "\u{feff}{\"a\": 1}");
    assert_eq!(answer.stdout, "{\"a\":1}\n", "{answer:?}");
}

#[test]
fn output_that_is_lost_is_an_error() {
    let folder = folder();
    fs::write(folder.path().join("s.ptc"), "(+ 1 2)").unwrap();
    for words in [
        "eval 1",
        "call s/echo a=1",
        "tools",
        "tools s",
        "doctor",
        "check s.ptc",
        "disasm s.ptc",
        "status",
        "config schema",
        "completions bash",
        "runs --state .",
        "eval --help",
        "--version",
    ] {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("exec \"$PTC\" {words} >&-")]).env("PTC", binary::path());
        shell.env("PTC_UPSTREAMS", folder.path().join("c.json")).env("XDG_STATE_HOME", folder.path());
        let ended = shell.current_dir(folder.path()).output().unwrap();
        assert_eq!(ended.status.code(), Some(4), "{words}: {ended:?}");
        let said = String::from_utf8(ended.stderr).unwrap();
        assert!(said.contains("standard output is closed"), "{words}: {said}");
    }
}
