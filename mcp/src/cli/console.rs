//! Text for people and programs. `println!` panics when its reader has gone away; this does not.

use super::exit::Abort;
use serde::Serialize;
use std::io::{BufWriter, Write};

/// Writes to standard output.
pub fn write(text: &str) -> Result<(), Abort> {
    let mut output = std::io::stdout().lock();
    output.write_all(text.as_bytes())?;
    Ok(output.flush()?)
}

/// Writes texts to standard output, one after the other.
pub fn write_parts<'t>(parts: impl IntoIterator<Item = &'t str>) -> Result<(), Abort> {
    let mut output = BufWriter::new(std::io::stdout().lock());
    for part in parts {
        output.write_all(part.as_bytes())?;
    }
    Ok(output.flush()?)
}

/// Writes a value as one line of JSON to standard output.
pub fn write_json(value: &impl Serialize) -> Result<(), Abort> {
    let mut output = BufWriter::new(std::io::stdout().lock());
    serde_json::to_writer(&mut output, value).map_err(std::io::Error::from)?;
    output.write_all(b"\n")?;
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
