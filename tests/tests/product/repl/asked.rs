//! REPL commands at a terminal, tool lists that change or do not, and pasted text.

use super::typed::place;
use ptc_tests::PATIENCE;
use ptc_tests::terminal::Terminal;
use std::time::Instant;

/// Types an input at a prompt, and waits until the text between it and the next prompt is the whole answer. An input
/// must not already be on the screen with such an answer.
fn asks(terminal: &mut Terminal, input: &str, is_answer: impl Fn(&str) -> bool) -> String {
    terminal.until("a prompt", |shown| shown.ends_with("ptc>"));
    terminal.press(&format!("{input}\r"));
    terminal.until(input, |shown| answer_to(shown, input).is_some_and(&is_answer));
    answer_to(&terminal.shown(), input).unwrap_or_default().to_owned()
}

/// The text after an input, if a prompt follows it.
fn answer_to<'s>(shown: &'s str, input: &str) -> Option<&'s str> {
    let (_, rest) = shown.rsplit_once(&format!("ptc> {input}\n"))?;
    rest.strip_suffix("ptc>").map(str::trim_end)
}

fn leave(mut terminal: Terminal) {
    terminal.until("a prompt", |shown| shown.ends_with("ptc>"));
    terminal.press("\x04");
    assert!(terminal.ended());
}

#[test]
fn commands_look_up_names_and_tools() {
    let place = place();
    let mut terminal = place.start_with(&[]);
    // The servers accept calls by then.
    asks(&mut terminal, "[(:ok (tool/call 'probe/echo {:v 1})) (:ok (crm/list-users))]", |told| {
        told == "[true true]"
    });
    for (input, part) in [
        (":doc frequencies", "Signatures: (frequencies "),
        (":doc crm/get-user", "Description: Return a CRM user by id."),
        (":doc crm", "Kind: namespace\nNames: 5\n  (get-user id) - Return a CRM user by id."),
        (":doc probe/echo", "Description: The echo tool"),
        (":doc", ":doc needs a name, as in :doc str"),
        (":doc cmr/nope", "no upstream 'cmr' configured"),
        (":dir crm", "(get-user id) - Return a CRM user by id."),
        (":dir probe", "echo {} - The echo tool"),
        (":dir clojure.walk", "postwalk"),
        (":dir", ":dir needs a name, as in :dir str"),
        (":tools", "  get_user  One user."),
        (":unheard", "there is no command :unheard"),
    ] {
        let told = asks(&mut terminal, input, |told| told.contains(part));
        assert!(!told.contains("panicked"), "{told}");
    }
    leave(terminal);
}

#[test]
fn commands_tell_calls_and_costs() {
    let place = place();
    let mut terminal = place.start_with(&[]);
    asks(&mut terminal, ":calls", str::is_empty);
    asks(&mut terminal, "(:ok (crm/get-user \"u_123\"))", |told| told == "true");
    // Always about the last program.
    asks(&mut terminal, ":calls ", |told| told.starts_with("crm/get_user  at ") && told.ends_with(" bytes"));
    asks(
        &mut terminal,
        "(map :ok (pmap tool/call [{:server \"probe\" :tool \"refuse\" :args {}}]))",
        |told| told.ends_with("\n[false]"),
    );
    asks(&mut terminal, ":calls  ", |told| {
        told.starts_with("probe/refuse  at ") && told.ends_with("tool_error: no")
    });
    asks(&mut terminal, ":time", |told| told == "costs are shown");
    asks(&mut terminal, "(+ 20 1)", |told| told.starts_with("21\n") && told.ends_with(", 0 upstream calls"));
    asks(&mut terminal, "(count (:value (crm/list-users)))", |told| {
        told.starts_with("2\n") && told.ends_with(" bytes at most, 1 upstream call")
    });
    asks(&mut terminal, "(mapv :ok [(crm/list-users) (crm/list-users)])", |told| {
        told.ends_with(", 2 upstream calls")
    });
    asks(&mut terminal, ":time ", |told| told == "costs are not shown");
    asks(&mut terminal, "(+ 20 2)", |told| told == "22");
    leave(terminal);
}

#[test]
fn a_list_of_tools_follows_its_server_unless_it_is_frozen() {
    let place = place();
    for mode in ["live", "frozen"] {
        let mut terminal = place.start_with(&["--catalog-snapshot-mode", mode]);
        let look = |n: usize| format!("[{n} (count (filter #(str/includes? % \"grown\") (dir 'probe)))]");
        asks(&mut terminal, &look(0), |told| told.ends_with("[0 0]"));
        asks(&mut terminal, "(:value (tool/call 'probe/echo {:grow true}))", |told| told == "\"grown\"");
        let (end, mut looks) = (Instant::now() + PATIENCE, 1);
        let found = loop {
            let none = format!("[{looks} 0]");
            let one = format!("[{looks} 1]");
            let told =
                asks(&mut terminal, &look(looks), |told| told.ends_with(&none) || told.ends_with(&one));
            match mode {
                // The server is listed again in the background, whatever programs do.
                "live" if told.ends_with(&none) => assert!(Instant::now() < end, "it is never listed"),
                "frozen" if told.ends_with(&none) && looks < 5 => {}
                _ => break told.ends_with(&one),
            }
            looks += 1;
        };
        assert_eq!(found, mode == "live", "{mode}");
        let tool = "(:value (tool/call 'probe/grown {}))";
        match mode {
            "live" => asks(&mut terminal, tool, |told| told.contains("most_in_flight")),
            _ => asks(&mut terminal, tool, |told| told.contains("no tool 'grown' in upstream 'probe'")),
        };
        leave(terminal);
    }
}

#[test]
fn pasted_lines_are_one_input() {
    let place = place();
    let mut terminal = place.start_with(&[]);
    // As terminals send pasted text: between marks, with carriage returns as line ends.
    let paste = |text: &str| format!("\x1b[200~{text}\x1b[201~");
    terminal.press(&paste("(let [a 1\r      b 2]\r  (+ a b))"));
    terminal.until("the text", |shown| shown.trim_end().ends_with("(+ a b))"));
    assert!(!terminal.shown().contains("\n3\n"), "it is not run before Enter is pressed");
    terminal.press("\r");
    terminal.until("the sum", |shown| shown.ends_with("(+ a b))\n3\nptc>"));
    // Several programs; the value is that of the last one.
    terminal.press(&paste("(def x 40)\r(def y 2)\r; a comment (\r[x y (+ x y)]"));
    terminal.until("the text", |shown| shown.trim_end().ends_with("[x y (+ x y)]"));
    terminal.press("\r");
    terminal.until("the values", |shown| shown.ends_with("[40 2 42]\nptc>"));
    // An incomplete input continues by hand.
    terminal.press(&paste("(str \"a\r  b\"\r"));
    terminal.until("the beginning", |shown| shown.contains("(str \"a"));
    terminal.press(" x)\r");
    terminal.until("the text", |shown| shown.ends_with("\n<text>\na\n  b40\nptc>"));
    // The session has run all of it, once.
    asks(&mut terminal, "[x y (count *1)]", |told| told == "[40 2 7]");
    leave(terminal);
}

#[test]
fn text_that_comes_at_once_without_marks_is_not_lost() {
    let place = place();
    let mut terminal = place.start_with(&[]);
    terminal.press("(+ 1 1)\r(+ 2 2)\r(+ 3\r 3)\r(str \"a\" *1)\r");
    terminal.until("the values", |shown| shown.ends_with("\n\"a6\"\nptc>"));
    let shown = terminal.shown();
    let at = |value: &str| shown.find(value).unwrap_or_else(|| panic!("{value:?} is missing: {shown}"));
    assert!(at("\n2\n") < at("\n4\n") && at("\n4\n") < at("\n6\n"), "{shown}");
    // A long input that is not complete is taken in parts.
    let lines = "12345678\r".repeat(3_000);
    terminal.press(&format!("(count [\r{lines}\"(\r\"])\r"));
    terminal.until("the count", |shown| shown.ends_with("\n3001\nptc>"));
    leave(terminal);
}
