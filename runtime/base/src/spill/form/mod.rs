//! Converts a spilled result (too large to return, kept in a file) to its readable form: takes it out of the server's
//! message, breaks JSON into lines, and removes secrets.
//!
//! JSON on one line is laid out (`layout`): it stays the same JSON, and small parts stay on one line, so that
//! rows are lines. Text stays as it is.
//!
//! # Layout
//! - `cursor`: reads a file as JSON in pieces; `locate`: finds the result in a server's message; `task`: the result of a
//!   task in the message with its state; `layout`: JSON as lines; `path`: parts of JSON; `clean`: redacts text that arrives in pieces; `top_level`: the kind of a
//!   result

mod clean;
mod cursor;
mod layout;
mod locate;
mod path;
mod task;
mod top_level;

pub(crate) use locate::Located;
pub use path::JsonPath;
pub use task::task_result;
pub use top_level::TopLevel;

use super::store::{RawSpill, SpillError, SpillStore, SpillWriter, Spilled};
use crate::tasks::StopFlag;
use clean::Cleaner;
use cursor::Cursor;
use layout::Layout;
use locate::Extent;
use std::sync::Arc;

/// How many bytes are read to decide whether a text is JSON on one line.
const LOOK: usize = 4 << 10;

/// Why no file was written.
enum FormFault {
    /// The text was taken for JSON and is none.
    NotJson,
    Spill(SpillError),
}

impl From<SpillError> for FormFault {
    fn from(error: SpillError) -> FormFault {
        FormFault::Spill(error)
    }
}

impl Spilled {
    /// Its outermost value, if it is JSON.
    pub fn top_level(&self) -> TopLevel {
        TopLevel::read(&mut Cursor::new(&self.file))
    }
}

/// Converts what a server sent. `is_mcp`: it is a message that contains a tool's result; otherwise it is the
/// value. `wrapped_in`: the member that its tool wraps results in.
///
/// # Errors
/// [`SpillError`], or a text: what was sent is no result.
pub fn form_raw(
    raw: &RawSpill,
    is_mcp: bool,
    wrapped_in: Option<&str>,
    stop: &StopFlag,
) -> Result<(Arc<Spilled>, Located), String> {
    let cursor = || Cursor::stopped_by(&raw.file, stop);
    let located = match is_mcp {
        true => Located::of_message(&mut cursor(), wrapped_in)?,
        false => Located::whole(raw.bytes()),
    };
    let writer = |lays_out| {
        let mut writer = FormWriter::new(raw.store(), lays_out)?;
        let mut cursor = cursor();
        match &located.value {
            Extent::Json(place) => cursor.copy(place.clone(), |part| writer.push(part))?,
            Extent::Text(place) => cursor.decode(place.clone(), |part| writer.push(part))?,
            Extent::Nothing => {}
        }
        writer.finish()
    };
    let spilled = formed(writer).map_err(|error| error.to_string())?;
    Ok((spilled, located))
}

/// Spills a result that is in memory.
///
/// # Errors
/// It cannot be stored.
pub(crate) fn form_text(store: &SpillStore, text: &[u8]) -> Result<Arc<Spilled>, SpillError> {
    formed(|lays_out| {
        let mut writer = FormWriter::new(store, lays_out)?;
        writer.push(text)?;
        writer.finish()
    })
}

/// Lays out a text that looks like JSON; if it turns out not to be JSON, writes it as it is.
fn formed(make: impl Fn(bool) -> Result<Arc<Spilled>, FormFault>) -> Result<Arc<Spilled>, SpillError> {
    let made = match make(true) {
        Err(FormFault::NotJson) => make(false),
        made => made,
    };
    made.map_err(|stop| match stop {
        FormFault::Spill(error) => error,
        FormFault::NotJson => SpillError::Io("a text changed while it was read".to_owned()),
    })
}

/// Writes one file.
struct FormWriter {
    form: TextForm,
    sink: CleanSink,
}

enum TextForm {
    /// Too little has arrived to decide.
    Open(Vec<u8>),
    Plain,
    Laid(Layout),
}

/// Receives the laid-out text and redacts it.
struct CleanSink {
    cleaner: Cleaner,
    writer: SpillWriter,
}

impl CleanSink {
    fn push(&mut self, part: &[u8]) -> Result<(), SpillError> {
        let CleanSink { cleaner, writer } = self;
        cleaner.push(part, |clean| writer.push(clean))
    }
}

impl FormWriter {
    fn new(store: &SpillStore, lays_out: bool) -> Result<FormWriter, SpillError> {
        let form = if lays_out { TextForm::Open(Vec::new()) } else { TextForm::Plain };
        let sink = CleanSink { cleaner: Cleaner::new(store.secrets().clone()), writer: store.writer()? };
        Ok(FormWriter { form, sink })
    }

    fn push(&mut self, part: &[u8]) -> Result<(), FormFault> {
        match &mut self.form {
            TextForm::Plain => Ok(self.sink.push(part)?),
            TextForm::Laid(layout) => layout.push(part, &mut |text| self.sink.push(text)),
            TextForm::Open(begun) => {
                begun.extend_from_slice(part);
                if begun.len() < LOOK { Ok(()) } else { self.decide() }
            }
        }
    }

    fn decide(&mut self) -> Result<(), FormFault> {
        let TextForm::Open(begun) = &mut self.form else { return Ok(()) };
        let begun = std::mem::take(begun);
        let text = begun.trim_ascii_start();
        let beginning = text.get(..LOOK).unwrap_or(text);
        let is_one_line = memchr::memchr(b'\n', beginning.trim_ascii_end()).is_none();
        self.form = match text.first() {
            Some(b'{' | b'[') if is_one_line => TextForm::Laid(Layout::default()),
            _ => TextForm::Plain,
        };
        self.push(&begun)
    }

    fn finish(mut self) -> Result<Arc<Spilled>, FormFault> {
        self.decide()?;
        if let TextForm::Laid(layout) = &mut self.form {
            layout.finish(&mut |text| self.sink.push(text))?;
        }
        let CleanSink { cleaner, mut writer } = self.sink;
        cleaner.finish(|clean| writer.push(clean))?;
        Ok(writer.finish()?)
    }
}
