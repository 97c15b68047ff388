//! The REPL as a newcomer types into it.

use ptc_tests::binary::{ptc, run_ptc};
use ptc_tests::terminal::Terminal;

#[test]
fn words_that_newcomers_type_leave_and_help_unless_they_are_bound() {
    for leave in ["exit", "quit", "(exit)"] {
        let left = run_ptc(&["repl"], &format!("{leave}\n(+ 40 2)\n"));
        assert_eq!((left.code, left.stdout.as_str()), (Some(0), ""), "{leave}");
    }
    assert!(run_ptc(&["repl"], "help\n").stdout.contains(":quit"));
    assert_eq!(run_ptc(&["repl"], "(def help 7)\nhelp\n").stdout, "#'help\n7\n");
}

#[test]
fn every_form_of_a_pasted_text_shows_its_value() {
    let mut terminal = Terminal::start(&ptc(&["repl"]));
    terminal.until("the prompt", |screen| screen.contains("=>") || screen.contains("Ctrl-D"));
    terminal.press("\u{1b}[200~(+ 100 11)\n(+ 200\n 22)\n(+ 300 33)\u{1b}[201~\r");
    terminal.until("three values", |screen| ["111", "222", "333"].iter().all(|value| screen.contains(value)));
}
