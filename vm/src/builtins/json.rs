//! JSON text: nil for what is not JSON, so that programs can test for it.

use super::{Builtin, Category, plain};
use crate::context::Context;
use crate::fault::Result;
use crate::json::{DecodeFailure, Dialect, decode, encode};
use crate::value::Value;

const JSON: Category = Category::Json;

/// The rows of this module.
pub(super) const TABLE: &[Builtin] = &[
    plain(
        "parse-string",
        JSON,
        "1",
        "(json/parse-string text)",
        "The value of a JSON text, with string keys; nil when it is not JSON.",
        parse_string,
    ),
    plain(
        "parse-lines",
        JSON,
        "1",
        "(json/parse-lines text)",
        "The values of the lines of a text; nil for a line that is not JSON; blank lines are skipped.",
        parse_lines,
    ),
    plain(
        "generate-string",
        JSON,
        "1",
        "(json/generate-string value)",
        "The JSON text of a value; nil when it holds keywords, sets or anything else that JSON does not have.",
        generate_string,
    ),
];

/// The decoded value; nil for text that is not JSON.
fn decoded(cx: &mut Context, text: &str) -> Result<Value> {
    match decode(cx, text.as_bytes()) {
        Ok(value) => Ok(value),
        Err(DecodeFailure::Invalid(_)) => Ok(Value::Nil),
        Err(DecodeFailure::Fault(fault)) => Err(fault),
    }
}

fn parse_string(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    match arguments[0].as_str() {
        Some(text) => decoded(cx, text),
        None => Ok(Value::Nil),
    }
}

fn parse_lines(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let Some(text) = arguments[0].as_str() else { return Ok(Value::Nil) };
    let mut values = Vec::new();
    for line in text.lines().map(str::trim) {
        cx.tick(1)?;
        if line.is_empty() {
            continue;
        }
        if values.len() == values.capacity() {
            cx.reserve_items(values.capacity() * 2)?;
        }
        values.push(decoded(cx, line)?);
    }
    Ok(Value::vector(values))
}

fn generate_string(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    Ok(match encode(cx, &arguments[0], Dialect::Strict, usize::MAX)? {
        Ok(text) => Value::Str(crate::string::StringNode::new(text)),
        Err(_) => Value::Nil,
    })
}
