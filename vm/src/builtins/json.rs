//! Builtins that parse and generate JSON text: `json/parse-string`, `json/parse-lines`, `json/generate-string`.
//!
//! Invalid text gives nil, so that programs can test for it, and a remark, since many do not.

use crate::builtins::{Builtin, Category, direct};
use crate::collection::seq::expected;
use crate::context::Context;
use crate::fault::{BoundedText, Fault, Result};
use crate::json::{DecodeFailure, Keys, decode_text, encode_text};
use crate::memory::List;
use crate::value::Value;
use std::mem::take;

const JSON: Category = Category::Json;

/// The rows of this module.
#[rustfmt::skip]
pub(crate) const TABLE: &[Builtin] = &[
    direct("parse-string", JSON, "1", "(json/parse-string text)", "The value of a JSON text, with string keys; nil, and a note beside the result, when it is not JSON. A value that is data already is returned as it is.", parse_string),
    direct("parse-lines", JSON, "1", "(json/parse-lines text)", "The values of the lines of a text; nil, and a note beside the result, for a line that is not JSON; blank lines are skipped.", parse_lines),
    direct("generate-string", JSON, "1", "(json/generate-string value)", "The JSON text of a value; keywords are their names, sets lists, dates ISO 8601 texts. What JSON does not have is an error.", generate_string),
];

/// The decoded value; nil, and a remark, for text that is not JSON.
fn decoded(cx: &mut Context, text: &str) -> Result<Value> {
    match decode_text(cx, text) {
        Ok(value) => Ok(value),
        Err(DecodeFailure::Invalid(error)) => {
            cx.remarks.not_json(BoundedText::new(&error));
            Ok(Value::Nil)
        }
        Err(DecodeFailure::Fault(fault)) => Err(fault),
    }
}

/// Tool results arrive decoded, so a value that is already data is returned unchanged.
fn parse_string(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    match &arguments[0] {
        Value::Str(node) => {
            let text = cx.read(node)?;
            decoded(cx, text)
        }
        _ => Ok(take(&mut arguments[0])),
    }
}

fn parse_lines(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let node = match &arguments[0] {
        Value::Str(node) => node,
        Value::Nil | Value::Vector(_) => return Ok(take(&mut arguments[0])),
        other => return Err(expected("json/parse-lines", 1, "string", other)),
    };
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
    match encode_text(cx, &arguments[0], Keys::NamesAndIntegers, usize::MAX.into())? {
        Ok(text) => Ok(text.into_value()),
        Err(failure) => Err(Fault::type_error(format_args!("json/generate-string: {failure}"))),
    }
}
