//! Upstream answers as values of the program, decoded under the program's own budget.

use super::payload::{Content, Payload};
use crate::outcome::CallFault;
use ptc_vm::json::{DecodeFailure, decode};
use ptc_vm::map::Table;
use ptc_vm::{Context, Fault, Value};

/// An answer as the program sees it, and what the ledger says about it.
pub(crate) struct Unwrapped {
    /// `{:ok …}`.
    pub(crate) value: Value,
    /// Why the call counts as failed.
    pub(crate) error: Option<(CallFault, String)>,
}

/// What kind of payload `:value` is.
#[derive(Clone, Copy)]
enum Kind {
    Json,
    Text,
    None,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Kind::Json => "json",
            Kind::Text => "text",
            Kind::None => "none",
        }
    }
}

/// Builds the program's value of a result.
pub(crate) fn unwrap(cx: &mut Context, payload: &Payload) -> Result<Unwrapped, Box<Fault>> {
    match &payload.content {
        Content::Structured(answer, place) => {
            match decode(cx, answer.bytes().get(place.clone()).unwrap_or_default()) {
                Ok(value) => success(cx, value, Kind::Json),
                Err(DecodeFailure::Fault(fault)) => Err(fault),
                Err(DecodeFailure::Invalid(why)) => {
                    refused(cx, CallFault::UpstreamError, &format!("structuredContent: {why}"))
                }
            }
        }
        Content::Text(text) => unwrap_text(cx, text),
        Content::Nothing => success(cx, Value::Nil, Kind::None),
        Content::ToolError(message) => refused(cx, CallFault::ToolError, message),
        Content::Malformed(why) => refused(cx, CallFault::UpstreamError, why),
    }
}

fn unwrap_text(cx: &mut Context, text: &str) -> Result<Unwrapped, Box<Fault>> {
    if looks_like_json(text) {
        match decode(cx, text.as_bytes()) {
            Ok(value) => return success(cx, value, Kind::Json),
            Err(DecodeFailure::Fault(fault)) => return Err(fault),
            // Text that is no JSON after all.
            Err(DecodeFailure::Invalid(_)) => {}
        }
    }
    cx.tick(text.len() as u64 / 16)?;
    cx.reserve(text.len())?;
    let value = cx.string(text);
    success(cx, value, Kind::Text)
}

/// The value of a recoverable failure.
pub(crate) fn world_fault(cx: &mut Context, reason: CallFault, message: &str) -> Result<Value, Box<Fault>> {
    let reason = cx.keyword(reason.name());
    let message = cx.string(message);
    tagged(cx, [("ok", Value::Bool(false)), ("reason", reason), ("message", message)])
}

fn success(cx: &mut Context, payload: Value, kind: Kind) -> Result<Unwrapped, Box<Fault>> {
    let kind = cx.keyword(kind.name());
    let value = tagged(cx, [("ok", Value::Bool(true)), ("value", payload), ("value_kind", kind)])?;
    Ok(Unwrapped { value, error: None })
}

fn refused(cx: &mut Context, reason: CallFault, message: &str) -> Result<Unwrapped, Box<Fault>> {
    let value = world_fault(cx, reason, message)?;
    Ok(Unwrapped { value, error: Some((reason, message.to_owned())) })
}

fn tagged<const N: usize>(cx: &mut Context, entries: [(&str, Value); N]) -> Result<Value, Box<Fault>> {
    let mut map = Table::with_capacity(N);
    for (name, value) in entries {
        let key = cx.keyword(name);
        map = Table::insert(map, cx, key, value)?;
    }
    Ok(Value::Map(map))
}

/// A cheap look that saves most texts the attempt to decode them.
fn looks_like_json(text: &str) -> bool {
    let text = text.trim();
    match (text.bytes().next(), text.bytes().last()) {
        (Some(b'{'), Some(b'}')) | (Some(b'['), Some(b']')) => true,
        (Some(b'"'), Some(b'"')) => text.len() > 1,
        (Some(b'0'..=b'9' | b'-'), Some(b'0'..=b'9')) => true,
        _ => matches!(text, "true" | "false" | "null"),
    }
}
