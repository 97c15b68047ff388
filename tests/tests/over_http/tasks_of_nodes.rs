//! Tasks of a node that is silent, has lost them to another one, or has ended, where PostgreSQL is installed; and tasks of
//! a token that is gone when the next process starts.
#![allow(clippy::unwrap_used, reason = "a broken answer should be loud")]

use super::any_node::{Nodes, messages, offering, request, stateless};
use ptc_tests::binary::run_ptc;
use ptc_tests::postgres::Database;
use ptc_tests::processes::{eventually, stand_still};
use ptc_tests::serve::text_of;
use ptc_tests::upstreams::{ConfigFile, Upstreams, stdio};
use ptc_tests::web::{Answer, SessionClient, WebServer, program, sha256};
use ptc_tests::workspace;
use serde_json::{Value, json};
use std::path::PathBuf;

const VERSION: &str = "2025-11-25";

/// A question, and a call that is never answered.
const ASK_AND_HOLD: &str = r#"[(:reason (tool/call 'probe/ask {:message "Sure?"
    :requestedSchema {:type "object" :properties {}}})) (tool/call 'probe/hold {})]"#;

/// Begins a task of this call, and names it.
fn begin(node: &WebServer, client: &mut SessionClient, mut params: Value, task: Value) -> Value {
    params["task"] = task;
    let begun = request(node, client, "tools/call", params);
    let id = &begun["result"]["task"]["taskId"];
    assert!(id.is_string(), "{begun}");
    json!({ "taskId": id })
}

fn ask(node: &WebServer, client: &mut SessionClient, method: &str, params: &Value) -> Answer {
    let body = client.body(method, params.clone());
    node.ask("POST", &client.headers(), &body)
}

/// The status of a task; nothing while its node is silent.
fn status(node: &WebServer, client: &mut SessionClient, method: &str, named: &Value) -> Option<String> {
    let answer = ask(node, client, method, named);
    let said = messages(&answer).pop()?;
    Some(said["result"]["status"].as_str()?.to_owned())
}

fn script(code: &str) -> Value {
    json!({ "name": "execute_program", "arguments": { "code": code } })
}

/// A task that is stored is not unknown.
#[test]
fn a_node_without_room_for_the_task_of_a_dead_node_says_so() {
    let Some(Nodes { mut nodes, _config, _database }) =
        Nodes::start(2, &["--lease", "1s", "--max-tasks", "1"])
    else {
        return;
    };
    let mut client = offering(&nodes[0], VERSION);
    let named = begin(&nodes[0], &mut client, program(ASK_AND_HOLD), json!({}));
    let other = begin(&nodes[1], &mut client, program(ASK_AND_HOLD), json!({}));
    eventually("the task is stored", || {
        status(&nodes[0], &mut client, "tasks/get", &named).as_deref() == Some("input_required")
    });
    // With SIGKILL.
    drop(nodes.remove(0));
    eventually("its lease is over", || {
        let answer = ask(&nodes[0], &mut client, "tasks/get", &named);
        assert_eq!(answer.status, 503, "{answer:?}");
        answer.body.contains("no room")
    });
    ask(&nodes[0], &mut client, "tasks/cancel", &other);
}

#[test]
fn a_task_that_another_node_has_taken_over_is_that_nodes() {
    let Some(Nodes { nodes, _config, _database }) = Nodes::start(2, &["--lease", "1s"]) else { return };
    let mut client = offering(&nodes[0], VERSION);
    let named = begin(&nodes[0], &mut client, program(ASK_AND_HOLD), json!({}));
    eventually("the task asks", || {
        status(&nodes[0], &mut client, "tasks/get", &named).as_deref() == Some("input_required")
    });
    stand_still(nodes[0].id());
    eventually("another node takes it over", || {
        status(&nodes[1], &mut client, "tasks/get", &named).as_deref() == Some("working")
    });
    nodes[0].signal("CONT");
    // Whichever node gets it, the cancellation is that of the node that executes the task.
    eventually("it is cancelled", || {
        status(&nodes[0], &mut client, "tasks/cancel", &named).as_deref() == Some("cancelled")
    });
    for node in &nodes {
        assert_eq!(status(node, &mut client, "tasks/get", &named).as_deref(), Some("cancelled"));
    }
}

#[test]
fn a_script_of_a_silent_node_has_not_failed() {
    let Some(Nodes { nodes, _config, _database }) =
        Nodes::start(2, &["--lease", "1s", "--tools", "lisp_eval,execute_program"])
    else {
        return;
    };
    let mut client = offering(&nodes[0], VERSION);
    let named = begin(&nodes[0], &mut client, script("await mcp__probe__hold()"), json!({}));
    stand_still(nodes[0].id());
    let answer = ask(&nodes[1], &mut client, "tasks/get", &named);
    assert_eq!((answer.status, answer.header("retry-after").is_some()), (503, true), "{answer:?}");
    nodes[0].signal("CONT");
    eventually("its node says something again", || {
        status(&nodes[1], &mut client, "tasks/cancel", &named).as_deref() == Some("cancelled")
    });
    assert_eq!(status(&nodes[0], &mut client, "tasks/get", &named).as_deref(), Some("cancelled"));
}

#[test]
fn a_call_that_waits_at_a_silent_node_goes_on_when_that_speaks_again() {
    let Some(Nodes { nodes, _config, _database }) = Nodes::start(2, &[]) else { return };
    let able = json!({ "elicitation": {} });
    let form = r#"(get-in (tool/call 'probe/ask {:message "Sure?"
        :requestedSchema {:type "object" :properties {}}}) [:value 0 "action"])"#;
    let mut params = program(form);
    let asked = stateless(&nodes[0], "tools/call", "lisp_eval", params.clone(), able.clone());
    let question = asked["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    params["inputResponses"] = json!({ question: { "action": "decline" } });
    params["requestState"] = asked["result"]["requestState"].clone();
    stand_still(nodes[0].id());
    let silent = stateless(&nodes[1], "tools/call", "lisp_eval", params.clone(), able.clone());
    assert!(silent["error"]["message"].as_str().unwrap().contains("does not answer"), "{silent}");
    nodes[0].signal("CONT");
    let mut done = Value::Null;
    eventually("its node says something again", || {
        done = stateless(&nodes[1], "tools/call", "lisp_eval", params.clone(), able.clone());
        done.get("result").is_some() || done["error"]["code"] == -32602
    });
    assert_eq!(text_of(&done["result"]), "\"decline\"", "{done}");
    let again = stateless(&nodes[1], "tools/call", "lisp_eval", params, able);
    assert_eq!(again["error"]["code"], -32602, "{again}");
}

#[test]
fn what_has_ended_takes_no_room_of_a_later_node() {
    let flags = ["--max-tasks", "2"];
    let Some(Nodes { nodes, _config, _database }) = Nodes::start(1, &flags) else { return };
    let mut client = offering(&nodes[0], VERSION);
    let tasks = ["1", "2"].map(|text| begin(&nodes[0], &mut client, program(text), json!({})));
    for (named, text) in tasks.iter().zip(["1", "2"]) {
        let done = request(&nodes[0], &mut client, "tasks/result", named.clone());
        assert_eq!(text_of(&done["result"]), text);
    }
    let state = _database.url();
    let later = WebServer::start(&_config.flags(&[&["--state", &state], &flags[..]].concat()));
    let named = begin(&later, &mut client, program("3"), json!({}));
    assert_eq!(text_of(&request(&later, &mut client, "tasks/result", named)["result"]), "3");
    drop(nodes);
    // It is still there for those who ask.
    let done = request(&later, &mut client, "tasks/result", tasks[0].clone());
    assert_eq!(text_of(&done["result"]), "1");
}

#[test]
fn a_task_whose_time_is_over_is_removed_after_its_node() {
    let flags = ["--tools", "lisp_eval,execute_program"];
    let Some(Nodes { mut nodes, _config, _database }) = Nodes::start(1, &flags) else { return };
    let mut client = offering(&nodes[0], VERSION);
    begin(&nodes[0], &mut client, script("await mcp__probe__hold()"), json!({ "ttl": 1_000 }));
    // With SIGKILL.
    drop(nodes.remove(0));
    let state = _database.url();
    let flags = _config.flags(&["--state", &state]);
    eventually("a later node removes it", || {
        let later = WebServer::start(&flags);
        // It reads what is stored before it answers.
        SessionClient::begin(&later, VERSION, &[]);
        let stored = "SELECT count(*) FROM ptc_values WHERE starts_with(key, 'task/') AND value IS NOT NULL";
        value(&state, stored) == "0"
    });
}

/// What a query says, as text.
fn value(database: &str, query: &str) -> String {
    let mut psql = std::process::Command::new("psql");
    let said = psql.args(["--no-psqlrc", "-tA", "-c", query, database]).output().unwrap();
    assert!(said.status.success(), "{said:?}");
    String::from_utf8(said.stdout).unwrap().trim().to_owned()
}

/// A server that counts calls, in a folder of a test.
struct Counted {
    folder: tempfile::TempDir,
}

impl Counted {
    fn new() -> Counted {
        Counted { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// The server does not answer this call.
    fn hang(&self, call: &str) {
        std::fs::write(self.path("log.hang"), call).unwrap();
    }

    fn calls(&self) -> String {
        std::fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// Waits for the call that is not answered, and kills the node.
    fn kill_at(&self, node: WebServer, call: &str) {
        eventually(call, || self.calls().ends_with(&format!("{call}\n")));
        // With SIGKILL.
        drop(node);
        std::fs::remove_file(self.path("log.hang")).unwrap();
    }

    /// A configuration with it; it starts once this file is there.
    fn config(&self, gate: Option<&str>) -> ConfigFile {
        let wait = gate.map_or_else(String::new, |gate| {
            format!("while [ ! -e '{}' ]; do sleep 0.05; done; ", self.text(gate))
        });
        let server = workspace().join("tests/python/counting.py");
        let line = format!("{wait}exec python3 '{}' '{}'", server.display(), self.text("log"));
        Upstreams::default().add("count", stdio("sh", &["-c", &line])).write()
    }
}

/// The stored runs; nothing while a server that starts has the state.
fn runs(state: &str) -> Option<Vec<Value>> {
    let listed = run_ptc(&["runs", "list", "--output", "json", "--state", state], "");
    let report: Value = serde_json::from_str(&listed.stdout).ok()?;
    Some(report["runs"].as_array()?.clone())
}

/// The status of the only run.
fn status_of_run(state: &str) -> Option<Value> {
    Some(runs(state)?.first()?["status"].clone())
}

#[test]
fn a_task_of_a_token_that_was_removed_does_not_go_on() {
    let world = Counted::new();
    let (config, state, tokens) = (world.config(None), world.text("state"), world.text("tokens.toml"));
    let write = |names: &[&str]| {
        let entry = |name: &&str| format!("[{name}]\nsha256 = \"{}\"\n", sha256(&name.repeat(40)));
        std::fs::write(&tokens, names.iter().map(entry).collect::<String>()).unwrap();
    };
    write(&["a", "b"]);
    let flags = config.flags(&["--state", &state, "--http-tokens", &tokens, "--timeout", "60s"]);
    let node = WebServer::start(&flags);
    let twice = "[(tool/call 'count/write {:k 1}) (tool/call! 'count/write {:k 2})]";
    let begun = ["a", "b"].map(|name| {
        let bearer = format!("Bearer {}", name.repeat(40));
        let mut client = SessionClient::begin(&node, VERSION, &[("Authorization", &bearer)]);
        world.hang("write 1");
        let named = begin(&node, &mut client, program(twice), json!({}));
        eventually("it is under way", || world.calls().ends_with("write 1\n"));
        std::fs::write(world.path("log"), "").unwrap();
        (bearer, named)
    });
    world.hang("write 0");
    std::fs::write(world.path("log"), "write 0\n").unwrap();
    world.kill_at(node, "write 0");
    write(&["b"]);
    let node = WebServer::start(&flags);
    eventually("no run is left", || runs(&state).is_some_and(|runs| runs.is_empty()));
    // That of the other token alone.
    assert_eq!(world.calls(), "write 0\nwrite 2\n");
    let (bearer, named) = &begun[1];
    let mut client = SessionClient::begin(&node, VERSION, &[("Authorization", bearer)]);
    assert_eq!(status(&node, &mut client, "tasks/get", named).as_deref(), Some("completed"));
    // It is no longer there when the token comes back.
    node.terminate();
    assert_eq!(node.ended(), Some(0));
    write(&["a", "b"]);
    let node = WebServer::start(&flags);
    let (bearer, named) = &begun[0];
    let mut client = SessionClient::begin(&node, VERSION, &[("Authorization", bearer)]);
    assert_eq!(status(&node, &mut client, "tasks/get", named), None);
    assert_eq!(world.calls(), "write 0\nwrite 2\n");
}

/// A task of the token `a` that is under way when its server ends: its first write is in doubt. Returns what the next server
/// does of the rest, after its files were changed.
fn calls_of_the_next_server(world: &Counted, more: &[&str], change: impl FnOnce(&str)) -> String {
    let (config, state, tokens) = (world.config(None), world.text("state"), world.text("tokens.toml"));
    std::fs::write(&tokens, format!("[a]\nsha256 = \"{}\"\n", sha256(&"a".repeat(40)))).unwrap();
    let flags = ["--state", &state, "--http-tokens", &tokens, "--timeout", "60s"];
    let flags = config.flags(&[&flags[..], more].concat());
    let node = WebServer::start(&flags);
    let bearer = format!("Bearer {}", "a".repeat(40));
    let mut client = SessionClient::begin(&node, VERSION, &[("Authorization", &bearer)]);
    world.hang("write 1");
    let calls =
        "[(tool/call 'count/write {:k 1}) (tool/call 'count/put {:k 2}) (tool/call 'count/read {:k 3})]";
    begin(&node, &mut client, program(calls), json!({}));
    world.kill_at(node, "write 1");
    change(&tokens);
    let node = WebServer::start(&flags);
    eventually("no run is left", || runs(&state).is_some_and(|runs| runs.is_empty()));
    drop(node);
    world.calls()
}

#[test]
fn a_task_that_goes_on_has_the_rules_of_its_token() {
    let world = Counted::new();
    let policy = world.text("policy.toml");
    let allowed = "default = { read = \"allow\", write = \"allow\", destructive = \"allow\" }\n";
    for (rule, calls) in [
        ("", "write 1\nput 2\nread 3\n"),
        ("[[rule]]\ndo = \"deny\"\ntools = [\"count/put\"]\nwho = [\"token:a\"]\n", "write 1\nread 3\n"),
        (
            "[[rule]]\ndo = \"deny\"\ntools = [\"count/put\"]\nwho = [\"token:b\"]\n",
            "write 1\nput 2\nread 3\n",
        ),
    ] {
        let world = Counted::new();
        std::fs::write(&policy, format!("{allowed}{rule}")).unwrap();
        assert_eq!(calls_of_the_next_server(&world, &["--policy", &policy], |_| {}), calls, "{rule}");
    }
}

#[test]
fn a_task_does_not_go_on_at_servers_that_its_token_has_lost() {
    let world = Counted::new();
    let cut = |tokens: &str| {
        let known = std::fs::read_to_string(tokens).unwrap();
        std::fs::write(tokens, format!("{known}servers = [\"other\"]\n")).unwrap();
    };
    assert_eq!(calls_of_the_next_server(&world, &[], cut), "write 1\n");
}

#[test]
fn a_node_keeps_what_it_is_to_go_on_with_until_its_servers_have_started() {
    let Some(database) = Database::start() else { return };
    let state = database.url();
    // The database may still be starting.
    while run_ptc(&["runs", "--state", &state], "").code != Some(0) {}
    let world = Counted::new();
    let (plain, gated) = (world.config(None), world.config(Some("gate")));
    let more = ["--state", &state, "--lease", "1s", "--timeout", "60s"];
    let node = WebServer::start(&plain.flags(&more));
    let mut client = SessionClient::begin(&node, VERSION, &[]);
    world.hang("read 1");
    let reads = "[(tool/call! 'count/read {:k 1}) (tool/call! 'count/read {:k 2})]";
    let named = begin(&node, &mut client, program(reads), json!({}));
    world.kill_at(node, "read 1");
    eventually("its lease is over", || status_of_run(&state) == Some("interrupted".into()));
    let slow = WebServer::start(&gated.flags(&more));
    eventually("the slow node has it", || status_of_run(&state) == Some("running".into()));
    // Much longer than its lease.
    for _ in 0..60 {
        runs(&state);
    }
    let quick = WebServer::start(&plain.flags(&more));
    eventually("the quick node is ready", || quick.get("/ready").status == 200);
    std::fs::write(world.path("gate"), "").unwrap();
    for node in [&slow, &quick] {
        let mut answer = Value::Null;
        eventually("it is over", || {
            let said = ask(node, &mut client, "tasks/result", &named);
            answer = messages(&said).pop().unwrap_or_default();
            said.status == 200
        });
        assert_eq!(text_of(&answer["result"]), "[1 2]", "{answer}");
    }
}
