//! The first commands: `add` in each form, `install` with the client's own servers, OpenAPI in one line.

#![expect(clippy::unwrap_used, reason = "test helpers: what is broken should be loud")]

use ptc_tests::binary::{Finished, ptc, run};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A home with a project in it.
pub(super) struct Home(TempDir);

impl Home {
    pub(super) fn new() -> Home {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join("project")).unwrap();
        Home(home)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = ptc(arguments);
        command.env_remove("XDG_CONFIG_HOME").env_remove("XDG_STATE_HOME").env("HOME", self.0.path());
        command.current_dir(self.path("project"));
        command
    }

    pub(super) fn run(&self, arguments: &[&str]) -> Finished {
        run(self.command(arguments), "")
    }

    /// Writes a file of the home.
    pub(super) fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    pub(super) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub(super) fn ok(&self, arguments: &[&str]) -> String {
        let finished = self.run(arguments);
        assert_eq!(finished.code, Some(0), "{arguments:?}: {finished:?}");
        finished.stdout
    }

    pub(super) fn json(&self, name: &str) -> Value {
        serde_json::from_str(&fs::read_to_string(self.path(name)).unwrap()).unwrap()
    }
}

/// The configuration of `ptc`.
pub(super) const OURS: &str = ".config/ptc/upstreams.json";

#[test]
fn a_program_is_added_with_and_without_dashes() {
    let home = Home::new();
    home.ok(&["add", "a", "npx", "-y", "foo", "--root", "/tmp"]);
    home.ok(&["add", "--env", "K=V", "b", "--", "npx", "-y", "foo"]);
    home.ok(&["add", "--log-level", "info", "c", "docker", "run", "-e", "X", "image"]);
    let servers = home.json(OURS)["mcpServers"].clone();
    assert_eq!(servers["a"]["args"], json!(["-y", "foo", "--root", "/tmp"]));
    assert_eq!((&servers["b"]["args"], &servers["b"]["env"]["K"]), (&json!(["-y", "foo"]), &json!("V")));
    assert_eq!((&servers["c"]["command"], &servers["c"]["args"][1]), (&json!("docker"), &json!("-e")));
    let unclear = home.run(&["add", "d", "npx", "foo", "--to", "x.json"]);
    assert_eq!(unclear.code, Some(2));
    assert!(unclear.stderr.contains("then -- and the program"), "{unclear:?}");
    let empty = home.run(&["add", "d"]);
    assert!(empty.stderr.contains("ptc add d -- npx -y PACKAGE"), "{empty:?}");
    home.ok(&["add", "e", "https://example.com/mcp", "--header", "X-A: b"]);
}

#[test]
fn the_next_command_works_as_it_is_printed() {
    let home = Home::new();
    let said = home.ok(&["add", "my server", "--to", "other file.json", "--", "true"]);
    let next = said.lines().find_map(|line| line.strip_prefix("next: ptc ")).unwrap();
    assert_eq!(next, "tools 'my server' --upstreams-config 'other file.json'");
    let said = home.ok(&["add", "x", "true"]);
    assert!(said.ends_with("next: ptc tools x\n"), "{said}");
}

#[test]
fn servers_that_are_added_at_once_are_all_there() {
    let home = Home::new();
    std::thread::scope(|scope| {
        for n in 0..12 {
            let home = &home;
            scope.spawn(move || home.ok(&["add", &format!("s{n}"), "true"]));
        }
    });
    assert_eq!(home.json(OURS)["mcpServers"].as_object().unwrap().len(), 12);
}

#[test]
fn install_says_what_is_there_twice_and_replace_moves_it_and_undo_moves_it_back() {
    let home = Home::new();
    fs::create_dir_all(home.path(".cursor")).unwrap();
    let before = "{\n  // mine\n  \"mcpServers\": {\n    \"fs\": { \"command\": \"npx\", \"args\": [\"fs\"] },\n    \"git\": { \"command\": \"uvx\", \"args\": [\"git\"] }\n  }\n}\n";
    let client = home.path(".cursor/mcp.json");
    fs::write(&client, before).unwrap();
    home.ok(&["add", "fs", "npx", "fs"]);
    let said = home.ok(&["install", "cursor"]);
    assert!(said.contains("twice") && said.contains("fs") && said.contains("git itself"), "{said}");
    assert!(said.contains("--replace"), "{said}");
    // The same again changes nothing and is no error.
    let installed = fs::read_to_string(&client).unwrap();
    assert!(home.ok(&["install", "cursor"]).contains("already"));
    assert_eq!(fs::read_to_string(&client).unwrap(), installed);

    home.ok(&["install", "cursor", "--replace"]);
    let names = |path: &str| -> Vec<String> {
        let text = fs::read_to_string(home.path(path)).unwrap().replace("// mine", "");
        let value: Value = serde_json::from_str(&text).unwrap();
        value["mcpServers"].as_object().unwrap().keys().cloned().collect()
    };
    assert_eq!(names(".cursor/mcp.json"), ["ptc"]);
    assert_eq!(names(OURS), ["fs", "git"]);

    let undone = home.ok(&["install", "cursor", "--undo"]);
    assert_eq!(fs::read_to_string(&client).unwrap(), before, "{undone}");
    assert_eq!(names(OURS), ["fs"]);
    assert!(undone.contains("git"), "{undone}");
}

#[test]
fn undo_gives_back_what_was_moved_though_the_client_s_file_has_changed() {
    let home = Home::new();
    fs::create_dir_all(home.path(".cursor")).unwrap();
    let client = home.path(".cursor/mcp.json");
    fs::write(&client, json!({ "mcpServers": { "fs": { "command": "npx" } } }).to_string()).unwrap();
    home.ok(&["install", "cursor", "--replace"]);
    let mut changed = home.json(".cursor/mcp.json");
    changed["mcpServers"]["later"] = json!({ "command": "x" });
    fs::write(&client, changed.to_string()).unwrap();
    home.ok(&["install", "cursor", "--undo"]);
    let servers = home.json(".cursor/mcp.json")["mcpServers"].clone();
    assert_eq!(servers, json!({ "fs": { "command": "npx" }, "later": { "command": "x" } }));
}

/// Servers with a secret, which are in no other file once `--replace` has moved them.
fn replaced() -> (Home, Value) {
    let home = Home::new();
    fs::create_dir_all(home.path(".cursor")).unwrap();
    let servers = json!({
        "a": { "command": "x", "env": { "KEY": "secret-of-a" }, "disabled": false }, "b": { "command": "y" }
    });
    fs::write(home.path(CURSOR), json!({ "mcpServers": servers }).to_string()).unwrap();
    home.ok(&["install", "cursor", "--replace"]);
    (home, servers)
}

const CURSOR: &str = ".cursor/mcp.json";

fn undone(home: &Home) -> Value {
    let said = home.ok(&["install", "cursor", "--undo"]);
    assert!(said.contains("itself again: a, b"), "{said}");
    assert_eq!(home.json(OURS)["mcpServers"], json!({}), "{said}");
    home.json(CURSOR)["mcpServers"].clone()
}

#[test]
fn undo_gives_back_what_was_moved_whatever_has_become_of_the_backup() {
    let spoil: [fn(&Path); 6] = [
        |_| (),
        |backup| fs::remove_file(backup).unwrap(),
        |backup| fs::write(backup, "").unwrap(),
        |backup| fs::write(backup, "{\"mcpServers\": {\"a\"").unwrap(),
        |backup| fs::write(backup, "{\"mcpServers\": {\"a\": {\"command\": \"other\"}}}").unwrap(),
        |backup| {
            fs::remove_file(backup).unwrap();
            fs::create_dir(backup).unwrap();
        },
    ];
    for (case, spoil) in spoil.into_iter().enumerate() {
        let (home, servers) = replaced();
        spoil(&home.path(".cursor/mcp.json.ptc-backup"));
        assert_eq!(undone(&home), servers, "case {case}");
    }
}

#[test]
fn undo_gives_back_what_came_later_than_the_backup() {
    // Added after the first installation, and moved by a second one.
    let (home, mut servers) = replaced();
    let mut changed = home.json(CURSOR);
    changed["mcpServers"]["c"] = json!({ "command": "z" });
    fs::write(home.path(CURSOR), changed.to_string()).unwrap();
    home.ok(&["install", "cursor", "--replace"]);
    servers["c"] = json!({ "command": "z" });
    assert_eq!(undone(&home), servers);

    // The client has dropped the entry, and the emptied file is no backup of the servers.
    let (home, servers) = replaced();
    let backup = fs::read_to_string(home.path(".cursor/mcp.json.ptc-backup")).unwrap();
    fs::write(home.path(CURSOR), "{\"mcpServers\": {}}").unwrap();
    home.ok(&["install", "cursor"]);
    assert_eq!(fs::read_to_string(home.path(".cursor/mcp.json.ptc-backup")).unwrap(), backup);
    assert_eq!(undone(&home), servers);

    // It has dropped its whole file.
    let (home, servers) = replaced();
    fs::remove_file(home.path(CURSOR)).unwrap();
    assert_eq!(undone(&home), servers);
}

/// A service whose document has three operations that read, one that writes and one that cannot be called.
fn service() -> String {
    service_at("/v1")
}

/// The service of a document that names this server.
fn service_at(server: &str) -> String {
    let ok = json!({ "200": { "description": "ok", "content": { "application/json": {} } } });
    let header =
        json!([{ "name": "X-Key", "in": "header", "required": true, "schema": { "type": "string" } }]);
    let document = json!({
        "openapi": "3.1.0", "info": { "title": "Tasks\nforged", "version": "1" }, "servers": [{ "url": server }],
        "paths": {
            "/tasks": {
                "get": { "operationId": "list_tasks", "tags": ["tasks"], "responses": ok },
                "post": { "operationId": "create_task", "tags": ["tasks"], "responses": ok },
            },
            "/users": { "get": { "operationId": "list_users", "tags": ["people"], "responses": ok } },
            "/odd": { "get": { "operationId": "odd", "parameters": header, "responses": ok } },
        },
    })
    .to_string();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut request = [0; 8192];
            let read = stream.read(&mut request).unwrap_or_default();
            let line =
                String::from_utf8_lossy(&request[..read]).lines().next().unwrap_or_default().to_owned();
            let (status, body) = match line.split(' ').take(2).collect::<Vec<_>>()[..] {
                ["GET", "/openapi.json"] => ("200 OK", document.as_str()),
                ["GET", "/v1/tasks"] => ("200 OK", "[\"one\"]"),
                _ => ("405 Method Not Allowed", "{}"),
            };
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    address
}

fn names_of_tools(home: &Home, server: &str) -> Vec<String> {
    let listed: Value = serde_json::from_str(&home.ok(&["tools", server, "--output", "json"])).unwrap();
    let tools = listed["servers"][0]["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_service_is_added_in_one_line() {
    let home = Home::new();
    let address = service();
    let document = format!("{address}/openapi.json");
    let said = home.ok(&["add", "api", "--openapi", &document]);
    assert!(said.contains("2 tools: list-tasks, list-users"), "{said}");
    assert!(!said.lines().any(|line| line.starts_with("forged")), "{said}");
    assert!(said.contains("create_task may change something (POST)"), "{said}");
    assert!(said.contains("odd has unsupported header parameter"), "{said}");
    assert_eq!(home.json(OURS)["mcpServers"]["api"]["base_url"], format!("{address}/v1"));
    assert_eq!(names_of_tools(&home, "api"), ["list-tasks", "list-users"]);
    assert_eq!(home.ok(&["call", "api/list-tasks"]), "[\n  \"one\"\n]\n");

    // What the pattern leaves out is said wherever the tools are shown.
    let left_out = "include_operations leaves out operation odd has unsupported header parameter X-Key";
    let effects = "include_operations leaves out 1 operations that may change something";
    for command in ["tools", "doctor"] {
        let said = home.ok(&[command]);
        assert!(said.contains(left_out) && said.contains(effects), "{said}");
    }
    let elsewhere = service_at("https://api.example/v2");
    let said = home.ok(&["add", "away", "--openapi", &format!("{elsewhere}/openapi.json")]);
    assert!(said.contains("the document names the server https://api.example/v2, which is not at"), "{said}");

    home.ok(&["add", "some", "--openapi", &document, "--include", "tag:tasks"]);
    assert_eq!(names_of_tools(&home, "some"), ["list-tasks"]);
    let typo = home.run(&["add", "typo", "--openapi", &document, "--include", "list_task"]);
    assert_eq!(typo.code, Some(2));
    assert!(typo.stderr.contains("did you mean list_tasks?"), "{typo:?}");
    let unknown = home.run(&["add", "typo", "--openapi", &document, "--include", "zzz*"]);
    assert!(unknown.stderr.contains("there are") && unknown.stderr.contains("list_users"), "{unknown:?}");
}

#[test]
fn doctor_recognises_a_document_behind_an_entry_for_mcp() {
    let home = Home::new();
    let document = format!("{}/openapi.json", service());
    home.ok(&["add", "api", &document]);
    let found = home.run(&["doctor"]);
    let remedy = format!("ptc add api --force --openapi {document}");
    assert!(found.stdout.contains(&remedy), "{found:?}");
    let words: Vec<&str> = remedy.split(' ').skip(1).collect();
    home.ok(&words);
    assert!(Path::new(&home.path(OURS)).exists());
    assert_eq!(names_of_tools(&home, "api"), ["list-tasks", "list-users"]);
}
