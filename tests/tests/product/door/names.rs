//! Variables and files work under their names and their older names; the newer one wins.

#![expect(clippy::unwrap_used, reason = "test helpers: what is broken should be loud")]

use ptc_tests::binary::{Finished, ptc, run, run_ptc};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const LOOP: &str = "(loop [i 0] (recur (inc i)))";

fn with(variables: &[(&str, &str)]) -> Finished {
    let mut command = ptc(&["eval", LOOP, "--timeout", "60s"]);
    command.envs(variables.iter().copied());
    run(command, "")
}

#[test]
fn a_limit_is_read_from_both_names_of_its_variable() {
    for name in ["PTC_LOOP_LIMIT", "PTC_RUNNER_MCP_LOOP_LIMIT"] {
        let said = with(&[(name, "10")]).stderr;
        assert!(said.starts_with("loop_limit_exceeded"), "{name}: {said}");
    }
    let said = with(&[("PTC_RUNNER_MCP_LOOP_LIMIT", "many")]).stderr;
    assert!(said.contains("--loop-limit / PTC_RUNNER_MCP_LOOP_LIMIT"), "{said}");
}

#[test]
fn the_newer_variable_wins_with_a_warning_if_they_differ() {
    let said = with(&[("PTC_LOOP_LIMIT", "10"), ("PTC_RUNNER_MCP_LOOP_LIMIT", "12")]).stderr;
    assert!(said.contains("PTC_LOOP_LIMIT is used, PTC_RUNNER_MCP_LOOP_LIMIT is not"), "{said}");
    assert!(said.contains("10"), "{said}");
    let said = with(&[("PTC_LOOP_LIMIT", "10"), ("PTC_RUNNER_MCP_LOOP_LIMIT", "10")]).stderr;
    assert!(!said.contains("is not"), "{said}");
}

fn write(folder: &Path, name: &str) {
    fs::create_dir_all(folder).unwrap();
    let file = json!({ "mcpServers": { name: { "command": "false" } } });
    fs::write(folder.join("upstreams.json"), file.to_string()).unwrap();
}

#[test]
fn the_configuration_is_found_under_both_names() {
    let home = tempfile::tempdir().unwrap();
    let servers = || {
        let mut command = ptc(&["eval", "(map :name (tool/servers))"]);
        command.env("XDG_CONFIG_HOME", home.path());
        run(command, "")
    };
    write(&home.path().join("ptc_runner_mcp"), "older");
    assert!(servers().stdout.contains("older"), "{:?}", servers());
    let mut add = ptc(&["add", "more", "--", "false"]);
    add.env("XDG_CONFIG_HOME", home.path());
    assert_eq!(run(add, "").code, Some(0));
    assert!(!home.path().join("ptc").exists(), "the file that is used is edited");

    write(&home.path().join("ptc"), "newer");
    let both = servers();
    assert!(both.stdout.contains("newer") && !both.stdout.contains("older"), "{both:?}");
    assert!(both.stderr.contains("both exist and differ"), "{both:?}");
}

#[test]
fn the_server_is_named_ptc() {
    let client = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "a", "version": "1" } });
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client });
    let said = run_ptc(&["serve"], &format!("{hello}\n")).stdout;
    let answer: Value = serde_json::from_str(said.lines().next().unwrap()).unwrap();
    assert_eq!(answer["result"]["serverInfo"]["name"], "ptc");
}

#[test]
fn help_shows_the_newer_names_only() {
    for arguments in [&["--help"][..], &["serve", "--help"]] {
        let help = run_ptc(arguments, "").stdout;
        assert!(help.contains("PTC_") && !help.contains("PTC_RUNNER"), "{help}");
    }
}
