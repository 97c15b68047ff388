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

/// Converts a list or an object to TOON, including one that a server returned as text.
pub(super) fn to_toon(value: PayloadValue<'_>) -> Option<Toon> {
    let value: Value = match value {
        PayloadValue::Json(json) => serde_json::from_slice(json).ok()?,
        PayloadValue::Text(text) if looks_like_json(text) => serde_json::from_str(text).ok()?,
        PayloadValue::Text(_) | PayloadValue::Nothing => return None,
    };
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

/// Converts a text that is TOON, but not JSON, to JSON.
pub(super) fn to_json(text: &str) -> Option<String> {
    if text.trim_ascii_start().starts_with(['{', '[']) {
        return None;
    }
    decode_default::<Value>(text).ok().filter(Value::is_object).map(|value| value.to_string())
}
