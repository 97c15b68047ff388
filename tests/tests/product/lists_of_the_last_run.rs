//! What a client reads of the servers before they have started: the lists of the last run, and one notification when
//! they were wrong.

#![expect(clippy::unwrap_used, reason = "test helpers: what is broken should be loud")]

use ptc_tests::binary::ptc;
use ptc_tests::serve::Server;
use ptc_tests::upstreams::{probe_server, stdio};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// A folder for state, and a configuration file as hosts write it.
struct Machine {
    folder: TempDir,
}

impl Machine {
    fn new(servers: &Value) -> Machine {
        let machine = Machine { folder: tempfile::tempdir().unwrap() };
        machine.configure(servers);
        machine
    }

    fn configure(&self, servers: &Value) {
        std::fs::write(self.config(), json!({ "mcpServers": servers }).to_string()).unwrap();
    }

    fn config(&self) -> String {
        self.folder.path().join("servers.json").to_str().unwrap().to_owned()
    }

    fn state(&self) -> std::path::PathBuf {
        self.folder.path().join("state")
    }

    fn command(&self) -> Command {
        let mut command = ptc(&["serve", "--upstreams-config", &self.config()]);
        command.env("XDG_STATE_HOME", self.state());
        command
    }

    /// The first list, the instructions, and the notifications until all servers have settled.
    fn first_look(&self, names: &[&str]) -> (String, String, usize) {
        let mut server = Server::silent(self.command());
        let client = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "tests", "version": "1" } });
        let hello = server.request("initialize", client);
        server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        let mut notifications = 0;
        let mut ask = |server: &mut Server, method: &str, params: Value| {
            let id = server.begin(method, params);
            loop {
                let answer = server.receive();
                match answer["id"] == id {
                    true => return answer["result"].clone(),
                    false => notifications += 1,
                }
            }
        };
        let list = ask(&mut server, "tools/list", json!({}));
        // A program that asks each server waits for its start; a notification may come at any time.
        for name in names {
            let program = format!("(count (dir {name:?}))");
            ask(
                &mut server,
                "tools/call",
                json!({ "name": "lisp_eval", "arguments": { "program": program } }),
            );
        }
        let id = server.begin("ping", json!({}));
        while server.receive()["id"] != id {
            notifications += 1;
        }
        let instructions = hello["result"]["instructions"].as_str().unwrap().to_owned();
        server.end();
        let description = list["tools"][0]["description"].as_str().unwrap().to_owned();
        (description, instructions, notifications)
    }
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    std::fs::read_dir(folder).map(|all| all.map(|entry| entry.unwrap().path()).collect()).unwrap_or_default()
}

#[test]
fn the_first_list_is_that_of_the_last_run() {
    let mut described = probe_server(&[]);
    described["description"] =
        "Echoes what it is given, for tests of a description that is rather long".into();
    let servers = json!({ "one": probe_server(&[]), "two": described, "three": probe_server(&[]) });
    let machine = Machine::new(&servers);
    let names = ["one", "two", "three"];
    let (first, _, notifications) = machine.first_look(&names);
    assert!(first.contains("- two: Echoes what it is given"), "{first}");
    assert!(notifications <= 1, "{notifications} notifications");
    assert_eq!(files(&machine.state().join("ptc/tool-lists")).len(), 3);
    let (second, instructions, notifications) = machine.first_look(&names);
    for line in
        ["- one: Ask it for echoes. 6 tools", "rather long. 6 tools", "- three: Ask it for echoes. 6 tools"]
    {
        assert!(second.contains(line) || instructions.contains(line), "{second}\n{instructions}");
    }
    assert!(!second.contains("not loaded") && notifications == 0, "{notifications} notifications: {second}");
}

#[test]
fn another_server_of_the_same_name_has_no_last_list() {
    let machine = Machine::new(&json!({ "one": probe_server(&[]) }));
    machine.first_look(&["one"]);
    machine.configure(&json!({ "one": stdio("/nonexistent/server", &[]) }));
    let (list, _, _) = machine.first_look(&["one"]);
    assert!(list.contains("- one: Tools not loaded yet."), "{list}");
    // The list describes a server that does not start, and no call is checked against it.
    machine.configure(&json!({ "one": probe_server(&[]) }));
    let (list, _, _) = machine.first_look(&["one"]);
    assert!(list.contains("6 tools"), "{list}");
}

#[test]
fn a_folder_that_cannot_be_written_is_no_trouble() {
    let machine = Machine::new(&json!({ "one": probe_server(&[]) }));
    let mut command = machine.command();
    command.env("XDG_STATE_HOME", "/dev/null");
    let mut server = Server::from_command(command);
    assert!(server.text("(count (dir 'one))").starts_with("6\n"));
    assert_eq!(server.end(), Some(0));
}
