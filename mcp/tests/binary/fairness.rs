//! Tests of fairness: a server full of long programs answers short ones, and refuses none of many requests.

use crate::binary::support::Server;
use serde_json::{Value, json};

fn call(id: usize, program: &str) -> Value {
    let params = json!({ "name": "lisp_eval", "arguments": { "program": program } });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

/// Checks that short programs are answered while all long ones, sent before them, still run.
fn short_beside(long: &[&str], flags: &[&str]) {
    let flags = [&["--timeout", "600s", "--fuel", "1000000000000", "--memory", "64M"], flags].concat();
    let mut server = Server::start(&flags);
    for (id, program) in long.iter().cycle().take(40).enumerate() {
        server.send(&call(1_000 + id, program));
    }
    for id in 0..50u64 {
        let program = format!("(+ {id} (reduce + (range 10)))");
        let answer =
            server.ask(id, "tools/call", json!({ "name": "lisp_eval", "arguments": { "program": program } }));
        assert_eq!(answer["result"]["content"][0]["text"], (45 + id).to_string());
    }
    // A long program can still be cancelled, which frees its id.
    server.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1_000 } }),
    );
    server.send(&call(1_000, "(+ 1 2)"));
    assert_eq!(server.receive()["result"]["content"][0]["text"], "3");
    // The remaining ones are dropped after the grace period.
    assert_eq!(server.end(), Some(0));
}

#[test]
fn forty_endless_loops_delay_nobody() {
    short_beside(&["(loop [n 0] (recur (inc n)))"], &[]);
}

#[test]
fn nor_do_forty_where_few_may_take_turns() {
    short_beside(&["(loop [n 0] (recur (inc n)))"], &["--max-concurrent", "1", "--max-suspended", "50"]);
}

#[test]
fn nor_do_long_native_operations() {
    short_beside(
        &[
            "(let [v (vec (map (fn [n] (mod (* n 7919) 1000003)) (range 200000)))] (loop [] (sort v) (recur)))",
            "(let [dag (fn [] (reduce (fn [a _] [a a]) nil (range 64)))] (= (dag) (dag)))",
            "(loop [] (reduce * (range 1 60000)) (recur))",
            "(let [d (reduce (fn [a _] [a a]) nil (range 20))] (loop [] (pr-str d) (recur)))",
            "(let [v (vec (range 300000))] (loop [] (json/generate-string v) (recur)))",
        ],
        &[],
    );
}

#[test]
fn twenty_thousand_new_programs_at_once_are_all_answered() {
    const PROGRAMS: usize = 20_000;
    let mut server = Server::start(&[]);
    let mut input = server.take_input();
    let writer = std::thread::spawn(move || {
        use std::io::Write;
        for id in 0..PROGRAMS {
            writeln!(input, "{}", call(id, &format!("(+ {id} 1)"))).expect("server reads");
        }
        input
    });
    let mut answered = vec![false; PROGRAMS];
    for _ in 0..PROGRAMS {
        let answer = server.receive();
        let id = answer["id"].as_u64().expect("id") as usize;
        assert_eq!(answer["result"]["content"][0]["text"], (id + 1).to_string(), "{answer}");
        assert!(!std::mem::replace(&mut answered[id], true));
    }
    drop(writer.join().expect("written"));
    assert_eq!(server.end(), Some(0));
}
