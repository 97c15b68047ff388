//! A server that is killed while a program calls tools, and `ptc runs`.

use ptc_tests::binary::{Finished, ptc, run_ptc};
use ptc_tests::serve::Server;
use ptc_tests::upstreams::{ConfigFile, Upstreams, stdio};
use ptc_tests::workspace;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

struct World {
    folder: TempDir,
    config: ConfigFile,
}

impl World {
    fn new() -> World {
        let folder = tempfile::tempdir().unwrap();
        let server = workspace().join("tests/python/counting.py");
        let log = folder.path().join("log");
        let entry = stdio("python3", &[server.to_str().unwrap(), log.to_str().unwrap()]);
        World { config: Upstreams::default().add("count", entry).write(), folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The calls that have reached the server.
    fn calls(&self) -> String {
        std::fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    fn state(&self) -> String {
        self.path("state").to_str().unwrap().to_owned()
    }

    /// Runs a program until the server got this call and did not answer it, and kills the server then.
    fn killed(&self, program: &str, call: &str) {
        std::fs::write(self.path("log.hang"), call).unwrap();
        let state = self.state();
        let mut server = Server::from_command(ptc(&self.arguments(&["serve", "--state", &state])));
        server.begin_program(program);
        while !self.calls().ends_with(&format!("{call}\n")) {
            std::thread::yield_now();
        }
        // With SIGKILL, to the server alone.
        drop(server);
        std::fs::remove_file(self.path("log.hang")).unwrap();
    }

    fn arguments<'a>(&'a self, words: &[&'a str]) -> Vec<&'a str> {
        words.iter().copied().chain(self.config.flags(&[])).collect()
    }

    fn runs(&self, words: &[&str]) -> Finished {
        let state = self.state();
        let all: Vec<&str> =
            ["runs"].into_iter().chain(words.iter().copied()).chain(["--state", &state]).collect();
        run_ptc(&all, "")
    }

    fn list(&self) -> Vec<Value> {
        let finished = self.runs(&["list", "--output", "json"]);
        let report: Value = serde_json::from_str(&finished.stdout).unwrap_or_else(|_| panic!("{finished:?}"));
        report["runs"].as_array().unwrap().clone()
    }

    fn resume(&self, id: &str) -> Finished {
        let state = self.state();
        run_ptc(&self.arguments(&["runs", "resume", id, "--state", &state]), "")
    }
}

fn exists_privately(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o077, 0, "{}", path.display());
}

#[test]
fn a_killed_run_goes_on_and_a_call_in_doubt_is_reported() {
    let world = World::new();
    let program = "(println \"begin\")
        (let [a (tool/call! 'count/read {:k 1}) b (tool/call! 'count/write {:k 2})
              c (tool/call 'count/write {:k 3}) d (tool/call! 'count/write {:k 4})]
          [a b (:reason c) d])";
    world.killed(program, "write 3");
    exists_privately(&world.path("state/runs.redb"));
    let listed = world.list();
    assert_eq!(listed.len(), 1);
    assert_eq!((&listed[0]["status"], &listed[0]["calls"]), (&json!("interrupted"), &json!(3)));
    assert_eq!(listed[0]["in_doubt"], json!(["count/write {\"k\":3}"]));
    let id = listed[0]["id"].as_str().unwrap();
    let shown = world.runs(&["show", &id[..14]]);
    assert!(
        shown.stdout.contains("1  count/write {\"k\":2}\n")
            && shown.stdout.ends_with("in doubt: count/write {\"k\":3}\n")
    );
    let finished = world.resume(id);
    assert_eq!(
        (finished.stdout.as_str(), finished.code),
        ("begin\n[1 2 :outcome_unknown 4]\n", Some(0)),
        "{finished:?}"
    );
    assert_eq!(world.calls(), "read 1\nwrite 2\nwrite 3\nwrite 4\n");
    assert!(world.list().is_empty());
    assert_eq!(world.resume(id).code, Some(2));
}

#[test]
fn a_read_that_was_under_way_is_made_again() {
    let world = World::new();
    let program = "[(tool/call! 'count/write {:k 1}) (tool/call! 'count/read {:k 2})]";
    world.killed(program, "read 2");
    let listed = world.list();
    assert_eq!(listed[0]["in_doubt"], json!([]));
    let finished = world.resume(listed[0]["id"].as_str().unwrap());
    assert_eq!(finished.stdout, "[1 2]\n", "{finished:?}");
    assert_eq!(world.calls(), "write 1\nread 2\nread 2\n");
}

#[test]
fn a_run_can_be_forgotten_and_reads_alone_are_not_stored() {
    let world = World::new();
    world.killed("(tool/call! 'count/write {:k 1})", "write 1");
    let id = world.list()[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(world.runs(&["cancel", &id]).stdout, format!("cancelled: {id}\n"));
    assert!(world.list().is_empty());
    world.killed("[(tool/call! 'count/read {:k 1}) (tool/call! 'count/read {:k 2})]", "read 2");
    assert!(world.list().is_empty());
}

#[test]
fn a_server_that_is_stopped_leaves_its_runs() {
    let world = World::new();
    std::fs::write(world.path("log.hang"), "write 2").unwrap();
    let state = world.state();
    let mut server = Server::from_command(ptc(&world.arguments(&["serve", "--state", &state])));
    assert_eq!(server.text("(tool/call! 'count/write {:k 0})"), "0");
    server.begin_program("[(tool/call! 'count/write {:k 1}) (tool/call! 'count/write {:k 2})]");
    while !world.calls().ends_with("write 2\n") {
        std::thread::yield_now();
    }
    server.terminate();
    let listed = world.list();
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(listed[0]["in_doubt"], json!(["count/write {\"k\":2}"]));
}
