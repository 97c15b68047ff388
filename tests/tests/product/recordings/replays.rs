//! `--record` and `ptc replay`: a recorded run happens again without its servers, or says where it differs.

use super::{edited, lines, recorded, recordings, replay};
use ptc_tests::binary::run_ptc;
use ptc_tests::serve::Server;
use ptc_tests::upstreams::{Upstreams, probe_server, stdio};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

/// Programs that must be replayed without any difference.
const PROGRAMS: &[&str] = &[
    "(+ 1 2)",
    "(println \"a\" (:value (tool/call 'probe/echo {:v {:n 1 :text \"é\\n\"}}))) (tool/call! 'probe/echo {:v [1 2.5 nil]})",
    "(pmap (fn [n] (:value (tool/call 'probe/gather {:n 8 :i n}))) (range 8))",
    "(pmap (fn [n] (reduce + (map (fn [m] (tool/call! 'probe/echo {:v (+ n m)})) (range n)))) (range 5))",
    "(map (fn [n] (count (:value (tool/call 'probe/flood {:bytes (* n 1000)})))) (range 4))",
    "(reduce + (pmap (fn [n] (+ (count (tool/call! 'probe/gather {:n 2 :i n})) (tool/call! 'probe/echo {:v n}))) [0 1]))",
    "(mapv (fn [n] (:reason (tool/call 'probe/echo {:v n}))) (range 60))",
    "(tool/call 'probe/refuse {})",
    "(tool/call! 'probe/refuse {})",
    "(tool/call 'probe/echo {:result {:content [{:type \"image\" :data \"AAAA\" :mimeType \"image/png\"}]}})",
    "(resource/read {:server \"probe\" :uri \"memo://notes\"})",
    "[(prompt/get {:server \"probe\" :name \"greet\" :args {:who \"you\"}}) (resource/list {:server \"probe\"})]",
    "[(tool/servers) (dir 'probe) (doc 'probe/echo) (apropos \"echo\") (budget/remaining)]",
    "[(pos? (.getTime (java.util.Date.))) (tool/call! 'probe/echo {:v 1})]",
    "(fail {:why (tool/call! 'probe/echo {:v \"x\"})})",
    "(tool/call 'probe/none {})",
    "(tool/call {:server \"nowhere\" :tool \"none\"})",
    "(loop [n 0] (if (< n 60) (do (tool/call 'probe/echo {:v n}) (recur (inc n))) (tool/call 'probe/echo {:v n})))",
    "(+ 1",
    "(pcalls #(tool/call! 'probe/refuse {}) #(tool/call 'probe/echo {:v (reduce + (range 30000))}))",
];

#[test]
fn a_replay_is_the_recorded_run() {
    for program in PROGRAMS {
        let (_folder, recording, then) = recorded(program, &["--timeout", "30s"]);
        let now = replay(&recording, &[]);
        assert_eq!(now.code, Some(0), "{program}\n{then:?}\n{now:?}");
        assert_eq!(now.stdout, then.stdout, "{program}");
        assert!(now.stderr.contains("same result and prints as recorded"), "{program}: {now:?}");
    }
}

#[test]
fn a_recording_is_private_and_has_the_whole_run() {
    let program = "(println (inc data/n)) (tool/call! 'probe/echo {:v data/n})";
    let (folder, recording, finished) = recorded(program, &["--context", "{\"n\": 41}"]);
    assert_eq!(finished.stdout, "42\n41\n");
    let shared = std::fs::read_dir(folder.path().join("shared")).unwrap().next().unwrap().unwrap().path();
    for file in [&recording, &shared] {
        assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600, "{file:?}");
    }
    let lines = lines(&recording);
    let run = &lines[0]["run"];
    assert_eq!(
        (&run["program"], &run["context"], &run["language"]),
        (&json!(program), &json!({"n": 41}), &json!("lisp"))
    );
    assert_eq!(run["servers"][0]["server"], "probe");
    let call = &lines[1]["call"];
    assert_eq!((&call["seq"], &call["tool"], &call["args"]), (&json!(0), &json!("echo"), &json!({"v": 41})));
    assert_eq!(lines[2]["end"]["answer"]["ok"]["value"], json!({"json": 41}));
    let outcome = &lines[3]["outcome"];
    assert_eq!(
        (&outcome["value"], &outcome["prints"], &outcome["calls"]),
        (&json!("41"), &json!(["42"]), &json!(1))
    );
}

#[test]
fn a_difference_ends_the_run_with_its_place() {
    let program = "(let [a (tool/call! 'probe/echo {:v 1})] (tool/call! 'probe/echo {:v (inc a)}))";
    let (_folder, recording, _) = recorded(program, &[]);
    for (from, to, said) in [
        ("{\"v\":2}", "{\"v\":3}", "the program calls probe/echo with other arguments, {\"v\":2}"),
        ("\"tool\":\"echo\"", "\"tool\":\"hold\"", "the program calls probe/echo {\"v\":1} (call 0)"),
        ("\"seq\":1,\"server\"", "\"seq\":2,\"server\"", "(call 2)"),
    ] {
        let finished = replay(&edited(&recording, from, to), &[]);
        assert_eq!(finished.code, Some(1), "{from}: {finished:?}");
        assert!(finished.stderr.starts_with("diverged at line "), "{finished:?}");
        assert!(finished.stderr.contains(said), "{said}: {finished:?}");
        let finished = replay(&edited(&recording, from, to), &["--output", "json"]);
        assert!(finished.stdout.contains("\"error\":\"replay_diverged\""), "{finished:?}");
    }
    // An answer that was edited is what the program computes with, until that shows.
    let finished = replay(&edited(&recording, "{\"json\":1}", "{\"json\":7}"), &[]);
    assert!(
        finished.stderr.contains("other arguments, {\"v\":8}; the recording has probe/echo {\"v\":2}"),
        "{finished:?}"
    );
    let fuel = replay(&edited(&recording, "{\"v\":1},\"fuel\":", "{\"v\":1},\"fuel\":1"), &[]);
    assert!(fuel.code == Some(1) && fuel.stderr.contains("units of fuel instead of 1"), "{fuel:?}");
}

#[test]
fn an_edited_program_finds_recorded_answers_by_arguments() {
    let program = "(mapv (fn [n] (tool/call! 'probe/echo {:v n})) [1 2 3])";
    let (_folder, recording, _) = recorded(program, &[]);
    let other = "(reduce + (map (fn [n] (tool/call! 'probe/echo {:v n})) [3 1]))";
    let finished = replay(&recording, &["--program", other]);
    assert_eq!((finished.stdout.as_str(), finished.code), ("4\n", Some(0)), "{finished:?}");
    let said = &finished.stderr;
    assert!(
        said.contains("2 calls answered") && said.contains("recorded calls that were not made: 1"),
        "{said}"
    );
    assert!(said.contains("- probe/echo {\"v\":2}") && said.contains("- [1 2 3]"), "{said}");
    let unknown = "(:reason (tool/call 'probe/echo {:v 9}))";
    let finished = replay(&recording, &["--program", unknown, "--match", "args"]);
    assert_eq!((finished.stdout.as_str(), finished.code), (":not_recorded\n", Some(1)), "{finished:?}");
    assert!(finished.stderr.contains("+ probe/echo {\"v\":9}"), "{finished:?}");
}

#[test]
fn live_reads_are_made_and_writes_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let server = ptc_tests::workspace().join("tests/python/counting.py");
    let entry = ptc_tests::upstreams::stdio("python3", &[server.to_str().unwrap(), log.to_str().unwrap()]);
    let config = Upstreams::default().add("count", entry).write();
    let program = "[(tool/call! 'count/read {:k 1}) (tool/call! 'count/write {:k 1})]";
    let runs = folder.path().join("runs");
    let record = ["eval", program, "--record", runs.to_str().unwrap()];
    let arguments: Vec<&str> = record.into_iter().chain(config.flags(&[])).collect();
    assert_eq!(run_ptc(&arguments, "").code, Some(0));
    let recording = super::recordings(&runs).remove(0);
    let finished = replay(&recording, &config.flags(&["--live-reads"]));
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "read 1\nwrite 1\nread 1\n");
}

#[test]
fn a_server_and_a_batch_record_each_run() {
    let folder = tempfile::tempdir().unwrap();
    let config = Upstreams::default().add("probe", probe_server(&[])).write();
    let record = ["--record", folder.path().to_str().unwrap()];
    let mut server = Server::start(&config.flags(&record));
    // The server is started by the first call, which waits.
    assert_eq!(server.text("(pmap (fn [n] (tool/call! 'probe/echo {:v n})) [1 2])"), "[1 2]");
    for _ in 0..3 {
        assert_eq!(server.text("(+ 1 1)"), "2");
    }
    assert_eq!(server.end(), Some(0));
    let input =
        "{\"id\":1,\"program\":\"(+ 1 2)\"}\n{\"id\":2,\"program\":\"(tool/call! 'probe/echo {:v 2})\"}\n";
    let arguments: Vec<&str> = ["batch"].into_iter().chain(config.flags(&record)).collect();
    assert_eq!(run_ptc(&arguments, input).code, Some(0));
    let found = super::recordings(folder.path());
    assert_eq!(found.len(), 6);
    // The program knows the tools of a server that was started in the middle of the recorded run.
    let finished = replay(&found[0], &["--program", "(pmap (fn [n] (tool/call! 'probe/echo {:v n})) [2 1])"]);
    assert_eq!(finished.stdout, "[2 1]\n", "{finished:?}");
    for recording in &found {
        let finished = replay(recording, &[]);
        assert_eq!(finished.code, Some(0), "{finished:?}\n{}", std::fs::read_to_string(recording).unwrap());
    }
}

#[test]
fn json_says_everything() {
    let (_folder, recording, _) = recorded("(tool/call! 'probe/echo {:v 1})", &[]);
    let finished = replay(&recording, &["--output", "json"]);
    let report: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(
        (&report["value"], &report["replay"]["same"], &report["replay"]["answered"]),
        (&json!("1"), &json!(true), &json!(1))
    );
    assert_eq!(report["upstream_calls"][0]["tool"], "echo");
}

#[test]
fn calls_that_waited_for_a_server_count_in_a_replay() {
    let folder = tempfile::tempdir().unwrap();
    let down = stdio("false", &[]);
    let config = Upstreams::default().add("probe", probe_server(&[])).add("down", down).write();
    let record = ["--record", folder.path().to_str().unwrap()];
    let call = "(:reason (tool/call {:server \"down\" :tool \"none\" :args {}}))";
    let waits = "(pcalls (fn [] (tool/call! 'probe/echo {:v 1})) (fn [] (budget/remaining)))";
    let program = format!("[{waits} {call} (budget/remaining) {call} (budget/remaining)]");
    let then = run_ptc(
        &[&["eval", program.as_str(), "--startup", "lenient"], &record[..], &config.flags(&[])].concat(),
        "",
    );
    assert_eq!(then.code, Some(0), "{then:?}");
    let now = replay(&recordings(folder.path()).remove(0), &[]);
    assert_eq!((now.stdout, now.code), (then.stdout, Some(0)), "{}\n{}", then.stderr, now.stderr);
}
