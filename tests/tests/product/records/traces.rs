//! Records in files: their content, and disks that reject them.

use super::{ask, call};
use ptc_tests::binary;
use ptc_tests::processes::eventually;
use ptc_tests::serve::Server;
use ptc_tests::upstreams::{ConfigFile, Upstreams};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A temporary folder.
pub(super) fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// The files of a folder with this suffix, by name.
pub(super) fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.to_str().unwrap().ends_with(end));
    found.sort();
    found
}

pub(super) fn lines(path: &Path) -> Vec<Value> {
    std::fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The only line with this event.
fn event<'l>(lines: &'l [Value], name: &str) -> &'l Value {
    let found: Vec<&Value> = lines.iter().filter(|line| line["event"] == name).collect();
    assert_eq!(found.len(), 1, "{name}: {lines:#?}");
    found[0]
}

fn eval(server: &mut Server, program: &str) -> Value {
    call(server, "lisp_eval", json!({ "program": program }))
}

/// Waits until so many records were written or dropped.
pub(super) fn settled(server: &mut Server, sink: &str, count: u64) -> (u64, u64) {
    loop {
        let stats = ask(server, json!({ "op": "stats" }));
        let number = |key: &str| stats[sink][key].as_u64().unwrap_or_else(|| panic!("{stats}"));
        if number("written") + number("dropped") >= count {
            return (number("written"), number("dropped"));
        }
        std::thread::yield_now();
    }
}

fn secret_config() -> ConfigFile {
    let secret = json!({ "source": "literal", "value": "correct-horse-battery" });
    Upstreams::probe().credential("key", secret).write()
}

#[test]
fn a_trace_holds_what_its_policy_says_and_no_secret() {
    let config = secret_config();
    for policy in ["none", "summary", "full"] {
        let folder = folder();
        let flags = ["--trace-dir", folder.path().to_str().unwrap(), "--trace-payloads", policy];
        let mut server = Server::start(&config.flags(&flags));
        let program = format!(
            r#"(println "line {policy} correct-horse-battery")
               (str "answer {policy} " (:value (tool/call {{:server "probe" :tool "echo" :args {{:v (:k data/c)}}}}))
                 "correct-horse-battery")"#
        );
        let context = json!({ "c": { "k": format!("context {policy}") }, "s": "correct-horse-battery" });
        call(&mut server, "lisp_eval", json!({ "program": program, "context": context }));
        eval(&mut server, "(/ 1 0)");
        call(&mut server, "no such tool", json!({}));
        assert_eq!(server.end(), Some(0));
        let [first, second, third] = files(folder.path(), ".jsonl").try_into().expect("three traces");
        let all: String =
            [&first, &second, &third].map(|path| std::fs::read_to_string(path).unwrap()).concat();
        assert!(!all.contains("correct-horse"), "{policy}: {all}");
        let name = first.file_name().unwrap().to_str().unwrap();
        let id = "2";
        assert_eq!(event(&lines(&first), "ptc_lisp.call.start")["metadata"]["request_id"], id);
        // The first eight digits of the SHA-256 of "2".
        assert!(
            name.ends_with("-d4735e3a-ok.jsonl")
                && name.len() == "2026-11-23T02-20-11.123456Z-d4735e3a-ok.jsonl".len(),
            "{name}"
        );
        assert!(
            second.to_str().unwrap().ends_with("-error.jsonl")
                && third.to_str().unwrap().ends_with("-error.jsonl")
        );
        let trace = lines(&first);
        let events: Vec<&str> = trace.iter().map(|line| line["event"].as_str().unwrap()).collect();
        assert_eq!(
            events,
            [
                "trace.start",
                "ptc_lisp.call.start",
                "ptc_runner.lisp.execute.start",
                "ptc_lisp.upstream_call",
                "ptc_runner.lisp.execute.stop",
                "ptc_lisp.call.stop",
                "trace.stop",
            ]
        );
        for (at, line) in trace.iter().enumerate() {
            assert_eq!((&line["seq"], &line["trace_id"]), (&json!(at), &trace[0]["trace_id"]));
            assert!(line["timestamp"].as_str().unwrap().ends_with('Z'));
        }
        let start = event(&trace, "trace.start");
        assert_eq!(start["schema_version"], 2);
        assert_eq!((&start["trace_kind"], &start["producer"]), (&json!("mcp_call"), &json!("ptc_lisp")));
        let begun = event(&trace, "ptc_lisp.call.start");
        assert_eq!(begun["metadata"]["program_bytes"], program.len());
        let upstream = event(&trace, "ptc_lisp.upstream_call");
        assert_eq!(
            (&upstream["metadata"]["server"], &upstream["metadata"]["status"]),
            (&json!("probe"), &json!("ok"))
        );
        let ran = event(&trace, "ptc_runner.lisp.execute.stop");
        assert!(ran["measurements"]["fuel"].as_u64().unwrap() > 0, "{ran}");
        let stop = event(&trace, "ptc_lisp.call.stop");
        let shows = |what: &str| all.contains(&format!("{what} {policy}"));
        match policy {
            "none" => {
                assert!(!shows("context") && !shows("line") && !shows("answer"), "{all}");
                assert_eq!(stop["prints"], json!({ "count": 1 }));
                assert!(begun["context"]["<bytes>"].is_u64() && stop["result"]["sha256"].is_string());
            }
            "summary" => {
                assert!(!begun.to_string().contains("context summary") && shows("answer"), "{all}");
                assert_eq!(begun["context"]["c"], json!({ "type": "object", "count": 1 }));
                assert_eq!(stop["prints"]["items"], json!(["line summary [REDACTED]"]));
            }
            _ => {
                assert_eq!(begun["context"], json!({ "c": { "k": "context full" }, "s": "[REDACTED]" }));
                assert!(start["query"].as_str().unwrap().contains("(println "), "{start}");
                assert!(
                    stop["result"].as_str().unwrap().contains("answer full context full[REDACTED]"),
                    "{stop}"
                );
            }
        }
        let failed = event(&lines(&second), "ptc_lisp.call.stop").clone();
        assert_eq!(failed["metadata"]["reason"], "runtime_error");
        assert!(failed["metadata"]["message"].as_str().unwrap().contains("zero"), "{failed}");
        assert_eq!(event(&lines(&third), "ptc_lisp.call.stop")["metadata"]["reason"], "unknown_tool");
    }
}

#[test]
fn the_oldest_traces_go_and_one_call_is_found_again() {
    let folder = folder();
    let path = folder.path().to_str().unwrap();
    // Files other than traces stay.
    std::fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    let flags = ["--debug-tool", "--trace-dir", path, "--trace-max-files", "5", "--trace-payloads", "full"];
    let mut server = Server::start(&flags);
    for number in 0..12 {
        eval(&mut server, &number.to_string());
    }
    assert_eq!(settled(&mut server, "trace", 12), (12, 0));
    let kept = files(folder.path(), ".jsonl");
    let programs: Vec<Value> =
        kept.iter().map(|path| event(&lines(path), "trace.start")["query"].clone()).collect();
    assert_eq!(programs, ["7", "8", "9", "10", "11"]);
    assert_eq!(files(folder.path(), "notes.txt").len(), 1);
    let id = event(&lines(&kept[4]), "trace.start")["trace_label"].clone();
    let got = ask(&mut server, json!({ "op": "get", "request_id": id }));
    assert_eq!((&got["source"], &got["record"]), (&json!("trace_file"), &json!(lines(&kept[4]))));
    // Its trace is gone, but its record is not.
    let got = ask(&mut server, json!({ "op": "get", "request_id": "2" }));
    assert_eq!((&got["source"], &got["found"]), (&json!("ring_buffer"), &json!(true)));
}

#[test]
fn the_turn_log_has_a_line_for_each_program_of_a_session() {
    let config = secret_config();
    let folder = folder();
    let flags = ["--sessions", "--turn-log-dir", folder.path().to_str().unwrap()];
    let mut server = Server::start(&config.flags(&flags));
    let started = call(&mut server, "lisp_session_start", json!({}));
    let session = started["structuredContent"]["session_id"].clone();
    let echo = |args: &str| format!(r#"(:value (tool/call {{:server "probe" :tool "echo" :args {args}}}))"#);
    let programs = [
        format!("(println \"hi\") (def x {}) (def y \"correct-horse-battery\") x", echo("{:v 5 :w 6}")),
        format!("(def z {}) (fail \"no\")", echo("{:w 6 :v 5}")),
        "(/ x 0)".to_owned(),
    ];
    for program in &programs {
        call(&mut server, "lisp_session_eval", json!({ "session_id": session, "program": program }));
    }
    let wanted = json!({ "session_id": session, "program": "x", "output_schema": { "type": "string" } });
    call(&mut server, "lisp_session_eval", wanted);
    // Refused before it began.
    call(&mut server, "lisp_session_eval", json!({ "session_id": "ptcs_x", "program": "1" }));
    eval(&mut server, "1");
    assert_eq!(server.end(), Some(0));
    let [file] = files(folder.path(), "-turns.jsonl").try_into().expect("one file");
    assert!(!std::fs::read_to_string(&file).unwrap().contains("correct-horse"));
    let log = lines(&file);
    let rows: Vec<Value> = log
        .iter()
        .map(|line| {
            json!([
                line["turn"],
                line["attempt"],
                line["committed"],
                line["status"],
                line["data"]["fail"]["reason"]
            ])
        })
        .collect();
    assert_eq!(
        rows,
        [
            json!([1, 1, true, "ok", null]),
            json!([1, 2, false, "error", "fail"]),
            json!([1, 3, false, "error", "arithmetic_error"]),
            json!([1, 4, false, "error", "validation_failed"]),
        ]
    );
    let first = &log[0];
    assert_eq!((&first["event"], &first["driver"]), (&json!("turn"), &json!("session")));
    assert_eq!((&first["session_id"], &first["trace_kind"]), (&session, &json!("mcp.turn_log")));
    let data = &first["data"];
    assert_eq!(data["prints"], json!(["hi"]));
    assert_eq!(
        data["memory_diff"],
        json!({ "changed_keys": ["x", "y"], "values": { "x": "5", "y": "\"[REDACTED]\"" } })
    );
    assert_eq!(log[1]["data"]["memory_diff"], Value::Null);
    // Equal arguments have the same hash, however they are written.
    let hash = |line: &Value| line["data"]["tool_calls"][0]["args_hash"].as_str().unwrap().to_owned();
    assert_eq!((hash(first), hash(first).len()), (hash(&log[1]), 64));
    assert_eq!(log[2]["data"]["tool_calls"], json!([]));
}

/// Evals go on whatever happens to records; each record is written or counted as dropped.
#[test]
fn folders_that_cannot_be_written_to() {
    let folder = folder();
    let file = folder.path().join("file");
    std::fs::write(&file, "a file").unwrap();
    for place in ["/proc/no-such-folder", file.to_str().unwrap()] {
        let flags = ["--debug-tool", "--sessions", "--trace-dir", place, "--turn-log-dir", place];
        let mut server = Server::start(&flags);
        let started = call(&mut server, "lisp_session_start", json!({}));
        let session = started["structuredContent"]["session_id"].clone();
        for number in 0..5 {
            let arguments = json!({ "session_id": session, "program": number.to_string() });
            let answer = call(&mut server, "lisp_session_eval", arguments);
            assert_eq!(answer["isError"], false, "{answer}");
        }
        assert_eq!(settled(&mut server, "trace", 6), (0, 6));
        assert_eq!(settled(&mut server, "turn_log", 5), (0, 5));
        let stats = ask(&mut server, json!({ "op": "stats" }));
        assert!(
            stats["trace"]["last_error"].is_string() && stats["turn_log"]["last_error"].is_string(),
            "{stats}"
        );
        server.has_logged("a record could not be written");
        assert_eq!(server.end(), Some(0));
    }
}

#[test]
fn a_folder_that_is_deleted_and_comes_back() {
    let parent = folder();
    let folder = parent.path().join("records");
    let place = folder.to_str().unwrap();
    let mut server =
        Server::start(&["--debug-tool", "--sessions", "--trace-dir", place, "--turn-log-dir", place]);
    let started = call(&mut server, "lisp_session_start", json!({}));
    let session = started["structuredContent"]["session_id"].clone();
    let turn = |server: &mut Server, number: u64| {
        let arguments = json!({ "session_id": session, "program": number.to_string() });
        assert_eq!(call(server, "lisp_session_eval", arguments)["isError"], false);
    };
    turn(&mut server, 1);
    assert_eq!(settled(&mut server, "turn_log", 1), (1, 0));
    std::fs::remove_dir_all(&folder).unwrap();
    turn(&mut server, 2);
    turn(&mut server, 3);
    assert_eq!(settled(&mut server, "turn_log", 3), (1, 2));
    assert_eq!(settled(&mut server, "trace", 4), (2, 2));
    std::fs::create_dir(&folder).unwrap();
    turn(&mut server, 4);
    assert_eq!(settled(&mut server, "turn_log", 4), (2, 2));
    assert_eq!(settled(&mut server, "trace", 5), (3, 2));
    let [log] = files(&folder, "-turns.jsonl").try_into().expect("one file");
    assert_eq!(lines(&log)[0]["data"]["program"], "4");
}

/// A limit on the size of files simulates a disk that fills up in the middle of one.
#[test]
fn a_disk_that_fills_leaves_whole_records_and_evals_go_on() {
    let folder = folder();
    let place = folder.path().to_str().unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", r#"trap "" XFSZ; ulimit -f 16; exec "$0" "$@""#]).arg(binary::path());
    command.args(["serve", "--debug-tool", "--sessions", "--trace-payloads", "full"]);
    command.args(["--trace-dir", place, "--turn-log-dir", place]);
    command
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .env("XDG_STATE_HOME", "/dev/null")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped());
    let mut server = Server::from_command(command);
    let started = call(&mut server, "lisp_session_start", json!({}));
    let session = started["structuredContent"]["session_id"].clone();
    for number in 0..30 {
        // Every third record is larger than a file may be.
        let text = "x".repeat(if number % 3 == 2 { 20_000 } else { 100 });
        let arguments = json!({ "session_id": session, "program": format!("(count \"{text}\")") });
        let answer = call(&mut server, "lisp_session_eval", arguments);
        assert_eq!(answer["isError"], false, "{answer}");
    }
    assert_eq!(settled(&mut server, "trace", 31), (21, 10));
    let (written, dropped) = settled(&mut server, "turn_log", 30);
    assert!(written >= 2 && dropped >= 10, "{written} {dropped}");
    let stats = ask(&mut server, json!({ "op": "stats" }));
    assert_eq!(stats["by_tool"]["lisp_session_eval"]["ok"], 30);
    // An incomplete record is removed.
    assert_eq!(files(folder.path(), "-pending.jsonl"), [] as [PathBuf; 0]);
    for path in files(folder.path(), "-ok.jsonl") {
        assert_eq!(lines(&path).last().unwrap()["event"], "trace.stop");
    }
    let [log] = files(folder.path(), "-turns.jsonl").try_into().expect("one file");
    assert_eq!(lines(&log).len() as u64, written);
    assert_eq!(server.end(), Some(0));
}

/// Twenty calls in flight at once, drawn.
#[test]
fn a_picture_shows_what_ran_beside_what() {
    let config = Upstreams::probe().write();
    let folder = folder();
    let place = folder.path().to_str().unwrap();
    let mut server = Server::start(&config.flags(&["--trace-dir", place, "--trace-payloads", "full"]));
    let program = r#"(count (pmap (fn [n] (tool/call {:server "probe" :tool "gather" :args {:n 20 :v n}})) (range 20)))
        ; <script>alert(1)</script> & "quotes""#;
    assert_eq!(ptc_tests::serve::text_of(&eval(&mut server, program)), "20");
    server.end();
    eventually("the trace", || files(folder.path(), "-ok.jsonl").len() == 1);
    let show = |more: &[&str]| {
        let arguments: Vec<&str> = ["trace", "show", place].into_iter().chain(more.iter().copied()).collect();
        let shown = binary::run(binary::ptc(&arguments), "");
        assert_eq!(shown.code, Some(0), "{}", shown.stderr);
        shown.stdout
    };
    let text = show(&["--width", "100"]);
    let bars: Vec<&str> = text.lines().filter(|line| line.contains("probe/gather")).collect();
    assert_eq!(bars.len(), 20, "{text}");
    assert!(bars.iter().all(|bar| bar.contains('█') && bar.chars().count() <= 104), "{text}");
    // All of them were in flight when the last one came.
    assert!(text.contains("20 upstream calls, 20 at once"), "{text}");
    assert!(text.contains("fuel ") && text.contains("peak ") && text.contains("\nanswer\n  20\n"), "{text}");
    let page = show(&["--html"]);
    assert_eq!(page.matches("<rect class=\"good\"").count(), 20);
    assert!(!page.contains("<script") && !page.contains("http") && !page.contains("src="), "{page}");
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;quotes&quot;"), "{page}");
    let picture = show(&["--svg"]);
    assert!(picture.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""), "{picture}");
    assert_eq!(picture.matches("<rect class=\"good\"").count(), 20);
    let wrong = binary::run(binary::ptc(&["trace", "show", config.path()]), "");
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}
