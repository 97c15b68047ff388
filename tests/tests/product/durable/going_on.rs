//! Runs that go on have the answers that they had, whatever servers, tools and limits are like now.

use super::kills::{World, serve_with};
use super::tasks::{ask, begin, hang, reached};
use ptc_tests::binary::run_ptc;
use ptc_tests::serve::text_of;
use ptc_tests::upstreams::{Upstreams, stdio};
use ptc_tests::workspace;
use serde_json::{Value, json};

/// A call that waits for a server that does not start, a call that is answered, one in doubt, and one to come.
const PROGRAM: &str = "(let [away (:reason (tool/call 'away/x {})) a (tool/call! 'count/write {:k 1})
          left (:upstream-calls (budget/remaining))
          b (:reason (tool/call 'count/write {:k left})) c (tool/call 'count/read {:k 3})]
      [away a left b (or (:reason c) (:value c))])";

/// The server of this world, with more members of its entry.
fn counting(world: &World, more: &Value) -> Value {
    let server = workspace().join("tests/python/counting.py");
    let log = world.path("log");
    let mut entry = stdio("python3", &[server.to_str().unwrap(), log.to_str().unwrap()]);
    entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    entry
}

fn away() -> Value {
    stdio("/no/such/command", &[])
}

#[test]
fn answered_calls_ask_nothing_of_the_present() {
    let gone = || Upstreams::default().add("count", away()).add("away", away());
    let without = || Upstreams::default().add("away", away());
    for (change, flags, last) in [
        ("nothing", &[][..], "3"),
        ("its server does not start", &[][..], ":upstream_unavailable"),
        ("its server is not configured", &[][..], "no upstream 'count'"),
        ("fewer calls are allowed", &[][..], ":cap_exhausted"),
        ("only reads are allowed", &["--aggregator-read-only"][..], "3"),
        ("the tool is blocked", &[][..], "3"),
    ] {
        let world = World::with(|upstreams| upstreams.add("away", away()));
        world.killed_with(&["--startup", "lenient"], PROGRAM, "write 48");
        let counted = |more| Upstreams::default().add("count", counting(&world, &more)).add("away", away());
        let config = match change {
            "its server does not start" => gone(),
            "its server is not configured" => without(),
            "fewer calls are allowed" => counted(json!({ "max_calls_per_program": 1 })),
            "the tool is blocked" => counted(json!({ "tools": { "block": ["write"] } })),
            _ => counted(json!({})),
        };
        let (config, state, id) = (config.write(), world.state(), world.id());
        let words = ["runs", "resume", &id, "--state", &state];
        let finished = run_ptc(&[&words[..], &config.flags(flags)].concat(), "");
        if last.starts_with("no upstream") {
            assert!(finished.stderr.contains(last), "{change}: {finished:?}");
        } else {
            let want = format!("[:upstream_unavailable 1 48 :outcome_unknown {last}]\n");
            assert_eq!(finished.stdout, want, "{change}: {finished:?}");
        }
        let calls = if last == "3" { "write 1\nwrite 48\nread 3\n" } else { "write 1\nwrite 48\n" };
        assert_eq!(world.calls(), calls, "{change}");
        assert!(world.list().is_empty(), "{change}");
    }
}

#[test]
fn a_task_whose_server_is_away_when_it_goes_on_is_not_lost() {
    let world = World::new();
    hang(&world, "write 2");
    let mut server = serve_with(&world, &[]);
    let program = "[(tool/call! 'count/write {:k 1}) (:reason (tool/call 'count/write {:k 2}))]";
    let task = begin(&mut server, program);
    reached(&world, "write 2");
    drop(server);
    let (config, state) = (Upstreams::default().add("count", away()).write(), world.state());
    let flags = config.flags(&["--state", &state, "--startup", "lenient"]);
    let mut server = ptc_tests::serve::Server::start(&flags);
    let answer = ask(&mut server, "tasks/result", json!({ "taskId": task }));
    assert_eq!(text_of(&answer["result"]), "[1 :outcome_unknown]", "{answer}");
}

#[test]
fn a_call_that_waits_at_two_crashes_is_made_once() {
    let world = World::with(|upstreams| upstreams.add("away", away()));
    // Both branches wait when the first process ends: one for its server, one for an answer.
    let program = "(let [a (tool/call! 'count/write {:k 0})
              [b c] (pcalls (fn [] (:reason (tool/call 'late/echo {}))) (fn [] (tool/call! 'count/read {:k 1})))
              d (tool/call! 'count/write {:k 2})]
          [a b c d])";
    let slow = json!({ "command": "sleep", "args": ["600"] });
    let late = |entry: Value| {
        Upstreams::default().add("count", counting(&world, &json!({}))).add("late", entry).write()
    };
    let state = world.state();
    hang(&world, "read 1");
    let config = late(slow);
    let flags = config.flags(&["--state", &state, "--startup", "lenient"]);
    let mut server = ptc_tests::serve::Server::start(&flags);
    let task = begin(&mut server, program);
    reached(&world, "read 1");
    drop(server);
    // The second process makes the call that has waited, and ends before the last one has its answer.
    hang(&world, "write 2");
    let config = late(away());
    let flags = config.flags(&["--state", &state, "--startup", "lenient"]);
    let server = ptc_tests::serve::Server::start(&flags);
    reached(&world, "write 2");
    drop(server);
    std::fs::remove_file(world.path("log.hang")).unwrap();
    let mut server = ptc_tests::serve::Server::start(&flags);
    let answer = ask(&mut server, "tasks/result", json!({ "taskId": task }));
    let text = text_of(&answer["result"]);
    assert!(text.contains("it may have been made"), "{answer}");
    assert_eq!(world.calls(), "write 0\nread 1\nread 1\nwrite 2\n");
}

#[test]
fn calls_before_a_crash_count_for_the_limits_of_the_run() {
    let world = World::new();
    let policy = world.path("policy.toml");
    let text = "default = { read = \"allow\", write = \"allow\", destructive = \"allow\" }\n[[limit]]\n\
                tools = [\"count/*\"]\nper = \"session\"\nlimit = \"calls <= 2 per day\"\n";
    std::fs::write(&policy, text).unwrap();
    let flags = ["--policy", policy.to_str().unwrap()];
    let program = "[(tool/call! 'count/write {:k 1}) (:reason (tool/call 'count/write {:k 2}))
        (:reason (tool/call 'count/write {:k 3}))]";
    world.killed_with(&flags, program, "write 2");
    let finished = world.resume_with(&world.id(), &flags);
    assert_eq!(finished.stdout, "[1 :outcome_unknown :denied]\n", "{finished:?}");
    assert_eq!(world.calls(), "write 1\nwrite 2\n");
}

/// A world whose server `late` starts as `entry` says.
fn with_late(world: &World, entry: Value) -> Vec<String> {
    let config = Upstreams::default().add("count", counting(world, &json!({}))).add("late", entry).write();
    let copy = world.path("late.json");
    std::fs::copy(config.path(), &copy).unwrap();
    let flags =
        ["--upstreams-config", copy.to_str().unwrap(), "--state", &world.state(), "--startup", "lenient"];
    flags.map(str::to_owned).to_vec()
}

fn serve_late(world: &World, entry: Value) -> ptc_tests::serve::Server {
    let flags = with_late(world, entry);
    ptc_tests::serve::Server::start(&flags.iter().map(String::as_str).collect::<Vec<_>>())
}

/// A command that never says anything.
fn silent() -> Value {
    json!({ "command": "sleep", "args": ["600"] })
}

#[test]
fn a_call_that_waits_in_several_processes_is_paid_for_once() {
    let world = World::new();
    let program = "(let [[a b] (pcalls (fn [] (:reason (tool/call 'late/echo {})))
              (fn [] [(:reason (tool/call 'count/write {:k 1})) (:reason (tool/call 'count/write {:k 2}))]))]
          [a b (:upstream-calls (budget/remaining))])";
    hang(&world, "write 1");
    let mut server = serve_late(&world, silent());
    let task = begin(&mut server, program);
    reached(&world, "write 1");
    drop(server);
    hang(&world, "write 2");
    let server = serve_late(&world, silent());
    reached(&world, "write 2");
    drop(server);
    std::fs::remove_file(world.path("log.hang")).unwrap();
    let mut server = serve_late(&world, away());
    let answer = ask(&mut server, "tasks/result", json!({ "taskId": task }));
    let text = text_of(&answer["result"]);
    assert_eq!(text, "[:upstream_unavailable [:outcome_unknown :outcome_unknown] 47]", "{answer}");
}

#[test]
fn a_look_at_tools_that_waited_waits_for_the_server_of_the_next_process() {
    let world = World::new();
    let program = "(let [[tools b] (pcalls (fn [] (count (dir 'late))) (fn [] (:reason (tool/call 'count/write {:k 1}))))]
          [(pos? tools) b])";
    hang(&world, "write 1");
    let mut server = serve_late(&world, silent());
    let task = begin(&mut server, program);
    reached(&world, "write 1");
    drop(server);
    std::fs::remove_file(world.path("log.hang")).unwrap();
    let mut server = serve_late(&world, ptc_tests::upstreams::probe_server(&[]));
    let answer = ask(&mut server, "tasks/result", json!({ "taskId": task }));
    assert!(text_of(&answer["result"]).starts_with("[true :outcome_unknown]"), "{answer}");
}
