//! Processes that share their runs in a database, where PostgreSQL is installed.

use super::kills::World;
use super::tasks::{ask, begin, hang, reached};
use ptc_tests::binary::{ptc, run_ptc};
use ptc_tests::postgres::Database;
use ptc_tests::serve::{Server, text_of};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

/// The least that is possible.
const LEASE: &str = "1s";

fn world(database: &Database) -> World {
    let world = World::new().with_state(database.url());
    // The database may still be starting.
    while run_ptc(&["runs", "--state", &database.url()], "").code != Some(0) {}
    world
}

fn serve(world: &World) -> Server {
    serve_with(world, &["--upstream-call-timeout", "2s"])
}

fn serve_with(world: &World, flags: &[&str]) -> Server {
    let state = world.state();
    let words = [&["serve", "--state", &state, "--lease", LEASE], flags].concat();
    Server::from_command(ptc(&world.arguments(&words)))
}

/// Waits until the only run has this status.
fn await_status(world: &World, status: &str) {
    while world.list()[0]["status"] != *status {}
}

#[test]
fn another_node_goes_on_with_the_run_of_a_node_that_was_killed() {
    let Some(database) = Database::start() else { return };
    let world = world(&database);
    let program = "[(tool/call! 'count/write {:k 1}) (:reason (tool/call 'count/write {:k 2}))
        (tool/call! 'count/write {:k 3})]";
    world.killed_with(&["--lease", LEASE], program, "write 2");
    await_status(&world, "interrupted");
    let finished = world.resume(&world.id());
    assert_eq!(finished.stdout, "[1 :outcome_unknown 3]\n", "{finished:?}");
    assert_eq!(world.calls(), "write 1\nwrite 2\nwrite 3\n");
    assert!(world.list().is_empty());
}

#[test]
fn a_run_that_a_node_executes_is_no_other_nodes() {
    let Some(database) = Database::start() else { return };
    let world = world(&database);
    std::fs::write(world.path("log.hang"), "write 1").unwrap();
    let mut server = serve(&world);
    server.begin_program("(:reason (tool/call 'count/write {:k 1}))");
    while !world.calls().ends_with("write 1\n") {}
    await_status(&world, "running");
    let refused = world.resume(&world.id());
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("another process has taken over the run"), "{refused:?}");
    assert_eq!(world.runs(&["cancel", &world.id()]).code, Some(2));
    assert!(server.receive()["result"].to_string().contains(":timeout"));
    assert_eq!(world.calls(), "write 1\n");
}

#[test]
fn a_node_that_stood_still_past_its_lease_writes_nothing() {
    let Some(database) = Database::start() else { return };
    let world = world(&database);
    std::fs::write(world.path("log.hang"), "write 1").unwrap();
    let mut server = serve(&world);
    let pid = Pid::from_raw(server.id().cast_signed()).unwrap();
    server.begin_program(
        "[(:reason (tool/call 'count/write {:k 1})) (:reason (tool/call 'count/write {:k 2}))]",
    );
    while !world.calls().ends_with("write 1\n") {}
    kill_process(pid, Signal::STOP).unwrap();
    await_status(&world, "interrupted");
    let finished = world.resume(&world.id());
    assert_eq!(finished.stdout, "[:outcome_unknown nil]\n", "{finished:?}");
    kill_process(pid, Signal::CONT).unwrap();
    let answer = server.receive()["result"].to_string();
    assert!(answer.contains("[:timeout :state_unavailable]"), "{answer}");
    assert_eq!(world.calls(), "write 1\nwrite 2\n");
}

#[test]
fn a_call_waits_for_a_database_that_is_away_and_is_made_once() {
    let Some(mut database) = Database::start() else { return };
    let world = world(&database);
    let mut server = serve_with(&world, &["--state-patience", "60s", "--timeout", "60s"]);
    assert_eq!(server.text("(tool/call! 'count/write {:k 1})"), "1");
    database.stop();
    server.begin_program("(pmap (fn [k] (:value (tool/call 'count/write {:k k}))) [2 3 4])");
    // It has begun, and reads go on meanwhile.
    assert_eq!(server.text("(tool/call! 'count/read {:k 5})"), "5");
    assert_eq!(world.calls(), "write 1\nread 5\n");
    database.run();
    assert!(server.receive()["result"].to_string().contains("[2 3 4]"));
    let mut calls: Vec<String> = world.calls().lines().map(str::to_owned).collect();
    calls.sort();
    assert_eq!(calls, ["read 5", "write 1", "write 2", "write 3", "write 4"]);
    assert!(world.list().is_empty());
}

#[test]
fn without_patience_calls_fail_while_the_database_is_away_and_reads_go_on() {
    let Some(mut database) = Database::start() else { return };
    let world = world(&database);
    let mut server = serve_with(&world, &["--state-patience", "0s"]);
    assert_eq!(server.text("(tool/call! 'count/write {:k 1})"), "1");
    database.stop();
    assert_eq!(server.text("(tool/call! 'count/read {:k 2})"), "2");
    assert_eq!(server.text("(:reason (tool/call 'count/write {:k 3}))"), ":state_unavailable");
    database.run();
    while server.text("(:reason (tool/call 'count/write {:k 4}))") == ":state_unavailable" {}
    assert_eq!(world.calls(), "write 1\nread 2\nwrite 4\n");
}

#[test]
fn a_task_that_was_cancelled_while_the_database_was_away_stays_so() {
    let Some(mut database) = Database::start() else { return };
    let world = world(&database);
    hang(&world, "read 1");
    let mut server = serve(&world);
    let task = begin(&mut server, "[(tool/call 'count/read {:k 1}) (tool/call! 'count/write {:k 2})]");
    reached(&world, "read 1");
    database.stop();
    let named = json!({ "taskId": task });
    let (cancel, later) = (server.begin("tasks/cancel", named.clone()), server.begin("ping", json!({})));
    let mut answers = Vec::new();
    while !answers.iter().any(|answer: &serde_json::Value| answer["id"] == later) {
        answers.push(server.receive());
    }
    database.run();
    while !answers.iter().any(|answer| answer["id"] == cancel) {
        answers.push(server.receive());
    }
    let cancelled = answers.iter().find(|answer| answer["id"] == cancel).unwrap();
    assert_eq!(cancelled["result"]["status"], "cancelled", "{cancelled}");
    server.terminate();
    std::fs::remove_file(world.path("log.hang")).unwrap();
    let mut server = serve(&world);
    let state = ask(&mut server, "tasks/get", named);
    assert_eq!(state["result"]["status"], "cancelled", "{state}");
    assert!(world.list().is_empty());
    assert_eq!(world.calls(), "read 1\n");
}

#[test]
fn a_task_that_ended_while_the_database_was_away_does_not_run_again() {
    let Some(mut database) = Database::start() else { return };
    let world = world(&database);
    hang(&world, "read 1");
    let mut server = serve_with(&world, &["--upstream-call-timeout", "1s"]);
    let program = "[(:reason (tool/call 'count/read {:k 1})) (tool/call! 'count/read {:k 2})]";
    let task = begin(&mut server, program);
    reached(&world, "read 1");
    database.stop();
    reached(&world, "read 2");
    let id = server.begin("tasks/result", json!({ "taskId": task }));
    database.run();
    let answer = server.receive();
    assert_eq!((&answer["id"], &*text_of(&answer["result"])), (&json!(id), "[:timeout 2]"), "{answer}");
    server.terminate();
    assert!(world.list().is_empty());
    assert_eq!(world.calls(), "read 1\nread 2\n");
}
