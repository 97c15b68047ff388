//! Transcripts of third-party MCP clients with `ptc serve`, checked verbatim where it matters: the inspector's
//! command line, mcporter, the Python client `mcp` 2.x and fastmcp, in both protocol eras. No client may complain.

use ptc_tests::binary::{self, Finished, run};
use ptc_tests::third_party::{inspector, installed, mcporter, new_node, python};
use ptc_tests::upstreams::Upstreams;
use ptc_tests::workspace;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A folder for one client: its transcript, its files, its home.
struct Desk {
    folder: TempDir,
}

impl Desk {
    fn new() -> Desk {
        Desk { folder: tempfile::tempdir().expect("a folder") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The command that a client starts: `ptc serve` behind the recorder.
    fn server(&self, flags: &[&str]) -> Vec<String> {
        let recorder = workspace().join("tests/third_party/record.py");
        let mut words = vec![
            python(),
            text(&recorder),
            text(&self.path("transcript")),
            text(binary::path()),
            "serve".into(),
        ];
        words.extend(flags.iter().map(|flag| (*flag).to_owned()));
        words
    }

    /// Runs a client that does not see the user's own files.
    fn drive(&self, mut command: Command) -> Finished {
        command.current_dir(installed()).env("HOME", self.folder.path());
        command
            .env("XDG_CONFIG_HOME", "/nonexistent")
            .env("XDG_STATE_HOME", "/dev/null")
            .env_remove("PTC_UPSTREAMS");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let finished = run(command, "");
        assert_eq!(finished.code, Some(0), "{finished:?}");
        // Clients report protocol errors on stderr.
        assert_eq!(finished.stderr.trim(), "", "{finished:?}");
        finished
    }

    fn messages(&self) -> Vec<Value> {
        let kept = std::fs::read_to_string(self.path("transcript")).expect("a transcript");
        kept.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// The sender and content of each message: methods, and whether a response was a result or an error.
    fn transcript(&self) -> Vec<String> {
        let said = |entry: &Value| {
            let message = &entry["message"];
            let what = match message["method"].as_str() {
                Some(method) => method,
                None if message.get("error").is_some() => "error",
                None => "result",
            };
            format!("{} {what}", entry["from"].as_str().expect("a sender"))
        };
        self.messages().iter().map(said).collect()
    }

    /// The results of the server, in order.
    fn results(&self) -> Vec<Value> {
        let messages = self.messages().into_iter();
        messages.filter_map(|entry| entry["message"].get("result").cloned()).collect()
    }
}

fn text(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}

fn inspect(desk: &Desk, era: &str, arguments: &[&str]) -> Value {
    let mut command = Command::new(new_node());
    command
        .arg(inspector())
        .args(["--cli", "--protocol-era", era])
        .args(arguments)
        .arg("--")
        .args(desk.server(&[]));
    let finished = desk.drive(command);
    serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {finished:?}"))
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn the_inspector_lists_strictly_and_calls_in_every_era() {
    let handshake = ["client initialize", "server result", "client notifications/initialized"];
    let discovery = ["client server/discover", "server result"];
    for (era, opening) in [("legacy", &handshake[..]), ("auto", &discovery), ("modern", &discovery)] {
        let desk = Desk::new();
        let listed = inspect(&desk, era, &["--strict", "--method", "tools/list"]);
        assert_eq!(listed["tools"][0]["name"], "lisp_eval", "{era}");
        let transcript = desk.transcript();
        assert_eq!(transcript[..opening.len()], *opening, "{era}");
        assert_eq!(transcript[transcript.len() - 2..], ["client tools/list", "server result"], "{era}");
        assert!(!transcript.contains(&"server error".to_owned()), "{era}: {transcript:?}");
        let list = desk.results().pop().expect("a list");
        let is_stateless = era != "legacy";
        assert_eq!(list.get("resultType").is_some(), is_stateless, "{era}");
        assert_eq!(list["ttlMs"].is_u64() && list["cacheScope"] == "public", is_stateless, "{era}");

        let desk = Desk::new();
        let call = ["--method", "tools/call", "--tool-name", "lisp_eval", "--tool-arg", "program=(+ 1 2)"];
        let called = inspect(&desk, era, &call);
        assert_eq!(
            (&called["content"][0]["text"], &called["isError"]),
            (&json!("3"), &json!(false)),
            "{era}"
        );
        assert_eq!(called["_meta"]["io.modelcontextprotocol/serverInfo"].is_object(), is_stateless, "{era}");
    }
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn mcporter_lists_with_schema_and_calls() {
    let desk = Desk::new();
    let server = desk.server(&[]);
    let config = json!({ "mcpServers": { "ptc": { "command": server[0], "args": server[1..] } } });
    std::fs::write(desk.path("mcporter.json"), config.to_string()).expect("written");
    let porter = |arguments: &[&str]| {
        let mut command = Command::new(new_node());
        command.arg(mcporter()).arg("--config").arg(desk.path("mcporter.json")).args(arguments);
        desk.drive(command)
    };
    let listed = porter(&["list", "ptc", "--schema"]);
    let signature = "function lisp_eval(program: string, context?: Record<string, unknown>";
    assert!(listed.stdout.contains(signature), "{listed:?}");
    assert_eq!(
        desk.transcript(),
        [
            "client initialize",
            "server result",
            "client notifications/initialized",
            "client tools/list",
            "server result",
        ]
    );
    assert_eq!(desk.results()[0]["protocolVersion"], "2025-11-25");
    let called = porter(&["call", "ptc.lisp_eval", "program=(println 1) {:a (+ 1 1)}", "--output", "json"]);
    let result: Value = serde_json::from_str(&called.stdout).expect("JSON");
    assert_eq!(result["content"][0]["text"], "<prints>\n1\n\n<result>\n{:a 2}");
    assert!(!desk.transcript().contains(&"server error".to_owned()));
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn fastmcp_speaks_the_stateless_era_and_hears_of_progress() {
    let desk = Desk::new();
    let config = Upstreams::probe().write();
    let mut command = Command::new(python());
    command
        .arg(workspace().join("tests/third_party/fastmcp_client.py"))
        .arg("auto")
        .args(desk.server(&config.flags(&[])));
    let report: Value = serde_json::from_str(&desk.drive(command).stdout).expect("JSON");
    assert_eq!(report["tools"], json!(["lisp_eval"]));
    assert_eq!(report["value"]["text"], "5050");
    assert_eq!(report["failed"]["error"], true);
    assert_eq!(report["schema"]["structured"], json!({ "validated": { "n": 3 } }));
    assert_eq!(report["upstream"]["text"], "45");
    let progress = report["progress"].as_array().expect("a list");
    let done: Vec<f64> = progress.iter().map(|event| event[0].as_f64().expect("a number")).collect();
    assert!(
        !done.is_empty() && done.is_sorted_by(|a, b| a < b) && done.iter().all(|d| *d <= 10.0),
        "{done:?}"
    );
    assert_eq!(
        progress[0][2].as_str().map(|text| text.contains("upstream call")),
        Some(true),
        "{progress:?}"
    );

    let transcript = desk.transcript();
    assert_eq!(
        transcript[..4],
        ["client server/discover", "server result", "client tools/list", "server result"]
    );
    assert!(!transcript.contains(&"server error".to_owned()), "{transcript:?}");
    for entry in desk.messages().iter().filter(|entry| entry["from"] == "client") {
        let message = &entry["message"];
        if message.get("id").is_some() {
            let version = &message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
            assert_eq!(version, "2026-07-28", "{message}");
        }
    }
    for result in desk.results() {
        assert_eq!(result["resultType"], "complete", "{result}");
        assert!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "ptc", "{result}");
    }
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn the_python_client_speaks_both_eras() {
    let handshake =
        ["client initialize", "server result", "client notifications/initialized", "client tools/list"];
    let discovery = ["client server/discover", "server result", "client tools/list"];
    for (mode, protocol, opening) in
        [("auto", "2026-07-28", &discovery[..]), ("legacy", "2025-11-25", &handshake)]
    {
        let desk = Desk::new();
        let mut command = Command::new(python());
        command.arg(workspace().join("tests/third_party/client.py")).arg(mode).args(desk.server(&[]));
        let report: Value = serde_json::from_str(&desk.drive(command).stdout).expect("JSON");
        assert_eq!(report["protocol"], protocol);
        let transcript = desk.transcript();
        assert_eq!(transcript[..opening.len()], *opening, "{mode}");
        // One program is cancelled: it is never answered.
        let count = |what: &str| transcript.iter().filter(|said| *said == what).count();
        assert_eq!(count("client notifications/cancelled"), 1, "{mode}");
        let requests = transcript
            .iter()
            .filter(|said| said.starts_with("client ") && !said.contains("notifications/"))
            .count();
        assert_eq!(count("server result"), requests - 1, "{mode}: {transcript:?}");
        assert_eq!(count("server error"), 0, "{mode}");
    }
}
