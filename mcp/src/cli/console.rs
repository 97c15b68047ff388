//! Text for people and programs. `println!` panics when its reader has gone away; this does not.

use super::exit::Abort;
use std::io::Write;

/// Writes to standard output.
pub fn write(text: &str) -> Result<(), Abort> {
    let mut output = std::io::stdout().lock();
    output.write_all(text.as_bytes())?;
    Ok(output.flush()?)
}

/// Writes one line to standard output.
pub fn write_line(text: &str) -> Result<(), Abort> {
    write(&format!("{text}\n"))
}

/// Writes one line to standard error. Nobody can be told when that fails.
pub fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
