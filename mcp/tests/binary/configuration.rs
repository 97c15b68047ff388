//! Tests of `ptc config import` and `ptc doctor`, with a home folder of their own.

use crate::binary::support::{ptc, stderr, stdout};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Output;
use tempfile::TempDir;

/// A home with configuration files of some hosts, and a project inside it.
fn home(files: &[(&str, &str)]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("temporary folder");
    let project = folder.path().join("project");
    std::fs::create_dir(&project).expect("created");
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("created");
        std::fs::write(path, text).expect("written");
    }
    (folder, project)
}

fn at_home(home: &Path, project: &Path, arguments: &[&str]) -> Output {
    let mut command = ptc(arguments);
    command.env("HOME", home).env_remove("XDG_CONFIG_HOME").env_remove("CODEX_HOME").current_dir(project);
    command.output().expect("binary ends")
}

const CURSOR: &str = r#"{ // comments are fine
  "mcpServers": { "fs": { "command": "npx", "args": ["fs"], "env": { "TOKEN": "${TOKEN}" } }, }
}"#;
const CODEX: &str = "[mcp_servers.git]\ncommand = \"uvx\"\nargs = [\"mcp-server-git\"]\n";

#[test]
fn import_writes_one_file_and_adds_to_what_is_there() {
    let (home, project) = home(&[(".cursor/mcp.json", CURSOR), (".codex/config.toml", CODEX)]);
    let import = |more: &[&str]| {
        at_home(home.path(), &project, &[&["config", "import", "--output", "json"], more].concat())
    };
    let shown = import(&["--dry-run"]);
    let report: Value = serde_json::from_str(&stdout(&shown)).expect("JSON");
    assert_eq!((&report["servers"], &report["written"]), (&json!(2), &Value::Null));
    let target = home.path().join(".config/ptc/upstreams.json");
    assert!(!target.exists(), "a dry run writes nothing");

    assert_eq!(import(&[]).status.code(), Some(0));
    let written: Value = serde_json::from_slice(&std::fs::read(&target).expect("a file")).expect("JSON");
    assert_eq!(
        written,
        json!({ "mcpServers": {
            "fs": { "command": "npx", "args": ["fs"], "env": { "TOKEN": "${TOKEN}" } },
            "git": { "command": "uvx", "args": ["mcp-server-git"] } } })
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&target).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "only its owner reads it");
    }
    std::fs::write(&target, "{}").expect("written");
    assert_eq!(import(&["--from", "cursor"]).status.code(), Some(0));
    let written: Value = serde_json::from_slice(&std::fs::read(&target).expect("a file")).expect("JSON");
    assert!(written["mcpServers"]["fs"].is_object() && written["mcpServers"]["git"].is_null(), "{written}");
    std::fs::write(&target, "{oops").expect("written");
    let refused = import(&[]);
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(
        std::fs::read_to_string(&target).expect("a file"),
        "{oops",
        "what cannot be read is left alone"
    );
    assert_eq!(import(&["--force", "--from", "codex"]).status.code(), Some(0));
    let written: Value = serde_json::from_slice(&std::fs::read(&target).expect("a file")).expect("JSON");
    assert_eq!(written["mcpServers"].as_object().map(serde_json::Map::len), Some(1));
    let nothing = at_home(&project, &project, &["config", "import"]);
    assert_eq!(nothing.status.code(), Some(2));
    assert!(stderr(&nothing).contains("no MCP servers were found"));
}

fn doctor(config: &str, more: &[&str]) -> Output {
    let (home, project) = home(&[("upstreams.json", config)]);
    let file = home.path().join("upstreams.json");
    let file = file.to_str().expect("UTF-8");
    at_home(home.path(), &project, &[&["doctor", "--upstreams-config", file], more].concat())
}

#[test]
fn the_doctor_names_a_remedy_for_each_finding() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let copy = folder.path().join("sample-server");
    std::fs::copy(env!("CARGO_BIN_EXE_ptc"), &copy).expect("copied");
    let config = json!({ "upstreams": {
        "shop": { "command": copy, "args": ["demo-server", "shop"], "descripton": "x" },
        "gone": { "command": "/nowhere/npx" },
    } });
    let sick = doctor(&config.to_string(), &["--output", "json"]);
    assert_eq!(sick.status.code(), Some(3), "{}", stdout(&sick));
    let report: Value = serde_json::from_str(&stdout(&sick)).expect("JSON");
    let [gone, shop] = report["servers"].as_array().expect("servers").as_slice() else {
        panic!("{report:#}")
    };
    assert_eq!((&shop["state"], &shop["tools"].is_u64()), (&json!("ready"), &true), "{shop:#}");
    assert!(shop["protocol"].is_string() && shop["start_ms"].is_u64(), "{shop:#}");
    assert_eq!(gone["findings"][0]["detail"], "command not found: /nowhere/npx");
    let remedy = gone["findings"][0]["remedy"].as_str().expect("a remedy");
    assert!(remedy.starts_with("install Node.js"), "{remedy}");
    let warning = &report["configuration"]["findings"][1];
    assert_eq!(warning["level"], "warning");
    assert!(warning["detail"].as_str().expect("text").contains("did you mean \"description\"?"), "{warning}");
}

#[test]
fn the_doctor_says_where_a_configuration_is_wrong() {
    let wrong = doctor("{\"upstreams\": {\n  \"a\": {\"command\": 5}}}", &[]);
    assert_eq!(wrong.status.code(), Some(2));
    let text = stdout(&wrong);
    assert!(text.contains("upstreams.json:2:9: upstream a: command must be a string"), "{text}");
    assert!(text.contains("-> "), "{text}");
    let unset = doctor(r#"{"mcpServers": {"a": {"command": "x", "env": {"K": "${PTC_TEST_UNSET}"}}}}"#, &[]);
    assert_eq!(unset.status.code(), Some(3));
    assert!(stdout(&unset).contains("-> export the variable"), "{}", stdout(&unset));
    let empty = doctor(r#"{"upstreams": {}}"#, &[]);
    assert_eq!(empty.status.code(), Some(0), "{}", stdout(&empty));
}

#[test]
fn in_a_hosts_file_the_good_servers_work_and_the_others_say_why() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let copy = folder.path().join("sample-server");
    std::fs::copy(env!("CARGO_BIN_EXE_ptc"), &copy).expect("copied");
    let config = json!({ "mcpServers": {
        "shop": { "command": copy, "args": ["demo-server", "shop"], "autoApprove": ["list_orders"] },
        "desk": { "command": copy, "args": ["demo-server", "desk"], "disabledTools": ["*"] },
        "pigeon": { "type": "carrier-pigeon", "url": "coo://loft" },
        "unset": { "command": copy, "env": { "KEY": "${PTC_TEST_UNSET}" } },
        "blanks": { "command": "npx -y some-server" },
    } });
    let text = config.to_string().replacen('{', "{ // with a comment, and a comma too many\n", 1);
    let text = text.strip_suffix("}").expect("an object").to_owned() + ",}";
    let report = stdout(&doctor(&text, &[]));
    for expected in [
        "shop ok",
        "autoApprove has no effect",
        "2 of 5 servers work",
        "unsupported transport \"carrier-pigeon\"",
        "-> export the variable",
        "\"command\": \"npx\", \"args\": [\"-y\", \"some-server\"",
    ] {
        assert!(report.contains(expected), "{expected}: {report}");
    }
    let file = folder.path().join("hosts.json");
    std::fs::write(&file, &text).expect("written");
    let call = "(:message (tool/call {:server \"unset\" :tool \"x\"}))";
    let file = file.to_str().expect("UTF-8");
    let told = ptc(&["eval", call, "--upstreams-config", file]).output().expect("binary ends");
    assert!(stdout(&told).contains("env var PTC_TEST_UNSET is not set"), "{}", stdout(&told));
}

#[test]
fn files_named_together_are_used_together() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let copy = folder.path().join("sample-server");
    std::fs::copy(env!("CARGO_BIN_EXE_ptc"), &copy).expect("copied");
    let file = |name: &str| {
        let path = folder.path().join(format!("{name}.json"));
        let config = json!({ "upstreams": { name: { "command": copy, "args": ["demo-server", name] } } });
        std::fs::write(&path, config.to_string()).expect("written");
        path.to_str().expect("UTF-8").to_owned()
    };
    let (shop, desk) = (file("shop"), file("desk"));
    let output =
        ptc(&["tools", "--upstreams-config", &shop, "--upstreams-config", &desk, "--output", "json"])
            .output()
            .expect("binary ends");
    let report: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let names: Vec<&Value> =
        report["servers"].as_array().expect("servers").iter().map(|server| &server["name"]).collect();
    assert_eq!(names, ["desk", "shop"], "{report}");
}

#[test]
fn the_schema_is_json() {
    let output = ptc(&["config", "schema"]).output().expect("binary ends");
    let schema: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert!(schema["$defs"]["entry"]["properties"]["command"].is_object());
}
