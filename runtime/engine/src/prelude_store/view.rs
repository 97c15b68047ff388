//! Renders stored preludes (versioned Lisp libraries) as JSON for models: limited in size, with only the documented
//! metadata.

use super::{PreludeCandidate, PreludeVersion, StoreError, StoredPrelude};
use ptc_base::secrets::{Cut, shortened};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// Size limit of a source text, in bytes.
const SHOWN_SOURCE: usize = 64 << 10;

/// Size limit of a text in metadata, in bytes.
const SHOWN_TEXT: usize = 1 << 10;

/// Keys of metadata that a view has.
const SHOWN_KEYS: [&str; 5] =
    ["reason", "parent_version", "parent_checksum", "source_session_id", "created_by"];

impl PreludeVersion {
    /// The version without its text.
    pub fn public_view(&self) -> Value {
        json!({
            "id": self.id, "version": self.version, "checksum": self.checksum,
            "source_bytes": self.source_bytes, "exports": self.exports,
            "metadata": public_metadata(&self.metadata), "created_at": timestamp(self.created_ms),
        })
    }
}

impl PreludeCandidate {
    /// The version with its text, cut at `SHOWN_SOURCE`.
    pub fn public_view(&self) -> Value {
        let mut view = self.version.public_view();
        let source = within(&self.source, SHOWN_SOURCE);
        view["namespaces"] = json!([self.version.id]);
        view["source_truncated"] = matches!(source, Cow::Owned(_)).into();
        view["source"] = source.into();
        view
    }
}

impl StoredPrelude {
    /// The id, its current and its latest version.
    pub fn public_view(&self) -> Value {
        let mut view = self.current.public_view();
        view["current_version"] = self.current_version.into();
        view["latest_version"] = self.latest_version.into();
        view["selected"] = self.selected.as_ref().map_or(Value::Null, |selection| {
            json!({ "version": selection.version, "metadata": public_metadata(&selection.metadata),
                "selected_at": timestamp(selection.selected_ms) })
        });
        view
    }
}

impl StoreError {
    /// The error as the result of a tool.
    pub fn public_view(&self) -> Value {
        let mut view = json!({ "status": "error", "reason": self.reason, "message": self.message });
        if let Some(failure) = &self.compile {
            view["compile_reason"] = failure.reason.raw().into();
            view["detail"] = failure.compact().into();
        }
        view
    }
}

/// The documented keys, without lists and maps.
pub(super) fn public_metadata(metadata: &Map<String, Value>) -> Map<String, Value> {
    let shown = metadata.iter().filter(|(key, _)| SHOWN_KEYS.contains(&key.as_str()));
    let scalar = |(key, value): (&String, &Value)| match value {
        Value::Array(_) | Value::Object(_) => None,
        Value::String(text) => Some((key.clone(), within(text, SHOWN_TEXT).into())),
        value => Some((key.clone(), value.clone())),
    };
    shown.filter_map(scalar).collect()
}

/// The text in at most `most` bytes, including the ellipsis of a cut one.
fn within(text: &str, most: usize) -> Cow<'_, str> {
    match text.len() <= most {
        true => Cow::Borrowed(text),
        false => shortened(text, Cut::Bytes(most - '…'.len_utf8())),
    }
}

fn timestamp(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).unwrap_or_default().to_string()
}
