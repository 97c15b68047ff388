//! What nodes with one database count and ask together, where PostgreSQL is installed: calls a minute, limits of the
//! policy, approvals.
#![allow(clippy::unwrap_used, reason = "a broken answer should be loud")]

use crate::any_node::Nodes;
use ptc_tests::binary::{ptc, run, run_ptc};
use ptc_tests::processes::eventually;
use ptc_tests::serve::text_of;
use ptc_tests::web::{WebServer, program, sha256, stateless_body, stateless_headers};
use serde_json::Value;
use std::io::Write as _;
use std::time::Instant;
use tempfile::NamedTempFile;

fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn name_of(file: &NamedTempFile) -> &str {
    file.path().to_str().unwrap()
}

/// The answer to a program at a node, with this token.
fn eval(node: &WebServer, token: &str, text: &str) -> String {
    let authorization = format!("Bearer {token}");
    let mut headers = stateless_headers("tools/call", "lisp_eval");
    headers.push(("Authorization", &authorization));
    let answer = node.ask("POST", &headers, &stateless_body(1, "tools/call", program(text)));
    assert_eq!(answer.status, 200, "{answer:?}");
    text_of(&answer.json()["result"])
}

#[test]
fn a_token_has_so_many_calls_a_minute_at_all_nodes_together() {
    const MOST: usize = 100;
    let token = "t".repeat(40);
    let tokens = file(&format!("[one]\nsha256 = \"{}\"\nevals_per_minute = {MOST}\n", sha256(&token)));
    let Some(Nodes { nodes, _config, _database }) = Nodes::start(3, &["--http-tokens", name_of(&tokens)])
    else {
        return;
    };
    let begun = Instant::now();
    let mut answered = 0;
    // Each node has calls that it has taken before it is refused; the last one is refused by the database.
    let mut refused = [false; 3];
    for turn in 0.. {
        let text = eval(&nodes[turn % 3], &token, "1");
        refused[turn % 3] = text.contains("evals_per_minute");
        answered += usize::from(!refused[turn % 3]);
        if refused == [true; 3] {
            break;
        }
    }
    let refilled = begun.elapsed().as_secs_f64() * MOST as f64 / 60.0;
    // What a node takes at once is a fiftieth of the limit.
    let most = MOST as f64 + refilled + (3 * MOST / 50) as f64;
    assert!(answered >= MOST && answered as f64 <= most, "{answered} of {most}");
}

#[test]
fn limits_of_the_policy_count_calls_of_all_nodes() {
    let policy = file(
        "default = { read = \"allow\", write = \"allow\", destructive = \"allow\" }\n[[limit]]\ntools = [\"probe/*\"]\nlimit = 'calls <= 7 per day'\n",
    );
    let Some(Nodes { nodes, _config, _database }) = Nodes::start(3, &["--policy", name_of(&policy)]) else {
        return;
    };
    let call = "(:reason (tool/call 'probe/echo {:v 7}))";
    let mut answers: Vec<String> =
        (0..4).flat_map(|_| nodes.iter().map(|node| eval(node, "", call))).collect();
    answers.sort();
    assert_eq!(answers.iter().filter(|answer| *answer == "nil").count(), 7, "{answers:?}");
    assert_eq!(answers.iter().filter(|answer| *answer == ":denied").count(), 5, "{answers:?}");
    // At the same time: parallel branches at each node.
    let policy = file(
        "default = { read = \"allow\", write = \"allow\", destructive = \"allow\" }\n[[limit]]\ntools = [\"probe/*\"]\nlimit = 'calls <= 20 per day'\n",
    );
    let mut nodes: Vec<WebServer> = nodes
        .iter()
        .map(|_| {
            let state = _database.url();
            WebServer::start(&_config.flags(&["--state", &state, "--policy", name_of(&policy)]))
        })
        .collect();
    let many =
        "(count (filter #(nil? (:reason %)) (pmap (fn [_] (tool/call 'probe/echo {:v 7})) (range 16))))";
    let made: usize = std::thread::scope(|scope| {
        let programs: Vec<_> =
            nodes.iter_mut().map(|node| scope.spawn(move || eval(node, "", many))).collect();
        let answers = programs.into_iter().map(|program| program.join().unwrap());
        // A note about the denied ones follows.
        answers.map(|answer| answer.lines().next().unwrap().parse::<usize>().unwrap()).sum()
    });
    // The file's limit is the same one with another number, so the seven count, too.
    assert_eq!(made, 13);
}

#[test]
fn a_question_may_be_answered_from_anywhere_and_once() {
    let policy = file("[[rule]]\ndo = \"ask\"\ntools = [\"probe/echo\"]\n");
    let flags = ["--policy", name_of(&policy), "--approvals", "wait"];
    let Some(Nodes { mut nodes, _config, _database }) = Nodes::start(2, &flags) else { return };
    let state = _database.url();
    // Another machine, which has only the address of the database.
    let elsewhere = tempfile::tempdir().unwrap();
    let approvals = |words: &[&str]| {
        let mut command = ptc(&[&["approvals"], words, &["--state", &state]].concat());
        command.env("XDG_STATE_HOME", elsewhere.path());
        run(command, "")
    };
    let listed = || {
        let listed: Value = serde_json::from_str(&approvals(&["list", "--output", "json"]).stdout).unwrap();
        listed["waiting"].as_array().unwrap().clone()
    };
    for (decision, want) in [("approve", "nil"), ("deny", ":denied")] {
        std::thread::scope(|scope| {
            let asked: Vec<_> = nodes
                .iter_mut()
                .map(|node| scope.spawn(move || eval(node, "", "(:reason (tool/call 'probe/echo {:v 7}))")))
                .collect();
            eventually("both nodes ask", || listed().len() == 2);
            for question in listed() {
                assert_eq!(question["call"], "probe/echo");
                let id = question["id"].as_str().unwrap();
                let done = approvals(&[decision, id]);
                assert_eq!(done.code, Some(0), "{done:?}");
                assert_ne!(approvals(&["approve", id]).code, Some(0));
            }
            for answer in asked {
                assert_eq!(answer.join().unwrap(), want);
            }
        });
        eventually("the list is empty", || listed().is_empty());
    }
    let wrong = run_ptc(&["approvals", "--state", "a-folder"], "");
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}
