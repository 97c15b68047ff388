//! Builtins that parse strings as integers, floats and booleans (`parse-long`, `parse-double`, `parse-boolean`), and
//! give nil for anything else.

use crate::builtins::{Builtin, Category, direct};
use crate::context::Context;
use crate::fault::Result;
use crate::value::Value;

const STRING: Category = Category::String;

/// The rows of this module.
#[rustfmt::skip]
pub(crate) const TABLE: &[Builtin] = &[
    direct("parse-long", STRING, "1", "(parse-long text)", "The 64-bit integer that the text is, or nil.", parse_long).total(),
    direct("parse-int", STRING, "1", "(parse-int text)", "The same as `parse-long`.", parse_long).total(),
    direct("parse-double", STRING, "1", "(parse-double text)", "The float that the text is, or nil.", parse_double).total(),
    direct("parse-boolean", STRING, "1", "(parse-boolean text)", "The boolean that the text is, or nil.", parse_boolean).total(),
];

/// Longer text is no number.
const LONGEST_NUMBER: usize = 512;

fn number_text(value: &Value) -> Option<&str> {
    match value {
        Value::Str(node) => node.short(LONGEST_NUMBER),
        _ => None,
    }
}

/// The integer of a text: an optional sign and digits, within 64 bits.
pub(crate) fn long(text: &str) -> Option<i64> {
    // `i64::from_str` reads exactly this: a sign, digits, no blanks.
    if text.len() <= LONGEST_NUMBER { text.parse().ok() } else { None }
}

/// The 64-bit integer that a text is, or nil.
pub(crate) fn parse_long(_cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    Ok(number_text(&arguments[0]).and_then(long).map_or(Value::Nil, Value::Int))
}

/// The float that a text is, or nil.
pub(crate) fn parse_double(_cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let float = number_text(&arguments[0]).and_then(|text| {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        match unsigned {
            "Infinity" if text.starts_with('-') => Some(f64::NEG_INFINITY),
            "Infinity" => Some(f64::INFINITY),
            "NaN" => Some(f64::NAN),
            // The standard library reads more than the language: `.5`, `5.`, `inf`.
            _ if is_decimal(unsigned) => text.parse().ok(),
            _ => None,
        }
    });
    Ok(float.map_or(Value::Nil, Value::Float))
}

/// Digits, perhaps a point between digits, perhaps an exponent.
fn is_decimal(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let mantissa = match mantissa.split_once('.') {
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => digits(mantissa),
    };
    mantissa && exponent.is_none_or(|exponent| digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)))
}

fn parse_boolean(_cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    Ok(match number_text(&arguments[0]) {
        Some("true") => Value::Bool(true),
        Some("false") => Value::Bool(false),
        _ => Value::Nil,
    })
}
