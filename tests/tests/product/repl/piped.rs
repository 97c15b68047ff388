//! REPL inputs from a file or another program.

use ptc_tests::binary::{ptc, run_ptc};
use ptc_tests::scripts::engine;
use ptc_tests::upstreams::{Upstreams, table_server};
use ptc_tests::workspace;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout};

#[test]
fn inputs_build_on_each_other_and_may_have_several_lines() {
    let input =
        "(def x 20)\n(+ x\n   1) ; a comment (\n*1\n\n[{:a 1 :b \"x y\"} {:a 2}]\n:table\n:quit\n(never)\n";
    let done = run_ptc(&["repl"], input);
    assert_eq!(done.stdout, "#'x\n21\n21\n[{:a 1 :b \"x y\"} {:a 2}]\na  b\n1  x y\n2\n");
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""));
}

#[test]
fn what_fails_leaves_the_session_as_it_was_and_an_exit_code() {
    let done = run_ptc(&["repl"], "(def x 1)\n(do (def x 2) (/ 1 0))\nx\n:nope\n");
    assert_eq!((done.stdout.as_str(), done.code), ("#'x\n1\n", Some(1)));
    assert!(
        done.stderr.contains("arithmetic_error: division by zero") && done.stderr.contains(":help"),
        "{done:?}"
    );
}

#[test]
fn programs_may_be_arguments() {
    let done = run_ptc(&["repl", "-e", "(def x 20)", "-e", "(println :hi) (+ x 1)"], "");
    assert_eq!((done.stdout.as_str(), done.code), ("#'x\n:hi\n21\n", Some(0)));
    let done = run_ptc(&["repl", "-e", "(nothing-there)", "-e", "1"], "");
    assert_eq!((done.stdout.as_str(), done.code), ("", Some(1)));
}

#[test]
fn the_last_failure_is_a_value_and_moves_no_results() {
    let input = "*e\n(def x 1)\n(/ x 0)\n[*1 (:reason *e) (:message *e) (:line *e)]\n(fail {:why 1})\n(:message *e)\n(nope)\n(:reason *e)\n";
    let done = run_ptc(&["repl"], input);
    let lines: Vec<&str> = done.stdout.lines().collect();
    let expected =
        ["nil", "#'x", "[#'x :arithmetic_error \"division by zero\" 1]", "\"{:why 1}\"", ":unbound_var"];
    assert_eq!(lines, expected, "{done:?}");
    // Also when nothing has run before.
    let done = run_ptc(&["repl"], "(/ 1 0)\n(:reason *e)\n");
    assert_eq!(done.stdout, ":arithmetic_error\n", "{done:?}");
}

#[test]
fn what_was_done_before_is_there_for_programs() {
    let input = "(def x 1)\n(nope)\n(map (juxt :correlation_id :turns :failed) (log/sessions-all))\n(log/programs-all \"repl\")\n:prelude\n:prelude reload\n(count (log/turns-all \"repl\"))\n";
    let done = run_ptc(&["repl", "--log-prelude"], input);
    let lines: Vec<&str> = done.stdout.lines().collect();
    assert_eq!(lines[..2], ["#'x", "[[\"repl\" 2 1]]"], "{done:?}");
    assert!(
        lines[2].contains("(def x 1)") && lines[2].contains("(nope)") && lines[3].starts_with("log "),
        "{done:?}"
    );
    assert_eq!(lines.last(), Some(&"4"), "{done:?}");
    let folder = tempfile::tempdir().expect("a folder");
    let turn = "{\"event\": \"turn\", \"session_id\": \"s\", \"data\": {\"program\": \"(f)\"}}\n";
    std::fs::write(folder.path().join("1-turns.jsonl"), turn).expect("written");
    let flag = format!("--log-prelude={}", folder.path().display());
    let done = run_ptc(&["repl", &flag, "-e", "(log/programs-all \"s\")"], "");
    assert_eq!((done.stdout.as_str(), done.code), ("[\"(f)\"]\n", Some(0)), "{done:?}");
    let done = run_ptc(&["repl", "--log-prelude", "-p", "any.clj", "-e", "1"], "");
    assert_eq!(done.code, Some(2), "{done:?}");
}

/// Each time the file has more functions, which take the slots of earlier ones and lie next to those still held.
#[test]
fn functions_of_preludes_that_were_replaced_stay_what_they_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("m.clj");
    let write = |version: usize| {
        let helpers: String = (0..version).map(|at| format!("(defn- g{at} [x] [{at} x])\n")).collect();
        let calls: String = (0..version).map(|at| format!(" (g{at} x)")).collect();
        let text = format!(
            "(ns m)\n{helpers}(defn f [x] [{version} x])\n(defn adder [n] (fn [x] [{version} (+ n x)]))\n(defn all [x] [{calls}])"
        );
        std::fs::write(&file, text).expect("written");
    };
    write(1);
    let mut repl = Piped::start(&["repl", "-p", file.to_str().expect("a path")]);
    repl.say("(do (def held [m/f]) (def adders [(m/adder 10)]) (defn mine [x] (m/f x)))");
    for version in 2..6 {
        write(version);
        repl.say(":prelude reload");
        let calls: String = (0..version).map(|at| format!(" [{at} :y]")).collect();
        assert_eq!(repl.say("(m/all :y)"), format!("[{}]", calls.trim_start()));
        let versions = || 1..version;
        let held: Vec<String> = versions().map(|version| format!("[{version} :x]")).collect();
        assert_eq!(repl.say("(map (fn [f] (f :x)) held)"), format!("[{}]", held.join(" ")));
        let added: Vec<String> = versions().map(|version| format!("[{version} 11]")).collect();
        assert_eq!(repl.say("(map #(% 1) adders)"), format!("[{}]", added.join(" ")));
        assert_eq!(repl.say("[(mine 1) (map m/f [2])]"), format!("[[{version} 1] [[{version} 2]]]"));
        repl.say("(do (def held (conj held m/f)) (def adders (conj adders (m/adder 10))))");
    }
    assert_eq!(repl.end(), "");
}

#[test]
fn preludes_are_read_again_and_what_the_session_has_calls_what_is_there_then() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("m.clj");
    let write = |text: &str| std::fs::write(&file, text).expect("written");
    let path = file.to_str().expect("a path");
    // A program of the session rewrites nothing: the test changes the file between two commands.
    write("(ns m \"First.\") (defn- part [x] [:one x]) (defn f [x] (part x)) (defn gone [] 1)");
    let mut repl = Piped::start(&["repl", "-p", path]);
    assert_eq!(repl.say("(defn mine [x] (m/f x))"), "#'mine");
    assert_eq!(repl.say("(def kept (mine 1))"), "#'kept");
    assert_eq!(repl.say("(m/gone)"), "1");
    assert_eq!(repl.say(":prelude"), "m  2 exports  First.");
    write("(ns m \"Second.\") (defn- part [x] [:two x]) (defn f [x] (part x)) (defn more [] 2)");
    assert_eq!(repl.say(":prelude reload"), "m  2 exports  Second.");
    assert_eq!(repl.say("[kept (mine 1) (m/f 2) (m/more)]"), "[[:one 1] [:two 1] [:two 2] 2]");
    // A file with an error changes nothing.
    write("(ns m) (defn f [x] (nope))");
    repl.tell(":prelude reload");
    assert_eq!(repl.say("(m/f 3)"), "[:two 3]");
    repl.tell("(m/gone)");
    repl.tell("(mine)");
    assert_eq!(repl.say("(:reason *e)"), ":arity_mismatch");
    let errors = repl.end();
    assert!(
        errors.contains("does not compile") && errors.contains("m/gone is not a public export"),
        "{errors}"
    );
}

#[test]
fn a_trace_draws_the_last_program() {
    let file = Upstreams::default().add("crm", table_server("tests/preludes/servers.json", "crm")).write();
    let prelude = workspace().join("tests/preludes/crm.clj");
    let flags = file.flags(&["-p", prelude.to_str().expect("a path")]);
    let input =
        ":trace\n(:ok (crm/get-user \"u_123\"))\n:trace\n:calls\n:time\n1\n(:ok (crm/get-user \"u_123\"))\n";
    let done = run_ptc(&[&["repl"], flags.as_slice()].concat(), input);
    for part in [
        "no program has run\ntrue\nprogram  ok",
        "1 upstream call, 1 at once   prelude crm ",
        "\nprogram\n  (:ok (crm/get-user \"u_123\"))\n",
        "  1 crm/get_user",
        "█",
        "\ncrm/get_user  at ",
        " bytes at most, 0 upstream calls\ntrue\n",
        " bytes at most, 1 upstream call\n",
    ] {
        assert!(done.stdout.contains(part), "{part}\n{}", done.stdout);
    }
}

/// A REPL that gets one input after the other.
struct Piped {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Piped {
    fn start(arguments: &[&str]) -> Piped {
        let mut child = ptc(arguments).spawn().expect("it starts");
        let input = child.stdin.take().expect("piped");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        Piped { child, input, output }
    }

    fn tell(&mut self, input: &str) {
        writeln!(self.input, "{input}").expect("it listens");
    }

    /// The line that answers an input.
    fn say(&mut self, input: &str) -> String {
        self.tell(input);
        let mut line = String::new();
        self.output.read_line(&mut line).expect("an answer");
        line.trim_end().to_owned()
    }

    /// The text on stderr.
    fn end(self) -> String {
        drop(self.input);
        let output = self.child.wait_with_output().expect("it ends");
        String::from_utf8(output.stderr).expect("text")
    }
}

/// A server that writes a line into a file each time it starts.
fn noted(file: &std::path::Path) -> serde_json::Value {
    let probe = ptc_tests::upstreams::probe_server(&[]);
    let line =
        format!("echo started >> {}; exec {}", file.display(), probe["command"].as_str().expect("a path"));
    ptc_tests::upstreams::stdio("sh", &["-c", &line])
}

#[test]
fn servers_are_started_when_something_needs_them_and_not_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let starts = folder.path().join("starts");
    let count = || std::fs::read_to_string(&starts).map_or(0, |text| text.lines().count());
    let file = Upstreams::default().add("a", noted(&starts)).add("b", noted(&starts)).write();
    let script = folder.path().join("s.py");
    std::fs::write(&script, "print(1 + 1)").expect("written");
    let exec = vec!["exec", script.to_str().expect("a path"), "--python-engine", engine()];
    let exec = cfg!(scripts).then_some((exec, 0));
    let rows = [
        (vec!["repl", "-e", "(+ 1 2)"], 0),
        (vec!["repl", "--catalog-snapshot-mode", "live", "-e", "(+ 1 2)"], 0),
        (vec!["repl", "-e", "(all-ns)", "-e", "(count (tool/servers))"], 0),
        (vec!["repl", "-e", "(count (dir 'a))"], 1),
        (vec!["repl", "-e", "(:ok (tool/call {:server \"b\" :tool \"stats\"}))"], 1),
        (vec!["repl", "-e", "(count (apropos \"stats\" {:load true}))"], 2),
    ];
    for (arguments, want) in exec.into_iter().chain(rows) {
        let before = count();
        let done = run_ptc(&[arguments.clone(), file.flags(&[])].concat(), "");
        assert_eq!(done.code, Some(0), "{arguments:?} {done:?}");
        assert_eq!(count() - before, want, "{arguments:?} {done:?}");
    }
}

#[test]
fn servers_that_have_to_start_end_the_start_of_a_repl() {
    let bad = ptc_tests::upstreams::stdio("sh", &["-c", "exit 4"]);
    let file = Upstreams::default().add("bad", bad).write();
    for flags in [&["--catalog-snapshot-mode", "frozen"][..], &["--startup", "strict"]] {
        for (more, input) in [(&["-e", "(+ 1 2)"][..], ""), (&[], "(+ 1 2)\n")] {
            let done = run_ptc(&[&["repl"], flags, more, &file.flags(&[])[..]].concat(), input);
            assert_eq!((done.code, done.stdout.as_str()), (Some(3), ""), "{flags:?} {done:?}");
            assert!(done.stderr.contains("upstream bad could not start"), "{done:?}");
        }
    }
    let done = run_ptc(&[&["repl", "-e", "(+ 1 2)"], &file.flags(&[])[..]].concat(), "");
    assert_eq!((done.code, done.stdout.as_str()), (Some(0), "3\n"), "{done:?}");
}

#[test]
fn a_document_that_cannot_be_used_ends_a_start_in_both_modes() {
    let entry = serde_json::json!({ "transport": "openapi", "base_url": "https://api.example.test",
        "schema_file": "/nowhere/there.json", "include_operations": ["list"] });
    let file = Upstreams::default().add("web", entry).write();
    for mode in ["live", "frozen"] {
        for command in [&["repl", "-e", "(+ 1 2)"][..], &["serve"]] {
            let flags = file.flags(&["--catalog-snapshot-mode", mode]);
            let done = run_ptc(&[command, &flags].concat(), "");
            assert_eq!(done.code, Some(3), "{command:?} {mode} {done:?}");
            assert!(done.stderr.contains("upstream web could not start"), "{done:?}");
        }
    }
}

#[test]
fn a_prelude_that_is_run_as_a_program_is_told_as_such() {
    let crm = workspace().join("tests/preludes/crm.clj").to_str().expect("a path").to_owned();
    let done = run_ptc(&["repl", "-l", &crm, "-e", "1"], "");
    assert!(done.stderr.contains("declares a namespace: -p "), "{done:?}");
}
