//! JSON text: nil for what is not JSON, so that programs can test for it.

use crate::builtins::{Builtin, Category, plain};
use crate::context::Context;
use crate::fault::Result;
use crate::json::{DecodeFailure, Dialect, decode_text, encode_text};
use crate::memory::List;
use crate::value::Value;

const JSON: Category = Category::Json;

/// The rows of this module.
pub(crate) const TABLE: &[Builtin] = &[
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
    match decode_text(cx, text) {
        Ok(value) => Ok(value),
        Err(DecodeFailure::Invalid(_)) => Ok(Value::Nil),
        Err(DecodeFailure::Fault(fault)) => Err(fault),
    }
}

fn parse_string(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    match &arguments[0] {
        Value::Str(node) => {
            let text = cx.read(node)?;
            decoded(cx, text)
        }
        _ => Ok(Value::Nil),
    }
}

fn parse_lines(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let Value::Str(node) = &arguments[0] else { return Ok(Value::Nil) };
    let text = cx.read(node)?;
    let mut values = List::default();
    for line in text.lines().map(str::trim) {
        cx.tick(1)?;
        if line.is_empty() {
            continue;
        }
        let value = decoded(cx, line)?;
        values.push(cx, value)?;
    }
    Ok(values.into_value())
}

fn generate_string(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    Ok(match encode_text(cx, &arguments[0], Dialect::Strict, usize::MAX)? {
        Ok(text) => text.into_value(),
        Err(_) => Value::Nil,
    })
}
