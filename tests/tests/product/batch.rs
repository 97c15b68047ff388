//! `ptc batch`: JSON Lines in, JSON Lines out.

use ptc_tests::binary::{batch, batch_line, run_ptc};
use serde_json::{Value, json};

#[test]
fn one_line_in_one_line_out() {
    let finished = run_ptc(&["batch"], "{\"id\":1,\"program\":\"(+ 1 2)\"}\n");
    assert_eq!(finished.stdout, "{\"id\":1,\"ok\":true,\"value\":\"3\",\"prints\":[]}\n");
    assert_eq!((finished.stderr.as_str(), finished.code), ("", Some(0)));
}

#[test]
fn a_thousand_lines_keep_their_order() {
    // Every seventh program is much slower than the others.
    let rounds = |n: u64| if n.is_multiple_of(7) { 20_000 } else { 1 };
    let input: String =
        (0..1_000).map(|n| batch_line(n, &format!("(+ {n} (* 0 (count (range {}))))", rounds(n)))).collect();
    let answers = batch(&["--timeout", "60s"], &input);
    assert_eq!(answers.len(), 1_000);
    for (n, answer) in answers.iter().enumerate() {
        assert_eq!(answer, &json!({ "id": n, "ok": true, "value": n.to_string(), "prints": [] }));
    }
}

#[test]
fn each_program_has_a_world_of_its_own() {
    let input = batch_line("a", "(def x 1) x") + &batch_line("b", "x");
    let answers = batch(&[], &input);
    assert_eq!(answers[0]["value"], "1");
    assert_eq!(answers[1]["error"], "unbound_var");
}

#[test]
fn context_prints_failures_and_returns() {
    let input = format!(
        "{}\n{}{}{}",
        json!({ "id": { "any": "json" }, "program": "(println data/n) (inc data/n)", "context": { "n": 4 } }),
        batch_line("f", "(println 1) (fail {:why \"x\"})"),
        batch_line("r", "(return 5) 6"),
        batch_line("e", "(+ 1 \"a\")"),
    );
    let answers = batch(&[], &input);
    assert_eq!(answers[0], json!({ "id": { "any": "json" }, "ok": true, "value": "5", "prints": ["4"] }));
    assert_eq!(answers[1]["error"], "fail");
    assert_eq!(answers[1]["value"], "{:why \"x\"}");
    assert_eq!(answers[1]["prints"], json!(["1"]));
    assert_eq!(answers[2]["value"], "5");
    assert_eq!(answers[3]["error"], "type_error");
    assert!(!answers[3]["message"].as_str().expect("text").is_empty());
}

#[test]
fn a_malformed_line_is_answered_and_the_rest_goes_on() {
    let input = format!("not json\n[1]\n{{\"id\":3}}\n\n{}", batch_line(4, "4"));
    let answers = batch(&[], &input);
    let ok: Vec<&Value> = answers.iter().map(|answer| &answer["ok"]).collect();
    assert_eq!(ok, [false, false, false, true]);
    assert_eq!(answers[2]["id"], 3);
    assert!(answers[..3].iter().all(|answer| answer["error"] == "args_error"), "{answers:?}");
}

#[test]
fn limits_are_flags() {
    for (flags, program, reason) in [
        (
            ["--loop-limit", "1000"],
            "(loop [i 0] (if (< i 1000000) (recur (inc i)) i))",
            "loop_limit_exceeded",
        ),
        (["--fuel", "10000"], "(reduce + (range 100000))", "fuel_exceeded"),
        (["--memory", "1M"], "(vec (range 1000000))", "memory_exceeded"),
        (["--timeout", "50ms"], "(loop [] (recur))", "timeout"),
        (["--max-program-bytes", "5"], "(+ 1 2)", "program_too_large"),
    ] {
        let answers = batch(&flags, &batch_line(1, program));
        assert_eq!(answers[0]["error"], reason, "{flags:?} {}", answers[0]);
    }
    let answers =
        batch(&["--loop-limit", "1000"], &batch_line(1, "(loop [i 0] (if (< i 999) (recur (inc i)) i))"));
    assert_eq!(answers[0]["value"], "999");
}

#[test]
fn the_same_input_gives_the_same_output() {
    let programs =
        ["(group-by odd? (range 50))", "(shuffle-me 1)", "(frequencies [1 :a \"b\" 1])", "(/ 1 0)"];
    let input: String =
        programs.iter().cycle().take(400).enumerate().map(|(n, p)| batch_line(n, p)).collect();
    let first = run_ptc(&["batch"], &input).stdout;
    assert_eq!(first, run_ptc(&["batch"], &input).stdout);
}
