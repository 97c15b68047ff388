//! Writes text, data and JSON to the standard streams, with secrets removed. Unlike `println!` it does not panic when
//! the reader has gone away.
//!
//! # Layout
//!
//! - `exit`: exit codes. `style`: colours. [`progress`]: the progress line while servers start. [`logging`]: logs.

mod exit;
pub mod logging;
pub mod progress;
mod style;

use crate::redact::{self, Form, shapes};
pub use exit::{Abort, EXIT_CODES, Exit};
use serde::Serialize;
use std::fmt::Display;
use std::io::{BufWriter, Write};
pub use style::Style;

/// Writes text for people to standard output.
pub fn write(text: &str) -> Result<(), Abort> {
    let mut output = BufWriter::new(redact::stdout(Form::Text));
    output.write_all(text.as_bytes())?;
    Ok(output.flush()?)
}

/// Writes a result in parts to standard output. A program at the other end gets every byte unchanged.
pub fn write_data<'t>(parts: impl IntoIterator<Item = &'t str>) -> Result<(), Abort> {
    let mut output = BufWriter::new(redact::stdout(Form::Data));
    for part in parts {
        output.write_all(part.as_bytes())?;
    }
    Ok(output.flush()?)
}

/// Writes a value as one line of JSON to standard output.
pub fn write_json(value: &impl Serialize) -> Result<(), Abort> {
    let mut output = BufWriter::new(redact::stdout(Form::Json(&shapes::REPORT)));
    serde_json::to_writer(&mut output, value).map_err(std::io::Error::from)?;
    output.write_all(b"\n")?;
    Ok(output.flush()?)
}

/// Writes indented JSON to standard output: what `{:#}` makes of the document.
pub fn write_document(document: &impl Display) -> Result<(), Abort> {
    let mut output = BufWriter::new(redact::stdout(Form::Json(&shapes::REPORT)));
    writeln!(output, "{document:#}")?;
    Ok(output.flush()?)
}

/// Writes one line of text to standard output.
pub fn write_line(text: &str) -> Result<(), Abort> {
    write(&format!("{text}\n"))
}

/// Width of the terminal in columns, if a person reads standard output.
pub fn terminal_width() -> Option<usize> {
    terminal_size::terminal_size()
        .map(|(width, _)| usize::from(width.0))
        .filter(|_| redact::stdout_is_terminal())
}

/// Writes one line to standard error. An error is ignored: no other place is left to report it.
pub fn complain(text: &str) {
    let _ = redact::stderr(Form::Text).write_all(format!("{text}\n").as_bytes());
}
