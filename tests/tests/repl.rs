//! `ptc repl` without a terminal.
#![allow(clippy::unwrap_used, reason = "a broken helper should be loud")]

use ptc_tests::binary::run_ptc;

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
