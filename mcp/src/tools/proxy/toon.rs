//! Results as TOON, which models read for fewer tokens, and back.

use ptc_runtime::broker::{PayloadValue, looks_like_json};
use serde_json::Value;
use toon_format::{EncodeOptions, decode_default, encode};

/// A list or an object as TOON; also one that its server gave as text.
pub(super) fn of(value: PayloadValue<'_>) -> Option<String> {
    let value: Value = match value {
        PayloadValue::Json(json) => serde_json::from_slice(json).ok()?,
        PayloadValue::Text(text) if looks_like_json(text) => serde_json::from_str(text).ok()?,
        PayloadValue::Text(_) | PayloadValue::Nothing => return None,
    };
    match value {
        Value::Array(_) | Value::Object(_) => encode(&value, &EncodeOptions::default()).ok(),
        _ => None,
    }
}

/// The JSON of a text that is TOON and no JSON.
pub(super) fn to_json(text: &str) -> Option<String> {
    if text.trim_ascii_start().starts_with(['{', '[']) {
        return None;
    }
    decode_default::<Value>(text).ok().filter(Value::is_object).map(|value| value.to_string())
}
