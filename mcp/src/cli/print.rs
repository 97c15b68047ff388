//! Prints how a Lisp program or a Python script ended, as text for people: its output, its answer or its error.

use ptc_calls::outcome::Outcome;
use ptc_server::console::{self, Abort, Exit, Style};
use ptc_server::redact::{self, Form};
use std::borrow::Cow;
use std::io::Write;

/// Prints an outcome for people.
pub(super) fn print_text(source_name: &str, outcome: &Outcome) -> Result<(), Abort> {
    for note in &outcome.notes {
        console::complain(&format!("note: {note}"));
    }
    console::write_data(outcome.prints.iter().flat_map(|line| [line.as_str(), "\n"]))?;
    match &outcome.result {
        Ok(answer) => console::write_data([answer.text.as_str(), "\n"]),
        Err(failure) => {
            console::complain(&failure.text(source_name, Style::stderr().palette()));
            Ok(())
        }
    }
}

/// Prints what a script has printed, or why it failed. A traceback names this file.
pub(super) fn print_script(outcome: &Outcome, file: &str) -> Result<Exit, Abort> {
    let (text, exit) = match &outcome.result {
        Ok(printed) => (Cow::Borrowed(&*printed.text), Exit::Ok),
        Err(failure) => {
            let text = ptc_python::output::failed(failure, &outcome.prints);
            (in_file(&text, file).into(), Exit::ProgramFailed)
        }
    };
    if !outcome.stderr.is_empty() {
        let mut errors = redact::stderr(Form::Data);
        writeln!(errors, "{}", outcome.stderr.join("\n"))?;
    }
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let mut output = redact::stdout(Form::Data);
    write!(output, "{text}{end}").and_then(|()| output.flush())?;
    Ok(exit)
}

/// A traceback that names the script's file.
fn in_file(text: &str, file: &str) -> String {
    match file {
        "-" => text.to_owned(),
        file => text.replace("File \"<program>\", line ", &format!("File \"{file}\", line ")),
    }
}
