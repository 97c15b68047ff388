//! Wraps an output stream so that its text is safe to show: secrets are redacted and, if a person reads it, characters
//! that a terminal would interpret are escaped.

use super::visible::{Reader, escaped, shown};
use ptc_base::secrets::{DocumentShape, SecretRegistry};
use std::borrow::Cow;
use std::io::{self, Write};

/// Kind of the text that is written to a stream.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// Text for people: reports, errors, logs.
    Text,
    /// Text that is a result. It is escaped only for a terminal.
    Data,
    /// JSON, one or several lines.
    Json(&'static DocumentShape),
}

/// A writer that redacts secrets. Text is buffered until it is flushed, so that no secret is missed because it
/// came in pieces. Without secrets it goes straight on, unless a person reads it.
pub struct RedactingWriter<W: Write> {
    inner: W,
    form: Form,
    secrets: SecretRegistry,
    reader: Reader,
    held: Vec<u8>,
}

impl<W: Write> RedactingWriter<W> {
    /// Wraps `inner`.
    pub fn new(inner: W, form: Form, secrets: SecretRegistry) -> RedactingWriter<W> {
        RedactingWriter { inner, form, secrets, reader: Reader::Program, held: Vec::new() }
    }

    /// Sets the reader.
    pub(super) fn read_by(mut self, reader: Reader) -> RedactingWriter<W> {
        self.reader = reader;
        self
    }

    /// Redacts the buffered text and writes it.
    fn pass(&mut self) -> io::Result<()> {
        if self.held.is_empty() {
            return Ok(());
        }
        let held = std::mem::take(&mut self.held);
        let text = String::from_utf8_lossy(&held);
        let clean = clean(&text, self.form, &self.secrets);
        let seen = match (self.reader, self.form) {
            (Reader::Program, _) => None,
            (Reader::Person { .. }, Form::Json(_)) => Some(escaped(&clean)),
            (Reader::Person { colours }, Form::Text | Form::Data) => Some(shown(&clean, colours)),
        };
        match (seen, &clean) {
            (Some(Cow::Owned(seen)), _) => self.inner.write_all(seen.as_bytes()),
            (_, Cow::Owned(clean)) => self.inner.write_all(clean.as_bytes()),
            (_, Cow::Borrowed(_)) => self.inner.write_all(&held),
        }
    }
}

/// Redacts the secrets in a text.
pub(super) fn clean<'t>(text: &'t str, form: Form, secrets: &SecretRegistry) -> Cow<'t, str> {
    match form {
        Form::Text | Form::Data => secrets.scrub(text),
        Form::Json(shape) => secrets.scrub_json(text, shape),
    }
}

impl<W: Write> Write for RedactingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.held.is_empty() && self.secrets.is_empty() && self.reader == Reader::Program {
            return self.inner.write(bytes);
        }
        self.held.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pass()?;
        self.inner.flush()
    }
}

impl<W: Write> Drop for RedactingWriter<W> {
    fn drop(&mut self) {
        // A log record is written and dropped; no caller is left to handle an error.
        let _ = self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_looked_at_together() {
        let secrets = SecretRegistry::new();
        secrets.register("s3cret-token");
        let mut written = Vec::new();
        let mut filtered = RedactingWriter::new(&mut written, Form::Text, secrets);
        for piece in "a s3cret-token b\n".as_bytes().chunks(3) {
            filtered.write_all(piece).expect("memory");
        }
        drop(filtered);
        assert_eq!(String::from_utf8_lossy(&written), "a [REDACTED] b\n");
    }
}
