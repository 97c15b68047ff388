//! Converts results and failures of server calls to Lisp values, charged to the budget of the program that made the
//! call.

use super::ResultForm;
use crate::broker::{CallPayload, Chosen, PayloadContent, WorldFault, looks_like_json};
use crate::guest::lisp::build::{count, record};
use ptc_base::named_enum;
use ptc_base::spill::Spilled;
use ptc_calls::run::outcome::CallFault;
use ptc_vm::json::{DecodeFailure, decode};
use ptc_vm::{Context, Fault, Value};
use std::ops::Range;

named_enum! {
    /// The kind of `:value`.
    enum Parsed {
        Json = "json",
        Text = "text",
        None = "none",
    }
}

/// Byte limit of the preview of a spilled result.
const PREVIEW: usize = 200;

/// The value for a result that was spilled under this name, and why the call counts as failed.
pub(crate) fn kept(
    cx: &mut Context,
    payload: &CallPayload,
    spilled: &Spilled,
    name: &str,
) -> Result<(Value, Option<WorldFault>), Box<Fault>> {
    let stat = spilled.stat();
    let preview = spilled.read(PREVIEW).map(|part| part.text).unwrap_or_default();
    let (name, preview) = (cx.host_text(name)?, cx.host_text(&preview)?);
    let (bytes, lines) = (("bytes", count(stat.bytes)), ("lines", count(stat.lines)));
    let (spill, preview) = (("spill", name), ("preview", preview));
    if let Some((reason, message)) = payload.failure() {
        let (keyword, text) = (cx.keyword(reason.name()), cx.host_text(message)?);
        let entries = [
            ("ok", Value::Bool(false)),
            ("reason", keyword),
            ("message", text),
            spill,
            bytes,
            lines,
            preview,
        ];
        let failure = WorldFault { reason, message: message.to_owned() };
        return Ok((record(cx, entries)?, Some(failure)));
    }
    let kind = cx.keyword("spilled");
    let entries = [("ok", Value::Bool(true)), ("value_kind", kind), spill, bytes, lines, preview];
    Ok((record(cx, entries)?, None))
}

/// The value for a result, `{:ok …}` or bare, and why the call counts as failed.
pub(crate) fn unwrap(
    cx: &mut Context,
    payload: &CallPayload,
    form: ResultForm,
) -> Result<(Value, Option<WorldFault>), Box<Fault>> {
    let decoded = |cx: &mut Context, place: &Option<Range<usize>>| match place {
        Some(place) => decode(cx, payload.part(place)).map(Some),
        None => Ok(None),
    };
    let mut read = || -> Result<(Value, Option<WorldFault>), DecodeFailure> {
        match &payload.content {
            PayloadContent::Success { value, blocks } => {
                let (value, kind) = match value {
                    Chosen::Structured(place) => (decode(cx, payload.part(place))?, Parsed::Json),
                    Chosen::Text(text) => text_value(cx, text)?,
                    Chosen::Verbatim(place) => {
                        let text = std::str::from_utf8(payload.part(place)).unwrap_or_default();
                        (cx.host_text(text)?, Parsed::Text)
                    }
                    Chosen::Nothing => (Value::Nil, Parsed::None),
                };
                let blocks = decoded(cx, blocks)?;
                let value = match form {
                    ResultForm::Tagged => success(cx, value, kind, blocks)?,
                    // A result that has nothing but other content is this content.
                    ResultForm::Value if matches!(kind, Parsed::None) => blocks.unwrap_or_default(),
                    ResultForm::Value => value,
                };
                Ok((value, None))
            }
            PayloadContent::ToolError { message, blocks, structured } => {
                let more = [decoded(cx, blocks)?, decoded(cx, structured)?];
                Ok(refused(cx, CallFault::ToolError, message, more)?)
            }
            PayloadContent::Malformed(why) => Ok(refused(cx, CallFault::UpstreamError, why, [None, None])?),
        }
    };
    read().or_else(|failure| match failure {
        DecodeFailure::Fault(fault) => Err(fault),
        // The server declared JSON.
        DecodeFailure::Invalid(why) => {
            let message = format!("the result cannot be decoded: {why}");
            refused(cx, CallFault::UpstreamError, &message, [None, None])
        }
    })
}

fn text_value(cx: &mut Context, text: &str) -> Result<(Value, Parsed), Box<Fault>> {
    if looks_like_json(text) {
        match decode(cx, text.as_bytes()) {
            Ok(value) => return Ok((value, Parsed::Json)),
            Err(DecodeFailure::Fault(fault)) => return Err(fault),
            // The text is not JSON.
            Err(DecodeFailure::Invalid(_)) => {}
        }
    }
    Ok((cx.host_text(text)?, Parsed::Text))
}

/// The value of a recoverable failure: a world fault.
pub(crate) fn world_fault(cx: &mut Context, reason: CallFault, message: &str) -> Result<Value, Box<Fault>> {
    let reason = cx.keyword(reason.name());
    let message = cx.host_text(message)?;
    record(cx, [("ok", Value::Bool(false)), ("reason", reason), ("message", message)])
}

fn success(
    cx: &mut Context,
    payload: Value,
    kind: Parsed,
    blocks: Option<Value>,
) -> Result<Value, Box<Fault>> {
    let kind = cx.keyword(kind.name());
    let entries = [
        ("ok", Some(Value::Bool(true))),
        ("value", Some(payload)),
        ("value_kind", Some(kind)),
        ("content", blocks),
    ];
    record(cx, entries)
}

fn refused(
    cx: &mut Context,
    reason: CallFault,
    text: &str,
    [blocks, structured]: [Option<Value>; 2],
) -> Result<(Value, Option<WorldFault>), Box<Fault>> {
    let name = cx.keyword(reason.name());
    let message = cx.host_text(text)?;
    let entries = [
        ("ok", Some(Value::Bool(false))),
        ("reason", Some(name)),
        ("message", Some(message)),
        ("content", blocks),
        ("structured_content", structured),
    ];
    Ok((record(cx, entries)?, Some(WorldFault { reason, message: text.to_owned() })))
}
