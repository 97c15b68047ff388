//! Tests of `ptc-bench`: it runs, and the answers that it measures are right.

use std::process::Command;

#[test]
fn benches_of_the_server_check_their_answers_and_print_ratios() {
    // Builds the binary if that was not done.
    assert!(ptc_tests::binary::path().exists());
    let table = |arguments: &[&str]| {
        let output =
            Command::new(env!("CARGO_BIN_EXE_ptc-bench")).args(arguments).output().expect("it starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {errors}");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let rates = table(&["serve", "--requests", "300", "--rounds", "1"]);
    assert!(
        rates.contains("\n| bare loop | ") && rates.contains("\n| ptc serve, lisp_eval (+ 1 2) | "),
        "{rates}"
    );
    let block = table(&["text-block", "--bytes", "30000", "--rounds", "1"]);
    assert!(block.contains("ratio "), "{block}");
    let overhead = table(&["overhead", "--rounds", "1"]);
    assert_eq!(overhead.lines().count(), 5, "{overhead}");
    assert!(
        overhead.starts_with("| calls | bare client | ptc | more a call | more CPU a call |"),
        "{overhead}"
    );
    let values = table(&["values", "--count", "20000"]);
    // The slot in the vector, and a node with keys of the program.
    assert!(
        values.contains("| an integer | 16 | ")
            && values.contains("| a map of 4, keys of the program | 112 | ")
    );
}
