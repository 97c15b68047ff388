//! Sessions with `--state`: a later process, or another node, has them as the last one has left them.

use super::kills::World;
use crate::policy::PolicyFile;
use ptc_tests::binary::{ptc, run_ptc};
use ptc_tests::postgres::Database;
use ptc_tests::processes::eventually;
use ptc_tests::serve::{Server, text_of};
use ptc_tests::upstreams::{Upstreams, probe_server};
use serde_json::{Value, json};

/// What `count/read` answers must not reach `count/write`.
const RULES: &str = "default = { read = \"allow\", write = \"allow\", destructive = \"allow\" }
[labels]
untrusted = [\"count/read\"]
[[flow]]
do = \"deny\"
from = \"untrusted\"
to = [\"count/write\"]
args = [\"/k\"]
";

fn serve(world: &World, flags: &[&str]) -> Server {
    let state = world.state();
    let words = [&["serve", "--state", &state, "--sessions"], flags].concat();
    Server::from_command(ptc(&world.arguments(&words)))
}

/// The result of a call. Notifications may come before it.
fn call(server: &mut Server, tool: &str, arguments: Value) -> Value {
    let id = server.begin("tools/call", json!({ "name": tool, "arguments": arguments }));
    loop {
        let message = server.receive();
        if message["id"] == id {
            return message["result"].clone();
        }
    }
}

fn start(server: &mut Server) -> String {
    let started = call(server, "lisp_session_start", json!({ "title": "kept" }));
    started["structuredContent"]["session_id"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned()
}

/// The first line of the answer: the value.
fn eval(server: &mut Server, id: &str, program: &str) -> String {
    let answer = call(server, "lisp_session_eval", json!({ "session_id": id, "program": program }));
    text_of(&answer).lines().next().unwrap_or_default().to_owned()
}

/// Everything that a session holds, without times.
fn contents(server: &mut Server, id: &str) -> Value {
    let views = ["memory", "prints", "history", "tool_calls"];
    let seen = views.map(|view| {
        let seen = call(server, "lisp_session_inspect", json!({ "session_id": id, "view": view }));
        let mut seen = seen["structuredContent"].clone();
        for calls in ["tool_calls", "upstream_calls"] {
            for call in seen[calls].as_array_mut().into_iter().flatten() {
                call.as_object_mut().unwrap().retain(|key, _| !key.contains("ms"));
            }
        }
        let members = seen.as_object_mut().unwrap();
        members.retain(|key, _| !["session", "last_used_at", "idle_ms"].contains(&key.as_str()));
        seen
    });
    json!(seen)
}

const PROGRAMS: [&str; 10] = [
    "(def rows (tool/call! 'count/read {:k 1}))",
    "(defn add [x] (+ x rows))",
    "(println \"rows\" rows)",
    "(tool/call! 'count/write {:k 5})",
    "(do (def lost 1) (fail :no))",
    "(def all (pmap #(tool/call! 'count/read {:k %}) (range 8)))",
    "(def gone 7)",
    "[(add 1) data/absent]",
    "(def now (.getTime (java.util.Date.)))",
    "(:reason (tool/call 'count/none {}))",
];

#[test]
fn a_session_goes_on_after_its_server_was_killed() {
    let world = World::new();
    let mut server = serve(&world, &[]);
    let id = start(&mut server);
    for program in PROGRAMS {
        eval(&mut server, &id, program);
    }
    call(&mut server, "lisp_session_forget", json!({ "session_id": id, "bindings": ["gone"] }));
    let probe = "[(add 2) (count all) now *1 *2]";
    let (before, calls) = (contents(&mut server, &id), world.calls());
    drop(server);

    let mut server = serve(&world, &[]);
    let listed = call(&mut server, "lisp_session_list", json!({}));
    assert!(listed.to_string().contains("\"title\":\"kept\""), "{listed}");
    assert_eq!(contents(&mut server, &id), before);
    let seen = eval(&mut server, &id, probe);
    drop(server);
    // The program of the second process was committed, too.
    let mut server = serve(&world, &[]);
    assert_eq!(eval(&mut server, &id, "*1"), seen);
    assert!(seen.starts_with("[3 8 1"), "{seen}");
    assert_eq!(world.calls(), calls, "no call was made again");
    let closed = call(&mut server, "lisp_session_close", json!({ "session_id": id }));
    assert_ne!(closed["isError"], true, "{closed}");
    assert_eq!(server.end(), Some(0));
    let mut server = serve(&world, &[]);
    assert!(eval(&mut server, &id, "1").contains("session not found"));
}

/// A program that failed is not run again, so calls have other numbers behind it.
#[test]
fn a_session_goes_on_whose_programs_have_failed_after_calls() {
    let world = World::new();
    let fails = [
        "(do (tool/call! 'count/read {:k 1}) (fail :no))",
        "(do (pmap #(tool/call! 'count/read {:k %}) (range 5)) (fail :no))",
        "(do (doc 'count/read) (tool/call! 'count/none {}))",
    ];
    let works = [
        "(def a (tool/call! 'count/read {:k 2}))",
        "(def b (reduce + (pmap (fn [k] (let [a (tool/call! 'count/read {:k k})]
             (+ a (if (odd? k) (tool/call! 'count/read {:k (+ 10 a)}) 1)))) (range 7))))",
        "(def c (count (str (doc 'count/read) (budget/remaining))))",
    ];
    let mut server = serve(&world, &[]);
    let id = start(&mut server);
    for (fails, works) in fails.iter().zip(works) {
        let failed = json!({ "session_id": id, "program": fails });
        assert_eq!(call(&mut server, "lisp_session_eval", failed)["isError"], true, "{fails}");
        eval(&mut server, &id, works);
    }
    let (probe, calls) = ("[a b (< 10 c)]", world.calls());
    let seen = eval(&mut server, &id, probe);
    assert!(seen.ends_with("true]"), "{seen}");
    drop(server);
    let mut server = serve(&world, &[]);
    assert_eq!(eval(&mut server, &id, probe), seen);
    assert_eq!(world.calls(), calls, "no call was made again");
}

/// A session is restored from its log alone: whatever has become of its servers, their tools, policies and limits.
#[test]
fn a_session_is_restored_without_its_servers() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (state, config, policy) = (path("state"), path("config.json"), path("policy.toml"));
    let write = |servers: Value| {
        std::fs::write(&config, json!({ "mcpServers": servers }).to_string()).unwrap();
    };
    let serve = |more: &[&str]| {
        let words = ["serve", "--sessions", "--state", &state, "--upstreams-config", &config];
        Server::from_command(ptc(&[&words[..], more].concat()))
    };
    let probe = probe_server(&[])["command"].clone();
    write(json!({ "probe": { "command": probe }, "dead": { "command": "/bin/false" } }));
    let mut server = serve(&[]);
    let id = start(&mut server);
    for program in [
        // The first program waits for its server.
        "(def a (pcalls #(:value (tool/call 'probe/echo {:v 3})) #(:upstream-calls (budget/remaining))))",
        "(def b (:ok (tool/call 'probe/refuse {})))",
        "(def c [(:reason (tool/call 'dead/x {})) (:upstream-calls (budget/remaining))])",
        "(def d (count (apropos \"echo\")))",
        "(def e (count (dir 'probe)))",
        "(def f (count (pmap #(tool/call! 'probe/echo {:v (apply str (repeat 100000 (str %)))}) (range 15))))",
        "(def g (:is-loaded (first (tool/servers))))",
        "(def h (count (str *1)))",
    ] {
        let answer = call(&mut server, "lisp_session_eval", json!({ "session_id": id, "program": program }));
        assert_ne!(answer["isError"], true, "{program}: {answer}");
    }
    let names = "[a b c d e f g h]";
    let seen = eval(&mut server, &id, names);
    drop(server);
    let deny = "default = { read = \"deny\", write = \"deny\", destructive = \"deny\" }\n";
    std::fs::write(&policy, deny).unwrap();
    let server_of = |command: &Value, more: Value| {
        let mut server = json!({ "probe": { "command": command } });
        server["probe"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        server
    };
    let worlds: [(Value, Vec<&str>); 6] = [
        (server_of(&probe, json!({})), vec![]),
        (server_of(&probe, json!({ "max_calls_per_program": 1 })), vec![]),
        (server_of(&"/bin/false".into(), json!({})), vec![]),
        (json!({}), vec![]),
        (server_of(&probe, json!({})), vec!["--policy", &policy]),
        (
            server_of(&probe, json!({})),
            vec!["--max-session-bindings", "1", "--max-session-history-entry-bytes", "1"],
        ),
    ];
    for (servers, flags) in worlds {
        write(servers.clone());
        let mut server = serve(&flags);
        assert_eq!(eval(&mut server, &id, names), seen, "{servers} {flags:?}");
    }
}

/// A program whose result would be another one ends the session: nothing in it is wrong.
#[test]
fn a_session_that_would_be_another_one_is_not_restored() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (state, prelude, other) = (path("state"), path("a.clj"), path("b.clj"));
    let config = Upstreams::probe().write();
    std::fs::write(&prelude, "(ns crm \"Numbers.\") (defn n \"One.\" [] 1)").unwrap();
    let serve = || {
        let words = ["serve", "--sessions", "--state", &state, "--prelude", &prelude];
        Server::from_command(ptc(&[&words[..], &config.flags(&[])].concat()))
    };
    let mut server = serve();
    let (named, kept) = (start(&mut server), start(&mut server));
    assert_eq!(eval(&mut server, &named, "(do (def n (crm/n)) n)"), "1");
    let large = "(do (def r (tool/call {:server \"probe\" :tool \"flood\" :args {:bytes 3000000} :on-large :spill})) (:ok r))";
    assert_eq!(eval(&mut server, &kept, large), "true");
    drop(server);
    let mut server = serve();
    assert_eq!(eval(&mut server, &named, "n"), "1");
    let refused = eval(&mut server, &kept, "1");
    assert!(refused.contains("state_unavailable") && refused.contains("stored in a file"), "{refused}");
    // What cannot be restored can be closed.
    let closed = call(&mut server, "lisp_session_close", json!({ "session_id": kept }));
    assert_ne!(closed["isError"], true, "{closed}");
    assert!(eval(&mut server, &kept, "1").contains("session_closed"));
    drop(server);
    std::fs::write(&other, "(ns crm \"Numbers.\") (defn n \"Two.\" [] 2)").unwrap();
    std::fs::rename(&other, &prelude).unwrap();
    let mut server = serve();
    let refused = eval(&mut server, &named, "n");
    assert!(refused.contains("state_unavailable") && refused.contains("prelude"), "{refused}");
}

#[test]
fn data_of_an_earlier_process_is_still_untrusted() {
    let policy = PolicyFile::new(RULES);
    let flags = ["--policy", policy.path()];
    let world = World::new();
    let mut server = serve(&world, &flags);
    let id = start(&mut server);
    eval(&mut server, &id, "(def seen (tool/call! 'count/read {:k 1}))");
    let sends = "(:reason (tool/call 'count/write {:k seen}))";
    assert_eq!(eval(&mut server, &id, sends), ":denied");
    // What the model has seen of the data counts, too.
    let other = "(:reason (tool/call 'count/write {:k 2}))";
    let then = eval(&mut server, &id, other);
    drop(server);
    let mut server = serve(&world, &flags);
    assert_eq!(eval(&mut server, &id, sends), ":denied");
    assert_eq!(eval(&mut server, &id, other), then);
    // The same for a run that goes on.
    drop(server);
    let program = "(let [seen (tool/call! 'count/read {:k 1}) done (tool/call 'count/write {:k 2})]
        (:reason (tool/call 'count/write {:k seen})))";
    world.killed_with(&flags, program, "write 2");
    let state = world.state();
    let id = world.list()[0]["id"].as_str().unwrap().to_owned();
    let words = ["runs", "resume", &id, "--state", &state, "--policy", policy.path()];
    let finished = run_ptc(&world.arguments(&words), "");
    assert_eq!(finished.stdout, ":denied\n", "{finished:?}");
}

#[test]
fn nodes_share_sessions() {
    let Some(database) = Database::start() else { return };
    let world = World::new().with_state(database.url());
    while run_ptc(&["runs", "--state", &database.url()], "").code != Some(0) {}
    let (mut one, mut other) = (serve(&world, &[]), serve(&world, &[]));
    let id = start(&mut one);
    assert_eq!(eval(&mut one, &id, "(do (def n (tool/call! 'count/read {:k 1})) n)"), "1");
    for round in 2..6 {
        let program = "(do (def n (inc n)) n)";
        let server = if round % 2 == 0 { &mut other } else { &mut one };
        assert_eq!(eval(server, &id, program), round.to_string());
    }
    assert_eq!(world.calls(), "read 1\n");
    assert_eq!(contents(&mut one, &id), contents(&mut other, &id));
    let closed = call(&mut other, "lisp_session_close", json!({ "session_id": id }));
    assert_ne!(closed["isError"], true, "{closed}");
    // What is closed is removed soon.
    while !eval(&mut one, &id, "n").contains("session") {}
}

/// What is stored of a session is bounded. A program beyond that leaves no trace in it.
#[test]
fn a_program_with_too_many_answers_is_not_committed() {
    let folder = tempfile::tempdir().unwrap();
    let config = Upstreams::default().add("probe", probe_server(&[])).write();
    let state = folder.path().join("state");
    let words = ["serve", "--sessions", "--state", state.to_str().unwrap(), "--memory", "100M"];
    let mut server = Server::from_command(ptc(&[&words[..], &config.flags(&[])].concat()));
    let id = start(&mut server);
    assert_eq!(eval(&mut server, &id, "(do (def n 1) n)"), "1");
    let large = |calls: usize| {
        let call = "(count (tool/call! 'probe/flood {:bytes 2000000}))";
        format!("(do (def n 2) [{}])", [call].repeat(calls).join(" "))
    };
    let refused = eval(&mut server, &id, &large(9));
    assert!(refused.contains("state_unavailable") && refused.contains("16 MiB each"), "{refused}");
    assert_eq!(eval(&mut server, &id, "n"), "1");
    // And so is the sum of all programs.
    let fits = |server: &mut Server| !eval(server, &id, &large(8)).contains("state_unavailable");
    assert_eq!((0..5).filter(|_| fits(&mut server)).count(), 4);
    assert_eq!(eval(&mut server, &id, "n"), "2");
}

/// The next program of a client may come right behind the cancellation of one, at any node.
#[test]
fn the_program_behind_a_cancelled_one_is_not_refused() {
    let Some(database) = Database::start() else { return };
    let world = World::new().with_state(database.url());
    while run_ptc(&["runs", "--state", &database.url()], "").code != Some(0) {}
    std::fs::write(world.path("log.hang"), "read 1").unwrap();
    let mut server = serve(&world, &[]);
    let id = start(&mut server);
    assert_eq!(eval(&mut server, &id, "(do (def n 1) n)"), "1");
    let program = json!({ "session_id": id, "program": "(do (def n 2) (tool/call! 'count/read {:k 1}))" });
    let request = server.begin("tools/call", json!({ "name": "lisp_session_eval", "arguments": program }));
    while !world.calls().ends_with("read 1\n") {}
    let cancelled =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": request } });
    server.send(&cancelled);
    assert_eq!(eval(&mut server, &id, "n"), "1");
}

/// What an owner may have counts at all nodes together, also what is in no node's memory.
#[test]
fn stored_sessions_of_an_owner_are_counted() {
    let Some(database) = Database::start() else { return };
    let world = World::new().with_state(database.url());
    while run_ptc(&["runs", "--state", &database.url()], "").code != Some(0) {}
    let [mut one, mut other] = [(); 2].map(|()| serve(&world, &["--max-sessions-per-owner", "2"]));
    let (id, _) = (start(&mut one), start(&mut other));
    let refused = call(&mut one, "lisp_session_start", json!({}));
    assert!(text_of(&refused).contains("maximum number of sessions for this owner"), "{refused}");
    call(&mut one, "lisp_session_close", json!({ "session_id": id }));
    start(&mut one);
}

/// A session whose time is over leaves the database, though no process starts.
#[test]
fn sessions_that_are_over_leave_the_database() {
    let Some(database) = Database::start() else { return };
    let world = World::new().with_state(database.url());
    while run_ptc(&["runs", "--state", &database.url()], "").code != Some(0) {}
    let mut server = serve(&world, &["--session-ttl", "1s", "--session-idle-timeout", "100ms"]);
    let rows = "SELECT count(*) FROM ptc_values WHERE key LIKE 'session%' AND value IS NOT NULL";
    start(&mut server);
    eventually("the session is removed", || database.query(rows) == "0");
    // It was there.
    let removed = "SELECT count(*) FROM ptc_values WHERE key LIKE 'session/%' AND value IS NULL";
    assert_eq!(database.query(removed), "1");
}

/// A change that a node adds at the last moment, and does not live to remove, leaves the database, too.
#[test]
fn a_change_behind_the_end_of_a_session_leaves_the_database() {
    let Some(database) = Database::start() else { return };
    let world = World::new().with_state(database.url());
    while run_ptc(&["runs", "--state", &database.url()], "").code != Some(0) {}
    let mut server = serve(&world, &["--session-ttl", "1s"]);
    let id = start(&mut server);
    eval(&mut server, &id, "(def n 1)");
    call(&mut server, "lisp_session_close", json!({ "session_id": id }));
    let changes = "SELECT count(*) FROM ptc_values WHERE key LIKE 'session-change/%' AND value IS NOT NULL";
    eventually("its changes are removed", || database.query(changes) == "0");
    let late = format!(
        "INSERT INTO ptc_values (key, version, value) VALUES ('session-change/{id}/00000009', 1, 'x')"
    );
    database.query(&late);
    eventually("the late change is removed", || database.query(changes) == "0");
    let rows = "SELECT count(*) FROM ptc_values WHERE key LIKE 'session/%' AND value IS NOT NULL";
    eventually("the session is removed", || database.query(rows) == "0");
}

/// A limit of a session counts what its programs have called in earlier processes.
#[test]
fn a_limit_of_a_session_goes_on_in_the_next_process() {
    let policy = PolicyFile::new(
        "default = { read = \"allow\", write = \"allow\", destructive = \"allow\" }
[[limit]]
tools = [\"count/read\"]
per = \"session\"
limit = 'calls <= 3 per day'
",
    );
    let (world, counts) = (World::new(), tempfile::tempdir().unwrap());
    let serve = || {
        let state = world.state();
        let words = ["serve", "--state", &state, "--sessions", "--policy", policy.path()];
        let mut command = ptc(&world.arguments(&words));
        command.env("XDG_STATE_HOME", counts.path());
        Server::from_command(command)
    };
    let reads = "(:reason (tool/call 'count/read {:k 1}))";
    let mut server = serve();
    let (id, other) = (start(&mut server), start(&mut server));
    assert_eq!([(); 2].map(|()| eval(&mut server, &id, reads)), ["nil", "nil"]);
    drop(server);
    let mut server = serve();
    assert_eq!([(); 2].map(|()| eval(&mut server, &id, reads)), ["nil", ":denied"]);
    assert_eq!(eval(&mut server, &other, reads), "nil");
    assert_eq!(world.calls(), "read 1\n".repeat(4));
}

#[test]
fn a_queued_program_of_a_session_holds_up_no_call_before_it() {
    let world = World::new();
    let mut server = serve(&world, &["--max-concurrent", "1", "--max-suspended", "0"]);
    let id = start(&mut server);
    assert_eq!(eval(&mut server, &id, "(do (def a 1) a)"), "1");
    let slow = "(reduce + 0 (map (fn [x] (reduce + 0 (range 2000))) (range 1000)))";
    let calls = [
        ("lisp_eval", json!({ "program": slow })),
        ("lisp_session_list", json!({})),
        ("lisp_session_eval", json!({ "session_id": id, "program": "(+ a 1)" })),
    ];
    let asked =
        calls.map(|(tool, given)| server.begin("tools/call", json!({ "name": tool, "arguments": given })));
    let mut waiting = asked.to_vec();
    while !waiting.is_empty() {
        let message = server.receive();
        waiting.retain(|id| message["id"] != *id);
    }
}
