//! A role that may connect to the database of nodes, and has no rights there, can neither read their messages nor send
//! any, nor send one again.
#![allow(clippy::unwrap_used, reason = "a broken answer should be loud")]

use crate::any_node::{FORM, Nodes, Pending, offering, request};
use ptc_tests::PATIENCE;
use ptc_tests::postgres::Database;
use ptc_tests::processes::eventually;
use ptc_tests::serve::text_of;
use ptc_tests::web::{SessionClient, WebServer, program};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

/// Such a role, which listens to messages.
struct Stranger {
    psql: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Stranger {
    fn listening(database: &Database) -> Stranger {
        let made =
            Command::new("psql").arg(database.url()).args(["-qAtc", "CREATE ROLE stranger LOGIN"]).status();
        assert!(made.unwrap().success());
        let mut psql = Command::new("psql");
        psql.arg(database.url().replace("ptc@", "stranger@")).args(["-qAt"]);
        let mut psql = psql.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let output = BufReader::new(psql.stdout.take().unwrap());
        std::thread::spawn(move || {
            output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let mut stranger = Stranger { psql, lines, seen: Vec::new() };
        stranger.execute("LISTEN ptc_messages");
        stranger
    }

    /// Executes a statement, and reads what has come meanwhile.
    fn execute(&mut self, statement: &str) {
        writeln!(self.psql.stdin.as_ref().unwrap(), "{statement};\nSELECT 'done';").unwrap();
        loop {
            let line = self.lines.recv_timeout(PATIENCE).unwrap();
            if line == "done" {
                return;
            }
            let payload =
                line.split_once("with payload \"").and_then(|(_, rest)| rest.rsplit_once("\" received"));
            self.seen.extend(payload.map(|(payload, _)| payload.to_owned()));
        }
    }

    /// Reads until there are so many messages.
    fn await_messages(&mut self, count: usize) {
        eventually("messages are seen", || {
            self.execute("SELECT 1");
            self.seen.len() >= count
        });
    }

    fn send(&mut self, payload: &str) {
        let text = payload.replace('\'', "''");
        self.execute(&format!("NOTIFY ptc_messages, '{text}'"));
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        drop(self.psql.kill());
        drop(self.psql.wait());
    }
}

/// A task at the first node, whose result was read at the second one.
fn relayed_task(nodes: &[WebServer], client: &mut SessionClient) -> Value {
    let mut params = program("(str \"secret \" \"result\")");
    params["task"] = json!({});
    let begun = request(&nodes[0], client, "tools/call", params);
    let named = json!({ "taskId": begun["result"]["task"]["taskId"] });
    let result = request(&nodes[1], client, "tasks/result", named.clone());
    assert_eq!(text_of(&result["result"]), "\"secret result\"", "{result}");
    named
}

fn calls(node: &WebServer) -> String {
    node.eval("(get (:value (tool/call 'other/stats {})) :calls)")
}

#[test]
fn a_stranger_reads_nothing_and_no_node_works_for_one() {
    let Some(Nodes { nodes, _config, _database }) = Nodes::start(2, &[]) else { return };
    let mut stranger = Stranger::listening(&_database);
    let mut client = offering(&nodes[0], "2025-11-25");
    let named = relayed_task(&nodes, &mut client);
    stranger.await_messages(2);
    let task = named["taskId"].as_str().unwrap();
    let seen = stranger.seen.clone();
    let owner = seen.iter().find_map(|text| text.split_once("\"owner\":")?.1.split_once(','));
    let owner: u64 = owner.map_or(0, |(owner, _)| owner.parse().unwrap());
    let before = calls(&nodes[0]);
    let body = json!({ "jsonrpc": "2.0", "id": 99, "method": "tools/call",
        "params": program("(tool/call 'other/echo {:v 1})") });
    let request = json!({ "owner": owner, "claim": { "Task": task }, "body": body.to_string(),
        "headers": [["mcp-protocol-version", "2025-11-25"], ["content-type", "application/json"]] });
    let forged = json!({ "from": "stranger", "message": { "Ask": { "id": 1, "request": request } } });
    stranger.send(&format!("0 0 {forged}"));
    for text in &seen {
        stranger.send(text);
    }
    // A message that comes later has its answer.
    relayed_task(&nodes, &mut client);
    for text in &seen {
        for secret in [task, "secret result", "tasks/result", "owner"] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
    }
    // Only this look itself came in between.
    let between = calls(&nodes[0]).parse::<u64>().unwrap() - before.parse::<u64>().unwrap();
    assert_eq!(between, 1);
}

#[test]
fn a_message_that_a_stranger_sends_again_has_no_effect() {
    let Some(Nodes { nodes, _config, _database }) = Nodes::start(2, &[]) else { return };
    let mut stranger = Stranger::listening(&_database);
    let mut client = offering(&nodes[0], "2025-11-25");
    let body = client.body("tools/call", program(FORM));
    let id = serde_json::from_str::<Value>(&body).unwrap()["id"].clone();
    let begin = |client: &SessionClient| {
        let mut browser = nodes[0].connect();
        browser.send("POST", &client.headers(), &body);
        let head = browser.head().unwrap();
        let mut run = Pending(browser, head);
        let question = run.next();
        (run, question)
    };
    let (mut run, _) = begin(&client);
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
    assert_eq!(nodes[1].ask("POST", &client.headers(), &cancel.to_string()).status, 202);
    while run.next().get("result").is_none() {}
    stranger.await_messages(1);
    // The client uses the number of its request again, which its next call must not suffer from.
    let (mut run, question) = begin(&client);
    for text in stranger.seen.clone() {
        stranger.send(&text);
    }
    // A message that comes later has its answer.
    relayed_task(&nodes, &mut client);
    client.respond(&nodes[0], &question, &json!({ "result": { "action": "decline" } }));
    let ended = loop {
        let message = run.next();
        if message.get("result").is_some() {
            break message;
        }
    };
    assert_eq!(text_of(&ended["result"]), "\"decline\"");
}
