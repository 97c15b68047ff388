//! Tests of the configuration formats of thirteen hosts: each file is imported as its golden file says, and
//! its server works.

use crate::binary::support::{ptc, stderr, stdout};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Each host: its name in flags, the format of its fixture, and the path of its file inside the home.
const HOSTS: [(&str, &str, &str); 13] = [
    ("claude-desktop", "json", ".config/Claude/claude_desktop_config.json"),
    ("claude-code", "json", "project/.mcp.json"),
    ("cursor", "json", ".cursor/mcp.json"),
    ("vscode", "json", "project/.vscode/mcp.json"),
    ("windsurf", "json", ".codeium/windsurf/mcp_config.json"),
    ("codex", "toml", ".codex/config.toml"),
    ("gemini", "json", "project/.gemini/settings.json"),
    ("zed", "json", ".config/zed/settings.json"),
    ("opencode", "json", ".config/opencode/opencode.json"),
    ("goose", "yaml", ".config/goose/config.yaml"),
    ("kiro", "json", ".kiro/settings/mcp.json"),
    ("lm-studio", "json", ".lmstudio/mcp.json"),
    ("copilot", "json", ".copilot/mcp-config.json"),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hosts")
}

fn at(home: &Path, arguments: &[&str]) -> Output {
    let mut command: Command = ptc(arguments);
    command.env("HOME", home).env_remove("XDG_CONFIG_HOME").env_remove("CODEX_HOME");
    command.env_remove("PTC_UPSTREAMS").current_dir(home.join("project"));
    command.output().expect("binary ends")
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    std::fs::write(path, text).expect("written");
}

#[test]
fn each_hosts_file_is_imported_and_works() {
    let renew = std::env::var_os("UPDATE_GOLDEN").is_some();
    for (host, extension, place) in HOSTS {
        let home = tempfile::tempdir().expect("temporary folder");
        let home = home.path().canonicalize().expect("a path");
        std::fs::create_dir_all(home.join("project")).expect("a folder");
        let server = home.join("sample-server");
        std::fs::copy(env!("CARGO_BIN_EXE_ptc"), &server).expect("copied");
        let fixture =
            std::fs::read_to_string(folder().join(format!("{host}.{extension}"))).expect("a fixture");
        write(&home.join(place), &fixture.replace("@SERVER@", server.to_str().expect("UTF-8")));
        let output = at(&home, &["config", "import", "--from", host, "--to", "out.json", "--output", "json"]);
        assert_eq!(output.status.code(), Some(0), "{host}: {}{}", stdout(&output), stderr(&output));
        let written = std::fs::read_to_string(home.join("project/out.json")).expect("a file");
        let mut report: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
        report["document"] = serde_json::from_str(&written).expect("JSON");
        let found = format!("{report:#}\n").replace(home.to_str().expect("UTF-8"), "@HOME@");
        let golden = folder().join(format!("golden/{host}.json"));
        if renew {
            write(&golden, &found);
        }
        let expected = std::fs::read_to_string(&golden).unwrap_or_default();
        assert!(found == expected, "{host}: UPDATE_GOLDEN=1 writes the golden files again\n{found}");
        assert!(!stdout(&output).contains("literal_token"), "{host} shows a secret");
        let works = at(&home, &["tools", "shop", "--upstreams-config", "out.json"]);
        assert_eq!(works.status.code(), Some(0), "{host}: {}{}", stdout(&works), stderr(&works));
        assert!(stdout(&works).contains("shop ready"), "{host}: {}", stdout(&works));
    }
}

#[test]
fn a_hosts_file_that_cannot_be_read_is_reported() {
    let home = tempfile::tempdir().expect("temporary folder");
    let home = home.path();
    std::fs::create_dir_all(home.join("project")).expect("a folder");
    let file = home.join(".cursor/mcp.json");
    write(&file, "");
    let utf_16: Vec<u8> =
        "{\"mcpServers\": {}}".encode_utf16().flat_map(u16::to_le_bytes).chain([0xFF]).collect();
    std::fs::write(&file, utf_16).expect("written");
    let output = at(home, &["config", "import", "--from", "cursor"]);
    assert!(stdout(&output).contains("no text in UTF-8"), "{}{}", stdout(&output), stderr(&output));
    std::fs::remove_file(&file).expect("removed");
    std::fs::create_dir(&file).expect("a folder");
    assert!(stdout(&at(home, &["config", "import", "--from", "cursor"])).contains("directory"));
}

#[test]
fn an_import_adds_to_what_is_there_and_keeps_its_comments() {
    let home = tempfile::tempdir().expect("temporary folder");
    let home = home.path();
    std::fs::create_dir_all(home.join("project")).expect("a folder");
    write(
        &home.join(".cursor/mcp.json"),
        r#"{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}, "c": {"command": "z"}}}"#,
    );
    let out = home.join("project/out.json");
    write(
        &out,
        "{\n  // mine\n  \"mcpServers\": {\n    \"a\": { \"command\": \"x\" }, // first\n    \"b\": { \"command\": \"other\" }\n  }\n}\n",
    );
    for _ in 0..2 {
        let output = at(home, &["config", "import", "--from", "cursor", "--to", "out.json"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let text = std::fs::read_to_string(&out).expect("a file");
        assert!(text.contains("// mine") && text.contains("// first"), "{text}");
        for (entry, times) in
            [("\"x\"", 1), ("\"other\"", 1), ("\"y\"", 1), ("\"z\"", 1), ("\"b-cursor\"", 1)]
        {
            assert_eq!(text.matches(entry).count(), times, "{entry}: {text}");
        }
    }
}

#[test]
fn an_import_into_a_file_of_upstreams_keeps_what_the_hosts_mean() {
    let home = tempfile::tempdir().expect("temporary folder");
    let home = home.path();
    std::fs::create_dir_all(home.join("project")).expect("a folder");
    let server = home.join("sample-server");
    std::fs::copy(env!("CARGO_BIN_EXE_ptc"), &server).expect("copied");
    let entries = json!({
        "desk": { "command": server, "args": ["${NOT_SET:-demo-server}", "desk"] },
        "unset": { "command": server, "env": { "TOKEN": "${NOT_SET}" } },
        "far": { "url": "https://example.com/mcp", "headers": { "X-Key": "${NOT_SET}" } },
        "wrong": { "comand": "x" },
    });
    write(&home.join(".cursor/mcp.json"), &json!({ "mcpServers": entries }).to_string());
    let out = home.join("project/out.json");
    let ours =
        json!({ "shop": { "transport": "mcp_stdio", "command": server, "args": ["demo-server", "shop"] } });
    write(&out, &json!({ "upstreams": ours }).to_string());
    let output = at(home, &["config", "import", "--from", "cursor", "--to", "out.json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("wrong: left out: it has neither"), "{}", stdout(&output));
    let read: Value = serde_json::from_str(&std::fs::read_to_string(&out).expect("a file")).expect("JSON");
    let entries = read["mcpServers"].as_object().expect("entries");
    let names: Vec<&str> = entries.keys().map(String::as_str).collect();
    assert_eq!((&read["upstreams"], names), (&ours, vec!["desk", "unset", "far"]));
    for name in ["desk", "shop"] {
        let works = at(home, &["tools", name, "--upstreams-config", "out.json"]);
        assert_eq!(works.status.code(), Some(0), "{}{}", stdout(&works), stderr(&works));
    }
    assert_eq!(at(home, &["remove", "unset", "--from", "out.json"]).status.code(), Some(0));
}

#[test]
fn servers_are_added_used_and_removed() {
    let home = tempfile::tempdir().expect("temporary folder");
    let home = home.path();
    std::fs::create_dir_all(home.join("project")).expect("a folder");
    let server = home.join("sample-server");
    std::fs::copy(env!("CARGO_BIN_EXE_ptc"), &server).expect("copied");
    let server = server.to_str().expect("UTF-8");
    let run = |arguments: &[&str], code: i32| {
        let output = at(home, arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}{}", stdout(&output), stderr(&output));
        stdout(&output) + &stderr(&output)
    };
    run(&["add", "shop", "--", server, "demo-server", "shop"], 0);
    assert!(run(&["add", "shop", "--", "x"], 2).contains("--force replaces it"));
    let told =
        run(&["add", "far", "https://example.com/mcp", "-H", "Authorization: Bearer sk-literal-token"], 0);
    assert!(told.contains("holds a secret") && !told.contains("sk-literal-token"), "{told}");
    assert!(run(&["add", "wrong"], 2).contains("ptc add wrong"));
    assert!(run(&["add", "self", "--", env!("CARGO_BIN_EXE_ptc"), "serve"], 2).contains("its own server"));
    run(&["remove", "far"], 0);
    assert!(run(&["remove", "far"], 2).contains("it has shop"));
    assert!(run(&["tools", "shop/get_customer"], 0).contains("get_customer"));
    let name = "c-03";
    // The value comes first, then the text that the server sends next to it.
    for argument in ["id=c-03", "{\"id\": \"c-03\"}"] {
        let shown = run(&["call", "shop/get_customer", argument], 0);
        let value = serde_json::Deserializer::from_str(&shown).into_iter::<Value>().next();
        assert_eq!(value.expect("a value").expect("JSON")["id"], name);
    }
    run(&["call", "shop/get_customer", "id=nobody"], 1);
    assert!(run(&["call", "shop/no_such_tool"], 2).contains("no_such_tool"));
    run(&["call", "nonsense"], 2);
    let program =
        "(:id (:value (tool/call {:server \"server\" :tool \"get_customer\" :args {:id \"c-04\"}})))";
    let line = format!("'{server}' demo-server shop");
    assert_eq!(run(&["eval", "--stdio", &line, program], 0), "\"c-04\"\n");
}

#[test]
fn a_remote_server_is_added_to_a_file_of_upstreams_in_its_words() {
    let home = tempfile::tempdir().expect("temporary folder");
    let home = home.path();
    std::fs::create_dir_all(home.join("project")).expect("a folder");
    let file = home.join("mine.json");
    write(&file, "{ \"upstreams\": {} }");
    let to = ["--to", file.to_str().expect("UTF-8")];
    let add = |arguments: &[&str]| at(home, &[&["add"], arguments, &to].concat()).status.code();
    assert_eq!(add(&["near", "http://127.0.0.1:1/mcp"]), Some(0));
    assert_eq!(add(&["far", "https://example.com/mcp", "-H", "Authorization: Bearer x"]), Some(2));
    let read: Value = serde_json::from_str(&std::fs::read_to_string(&file).expect("a file")).expect("JSON");
    let near = &read["upstreams"]["near"];
    assert!(near["transport"] == "mcp_http" && near["allow_insecure_http"] == true, "{read}");
    assert!(near.get("type").is_none() && read["upstreams"].get("far").is_none(), "{read}");
}

#[test]
fn a_client_gets_ptc_and_loses_it_again() {
    let home = tempfile::tempdir().expect("temporary folder");
    let home = home.path();
    std::fs::create_dir_all(home.join("project")).expect("a folder");
    let file = home.join(".cursor/mcp.json");
    let before = "{\n  // mine\n  \"mcpServers\": {\n    \"a\": { \"command\": \"x\" }\n  }\n}\n";
    write(&file, before);
    let read = || std::fs::read_to_string(&file).expect("a file");
    let run = |arguments: &[&str]| at(home, arguments).status.code();
    assert_eq!(run(&["install", "cursor"]), Some(0));
    let with = read();
    assert!(with.contains("// mine") && with.contains("\"serve\"") && with.contains("\"a\""), "{with}");
    assert_eq!((run(&["install", "cursor"]), read()), (Some(0), with), "it is there already");
    assert_eq!(std::fs::read_to_string(file.with_file_name("mcp.json.ptc-backup")).expect("a copy"), before);
    assert_eq!(run(&["install", "cursor", "--undo"]), Some(0));
    assert_eq!(read(), before);
    assert_eq!(run(&["install", "cursor", "--undo"]), Some(2), "it is not there");
    for (client, place) in [("codex", ".codex/config.toml"), ("vscode", "project/.vscode/mcp.json")] {
        let flags: &[&str] = if client == "vscode" { &["--project"] } else { &[] };
        assert_eq!(run(&[&["install", client], flags].concat()), Some(0), "{client}");
        assert!(std::fs::read_to_string(home.join(place)).expect("a file").contains("serve"), "{client}");
    }
}

#[test]
fn a_clients_file_is_never_made_unreadable_and_only_our_entry_is_taken_out() {
    let home = tempfile::tempdir().expect("temporary folder");
    let home = home.path();
    std::fs::create_dir_all(home.join("project")).expect("a folder");
    let codex = home.join(".codex/config.toml");
    let read = || std::fs::read_to_string(&codex).expect("a file");
    let run = |arguments: &[&str]| {
        let output = at(home, arguments);
        (output.status.code(), stdout(&output) + &stderr(&output))
    };
    let braces = "mcp_servers = { a = { command = \"y\" } }\n";
    write(&codex, braces);
    let (code, told) = run(&["install", "codex"]);
    assert!(code == Some(2) && told.contains("in braces") && told.contains("[mcp_servers.ptc]"), "{told}");
    assert_eq!(read(), braces);

    write(&codex, "model = \"m\"\n");
    assert_eq!(run(&["install", "codex"]).0, Some(0));
    write(&codex, &(read() + "[mcp_servers\n"));
    let (code, told) = run(&["install", "codex", "--undo"]);
    assert!(code == Some(0) && told.contains("not readable"), "{told}");
    assert_eq!(read(), "model = \"m\"\n");

    let foreign = "[mcp_servers.ptc]\ncommand = \"npx\"\nargs = [\"tap-creator\"]\n";
    write(&codex, foreign);
    let (code, told) = run(&["install", "codex", "--undo"]);
    assert!(code == Some(2) && told.contains("starts something else"), "{told}");
    assert_eq!(read(), foreign);

    let (code, told) = run(&["install", "goose"]);
    assert!(code == Some(2) && told.contains("extensions:\n  ptc:\n") && told.contains("cmd: \""), "{told}");
    assert!(!run(&["install", "--help"]).1.contains("goose"));
}

#[test]
fn the_users_file_is_the_users_wherever_one_stands() {
    let home = tempfile::tempdir().expect("temporary folder");
    let home = home.path();
    std::fs::create_dir_all(home.join("project")).expect("a folder");
    let from = |folder: &Path, arguments: &[&str]| {
        let mut command = ptc(arguments);
        command.env("HOME", home).env_remove("XDG_CONFIG_HOME").env_remove("CODEX_HOME").current_dir(folder);
        let output = command.output().expect("binary ends");
        assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
        stdout(&output)
    };
    let cursor = home.join(".cursor/mcp.json");
    write(&cursor, r#"{"mcpServers": {"a": {"command": "x", "args": ["./y"]}}}"#);
    let shown = from(Path::new("/"), &["config", "import", "--from", "cursor", "--dry-run"]);
    assert!(!shown.contains("cwd"), "{shown}");
    for folder in [Path::new("/"), home, &home.join(".cursor")] {
        from(folder, &["install", "cursor"]);
        assert!(std::fs::read_to_string(&cursor).expect("a file").contains("serve"));
        from(folder, &["install", "cursor", "--undo"]);
    }
    #[cfg(target_os = "linux")]
    {
        std::fs::create_dir_all(home.join(".config")).expect("a folder");
        from(&home.join(".config"), &["install", "claude-desktop"]);
        assert!(home.join(".config/Claude/claude_desktop_config.json").is_file());
        assert!(!home.join("Library").exists());
    }
}

#[test]
fn shells_and_man_are_told_about_every_command() {
    let home = tempfile::tempdir().expect("temporary folder");
    let home = home.path();
    std::fs::create_dir_all(home.join("project")).expect("a folder");
    for shell in ["bash", "zsh", "fish"] {
        assert!(stdout(&at(home, &["completions", shell])).contains("doctor"), "{shell}");
    }
    assert!(stdout(&at(home, &["man"])).contains(".TH ptc 1"));
    assert_eq!(at(home, &["man", "--to", "pages"]).status.code(), Some(0));
    assert!(home.join("project/pages/ptc-doctor.1").is_file());
}
