//! `ptc batch`: JSON Lines in, JSON Lines out.

use ptc_tests::binary::{batch, batch_line, ptc, run_ptc};
use ptc_tests::postgres::Database;
use serde_json::{Value, json};
use std::io::Write;

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
fn what_is_no_object_is_said_in_words_of_json_and_the_mark_of_utf_8_is_no_part_of_a_line() {
    let input = format!("\u{feff}{}\"x\"\n\u{feff}\n5\n", batch_line(1, "1"));
    let answers = batch(&[], &input);
    assert_eq!((answers.len(), &answers[0]["value"]), (3, &json!("1")), "{answers:?}");
    for answer in &answers[1..] {
        assert_eq!(answer["message"], "the line is not a JSON object");
    }
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

/// Input lines with ids from 0.
fn squares(lines: usize) -> String {
    (0..lines).map(|id| format!("{{\"id\":{id},\"program\":\"(* {id} {id})\"}}\n")).collect()
}

#[test]
fn parts_of_the_input_are_together_all_of_it() {
    let input = squares(200) + "no JSON\n{\"program\":\"1\"}\n";
    let whole = run_ptc(&["batch"], &input).stdout;
    let mut parts: Vec<String> = Vec::new();
    for part in ["1/3", "2/3", "3/3"] {
        let lines = run_ptc(&["batch", "--shard", part], &input).stdout;
        assert!(lines.lines().count() > 30, "{part} is small");
        parts.extend(lines.lines().map(str::to_owned));
    }
    parts.sort();
    let mut all: Vec<&str> = whole.lines().collect();
    all.sort_unstable();
    assert_eq!(parts, all);
    assert_eq!(run_ptc(&["batch", "--shard", "4/3"], "").code, Some(2));
}

#[test]
fn many_processes_work_on_the_lines_of_a_database() {
    let Some(database) = Database::start() else { return };
    let url = database.url();
    let farm = |words: &[&str], input: &str| {
        let all = ["batch", "--farm", &url, "--job", "squares"];
        run_ptc(&[&all, words].concat(), input)
    };
    let input = squares(2_000) + "no JSON\n";
    // The database may still be starting.
    while farm(&[], &input).code != Some(0) {}
    // Putting the same lines in again changes nothing; other ones are refused.
    assert_eq!(farm(&[], &input).code, Some(0));
    let refused = farm(&[], "{\"id\":0,\"program\":\"1\"}\n");
    assert!(refused.code == Some(2) && refused.stderr.contains("has another line 1"), "{refused:?}");
    // Three workers; one more is killed with lines that it has taken.
    let mut killed = ptc(&["batch", "--farm", &url, "--job", "squares", "--work"]).spawn().unwrap();
    killed.kill().unwrap();
    killed.wait().unwrap();
    let codes = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..3).map(|_| scope.spawn(|| farm(&["--work"], "").code)).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(codes, [Some(0); 3]);
    let collected = farm(&["--collect"], "");
    assert_eq!(collected.stdout, run_ptc(&["batch"], &input).stdout);
    assert_eq!(farm(&["--delete"], "").code, Some(0));
    assert_eq!(farm(&["--collect"], "").code, Some(2));
}

#[test]
fn the_place_of_runs_can_be_checked() {
    let check = |place: &str| run_ptc(&["state", "check", place], "");
    assert_eq!(check("/nonexistent/runs").code, Some(1));
    let misspelled = check("postgress://ptc:hunter2@db/x");
    assert!(misspelled.code == Some(2) && !misspelled.stderr.contains("hunter2"), "{misspelled:?}");
    let gone = check("postgres://ptc:hunter2@127.0.0.1:1/x");
    assert!(gone.code == Some(1) && !gone.stderr.contains("hunter2"), "{gone:?}");
    let Some(database) = Database::start() else { return };
    while check(&database.url()).code != Some(0) {}
    assert!(check(&database.url()).stdout.contains("no tables yet"), "{:?}", check(&database.url()));
    assert_eq!(run_ptc(&["runs", "--state", &database.url()], "").stdout, "no run is stored\n");
    let found = check(&database.url()).stdout;
    assert!(found.contains("it takes writes\ntables of version 4\nruns: 0 (0 on 0 nodes)"), "{found}");
}

/// A full disk, and a folder in the place of the input.
#[test]
fn answers_that_cannot_be_written_and_input_that_cannot_be_read_are_errors() {
    let with = |input: &str, output: &str| {
        let mut command = ptc(&["batch"]);
        command.stdin(std::fs::File::open(input).unwrap());
        command.stdout(std::fs::File::options().write(true).open(output).unwrap());
        let finished = command.output().unwrap();
        (finished.status.code(), String::from_utf8(finished.stderr).unwrap())
    };
    let mut program = tempfile::NamedTempFile::new().unwrap();
    program.write_all(batch_line(1, "1").as_bytes()).unwrap();
    let program = program.path().to_str().unwrap();
    assert_eq!(with(program, "/dev/null"), (Some(0), String::new()));
    let (code, said) = with(program, "/dev/full");
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("No space left on device"), "{said}");
    let line = format!("\"$PTC\" batch < {program} >&-");
    let mut shell = std::process::Command::new("sh");
    let closed = shell.args(["-c", &line]).env("PTC", ptc_tests::binary::path()).output().unwrap();
    assert_eq!(closed.status.code(), Some(4), "{closed:?}");
    assert_eq!(String::from_utf8(closed.stderr).unwrap(), "error: standard output is closed\n");
    let (code, said) = with("/", "/dev/null");
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("cannot read standard input: Is a directory"), "{said}");
}

#[test]
fn a_server_that_cannot_read_or_write_says_so() {
    let with = |input: &str, output: &str| {
        let mut command = ptc(&["serve"]);
        command.stdin(std::fs::File::open(input).unwrap());
        command.stdout(std::fs::File::options().write(true).open(output).unwrap());
        let finished = command.output().unwrap();
        (finished.status.code(), String::from_utf8(finished.stderr).unwrap())
    };
    let mut request = tempfile::NamedTempFile::new().unwrap();
    request.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").unwrap();
    let request = request.path().to_str().unwrap();
    let (code, said) = with(request, "/dev/null");
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = with(request, "/dev/full");
    assert!(code == Some(4) && said.contains("No space left on device"), "{code:?} {said}");
    let (code, said) = with("/", "/dev/null");
    assert!(
        code == Some(4) && said.contains("cannot read standard input: Is a directory"),
        "{code:?} {said}"
    );
}
