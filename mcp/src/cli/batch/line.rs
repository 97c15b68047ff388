//! Parses one input line of `ptc batch`: a JSON object with an id, a program, and the input data of the program
//! (`context`).

use ptc_server::protocol::borrowed::Text;
use ptc_server::tools::lisp_eval::arguments::{json_type, read_context};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

#[derive(Deserialize)]
struct BatchLine<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    program: Option<&'a RawValue>,
    #[serde(borrow, default)]
    context: Option<&'a RawValue>,
}

/// A program and its context.
pub(super) type Request<'a> = (Cow<'a, str>, Option<&'a str>);

/// A line without the blanks around it, and without the mark of UTF-8 that some programs write at the beginning of a file;
/// `None`: nothing is left.
pub(super) fn content(line: &[u8]) -> Option<&[u8]> {
    let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line).trim_ascii();
    (!line.is_empty()).then_some(line)
}

/// Reads the id of a line, and its program and context or the error message.
pub(super) fn read(line: &[u8], max_context_bytes: u64) -> (&RawValue, Result<Request<'_>, String>) {
    let line = content(line).unwrap_or_default();
    if !line.starts_with(b"{") {
        return (RawValue::NULL, Err("the line is not a JSON object".into()));
    }
    let line: BatchLine<'_> = match serde_json::from_slice(line) {
        Ok(line) => line,
        Err(error) => return (RawValue::NULL, Err(format!("the line is not a JSON object: {error}"))),
    };
    let program = match line.program.map(RawValue::get) {
        None => Err("`program` is required".into()),
        Some(text) if !text.starts_with('"') => {
            Err(format!("`program` must be a string, got {}", json_type(text)))
        }
        Some(text) => serde_json::from_str::<Text<'_>>(text)
            .map(|text| text.0)
            .map_err(|error| format!("`program` is invalid: {error}")),
    };
    let context = line.context.map(|raw| read_context(raw.into(), max_context_bytes)).transpose();
    (line.id.unwrap_or(RawValue::NULL), program.and_then(|program| Ok((program, context?))))
}
