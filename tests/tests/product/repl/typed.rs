//! A person at a terminal: completion, multi-line input, Ctrl-C, history.

use ptc_tests::binary::ptc;
use ptc_tests::terminal::Terminal;
use ptc_tests::upstreams::{ConfigFile, Upstreams, table_server};
use ptc_tests::workspace;
use std::time::Duration;
use tempfile::TempDir;

/// Files that must exist while the REPL runs.
pub(super) struct Workspace {
    servers: ConfigFile,
    state: TempDir,
}

pub(super) fn place() -> Workspace {
    let servers = Upstreams::probe().add("crm", table_server("tests/preludes/servers.json", "crm")).write();
    Workspace { servers, state: tempfile::tempdir().expect("a folder") }
}

impl Workspace {
    fn start(&self) -> Terminal {
        self.start_with(&[])
    }

    /// With further flags.
    pub(super) fn start_with(&self, more: &[&str]) -> Terminal {
        let prelude = workspace().join("tests/preludes/crm.clj");
        let flags = self.servers.flags(&["-p", prelude.to_str().expect("a path")]);
        let mut command = ptc(&[&["repl"], flags.as_slice(), more].concat());
        command.env("XDG_STATE_HOME", self.state.path());
        let terminal = Terminal::start(&command);
        terminal.until("a prompt", |shown| shown.ends_with("ptc>"));
        terminal
    }
}

/// Types an input at a prompt, and waits for the prompt after its answer.
fn enter(terminal: &mut Terminal, input: &str) -> String {
    // The prompt after the last answer may still be on its way: it would pass for the next one.
    terminal.until("a prompt", |shown| shown.ends_with("ptc>"));
    let before = prompts(&terminal.shown());
    terminal.press(&format!("{input}\r"));
    terminal.until(input, |shown| prompts(shown) > before && shown.ends_with("ptc>"));
    let shown = terminal.shown();
    let mut lines = shown.lines().rev().skip(1);
    lines.next().unwrap_or_default().to_owned()
}

fn prompts(shown: &str) -> usize {
    shown.lines().filter(|line| line.starts_with("ptc>")).count()
}

/// Checks what a line becomes when Tab is pressed, then clears the line.
fn completed(terminal: &mut Terminal, typed: &str, expected: &str) {
    terminal.press(&format!("{typed}\t"));
    terminal.until(&format!("{typed} becomes {expected}"), |shown| {
        // A hint may follow it.
        let line = shown.lines().next_back().unwrap_or_default();
        line.strip_prefix("ptc> ")
            .is_some_and(|line| line == expected || line.starts_with(&format!("{expected} ")))
    });
    forget(terminal);
}

/// Clears the line. Keys typed before the new prompt may be lost.
fn forget(terminal: &mut Terminal) {
    terminal.press("\x03");
    terminal.until("a new line", |shown| shown.ends_with("ptc>"));
}

#[test]
fn what_can_be_written_is_completed() {
    let place = place();
    let mut terminal = place.start();
    assert_eq!(enter(&mut terminal, "(def customer-rows [1 2])"), "#'customer-rows");
    // Tools are known once a program has requested something from their server.
    assert_eq!(enter(&mut terminal, "(:ok (tool/call 'crm/list_users))"), "true");
    for (typed, expected) in [
        // A name of the session; a local of the line; an export; a builtin; a command.
        ("(count customer-r", "(count customer-rows"),
        ("(let [wonderful 1] (inc wonderf", "(let [wonderful 1] (inc wonderful"),
        ("(+ 1 crm/page", "(+ 1 crm/page-size"),
        ("(frequen", "(frequencies"),
        (":lim", ":limits"),
        // A server; a tool; a key of its arguments.
        ("(dir 'prob", "(dir 'probe"),
        ("(tool/call 'crm/get_", "(tool/call 'crm/get_user"),
        ("(tool/call 'crm/get_user {:i", "(tool/call 'crm/get_user {:id"),
    ] {
        completed(&mut terminal, typed, expected);
    }
    // Several candidates are shown.
    terminal.press("(crm/get\t\t");
    terminal.until("both", |shown| shown.contains("crm/get-user!") && shown.contains("crm/get_user"));
    forget(&mut terminal);
    // A function's parameters are shown after its name.
    for (typed, hint) in [("(nth ", "(nth coll index default?)"), ("(crm/search ", "(crm/search query)")] {
        terminal.press(typed);
        terminal.until(hint, |shown| shown.trim_end().ends_with(hint));
        forget(&mut terminal);
    }
    terminal.press("\x04");
    assert!(terminal.ended());
}

#[test]
fn an_input_has_as_many_lines_as_its_brackets_need() {
    let place = place();
    let mut terminal = place.start();
    terminal.press("(+ 1\r");
    // Continuation lines have a prompt and begin in the same column.
    terminal.until("a further prompt", |shown| shown.ends_with("ptc> (+ 1\n...>"));
    terminal.press("   2 ; a comment (\r");
    terminal.press("   \"(\" )\x7f\x7f\x7f\x7f\x7f3)\r");
    terminal.until("the sum", |shown| shown.ends_with("\n...>    2 ; a comment (\n...>    3)\n6\nptc>"));
    // The lines are one entry of the history.
    assert_eq!(enter(&mut terminal, "(str *1 \"!\")"), "\"6!\"");
    terminal.press("\x1b[A\x1b[A");
    terminal.until("the sum again", |shown| shown.trim_end().ends_with("3)"));
    terminal.press("\r");
    terminal.until("the sum again", |shown| shown.ends_with("\n6\nptc>") && shown.contains("6!"));
    terminal.press("\x04");
    assert!(terminal.ended());
    // The history persists.
    let mut terminal = place.start();
    terminal.press("\x1b[A");
    terminal.until("of the last time", |shown| {
        shown.contains("2 ; a comment (") && shown.trim_end().ends_with("3)")
    });
    forget(&mut terminal);
    terminal.press("\x04");
    assert!(terminal.ended());
    // A multi-line text contains exactly what was typed, without prompts.
    let mut terminal = place.start();
    terminal.press("(count \"a\r");
    terminal.press("     b\")\r");
    terminal.until("the count", |shown| shown.ends_with("\n     b\")\n8\nptc>"));
    terminal.press("\x04");
    assert!(terminal.ended());
}

#[test]
fn the_history_has_what_was_typed_in_two_terminals_that_were_closed() {
    let place = place();
    let (mut one, mut other) = (place.start(), place.start());
    assert_eq!(enter(&mut one, "(+ 1 41)"), "42");
    assert_eq!(enter(&mut other, "(+ 2 41)"), "43");
    assert_eq!(enter(&mut one, "(+ 3 41)"), "44");
    drop((one, other));
    let mut terminal = place.start();
    for typed in ["(+ 3 41)", "(+ 2 41)", "(+ 1 41)"] {
        terminal.press("\x1b[A");
        terminal.until(typed, |shown| shown.trim_end().ends_with(typed));
    }
}

#[test]
fn ctrl_c_ends_a_hanging_call_and_nothing_else() {
    let place = place();
    let mut terminal = place.start();
    assert_eq!(enter(&mut terminal, "(def before 20)"), "#'before");
    terminal.press("(tool/call 'probe/hold {})\r");
    // It may be pressed before the program has begun.
    let mut presses = 0;
    while !terminal.within(Duration::from_millis(500), |shown| shown.contains("cancelled")) {
        presses += 1;
        assert!(presses < 300, "it is not cancelled: {}", terminal.shown());
        terminal.press("\x03");
    }
    terminal.until("a prompt", |shown| shown.ends_with("ptc>"));
    assert_eq!(enter(&mut terminal, "[before (:reason *e)]"), "[20 :cancelled]");
    assert_eq!(enter(&mut terminal, "(:value (tool/call 'probe/echo {:v 1}))"), "1");
    // On a line it clears the line.
    terminal.press("(never");
    terminal.until("the line", |shown| shown.ends_with("(never"));
    forget(&mut terminal);
    assert_eq!(enter(&mut terminal, "(+ before 1)"), "21");
    terminal.press("\x04");
    assert!(terminal.ended());
}

#[test]
fn a_terminal_acts_on_nothing_that_a_server_says() {
    let place = place();
    let mut terminal = place.start();
    // Clears the screen, renames the window, goes back in the line.
    let hostile = r#"(json/parse-string "\"a\\u001b[2J\\u001b]0;t\\u0007\\u009b2Kb\"")"#;
    let shown = r"a\u001b[2J\u001b]0;t\u0007\u009b2Kb";
    enter(&mut terminal, &format!("(def said (:value (tool/call 'probe/echo {{:v {hostile}}})))"));
    for (input, answer) in [
        ("said", format!("\"{shown}\"")),
        ("(println said)", format!("{shown}\nnil")),
        ("(fail said)", format!("fail: {shown}")),
        ("[{:name said}]", format!("[{{:name \"{shown}\"}}]")),
        (":table", format!("name\n{shown}")),
    ] {
        enter(&mut terminal, input);
        let screen = terminal.shown();
        assert!(screen.contains(&answer) && screen.starts_with("PTC-Lisp REPL"), "{input}\n{screen}");
    }
    terminal.press("\x04");
    assert!(terminal.ended());
}

#[test]
fn preludes_are_read_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("m.clj");
    let write = |text: &str| std::fs::write(&file, text).expect("written");
    write("(ns m \"Old.\") (defn- helper [] :old) (defn f [] [:first (helper)]) (defn gone [] 1)");
    let mut command = ptc(&["repl", "-p", file.to_str().expect("a path")]);
    command.env("XDG_STATE_HOME", folder.path());
    let mut terminal = Terminal::start(&command);
    terminal.until("a prompt", |shown| shown.ends_with("ptc>"));
    enter(&mut terminal, "(do (def held m/f) (defn wrap [] (m/f)) (def x 5))");
    assert_eq!(enter(&mut terminal, "[(m/f) (held) (wrap)]"), "[[:first :old] [:first :old] [:first :old]]");
    write("(ns m \"New.\") (defn- helper [] :new) (defn f [] [:second (helper)]) (defn more [] 2)");
    assert_eq!(enter(&mut terminal, ":prelude reload"), "m  2 exports  New.");
    // A value stays the function that it is; names refer to the definitions of the file.
    assert_eq!(
        enter(&mut terminal, "[(m/f) (held) (wrap) (m/more) x]"),
        "[[:second :new] [:first :new] [:second :new] 2 5]"
    );
    enter(&mut terminal, "(m/gone)");
    assert!(
        terminal.shown().contains("m/gone is not a public export of namespace m"),
        "{}",
        terminal.shown()
    );
    completed(&mut terminal, "(m/mo", "(m/more");
    // A file with an error changes nothing.
    write("(ns m");
    enter(&mut terminal, ":prelude reload");
    assert!(terminal.shown().contains("does not compile"), "{}", terminal.shown());
    assert_eq!(enter(&mut terminal, "(m/f)"), "[:second :new]");
    terminal.press("\x04");
    assert!(terminal.ended());
}
