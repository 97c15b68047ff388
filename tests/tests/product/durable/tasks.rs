//! Tasks and runs of `lisp_run` that outlive the process of their server.

use super::kills::{World, serve_with};
use ptc_tests::processes::eventually;
use ptc_tests::serve::{Server, text_of};
use serde_json::{Value, json};

/// The answer to a request; notifications are left out.
pub(super) fn ask(server: &mut Server, method: &str, params: Value) -> Value {
    let id = server.begin(method, params);
    loop {
        let answer = server.receive();
        if answer["id"] == id {
            return answer;
        }
    }
}

/// Begins a task, and returns its id.
pub(super) fn begin(server: &mut Server, program: &str) -> String {
    let params = json!({ "name": "lisp_eval", "arguments": { "program": program }, "task": {} });
    let answer = ask(server, "tools/call", params);
    answer["result"]["task"]["taskId"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

fn result(server: &mut Server, task: &str) -> Value {
    ask(server, "tasks/result", json!({ "taskId": task }))
}

pub(super) fn hang(world: &World, call: &str) {
    std::fs::write(world.path("log.hang"), call).unwrap();
}

pub(super) fn reached(world: &World, call: &str) {
    eventually(call, || world.calls().ends_with(&format!("{call}\n")));
}

const WRITES: &str = "[(tool/call! 'count/write {:k 1}) (:reason (tool/call 'count/write {:k 2})) (tool/call! 'count/write {:k 3})]";

#[test]
fn a_task_goes_on_in_the_next_process_and_its_result_stays() {
    let world = World::new();
    hang(&world, "write 2");
    let mut server = serve_with(&world, &[]);
    let task = begin(&mut server, WRITES);
    reached(&world, "write 2");
    drop(server);
    std::fs::remove_file(world.path("log.hang")).unwrap();
    let mut server = serve_with(&world, &[]);
    let answer = result(&mut server, &task);
    assert_eq!(text_of(&answer["result"]), "[1 :outcome_unknown 3]", "{answer}");
    assert_eq!(world.calls(), "write 1\nwrite 2\nwrite 3\n");
    drop(server);
    let mut server = serve_with(&world, &[]);
    assert_eq!(text_of(&result(&mut server, &task)["result"]), "[1 :outcome_unknown 3]");
    let state = ask(&mut server, "tasks/get", json!({ "taskId": task }));
    assert_eq!(state["result"]["status"], "completed", "{state}");
    assert_eq!(world.calls(), "write 1\nwrite 2\nwrite 3\n");
    server.terminate();
    assert!(world.list().is_empty());
}

#[test]
fn a_task_that_only_reads_goes_on_too_and_one_that_was_cancelled_does_not() {
    let world = World::new();
    hang(&world, "read 2");
    let mut server = serve_with(&world, &[]);
    let reads = begin(&mut server, "[(tool/call! 'count/read {:k 1}) (tool/call! 'count/read {:k 2})]");
    reached(&world, "read 2");
    hang(&world, "write 5");
    let cancelled = begin(&mut server, "(tool/call! 'count/write {:k 5})");
    reached(&world, "write 5");
    let answer = ask(&mut server, "tasks/cancel", json!({ "taskId": cancelled }));
    assert_eq!(answer["result"]["status"], "cancelled", "{answer}");
    // The next record is stored after that of the cancellation.
    std::fs::remove_file(world.path("log.hang")).unwrap();
    let other = begin(&mut server, "(tool/call! 'count/write {:k 6})");
    result(&mut server, &other);
    server.terminate();
    let mut server = serve_with(&world, &[]);
    assert_eq!(text_of(&result(&mut server, &reads)["result"]), "[1 2]");
    let state = ask(&mut server, "tasks/get", json!({ "taskId": cancelled }));
    assert_eq!(state["result"]["status"], "cancelled", "{state}");
    assert_eq!(world.calls(), "read 1\nread 2\nwrite 5\nwrite 6\nread 2\n");
}

#[test]
fn a_task_stays_with_its_journal_when_nothing_is_to_go_on() {
    let world = World::new();
    hang(&world, "write 2");
    let mut server = serve_with(&world, &[]);
    let task = begin(&mut server, WRITES);
    reached(&world, "write 2");
    drop(server);
    std::fs::remove_file(world.path("log.hang")).unwrap();
    let mut server = serve_with(&world, &["--resume", "never"]);
    let answer = result(&mut server, &task);
    assert!(answer["error"]["message"].as_str().unwrap().contains("ptc runs resume"), "{answer}");
    server.terminate();
    // What has failed stays so in a later process.
    let mut server = serve_with(&world, &[]);
    let state = ask(&mut server, "tasks/get", json!({ "taskId": task }));
    assert_eq!(state["result"]["status"], "failed", "{state}");
    assert_eq!(world.calls(), "write 1\nwrite 2\n");
    server.terminate();
    let finished = world.resume(&world.id());
    assert_eq!(finished.stdout, "[1 :outcome_unknown 3]\n", "{finished:?}");
}

#[test]
fn a_client_without_tasks_goes_on_in_the_next_process() {
    let world = World::new();
    hang(&world, "write 2");
    let mut server = serve_with(&world, &["--detach-after", "50ms"]);
    let answer = server.text(WRITES);
    let run = answer.lines().find_map(|line| line.strip_prefix("run_id: ")).unwrap().to_owned();
    reached(&world, "write 2");
    drop(server);
    std::fs::remove_file(world.path("log.hang")).unwrap();
    let mut server = serve_with(&world, &["--detach-after", "50ms"]);
    let arguments = json!({ "run_id": run, "action": "wait", "wait_ms": 60_000 });
    let answer = ask(&mut server, "tools/call", json!({ "name": "lisp_run", "arguments": arguments }));
    assert_eq!(text_of(&answer["result"]), "[1 :outcome_unknown 3]", "{answer}");
}
