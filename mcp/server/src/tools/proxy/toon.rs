//! Converts JSON results to TOON, a notation that costs a model fewer tokens, and back.

use ptc_base::spill::TopLevel;
use ptc_engine::broker::{PayloadValue, looks_like_json};
use serde_json::Value;
use toon_format::{EncodeOptions, decode_default, encode};

/// Most keys that are named of an object.
const MOST_KEYS: usize = 50;

/// A list or an object as TOON.
pub(super) struct Toon {
    pub(super) text: String,
    /// The kind of its top level.
    pub(super) top_level: TopLevel,
}

/// Converts a list or an object to TOON, including one that a server returned as text. One with an integer that the
/// conversion would round stays JSON.
pub(super) fn to_toon(value: PayloadValue<'_>) -> Option<Toon> {
    let json = match value {
        PayloadValue::Json(json) => json,
        PayloadValue::Text(text) if looks_like_json(text) => text.as_bytes(),
        PayloadValue::Text(_) | PayloadValue::Nothing => return None,
    };
    if has_long_integer(json) {
        return None;
    }
    let value: Value = serde_json::from_slice(json).ok()?;
    let top_level = match &value {
        Value::Array(_) => TopLevel::List,
        Value::Object(object) => {
            let keys = object.keys().take(MOST_KEYS).cloned().collect();
            TopLevel::Object { keys, more: object.len() > MOST_KEYS }
        }
        _ => return None,
    };
    let text = encode(&value, &EncodeOptions::default()).ok()?;
    Some(Toon { text, top_level })
}

/// True when a JSON text has an integer that fits into no 64 bits.
fn has_long_integer(json: &[u8]) -> bool {
    let mut rest = json;
    while let Some((first, after)) = rest.split_first() {
        rest = match first {
            b'"' => after_string(after),
            b'-' | b'0'..=b'9' => {
                let is_part = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
                let length = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
                let (number, after) = rest.split_at(length);
                let text = std::str::from_utf8(number).unwrap_or_default();
                let is_integer = !text.contains(['.', 'e', 'E']);
                if is_integer && text.parse::<i64>().is_err() && text.parse::<u64>().is_err() {
                    return true;
                }
                after
            }
            _ => after,
        };
    }
    false
}

/// What follows a JSON string, of which the text begins after the quotation mark.
fn after_string(text: &[u8]) -> &[u8] {
    let mut rest = text;
    while let Some(at) = memchr::memchr2(b'"', b'\\', rest) {
        let is_end = rest.get(at) == Some(&b'"');
        rest = rest.get(at + if is_end { 1 } else { 2 }..).unwrap_or_default();
        if is_end {
            return rest;
        }
    }
    &[]
}

/// Converts a text that is TOON, but not JSON, to JSON.
pub(super) fn to_json(text: &str) -> Option<String> {
    if text.trim_ascii_start().starts_with(['{', '[']) {
        return None;
    }
    decode_default::<Value>(text).ok().filter(Value::is_object).map(|value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_with_an_integer_that_would_be_rounded_stays_json() {
        let is_toon = |json: &str| to_toon(PayloadValue::Json(json.as_bytes())).is_some();
        assert!(is_toon(r#"{"a": [18446744073709551615, -9223372036854775808, 1.5e300]}"#));
        assert!(is_toon(r#"{"a": "18446744073709551616 \" 99999999999999999999"}"#));
        for number in ["18446744073709551616", "-9223372036854775809", "[10000000000000000000000000]"] {
            assert!(!is_toon(&format!(r#"{{"\\": "\"", "a": {number}}}"#)), "{number}");
        }
    }
}
