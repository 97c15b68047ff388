//! `ptc install` and other programs that write the same files, `--replace` of several clients, and what is said of it.

#![expect(clippy::unwrap_used, reason = "test helpers: what is broken should be loud")]

use super::setup::{Home, OURS};
use ptc_tests::binary::run;
use serde_json::{Value, json};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;

const GEMINI: &str = ".gemini/settings.json";
const CLAUDE: &str = ".claude.json";
const CURSOR: &str = ".cursor/mcp.json";

fn of(servers: &Value) -> String {
    json!({ "mcpServers": servers }).to_string()
}

/// The lock of another command that edits.
fn edits(home: &Home) -> File {
    home.ok(&["add", "--force", "first", "true"]);
    let file = OpenOptions::new().write(true).open(home.path(".local/state/ptc/edits.lock")).unwrap();
    file.lock().unwrap();
    file
}

#[test]
fn what_is_written_while_a_command_waits_for_another_one_stays() {
    let home = Home::new();
    home.write(CURSOR, &of(&json!({ "a": { "command": "x" } })));
    for flags in [&[][..], &["--replace"], &["--undo"]] {
        let held = edits(&home);
        let mut command = home.command(&[&["install", "cursor"], flags].concat());
        let waiting = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let descriptors = format!("/proc/{}/fd", waiting.id());
        let has_lock = || {
            let mut open = fs::read_dir(&descriptors).unwrap().flatten();
            open.any(|name| fs::read_link(name.path()).is_ok_and(|file| file.ends_with("edits.lock")))
        };
        while !has_lock() {
            std::thread::yield_now();
        }
        let mut changed = home.json(CURSOR);
        changed["mcpServers"][format!("mine{}", flags.len())] = json!({ "command": "later" });
        changed["setting"] = json!(flags);
        home.write(CURSOR, &changed.to_string());
        drop(held);
        let done = waiting.wait_with_output().unwrap();
        assert!(done.status.success(), "{done:?}");
        let now = home.json(CURSOR);
        assert_eq!(now["setting"], json!(flags), "{now}");
        // What --replace has moved is there, too, once it is undone.
        if flags == ["--undo"] {
            let servers = now["mcpServers"].as_object().unwrap();
            assert_eq!(servers.keys().collect::<Vec<_>>(), ["mine1", "a", "mine0"]);
        }
    }
}

#[test]
fn a_server_of_two_clients_stays_until_both_have_it_back() {
    let home = Home::new();
    let servers = json!({ "a": { "command": "x" } });
    for (client, file) in [("cursor", CURSOR), ("gemini", GEMINI)] {
        home.write(file, &of(&servers));
        home.ok(&["install", client, "--replace"]);
    }
    let said = home.ok(&["install", "cursor", "--undo"]);
    assert!(said.contains("upstreams.json keeps a: it was moved from") && said.contains(GEMINI), "{said}");
    assert_eq!((&home.json(CURSOR)["mcpServers"], &home.json(OURS)["mcpServers"]), (&servers, &servers));
    home.ok(&["install", "gemini", "--undo"]);
    assert_eq!((&home.json(GEMINI)["mcpServers"], &home.json(OURS)["mcpServers"]), (&servers, &json!({})));
}

#[test]
fn a_damaged_record_of_another_client_ends_no_undo_and_costs_no_server() {
    let home = Home::new();
    let servers = json!({ "a": { "command": "x" } });
    home.write(CURSOR, &of(&servers));
    home.ok(&["install", "cursor", "--replace"]);
    fs::write(home.path(".local/state/ptc/moved/0000.json"), "{").unwrap();
    let said = home.ok(&["install", "cursor", "--undo"]);
    assert!(said.contains("0000.json, the record of another client, cannot be read"), "{said}");
    assert_eq!((&home.json(CURSOR)["mcpServers"], &home.json(OURS)["mcpServers"]), (&servers, &servers));
}

#[test]
fn a_server_whose_name_another_one_has_taken_stays_in_the_configuration_of_ptc() {
    // The other one is moved, too, or it stays where it is.
    for is_moved in [true, false] {
        let home = Home::new();
        home.write(CURSOR, &of(&json!({ "a": { "command": "x" } })));
        home.ok(&["install", "cursor", "--replace"]);
        let mut changed = home.json(CURSOR);
        changed["mcpServers"]["a"] = json!({ "command": "mine" });
        home.write(CURSOR, &changed.to_string());
        if is_moved {
            home.ok(&["install", "cursor", "--replace"]);
        }
        let said = home.ok(&["install", "cursor", "--undo"]);
        assert!(
            said.contains("upstreams.json keeps a: Cursor has other servers of the same names"),
            "{said}"
        );
        assert_eq!(home.json(CURSOR)["mcpServers"], json!({ "a": { "command": "mine" } }));
        assert_eq!(home.json(OURS)["mcpServers"], json!({ "a": { "command": "x" } }));
    }
}

#[test]
fn a_configuration_that_is_not_written_may_be_any_that_ptc_reads() {
    let home = Home::new();
    home.write(CURSOR, &of(&json!({ "a": { "command": "x" } })));
    home.write("servers.yaml", "mcpServers:\n  a:\n    command: x\n");
    home.write("doubled.json", r#"{"mcpServers": {"a": {"command": "x"}, "a": {"command": "x"}}}"#);
    for name in ["servers.yaml", "doubled.json"] {
        let file = home.path(name);
        let with = |flags: &[&str]| {
            let named = ["--upstreams-config", file.to_str().unwrap()];
            home.run(&[&["install", "cursor"], &named[..], flags].concat())
        };
        let refused = with(&["--replace"]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        for flags in [&["--dry-run"][..], &[]] {
            let done = with(flags);
            assert_eq!(done.code, Some(0), "{done:?}");
            assert!(done.stdout.contains("has these twice, its own and those of ptc: a"), "{done:?}");
        }
        assert!(home.text(CURSOR).contains(name));
        home.ok(&["install", "cursor", "--undo"]);
    }
}

#[test]
fn replace_names_the_projects_in_which_a_server_is_switched_off() {
    let home = Home::new();
    let project = home.path("project").canonicalize().unwrap();
    let off = json!({ "disabledMcpServers": ["a"] });
    let before = json!({
        "mcpServers": { "a": { "command": "x" }, "b": { "command": "y" } },
        "projects": { project.to_str().unwrap(): off, "/elsewhere": off },
    });
    home.write(CLAUDE, &before.to_string());
    home.write("project/.claude/settings.local.json", &json!({ "disabledMcpServers": ["b"] }).to_string());
    for flags in [&["--dry-run"][..], &[]] {
        let said = home.ok(&[&["install", "claude-code", "--replace"], flags].concat());
        for (name, project) in [("a", project.as_path()), ("a", Path::new("/elsewhere")), ("b", &project)] {
            let line = format!("{name}: switched off in {} by disabledMcpServers", project.display());
            assert!(said.contains(&line), "{line}: {said}");
        }
        assert_eq!(said.matches("switched off").count(), 3, "{said}");
    }
}

#[test]
fn a_dry_run_says_what_the_run_says() {
    let home = Home::new();
    home.write(GEMINI, &json!({ "mcp": { "allowed": ["x"], "excluded": ["ptc"] } }).to_string());
    let dry = home.ok(&["install", "gemini", "--dry-run"]);
    assert!(dry.contains("mcp.allowed there would get ptc") && dry.contains("by mcp.excluded"), "{dry}");
    let said = home.ok(&["install", "gemini"]);
    assert!(said.contains("mcp.allowed there has got ptc") && said.contains("by mcp.excluded"), "{said}");
    home.ok(&["install", "cursor"]);
    let dry = home.ok(&["install", "cursor", "--dry-run"]);
    assert!(dry.contains("starts ptc already") && !dry.contains("would get"), "{dry}");
}

#[test]
fn a_file_keeps_its_mode_and_one_that_is_read_only_is_left_alone() {
    let home = Home::new();
    let before = of(&json!({ "a": { "command": "x" } }));
    home.write(CURSOR, &before);
    let mode = || fs::metadata(home.path(CURSOR)).unwrap().permissions().mode() & 0o777;
    let set = |mode| fs::set_permissions(home.path(CURSOR), PermissionsExt::from_mode(mode)).unwrap();
    for kept in [0o640, 0o644, 0o600] {
        set(kept);
        for flags in [&["--replace"][..], &["--undo"]] {
            home.ok(&[&["install", "cursor"], flags].concat());
            assert_eq!(mode(), kept);
        }
    }
    set(0o444);
    for flags in [&[][..], &["--dry-run"], &["--replace"]] {
        let refused = home.run(&[&["install", "cursor"], flags].concat());
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains("mcp.json is read-only"), "{refused:?}");
    }
    assert_eq!((home.text(CURSOR), mode()), (before, 0o444));
    set(0o644);
    home.ok(&["install", "cursor", "--replace"]);
    let installed = home.text(CURSOR);
    set(0o444);
    assert_eq!(home.run(&["install", "cursor", "--undo"]).code, Some(2));
    assert_eq!(home.text(CURSOR), installed);
    // A new one is for its owner.
    home.ok(&["install", "kiro"]);
    let new = fs::metadata(home.path(".kiro/settings/mcp.json")).unwrap();
    assert_eq!(new.permissions().mode() & 0o777, 0o600);
}

/// A user without the rights of the superuser, who may write into any folder.
const NOBODY: u32 = 65_534;

#[test]
fn undo_does_nothing_where_its_record_cannot_be_removed() {
    let home = Home::new();
    home.write(CURSOR, &of(&json!({ "a": { "command": "x" } })));
    home.ok(&["install", "cursor", "--replace"]);
    let before = [home.text(CURSOR), home.text(OURS)];
    let records = home.path(".local/state/ptc/moved");
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        give_away(&home.path(""));
    }
    let set = |mode| fs::set_permissions(&records, PermissionsExt::from_mode(mode)).unwrap();
    let undo = || {
        let mut command = home.command(&["install", "cursor", "--undo"]);
        if is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        run(command, "")
    };
    set(0o500);
    let refused = undo();
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.stderr.contains("ptc/moved/"), "{refused:?}");
    assert_eq!([home.text(CURSOR), home.text(OURS)], before);
    set(0o700);
    assert_eq!(undo().code, Some(0));
    assert_eq!(home.json(CURSOR)["mcpServers"], json!({ "a": { "command": "x" } }));
}

fn give_away(path: &Path) {
    chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|name| give_away(&name.unwrap().path()));
    }
}
