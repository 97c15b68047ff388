//! The start of a server is not the program's time, and messages about time name what set it.

#![expect(clippy::unwrap_used, reason = "test helpers: what is broken should be loud")]

use ptc_tests::binary::{build_dir, eval, run_ptc};
use ptc_tests::processes::eventually;
use ptc_tests::serve::{Server, text_of};
use ptc_tests::upstreams::Upstreams;
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An entry of a probe that starts once this file is there.
fn held(file: &Path) -> Value {
    let script = format!(
        "while [ ! -e '{}' ]; do sleep 0.02; done; exec '{}'",
        file.display(),
        build_dir().join("probe-server").display()
    );
    json!({ "command": "sh", "args": ["-c", script], "handshake_timeout_ms": 120_000 })
}

/// The first line of an answer; notes follow it.
fn first_line(result: &Value) -> String {
    text_of(result).lines().next().unwrap_or_default().to_owned()
}

/// A configuration in the hosts' shape, whose servers start meanwhile, and the file that its server waits for.
fn config(folder: &Path) -> (PathBuf, PathBuf) {
    let (config, go) = (folder.join("mcp.json"), folder.join("go"));
    let mut file = std::fs::File::create(&config).unwrap();
    write!(file, "{}", json!({ "mcpServers": { "slow": held(&go) } })).unwrap();
    (config, go)
}

#[test]
fn a_start_that_takes_longer_than_the_program_may_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let (config, go) = config(folder.path());
    let flags = ["--upstreams-config", config.to_str().unwrap(), "--timeout", "2s"];
    let mut server = Server::start(&flags);
    let programs = [
        "(tool/call! 'slow/echo {:v 1})",
        "(:value (tool/call 'slow/echo {:v 2}))",
        "(pmap #(tool/call! 'slow/echo {:v %}) [3 4])",
        "(some #(str/starts-with? % \"echo\") (dir 'slow))",
    ];
    let ids = programs.map(|program| server.begin_program(program));
    // Longer than the programs may take.
    std::thread::sleep(Duration::from_millis(2_500));
    std::fs::write(&go, "").unwrap();
    let mut answers = std::collections::BTreeMap::new();
    while answers.len() < ids.len() {
        let answer = server.receive();
        if let Some(id) = answer["id"].as_u64() {
            answers.insert(id, first_line(&answer["result"]));
        }
    }
    assert_eq!(ids.map(|id| answers[&id].clone()), ["1", "2", "[3 4]", "true"]);
    assert_eq!(server.end(), Some(0));
}

#[test]
fn a_start_that_is_not_waited_for_has_its_own_reason() {
    let folder = tempfile::tempdir().unwrap();
    let (config, go) = config(folder.path());
    let flags = ["--upstreams-config", config.to_str().unwrap(), "--upstream-start-timeout", "50ms"];
    let mut server = Server::start(&[&flags[..], &["--timeout", "120s"]].concat());
    let text = server.text("((juxt :ok :reason :message) (tool/call 'slow/echo {:v 1}))");
    assert!(text.starts_with("[false :starting \"slow is still starting: "), "{text}");
    assert!(text.contains("a call waits 0.05 s for it (--upstream-start-timeout)"), "{text}");
    let text = server.text("(tool/call! 'slow/echo {:v 1})");
    assert!(text.contains("tool_error: slow/echo: :starting, slow is still starting"), "{text}");
    std::fs::write(&go, "").unwrap();
    eventually("the start has gone on", || server.text("(:value (tool/call 'slow/echo {:v 1}))") == "1");
    assert_eq!(server.end(), Some(0));
}

#[test]
fn messages_about_time_name_what_set_it() {
    let config = Upstreams::probe().write();
    let message = |program: &str, flags: &[&str]| {
        let report = eval(program, &config.flags(flags));
        report["value"].as_str().or(report["message"].as_str()).unwrap_or_default().to_owned()
    };
    let hold = "(:message (tool/call 'probe/hold {}))";
    let called = message(hold, &["--upstream-call-timeout", "150ms"]);
    assert_eq!(called, "\"no answer within 150 ms (--upstream-call-timeout)\"");
    let called = message(hold, &["--timeout", "2s"]);
    assert_eq!(called, "\"no answer before the end of the program's time (--timeout 2 s)\"");
    let busy = message("(loop [n 0] (recur (inc n)))", &["--timeout", "200ms", "--fuel", "100000000000"]);
    assert_eq!(busy, "execution exceeded 200ms limit (--timeout)");
    let large = message("(:message (tool/call 'probe/flood {:bytes 3000000}))", &[]);
    assert!(large.contains(":on-large :spill") && large.contains("--max-upstream-response-bytes"), "{large}");
    let call = run_ptc(
        &[&["call", "probe/hold"], &config.flags(&["--upstream-call-timeout", "300ms"])[..]].concat(),
        "",
    );
    assert_eq!(call.stderr.trim(), "no answer within 300 ms (--upstream-call-timeout)", "{call:?}");
}
