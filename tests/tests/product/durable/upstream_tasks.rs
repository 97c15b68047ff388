//! Servers that answer calls with tasks: they are asked until the task is over, in a later process too.

use ptc_tests::binary::{Finished, ptc, run_ptc};
use ptc_tests::processes::eventually;
use ptc_tests::serve::{Server, text_of};
use ptc_tests::tasking::Tasking;
use ptc_tests::upstreams::{ConfigFile, Upstreams};
use serde_json::{Value, json};
use std::path::PathBuf;
use tempfile::TempDir;

const FORMS: [&str; 2] = ["requested", "extension"];

struct World {
    folder: TempDir,
    _tasking: Tasking,
    config: ConfigFile,
}

impl World {
    fn new(words: &[&str]) -> World {
        World::within(tempfile::tempdir().unwrap(), words)
    }

    fn within(folder: TempDir, words: &[&str]) -> World {
        let tasking = Tasking::start(folder.path(), words);
        let config = Upstreams::default().add("job", tasking.entry()).write();
        World { config, _tasking: tasking, folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    fn has_logged(&self, line: &str) {
        eventually(line, || self.log().lines().any(|known| known == line));
    }

    /// Tasks end from now on.
    fn finish(&self) {
        std::fs::write(self.path("log.done"), "").unwrap();
    }

    fn state(&self) -> String {
        self.path("state").to_str().unwrap().to_owned()
    }

    fn serve(&self, capabilities: Value) -> Server {
        let state = self.state();
        let words = ["serve", "--state", &state, "--timeout", "60s"];
        let words: Vec<&str> = words.into_iter().chain(self.config.flags(&[])).collect();
        Server::offering(ptc(&words), capabilities)
    }

    fn runs(&self, words: &[&str]) -> Finished {
        let state = self.state();
        let words = [&["runs"], words, &["--state", &state]].concat();
        let servers = if words[1] == "resume" { self.config.flags(&[]) } else { Vec::new() };
        run_ptc(&[words, servers].concat(), "")
    }

    fn list(&self) -> Vec<Value> {
        let finished = self.runs(&["list", "--output", "json"]);
        let report: Value = serde_json::from_str(&finished.stdout).unwrap_or_else(|_| panic!("{finished:?}"));
        report["runs"].as_array().unwrap().clone()
    }
}

const CALL: &str = "(let [r (tool/call 'job/work {:k 1})] (or (:value r) (:reason r)))";

#[test]
fn a_task_of_a_server_is_waited_for_and_cancelled_with_its_run() {
    for form in FORMS {
        let world = World::new(&[form]);
        let mut server = world.serve(json!({}));
        let id = server.begin_program(CALL);
        world.has_logged("get 1");
        world.finish();
        let answer = server.receive();
        assert_eq!(
            (&answer["id"], text_of(&answer["result"]).as_str()),
            (&json!(id), "1"),
            "{form}: {answer}"
        );
        assert!(!world.log().contains("cancel"), "{form}");
        std::fs::remove_file(world.path("log.done")).unwrap();
        let id = server.begin_program("(tool/call 'job/work {:k 3})");
        world.has_logged("get 3");
        let params = json!({ "requestId": id });
        server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
        world.has_logged("cancel 3");
    }
}

#[test]
fn an_answer_with_a_task_that_cannot_be_read_is_a_fault_of_the_call() {
    for form in FORMS {
        let world = World::new(&[form, "numbers"]);
        let mut server = world.serve(json!({}));
        let text = server.text("(select-keys (tool/call 'job/work {:k 1}) [:ok :reason :message])");
        assert!(text.contains(":ok false") && text.contains("a task that cannot be read"), "{form}: {text}");
    }
}

/// Kills a server while it waits for a task.
fn killed(world: &World) -> String {
    let mut server = world.serve(json!({}));
    server.begin_program(CALL);
    world.has_logged("get 1");
    // Without the task the call would be in doubt.
    eventually("the task is stored", || {
        world.list().first().is_some_and(|run| run["calls"] == 1 && run["in_doubt"] == json!([]))
    });
    drop(server);
    let listed = world.list();
    assert_eq!(listed.len(), 1, "{listed:?}");
    listed[0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_later_process_waits_for_the_task_of_a_call_that_was_under_way() {
    for form in FORMS {
        let world = World::new(&[form]);
        let id = killed(&world);
        assert_eq!(world.list()[0]["in_doubt"], json!([]), "{form}");
        world.finish();
        let finished = world.runs(&["resume", &id]);
        assert_eq!(finished.stdout, "1\n", "{form}: {finished:?}");
        let log = world.log();
        assert_eq!(log.lines().filter(|line| *line == "call 1").count(), 1, "{form}: {log}");
        assert!(!log.contains("cancel"), "{form}: {log}");
    }
}

#[test]
fn a_task_that_its_server_has_forgotten_is_in_doubt() {
    let World { folder, _tasking, .. } = {
        let world = World::new(&["requested"]);
        killed(&world);
        world
    };
    drop(_tasking);
    let world = World::within(folder, &["requested"]);
    let id = world.list()[0]["id"].as_str().unwrap().to_owned();
    let finished = world.runs(&["resume", &id]);
    assert_eq!(finished.stdout, ":outcome_unknown\n", "{finished:?}");
    assert_eq!(world.log().lines().filter(|line| *line == "call 1").count(), 1);
}

#[test]
fn a_task_of_a_server_asks_the_client_of_its_run() {
    let world = World::new(&["extension", "ask"]);
    let mut server = world.serve(json!({ "elicitation": {} }));
    server.begin_program(CALL);
    let question = server.receive();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    assert_eq!(question["params"]["message"], "job: Go on?");
    let result = json!({ "action": "accept", "content": { "sure": true } });
    server.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": result }));
    world.has_logged("update 1");
    world.finish();
    assert_eq!(text_of(&server.receive()["result"]), "1");
    assert!(
        world.log().contains(r#"{"q1": {"action": "accept", "content": {"sure": true}}}"#),
        "{}",
        world.log()
    );
}
