//! `ptc install` and `ptc config import`: switches, notes and projects of clients, and files that are not as expected.

use super::setup::{Home, OURS};
use ptc_tests::binary::run;
use serde_json::{Value, json};
use std::fs;

const GEMINI: &str = ".gemini/settings.json";
const CLAUDE: &str = ".claude.json";
const CURSOR: &str = ".cursor/mcp.json";

#[test]
fn a_list_of_the_only_enabled_servers_gets_ptc_and_loses_it_again() {
    for (list, of_list) in [("mcp", "allowed"), ("allowMCPServers", "")] {
        let home = Home::new();
        let allowed = json!(["g"]);
        let allowed = if of_list.is_empty() { allowed } else { json!({ of_list: allowed }) };
        let before = format!(
            "{:#}\n",
            json!({ "mcpServers": { "g": { "command": "g" } }, list: allowed, "theme": "dark" })
        );
        home.write(GEMINI, &before);
        let names = || {
            let file = home.json(GEMINI);
            let names = if of_list.is_empty() { file[list].clone() } else { file[list][of_list].clone() };
            (names, file["mcpServers"].as_object().unwrap().keys().cloned().collect::<Vec<_>>())
        };
        home.ok(&["install", "gemini", "--replace"]);
        assert_eq!(names(), (json!(["g", "ptc"]), vec!["ptc".to_owned()]));
        home.ok(&["install", "gemini", "--undo"]);
        assert_eq!(home.text(GEMINI), before);
        // The client has changed its file since.
        home.ok(&["install", "gemini"]);
        home.write(GEMINI, &home.text(GEMINI).replace("dark", "light"));
        home.ok(&["install", "gemini", "--undo"]);
        assert_eq!(home.text(GEMINI), before.replace("dark", "light"));
    }
}

#[test]
fn a_client_that_leaves_ptc_out_is_not_said_to_start_it() {
    let home = Home::new();
    let before =
        json!({ "mcpServers": { "g": { "command": "g" } }, "mcp": { "excluded": ["ptc"] } }).to_string();
    home.write(GEMINI, &before);
    let refused = home.run(&["install", "gemini", "--replace"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("mcp.excluded"), "{refused:?}");
    assert_eq!((home.text(GEMINI), home.path(OURS).exists()), (before, false));
    let said = home.ok(&["install", "gemini"]);
    assert!(said.contains("mcp.excluded") && !said.contains("will start"), "{said}");
}

#[test]
fn servers_and_switches_of_a_project_stay_in_it() {
    let home = Home::new();
    let project = home.path("project").canonicalize().unwrap();
    let of_project = json!({ "mcpServers": { "p": { "command": "pp" } }, "disabledMcpServers": ["g"] });
    let before = json!({ "mcpServers": { "g": { "command": "gg" } }, "projects": { project.to_str().unwrap(): of_project } });
    home.write(CLAUDE, &before.to_string());
    let said = home.ok(&["install", "claude-code", "--replace"]);
    assert!(said.lines().any(|line| line.ends_with("upstreams.json: g")), "{said}");
    assert_eq!(home.json(OURS)["mcpServers"], json!({ "g": { "command": "gg" } }));
    assert_eq!(home.json(CLAUDE)["projects"], before["projects"]);
    home.ok(&["install", "claude-code", "--undo"]);
    assert_eq!(home.json(CLAUDE), before);
}

#[test]
fn replace_says_what_an_import_says() {
    let home = Home::new();
    let servers = json!({
        "v": { "command": "x", "env": { "K": "${input:api-key}" }, "envFile": "${userHome}/.env" }, "odd": { "title": "?" }
    });
    home.write(CURSOR, &json!({ "mcpServers": servers }).to_string());
    home.ok(&["add", "v", "other"]);
    let before = [home.text(CURSOR), home.text(OURS)];
    let dry = home.ok(&["install", "cursor", "--replace", "--dry-run"]);
    assert_eq!([home.text(CURSOR), home.text(OURS)], before);
    let said = home.ok(&["install", "cursor", "--replace"]);
    for said in [&dry, &said] {
        for part in
            ["upstreams.json: v", "v: it is v-cursor there", "export it as API_KEY", "v: envFile is not read"]
        {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(said.contains("odd: Cursor keeps it: it has neither"), "{said}");
    }
    assert!(dry.contains("would move") && !said.contains("would move"), "{dry}{said}");
    assert_eq!(
        home.json(CURSOR)["mcpServers"].as_object().unwrap().keys().collect::<Vec<_>>(),
        ["odd", "ptc"]
    );
}

#[test]
fn a_key_that_a_clients_file_has_twice_is_named() {
    let home = Home::new();
    for text in [
        r#"{"mcpServers": {"a": {"command": "x"}}, "mcpServers": {"b": {"command": "y"}}}"#,
        r#"{"mcpServers": {"mcpServers": {"command": "x"}, "mcpServers": {"command": "y"}}}"#,
    ] {
        home.write(CURSOR, text);
        for flags in [&[][..], &["--undo"]] {
            let refused = home.run(&[&["install", "cursor"], flags].concat());
            assert_eq!(refused.code, Some(2), "{refused:?}");
            assert!(refused.stderr.contains("\"mcpServers\" is there twice"), "{refused:?}");
            assert_eq!(home.text(CURSOR), text);
        }
    }
    // What the command does not touch is the client's concern.
    home.write(CURSOR, r#"{"theme": {"a": 1, "a": 2}, "mcpServers": {}}"#);
    home.ok(&["install", "cursor"]);
}

#[test]
fn an_entry_of_ptc_with_other_arguments_names_undo() {
    let home = Home::new();
    home.ok(&["install", "cursor"]);
    let refused = home.run(&["install", "cursor", "--upstreams-config", "mine.json"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("`ptc install cursor --undo`"), "{refused:?}");
    home.ok(&["install", "cursor", "--undo"]);
    let said = home.ok(&["install", "cursor", "--upstreams-config", "mine.json"]);
    assert!(said.contains("mine.json is not there"), "{said}");
}

#[test]
fn an_import_writes_the_file_that_the_variable_names_and_keeps_what_it_replaces() {
    let home = Home::new();
    home.write(CURSOR, &json!({ "mcpServers": { "a": { "command": "x" } } }).to_string());
    let named = home.path("named.json");
    let import = |flags: &[&str]| {
        let mut command = home.command(&[&["config", "import", "--from", "cursor"], flags].concat());
        command.env("PTC_UPSTREAMS", &named);
        let done = run(command, "");
        assert_eq!(done.code, Some(0), "{done:?}");
        done.stdout
    };
    import(&[]);
    assert_eq!(home.json("named.json")["mcpServers"]["a"]["command"], "x");
    assert!(!home.path(OURS).exists());
    let mine = r#"{"mcpServers": {"mine": {"command": "y"}}}"#;
    fs::write(&named, mine).unwrap();
    assert!(import(&["--force"]).contains("named.json.ptc-backup"));
    assert_eq!(
        (home.text("named.json.ptc-backup").as_str(), &home.json("named.json")["mcpServers"]["mine"]),
        (mine, &Value::Null)
    );
}

#[test]
fn without_a_working_directory_what_is_the_users_still_counts() {
    let home = Home::new();
    home.write(CURSOR, &json!({ "mcpServers": { "a": { "command": "x" } } }).to_string());
    for arguments in ["config import", "install cursor"] {
        let mut shell = std::process::Command::new("sh");
        let line = format!("mkdir gone && cd gone && rmdir ../gone && exec \"$PTC\" {arguments}");
        shell
            .args(["-c", &line])
            .env("PTC", ptc_tests::binary::path())
            .env("HOME", home.path(""))
            .current_dir(home.path(""));
        shell.env_remove("XDG_CONFIG_HOME").env_remove("XDG_STATE_HOME");
        let done = shell.output().unwrap();
        assert!(done.status.success(), "{done:?}");
    }
    assert_eq!(home.json(OURS)["mcpServers"]["a"]["command"], "x");
    assert!(home.json(CURSOR)["mcpServers"]["ptc"].is_object());
}

#[test]
fn claude_code_is_found_in_the_folder_that_the_user_has_chosen() {
    let home = Home::new();
    let claude = |arguments: &[&str]| {
        let mut command = home.command(arguments);
        command.env("CLAUDE_CONFIG_DIR", home.path("claude"));
        let done = run(command, "");
        assert_eq!(done.code, Some(0), "{done:?}");
        done.stdout
    };
    home.write("claude/.claude.json", &json!({ "mcpServers": { "a": { "command": "x" } } }).to_string());
    home.write("claude/settings.json", &json!({ "disabledMcpServers": ["a"] }).to_string());
    assert!(claude(&["config", "import", "--dry-run"]).contains("switched off there"));
    claude(&["install", "claude-code", "--replace"]);
    assert!(home.json("claude/.claude.json")["mcpServers"]["ptc"].is_object());
    assert!(!home.path(CLAUDE).exists());
}
