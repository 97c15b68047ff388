//! Results as TOON, which models read for fewer tokens, and back.

use ptc_runtime::broker::{PayloadValue, looks_like_json};
use ptc_runtime::spill::TopLevel;
use serde_json::Value;
use toon_format::{EncodeOptions, decode_default, encode};

/// Keys that are told of an object.
const MOST_KEYS: usize = 50;

/// A list or an object as TOON.
pub(super) struct Toon {
    pub(super) text: String,
    /// What it is at its top.
    pub(super) top_level: TopLevel,
}

/// A list or an object as TOON; also one that its server gave as text.
pub(super) fn of(value: PayloadValue<'_>) -> Option<Toon> {
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

/// The JSON of a text that is TOON and no JSON.
pub(super) fn to_json(text: &str) -> Option<String> {
    if text.trim_ascii_start().starts_with(['{', '[']) {
        return None;
    }
    decode_default::<Value>(text).ok().filter(Value::is_object).map(|value| value.to_string())
}
