//! Requests of one session of programs that arrive at several nodes in the same moment: what a node acknowledges is in the
//! log, and every node has the same session.
#![allow(clippy::unwrap_used, reason = "a broken answer should be loud")]

use super::session_tools::{SessionNodes, call, eval, start};
use crate::any_node::messages;
use ptc_tests::serve::text_of;
use ptc_tests::web::SessionClient;
use serde_json::{Value, json};
use std::thread::{scope, sleep};
use std::time::Duration;

/// How long each message to and from the database takes.
const SLOW: Duration = Duration::from_millis(60);

fn milliseconds(time: u64) -> Duration {
    Duration::from_millis(time)
}

/// A request beneath a program that is being stored reads nothing into the memory that the program has changed.
#[test]
fn a_request_beneath_a_program_does_not_change_what_it_has_seen() {
    let Some(world) = SessionNodes::start(2, &[]) else { return };
    let [one, other] = &world.nodes[..] else { panic!() };
    for round in 0..10 {
        let id = start(one);
        for (node, program) in [(one, "(def n 1)"), (other, "(def k 1)"), (one, "(def z 1)")] {
            eval(node, &id, program);
        }
        world.ways[0].set_delay(SLOW);
        scope(|scope| {
            let program = scope.spawn(|| eval(one, &id, "(do (def n (inc n)) n)"));
            sleep(milliseconds(20));
            let beneath = scope.spawn(|| call(one, "lisp_session_inspect", &id));
            sleep(milliseconds(60 + 40 * round));
            eval(other, &id, "(do (def n 10) n)");
            let (_, beneath) = (program.join().unwrap(), beneath.join().unwrap());
            assert!(beneath.contains("\"status\":\"ok\""), "{beneath}");
        });
        world.ways[0].set_delay(Duration::ZERO);
        assert_eq!(eval(one, &id, "n"), eval(other, &id, "n"), "round {round}");
        call(other, "lisp_session_close", &id);
    }
}

/// Each program adds its own number. In the end every node has all that were answered, and none that was refused.
#[test]
fn a_program_that_was_refused_is_not_stored_later() {
    let Some(world) = SessionNodes::start(2, &[]) else { return };
    world.ways.iter().for_each(|way| way.set_delay(milliseconds(15)));
    let id = start(&world.nodes[0]);
    eval(&world.nodes[0], &id, "(def all [])");
    let mut answered = Vec::new();
    for round in 0..12 {
        let numbers: Vec<u64> = (0..4).map(|number| 4 * round + number).collect();
        let said: Vec<String> = scope(|scope| {
            let adds = numbers.iter().map(|number| {
                let (node, id) = (&world.nodes[(number % 2) as usize], &id);
                sleep(milliseconds(number * 7 % 40));
                scope.spawn(move || eval(node, id, &format!("(do (def all (conj all {number})) nil)")))
            });
            let adds: Vec<_> = adds.collect();
            adds.into_iter().map(|add| add.join().unwrap()).collect()
        });
        answered.extend(
            numbers.into_iter().zip(said).filter(|(_, said)| said == "nil").map(|(number, _)| number),
        );
    }
    world.ways.iter().for_each(|way| way.set_delay(Duration::ZERO));
    for node in &world.nodes {
        let mut all: Vec<u64> = serde_json::from_str(&eval(node, &id, "all").replace(' ', ",")).unwrap();
        all.sort_unstable();
        assert_eq!(all, answered);
    }
    assert!(answered.len() > 12, "{answered:?}");
}

/// A program that is stored is answered, also when its client cancels it at the last moment.
#[test]
fn a_program_that_is_cancelled_while_it_is_stored_has_its_answer() {
    let Some(world) = SessionNodes::start(1, &[]) else { return };
    let (node, server) = (&world.nodes[0], &world.servers[0]);
    let id = start(node);
    let mut client = SessionClient::begin(server, "2025-11-25", &[]);
    let arguments = json!({ "session_id": id, "program": "(do (def n 7) n)" });
    let body = client.body("tools/call", json!({ "name": "lisp_session_eval", "arguments": arguments }));
    let request: Value = serde_json::from_str(&body).unwrap();
    let mut waiting = server.connect();
    scope(|scope| {
        // The database is read, and not written.
        let lock = "BEGIN; LOCK TABLE ptc_values IN EXCLUSIVE MODE; SELECT pg_sleep(3); COMMIT";
        scope.spawn(|| world.database.query(lock));
        sleep(milliseconds(500));
        waiting.send("POST", &client.headers(), &body);
        sleep(milliseconds(1_000));
        let cancel = json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": request["id"] },
        });
        assert_eq!(server.ask("POST", &client.headers(), &cancel.to_string()).status, 202);
    });
    let answer = messages(&waiting.answer()).pop().unwrap();
    assert!(text_of(&answer["result"]).starts_with("7\n"), "{answer}");
    assert_eq!(eval(node, &id, "n"), "7");
}
