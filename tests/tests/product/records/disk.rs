//! Records on a full disk: each server has a small real one of its own, in a user namespace.

use super::traces::{files, folder, lines, settled};
use super::{ask, call};
use ptc_tests::binary;
use ptc_tests::serve::Server;
use serde_json::json;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Mounts an empty disk of 128 KiB.
const MOUNT: &str = r#"mount -t tmpfs -o size=128k,mode=700 none "$0""#;

#[test]
#[cfg_attr(
    not(own_disk),
    ignore = "this machine lets nobody mount a disk; a limit on the size of files stands for it"
)]
fn a_disk_that_is_full_and_has_room_again() {
    let folder = folder();
    let place = folder.path().to_str().unwrap();
    let mut command = Command::new("unshare");
    command.args(["-Urm", "sh", "-c", &format!(r#"{MOUNT} && exec "$@""#), place]).arg(binary::path());
    command.args(["serve", "--debug-tool", "--sessions", "--trace-payloads", "full"]);
    command.args(["--trace-dir", place, "--turn-log-dir", place]);
    command
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .env("XDG_STATE_HOME", "/dev/null")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut server = Server::from_command(command);
    // The disk is visible only to the server, and through its `/proc` root.
    let disk = PathBuf::from(format!("/proc/{}/root{place}", server.id()));
    let started = call(&mut server, "lisp_session_start", json!({}));
    let session = started["structuredContent"]["session_id"].clone();
    let turn = |server: &mut Server| {
        let program = format!("(count \"{}\")", "x".repeat(6_000));
        let answer = call(server, "lisp_session_eval", json!({ "session_id": session, "program": program }));
        assert_eq!(answer["isError"], false, "{answer}");
    };
    const TURNS: u64 = 40;
    (0..TURNS).for_each(|_| turn(&mut server));
    let (traces, lost_traces) = settled(&mut server, "trace", TURNS + 1);
    let (turns, lost_turns) = settled(&mut server, "turn_log", TURNS);
    assert!(
        traces > 0 && lost_traces > 0 && turns > 0 && lost_turns > 0,
        "{traces} {lost_traces} {turns} {lost_turns}"
    );
    assert_eq!((traces + lost_traces, turns + lost_turns), (TURNS + 1, TURNS));
    let stats = ask(&mut server, json!({ "op": "stats" }));
    for sink in ["trace", "turn_log"] {
        let error = stats[sink]["last_error"].as_str().unwrap();
        assert!(error.contains("No space left on device"), "{error}");
    }
    assert_eq!(stats["by_tool"]["lisp_session_eval"]["ok"], TURNS);
    // The written records are complete.
    let kept = files(&disk, "-ok.jsonl");
    assert_eq!(kept.len() as u64, traces);
    assert!(kept.iter().all(|file| lines(file).last().unwrap()["event"] == "trace.stop"));
    assert_eq!(files(&disk, "-pending.jsonl"), Vec::<PathBuf>::new());
    let [log] = files(&disk, "-turns.jsonl").try_into().expect("one file");
    assert_eq!(lines(&log).len() as u64, turns);
    // Space becomes available.
    kept.iter().for_each(|file| std::fs::remove_file(file).unwrap());
    turn(&mut server);
    assert_eq!(settled(&mut server, "trace", TURNS + 2), (traces + 1, lost_traces));
    assert_eq!(settled(&mut server, "turn_log", TURNS + 1), (turns + 1, lost_turns));
    assert_eq!(lines(&log).len() as u64, turns + 1);
    let stats = ask(&mut server, json!({ "op": "stats" }));
    assert!(stats["trace"]["last_error"].is_null() && stats["turn_log"]["last_error"].is_null(), "{stats}");
    assert_eq!(server.end(), Some(0));
}
