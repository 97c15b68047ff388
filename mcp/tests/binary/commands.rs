//! Tests of the commands that run to their end: output and exit codes.

use crate::binary::support::{ptc, run, stderr, stdout};
use serde_json::{Value, json};
use std::io::Write;

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::Builder::new().suffix(".ptc").tempfile().expect("temporary file");
    file.write_all(text.as_bytes()).expect("written");
    file
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn eval_takes_text_files_and_standard_input() {
    let program = file("(* 6 7)");
    let path = program.path().to_str().expect("UTF-8 path");
    for (argument, input) in [("(* 6 7)", ""), (path, ""), ("-", "(* 6 7)")] {
        let output = run(&["eval", argument], input);
        assert_eq!((stdout(&output).as_str(), output.status.code()), ("42\n", Some(0)), "{argument}");
    }
    let output = run(&["eval", "(println \"hi\") (count data/xs)", "--context", r#"{"xs":[1,2,3]}"#], "");
    assert_eq!(stdout(&output), "hi\n3\n");
}

#[test]
fn eval_reports_failures_on_stderr_with_exit_code_1() {
    let output = run(&["eval", "(+ fooo 1)"], "");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output), "");
    assert!(stderr(&output).starts_with("unbound_var: "), "{}", stderr(&output));
}

#[test]
fn eval_json_has_value_prints_and_usage() {
    let output = run(&["eval", "(println 1) {:a [1 2]}", "--output", "json"], "");
    let report: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!((&report["ok"], &report["value"]), (&json!(true), &json!("{:a [1 2]}")));
    assert_eq!((&report["json"], &report["prints"]), (&json!({"a": [1, 2]}), &json!(["1"])));
    assert!(report["usage"]["fuel"].is_u64());
    let output = run(&["eval", "(fail {:code 7})", "--output", "json"], "");
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!((&report["error"], &report["value"]), (&json!("fail"), &json!("{:code 7}")));
}

#[test]
fn usage_and_configuration_errors_have_exit_code_2() {
    let broken = file("{ not json");
    let path = broken.path().to_str().expect("UTF-8 path");
    for arguments in [
        vec!["eval"],
        vec!["nonsense"],
        vec!["eval", "1", "--no-such-flag"],
        vec!["eval", "no-such-file.ptc"],
        vec!["eval", "1", "--context", "[1]"],
        vec!["eval", "1", "--timeout", "soon"],
        vec!["check", "no-such-file.ptc"],
        vec!["eval", "(tool/call {:server \"a\" :tool \"b\"})", "--upstreams-config", path],
        vec!["serve", "--upstreams-config", path],
        vec!["tools", "--upstreams-config", "/no/such/file.json"],
    ] {
        let output = run(&arguments, "");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert_ne!(stderr(&output), "", "{arguments:?}");
    }
}

#[test]
fn help_names_every_command_and_the_exit_codes() {
    let output = run(&["--help"], "");
    assert_eq!(output.status.code(), Some(0));
    let help = stdout(&output);
    for word in ["serve", "eval", "batch", "tools", "check", "disasm", "demo", "Exit codes"] {
        assert!(help.contains(word), "{word}");
    }
    assert!(!help.contains("demo-server"));
    assert!(!help.contains('\x1b'), "no colour without a terminal");
}

#[test]
fn check_compiles_only() {
    let good = file("(defn f [x] (* x x)) (f 3)");
    let output = run(&["check", good.path().to_str().expect("path")], "");
    assert_eq!(output.status.code(), Some(0));
    assert!(stdout(&output).ends_with(": ok\n"));

    let bad = file("(let [a 1]\n  (+ a fooo))");
    let output = run(&["check", bad.path().to_str().expect("path")], "");
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains(":2:8"), "{}", stdout(&output));

    let output = run(&["check", "-", "--output", "json"], "(let [a 1]\n  (+ a fooo))");
    let report: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(report["ok"], false);
    let finding = &report["diagnostics"][0];
    assert_eq!(
        (&finding["reason"], &finding["line"], &finding["column"]),
        (&json!("unbound_var"), &json!(2), &json!(8))
    );
}

/// Clients rely on the JSON shape of errors, which is the same for `check` and for programs that failed.
#[test]
fn errors_have_one_json_shape() {
    let output = run(&["check", "-", "--output", "json"], "(let [a 1]\n  (+ a fooo))");
    let report: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(
        report["diagnostics"][0],
        json!({
            "severity": "error", "reason": "unbound_var", "message": "Undefined variable: fooo",
            "line": 2, "column": 8, "end_line": 2, "end_column": 12, "source": "fooo",
            "hints": report["diagnostics"][0]["hints"],
        })
    );
    let program = "(defn tax [o]\n  (* 2 (:total o)))\n(tax {})";
    let output = run(&["eval", "-", "--output", "json"], program);
    let report: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!((&report["error"], &report["ok"]), (&json!("type_error"), &json!(false)));
    let failure = &report["diagnostics"][0];
    assert_eq!(
        (&failure["line"], &failure["column"], &failure["types"]),
        (&json!(2), &json!(3), &json!(["number", "nil"]))
    );
    let call = json!({ "function": "tax", "line": 3, "column": 1, "source": "(tax {})" });
    assert_eq!(failure["calls"], json!([call]));
    assert!(failure["hints"][0].as_str().is_some_and(|hint| hint.contains("(or x 0)")), "{failure}");
}

#[test]
fn disasm_prints_bytecode() {
    let good = file("(let [a 1] (+ a 2))");
    let output = run(&["disasm", good.path().to_str().expect("path")], "");
    assert_eq!(output.status.code(), Some(0));
    assert_ne!(stdout(&output), "");
    assert_eq!(run(&["disasm", "-"], "(").status.code(), Some(1));
}

#[test]
fn batch_keeps_the_order_of_its_input() {
    let mut input = String::from("{\"id\":\"slow\",\"program\":\"(reduce + (range 300000))\"}\n");
    for id in 0..2_000 {
        input.push_str(&format!("{{\"id\":{id},\"program\":\"(+ {id} 1)\"}}\n"));
    }
    let output = run(&["batch"], &input);
    assert_eq!(output.status.code(), Some(0));
    let answers = lines(&stdout(&output));
    assert_eq!(answers.len(), 2_001);
    assert_eq!(answers[0], json!({ "id": "slow", "ok": true, "value": "44999850000", "prints": [] }));
    for (id, answer) in answers[1..].iter().enumerate() {
        assert_eq!((&answer["id"], &answer["value"]), (&json!(id), &json!((id + 1).to_string())));
    }
}

#[test]
fn batch_reports_each_kind_of_failure_and_goes_on() {
    let input = concat!(
        "{\"id\":1,\"program\":\"(println 1 2) (fail {:a 1})\"}\n",
        "not json\n",
        "[1]\n",
        "{\"id\":\"x\"}\n",
        "{\"id\":4,\"program\":\"data/absent\"}\n",
        "\n",
        "{\"id\":5,\"program\":\"(loop [i 0] (recur (inc i)))\"}\n",
        "{\"id\":6,\"program\":\"(:a data/m)\",\"context\":{\"m\":{\"a\":\"b\"}}}",
    );
    let output = run(&["batch", "--loop-limit", "1000"], input);
    assert_eq!(output.status.code(), Some(0));
    let answers = lines(&stdout(&output));
    let errors: Vec<&Value> = answers.iter().map(|answer| &answer["error"]).collect();
    let expected = [
        json!("fail"),
        json!("args_error"),
        json!("args_error"),
        json!("args_error"),
        Value::Null,
        json!("loop_limit_exceeded"),
        Value::Null,
    ];
    assert_eq!(errors, expected.iter().collect::<Vec<_>>());
    assert_eq!((&answers[0]["value"], &answers[0]["prints"]), (&json!("{:a 1}"), &json!(["1 2"])));
    assert_eq!(answers[3]["id"], "x");
    assert_eq!(answers[4]["value"], "nil");
    assert_eq!(answers[6]["value"], "\"b\"");
}

#[test]
fn limits_can_come_from_the_environment() {
    let mut command = ptc(&["eval", "(loop [i 0] (recur (inc i)))"]);
    let output = command.env("PTC_LOOP_LIMIT", "10").output().expect("binary runs");
    assert!(stderr(&output).starts_with("loop_limit_exceeded"), "{}", stderr(&output));
    let mut command = ptc(&["eval", "1"]);
    let output = command.env("PTC_FUEL", "lots").output().expect("binary runs");
    assert_eq!(output.status.code(), Some(2));
    let mut command = ptc(&["eval", "1"]);
    let output = command.env("PTC_FUEL", "").output().expect("binary runs");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn the_demo_shows_its_answer_its_calls_and_the_reduction() {
    let output = run(&["demo"], "");
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}{}", stderr(&output));
    for part in ["(pmap", "Answer", ":customer", "search_tickets", "list_orders", "times"] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    assert!(!text.contains('\x1b'), "no colour without a terminal");
}

#[test]
fn tools_lists_servers_and_reports_those_that_do_not_start() {
    let output = run(&["tools"], "");
    assert_eq!(output.status.code(), Some(0));
    let config = file(r#"{"mcpServers": {"ghost": {"command": "no-such-command-anywhere"}}}"#);
    let output =
        run(&["tools", "--upstreams-config", config.path().to_str().expect("path"), "--output", "json"], "");
    assert_eq!(output.status.code(), Some(3));
    let report: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(report["servers"][0]["name"], "ghost");
    assert!(report["servers"][0]["error"].as_str().expect("error").contains("no-such-command-anywhere"));
}

#[test]
fn a_strict_server_that_does_not_start_has_exit_code_3() {
    let config = file(
        r#"{"upstreams": {"ghost": {"transport": "mcp_stdio", "command": "no-such-command-anywhere"}}}"#,
    );
    let output = run(&["serve", "--upstreams-config", config.path().to_str().expect("path")], "");
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("no-such-command-anywhere"), "{}", stderr(&output));
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let mut child = ptc(&["eval", "(range 100000)"]).spawn().expect("binary starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("binary ends");
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(4), ""));
}

#[test]
#[cfg(not(feature = "monty"))]
fn without_python_and_monty_doctor_and_serve_say_what_to_do() {
    let remedy = "install python3, 3.10 or later";
    let doctor = run(&["doctor", "--python", "/nowhere/python3"], "");
    assert!(stdout(&doctor).contains(remedy), "{}", stdout(&doctor));
    for engine in ["auto", "monty"] {
        let flags = ["--tools", "execute_program", "--python", "/nowhere/python3", "--python-engine", engine];
        let served = run(&[&["serve"], &flags[..]].concat(), "");
        assert_eq!(served.status.code(), Some(2), "{}", stderr(&served));
        assert!(stderr(&served).contains(remedy), "{}", stderr(&served));
    }
}
