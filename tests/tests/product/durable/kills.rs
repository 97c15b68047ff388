//! A server that is killed while a program calls tools, and `ptc runs`.

use ptc_base::store::{EmbeddedStore, Store};
use ptc_tests::binary::{Finished, ptc, run_ptc};
use ptc_tests::serve::Server;
use ptc_tests::upstreams::{ConfigFile, Upstreams, probe_server, stdio};
use ptc_tests::workspace;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The beginning of a policy that allows everything else.
const ALLOWED: &str = "default = { read = \"allow\", write = \"allow\", destructive = \"allow\" }\n";

/// A server that counts calls, and a place for stored runs.
pub(super) struct World {
    folder: TempDir,
    config: ConfigFile,
    state: Option<String>,
}

impl World {
    pub(super) fn new() -> World {
        World::with(|upstreams| upstreams)
    }

    /// With more servers.
    pub(super) fn with(more: impl FnOnce(Upstreams) -> Upstreams) -> World {
        let folder = tempfile::tempdir().unwrap();
        let server = workspace().join("tests/python/counting.py");
        let log = folder.path().join("log");
        let entry = stdio("python3", &[server.to_str().unwrap(), log.to_str().unwrap()]);
        World { config: more(Upstreams::default().add("count", entry)).write(), folder, state: None }
    }

    /// Runs are stored there in place of a folder.
    pub(super) fn with_state(self, state: String) -> World {
        World { state: Some(state), ..self }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The calls that have reached the server.
    pub(super) fn calls(&self) -> String {
        std::fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    pub(super) fn state(&self) -> String {
        self.state.clone().unwrap_or_else(|| self.path("state").to_str().unwrap().to_owned())
    }

    /// Runs a program until the server got this call and did not answer it, and kills the server then.
    fn killed(&self, program: &str, call: &str) {
        self.killed_with(&[], program, call);
    }

    pub(super) fn killed_with(&self, flags: &[&str], program: &str, call: &str) {
        std::fs::write(self.path("log.hang"), call).unwrap();
        let state = self.state();
        let words = ["serve", "--state", &state];
        let mut server = Server::from_command(ptc(&self.arguments(&[&words, flags].concat())));
        server.begin_program(program);
        while !self.calls().ends_with(&format!("{call}\n")) {
            std::thread::yield_now();
        }
        // With SIGKILL, to the server alone.
        drop(server);
        std::fs::remove_file(self.path("log.hang")).unwrap();
    }

    pub(super) fn arguments<'a>(&'a self, words: &[&'a str]) -> Vec<&'a str> {
        words.iter().copied().chain(self.config.flags(&[])).collect()
    }

    pub(super) fn runs(&self, words: &[&str]) -> Finished {
        let state = self.state();
        let all: Vec<&str> =
            ["runs"].into_iter().chain(words.iter().copied()).chain(["--state", &state]).collect();
        run_ptc(&all, "")
    }

    pub(super) fn list(&self) -> Vec<Value> {
        let finished = self.runs(&["list", "--output", "json"]);
        let report: Value = serde_json::from_str(&finished.stdout).unwrap_or_else(|_| panic!("{finished:?}"));
        report["runs"].as_array().unwrap().clone()
    }

    pub(super) fn resume(&self, id: &str) -> Finished {
        self.resume_with(id, &[])
    }

    pub(super) fn resume_with(&self, id: &str, flags: &[&str]) -> Finished {
        let state = self.state();
        let words = ["runs", "resume", id, "--state", &state];
        run_ptc(&self.arguments(&[&words, flags].concat()), "")
    }

    /// A file of this test.
    fn file(&self, name: &str, text: &str) -> String {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name).to_str().unwrap().to_owned()
    }

    /// The only run.
    pub(super) fn id(&self) -> String {
        let listed = self.list();
        assert_eq!(listed.len(), 1, "{listed:?}");
        listed[0]["id"].as_str().unwrap().to_owned()
    }
}

/// A server that has the state of a world, after its handshake.
pub(super) fn serve_with(world: &World, flags: &[&str]) -> Server {
    let state = world.state();
    Server::from_command(ptc(&world.arguments(&[&["serve", "--state", &state], flags].concat())))
}

/// A server that has the state of a world.
fn serve(world: &World, flags: &[&str], capabilities: Value) -> Server {
    let state = world.state();
    let words = ["serve", "--state", &state];
    let mut server = Server::offering(ptc(&world.arguments(&[&words, flags].concat())), capabilities);
    assert_eq!(server.text("(tool/call! 'count/read {:k 0})"), "0");
    server
}

fn exists_privately(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o077, 0, "{}", path.display());
}

/// What the program was told of tools it is told again, whatever there is now.
#[test]
fn a_run_goes_on_whose_tools_have_changed() {
    let world = World::new();
    let program =
        "(let [found (count (apropos \"read\")) shown (count (dir 'count)) servers (count (tool/servers))
              c (tool/call 'count/write {:k 3})]
          [found (< 0 shown) servers (:reason c) (tool/call! 'count/read {:k 4})])";
    world.killed(program, "write 3");
    let server = workspace().join("tests/python/counting.py");
    let entry = stdio("python3", &[server.to_str().unwrap(), world.path("log").to_str().unwrap()]);
    let more = Upstreams::default().add("count", entry).add("probe", probe_server(&[])).write();
    let (state, id) = (world.state(), world.id());
    let words = ["runs", "resume", &id, "--state", &state];
    let finished = run_ptc(&[&words[..], &more.flags(&[])].concat(), "");
    assert!(finished.stdout.ends_with(" true 1 :outcome_unknown 4]\n"), "{finished:?}");
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

#[test]
fn a_call_in_doubt_stays_so_when_its_tool_says_later_that_it_only_reads() {
    let world = World::new();
    world.killed("(:reason (tool/call 'count/write {:k 1}))", "write 1");
    let policy = world.file("policy.toml", &format!("{ALLOWED}[effects]\n\"count/write\" = \"read\"\n"));
    let finished = world.resume_with(&world.id(), &["--policy", &policy]);
    assert_eq!(finished.stdout, ":outcome_unknown\n", "{finished:?}");
    assert_eq!(world.calls(), "write 1\n");
}

#[test]
fn a_read_that_was_under_way_is_in_doubt_when_its_tool_is_a_write_now() {
    let world = World::new();
    let policy = world.file("policy.toml", &format!("{ALLOWED}[effects]\n\"count/put\" = \"read\"\n"));
    let program = "(tool/call! 'count/write {:k 1}) (:reason (tool/call 'count/put {:k 2}))";
    world.killed_with(&["--policy", &policy], program, "put 2");
    let finished = world.resume_with(&world.id(), &["--policy", &world.file("other.toml", ALLOWED)]);
    assert_eq!(finished.stdout, ":outcome_unknown\n", "{finished:?}");
    assert_eq!(world.calls(), "write 1\nput 2\n");
}

#[test]
fn a_run_whose_calls_a_policy_decided_about_does_not_go_on_without_one() {
    let world = World::new();
    let text = format!("{ALLOWED}[[rule]]\ndo = \"ask\"\ntools = [\"count/put\"]\n");
    let policy = world.file("policy.toml", &text);
    let program = "[(:reason (tool/call 'count/write {:k 1})) (:reason (tool/call 'count/put {:k 2}))]";
    world.killed_with(&["--policy", &policy], program, "write 1");
    for _ in 0..2 {
        let refused = world.resume(&world.id());
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""), "{refused:?}");
        assert!(refused.stderr.contains("--policy"), "{refused:?}");
        assert_eq!(world.list()[0]["status"], "interrupted");
    }
    let finished = world.resume_with(&world.id(), &["--policy", &policy]);
    assert_eq!(finished.stdout, "[:outcome_unknown :approval_unavailable]\n", "{finished:?}");
    assert_eq!(world.calls(), "write 1\n");
}

#[test]
fn a_policy_that_denies_by_now_decides_about_calls_to_come_and_changes_no_answer() {
    let world = World::new();
    let program = "[(tool/call! 'count/write {:k 1}) (:ok (tool/call 'count/read {:k 2}))
        (:reason (tool/call 'count/write {:k 3}))]";
    world.killed(program, "read 2");
    let policy =
        world.file("policy.toml", &format!("{ALLOWED}[[rule]]\ndo = \"deny\"\ntools = [\"count/write\"]\n"));
    let finished = world.resume_with(&world.id(), &["--policy", &policy]);
    assert_eq!(finished.stdout, "[1 true :denied]\n", "{finished:?}");
    assert_eq!(world.calls(), "write 1\nread 2\nread 2\n");
}

#[test]
fn a_run_goes_on_with_the_prelude_that_it_had() {
    let world = World::new();
    let old = "(ns shop \"Shop.\")\n(defn price \"A price.\" [n] (* 10 n))\n";
    let prelude = world.file("shop.clj", old);
    let program =
        "[(shop/price 1) (tool/call! 'count/write {:k 1}) (tool/call! 'count/read {:k 2}) (shop/price 2)]";
    world.killed_with(&["--prelude", &prelude], program, "read 2");
    world.file("shop.clj", &old.replace("10", "99"));
    let finished = world.resume_with(&world.id(), &["--prelude", &prelude]);
    assert_eq!(finished.stdout, "[10 1 2 20]\n", "{finished:?}");
}

#[test]
fn a_journal_that_cannot_be_read_hides_no_other_run() {
    let world = World::new();
    world.killed("(tool/call! 'count/write {:k 1})", "write 1");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let store = EmbeddedStore::open(&world.path("state")).unwrap();
        let long = std::time::Duration::from_secs(60);
        let format =
            br#"{"run":{"format":99,"ptc":"9","language":"lisp","program":"1","source_name":"","limits":{},
            "rendering":{},"begun_ms":1,"servers":[]}}"#;
        for (log, record) in [("run/0a", &b"{\"run\":"[..]), ("run/0b", format)] {
            store.begin(log, "embedded", long, vec![record.to_vec()]).await.unwrap();
        }
    });
    let listed = world.list();
    let seen: Vec<&Value> = listed.iter().map(|run| &run["status"]).collect();
    assert_eq!(seen, ["unreadable", "unreadable", "interrupted"]);
    assert!(listed[1]["error"].as_str().unwrap().contains("the format 99"), "{listed:?}");
    assert_eq!(world.resume("0a").code, Some(2));
    assert_eq!(world.runs(&["cancel", "0a"]).code, Some(0));
    assert_eq!(world.list().len(), 2);
}

#[test]
fn the_server_that_has_the_runs_shows_them_and_goes_on_with_them() {
    let world = World::new();
    world.killed(
        "[(tool/call! 'count/write {:k 1}) (:reason (tool/call 'count/write {:k 2})) (println 3)]",
        "write 2",
    );
    let mut server = serve(&world, &[], json!({}));
    exists_privately(&world.path("state/runs.sock"));
    let id = world.id();
    assert!(world.runs(&["show", &id]).stdout.contains("in doubt: count/write {\"k\":2}\n"));
    let finished = world.resume(&id);
    assert_eq!(
        (finished.stdout.as_str(), finished.code),
        ("3\n[1 :outcome_unknown nil]\n", Some(0)),
        "{finished:?}"
    );
    assert!(world.list().is_empty());
    std::fs::write(world.path("log.hang"), "write 5").unwrap();
    server.begin_program("(tool/call! 'count/write {:k 5})");
    while !world.calls().ends_with("write 5\n") {
        std::thread::yield_now();
    }
    assert_eq!(world.list()[0]["status"], "running");
    for command in ["cancel", "resume"] {
        let refused = world.runs(&[command, &world.id()]);
        assert!(refused.code == Some(2) && refused.stderr.contains("under way"), "{refused:?}");
    }
    server.terminate();
    assert!(!world.path("state/runs.sock").exists());
    assert_eq!(world.list()[0]["status"], "interrupted");
}

#[test]
fn a_person_decides_whether_a_call_in_doubt_is_made_again() {
    for (decision, want, calls) in [
        ("approve", "2\n", "write 2\nread 0\nwrite 2\n"),
        ("deny", ":outcome_unknown\n", "write 2\nread 0\n"),
    ] {
        let world = World::new();
        world.killed("(let [r (tool/call 'count/write {:k 2})] (or (:value r) (:reason r)))", "write 2");
        let mut server = serve(&world, &[], json!({ "elicitation": {} }));
        let id = world.id();
        // A policy that the server does not have would not hold.
        let policy = world.file("policy.toml", ALLOWED);
        let refused = world.runs(&["resume", &id, "--policy", &policy]);
        assert!(refused.code == Some(2) && refused.stderr.contains("its own policy"), "{refused:?}");
        let finished = std::thread::scope(|scope| {
            let resumed = scope.spawn(|| world.runs(&["resume", &id, "--in-doubt", "ask"]));
            let request = server.receive();
            assert!(
                request["params"]["message"].as_str().unwrap().contains("it may have been made"),
                "{request}"
            );
            let result = json!({ "action": "accept", "content": { "decision": decision } });
            server.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }));
            resumed.join().unwrap()
        });
        assert_eq!(finished.stdout, want, "{finished:?}");
        assert_eq!(world.calls(), calls);
        assert_eq!(server.end(), Some(0));
    }
}
