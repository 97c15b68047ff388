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

/// Converts a list or an object to TOON, including one that a server returned as text. One with a number that the
/// conversion would round stays JSON.
pub(super) fn to_toon(value: PayloadValue<'_>) -> Option<Toon> {
    let json = match value {
        PayloadValue::Json(json) => json,
        PayloadValue::Text(text) if looks_like_json(text) => text.as_bytes(),
        PayloadValue::Text(_) | PayloadValue::Nothing => return None,
    };
    if has_long_number(json) {
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

/// True when a JSON text has an integer that fits into no 64 bits, or another number with digits that a float
/// does not hold.
fn has_long_number(json: &[u8]) -> bool {
    let mut rest = json;
    while let Some((first, after)) = rest.split_first() {
        rest = match first {
            b'"' => after_string(after),
            b'-' | b'0'..=b'9' => {
                let is_part = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
                let length = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
                let (number, after) = rest.split_at(length);
                let text = std::str::from_utf8(number).unwrap_or_default();
                let is_long = match text.contains(['.', 'e', 'E']) {
                    false => text.parse::<i64>().is_err() && text.parse::<u64>().is_err(),
                    true => is_rounded(text),
                };
                if is_long {
                    return true;
                }
                after
            }
            _ => after,
        };
    }
    false
}

/// True when a float does not have the digits of this number.
fn is_rounded(number: &str) -> bool {
    let digits = |text: &str| -> String {
        let significant = text.split(['e', 'E']).next().unwrap_or_default();
        let digits: String = significant.chars().filter(char::is_ascii_digit).collect();
        digits.trim_start_matches('0').trim_end_matches('0').to_owned()
    };
    let value: f64 = number.parse().unwrap_or(f64::INFINITY);
    digits(&format!("{value:e}")) != digits(number)
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
    fn a_result_with_a_number_that_would_be_rounded_stays_json() {
        let is_toon = |json: &str| to_toon(PayloadValue::Json(json.as_bytes())).is_some();
        assert!(is_toon(
            r#"{"a": [18446744073709551615, -9223372036854775808, 1.5e300, 0.30000000000000004, 1.50, -0.0, 2E-7]}"#
        ));
        assert!(is_toon(r#"{"a": "18446744073709551616 \" 99999999999999999999"}"#));
        for number in [
            "18446744073709551616",
            "-9223372036854775809",
            "[10000000000000000000000000]",
            "12345678901234567.89",
        ] {
            assert!(!is_toon(&format!(r#"{{"\\": "\"", "a": {number}}}"#)), "{number}");
        }
    }
}
