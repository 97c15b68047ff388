//! Third-party clients run scripts with `execute_program`: the Python SDK in both eras, the inspector and mcporter.

use ptc_tests::binary::{self, run};
use ptc_tests::scripts::{data, engines};
use ptc_tests::third_party::{inspector, installed, mcporter, new_node, python};
use ptc_tests::workspace;
use serde_json::{Value, json};
use std::process::{Command, Stdio};

/// A script that calls a tool in a loop, and its output.
const SCRIPT: &str = "for t in ['AMZN', 'GOOG']:\n    rows = await mcp__finance__query_financials(ticker=t, limit=1)\n    print(t, rows[0]['revenue'])";
const PRINTED: &str = "[Script executed successfully]\nAMZN 170000000000.0\nGOOG 96500000000.0\n";

/// The arguments of `ptc` for a server that runs scripts with this engine.
fn arguments(engine: &str) -> Vec<String> {
    let finance = format!("finance=python3 {}", data("finance.py"));
    ["serve", "--tools", "execute_program", "--python-engine", engine, "--stdio", &finance]
        .map(str::to_owned)
        .into()
}

fn drive(mut command: Command, input: &str) -> String {
    command
        .current_dir(installed())
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .env("XDG_STATE_HOME", "/dev/null");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let finished = run(command, input);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    finished.stdout
}

#[test]
#[cfg_attr(not(all(third_party, scripts)), ignore = "PTC_SKIP_THIRD_PARTY=1, or no engine runs scripts here")]
fn the_python_sdk() {
    for (engine, mode) in engines().into_iter().flat_map(|engine| [(engine, "auto"), (engine, "legacy")]) {
        let mut command = Command::new(python());
        command.arg(workspace().join("tests/third_party/script_client.py")).arg(mode);
        command.arg(binary::path()).args(arguments(engine));
        let scripts = json!([SCRIPT, "x = 1", "await mcp__finance__query_financials(ticker='NONE')"]);
        let report: Value = serde_json::from_str(&drive(command, &scripts.to_string())).expect("a report");
        assert_eq!(report["tools"], json!(["execute_program"]));
        let answers = &report["answers"];
        assert_eq!(answers[0], json!({ "error": false, "text": PRINTED }), "{engine} {mode}");
        assert_eq!(answers[1]["text"], "[Script executed successfully]\n(no output)", "{engine} {mode}");
        let failed = answers[2]["text"].as_str().expect("a text");
        let error = "ToolError: 'mcp__finance__query_financials' failed: no such ticker";
        assert!(
            failed.starts_with("[Script execution failed]\nTraceback") && failed.ends_with(error),
            "{failed}"
        );
        assert_eq!(answers[2]["error"], true);
    }
}

#[test]
#[cfg_attr(not(all(third_party, scripts)), ignore = "PTC_SKIP_THIRD_PARTY=1, or no engine runs scripts here")]
fn the_inspector_and_mcporter() {
    for engine in engines() {
        let folder = tempfile::tempdir().expect("a folder");
        let config = folder.path().join("mcp.json");
        let servers =
            json!({ "mcpServers": { "ptc": { "command": binary::path(), "args": arguments(engine) } } });
        std::fs::write(&config, servers.to_string()).expect("written");
        let mut command = Command::new(new_node());
        command.arg(inspector()).args(["--cli", "--config"]).arg(&config).args(["--server", "ptc"]);
        command.args(["--method", "tools/call", "--tool-name", "execute_program"]);
        command.arg("--tool-arg").arg(format!("code={SCRIPT}"));
        let called: Value = serde_json::from_str(&drive(command, "")).expect("JSON");
        assert_eq!(called["content"], json!([{ "type": "text", "text": PRINTED }]), "{engine}");

        let mut command = Command::new(new_node());
        command.arg(mcporter()).arg("--config").arg(&config);
        command.args(["call", "ptc.execute_program", &format!("code={SCRIPT}")]);
        assert_eq!(drive(command, "").trim_end(), PRINTED.trim_end(), "{engine}");
    }
}
