//! Defines how a run's journal records the answers of tool calls, byte for byte, so that a replay gives the program
//! the same ones.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The answer of a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The tool did its work.
    Ok {
        /// What it gave, if that is anything.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        value: Option<Content>,
        /// All content blocks, when the value does not say everything.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        blocks: Option<Content>,
        /// Payload bytes as received.
        bytes: u64,
    },
    /// The tool reports a failure.
    ToolError {
        /// Its texts.
        message: String,
        /// All content blocks, when there are others than texts.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        blocks: Option<Content>,
        /// Structured content, when the message does not say the same.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        structured: Option<Content>,
        /// Payload bytes as received.
        bytes: u64,
    },
    /// The answer is not a result.
    Malformed {
        /// Why.
        why: String,
    },
    /// There is no answer.
    Fault {
        /// The reason that the program sees.
        reason: String,
        /// The message.
        message: String,
    },
    /// The call was wrong; this shows after its server has started.
    Wrong {
        /// What is wrong.
        message: String,
        /// What to do.
        hints: Vec<String>,
    },
    /// The answer did not fit into the memory of the program.
    OverMemory {
        /// Its bytes.
        bytes: u64,
    },
    /// The answer was stored in a file, which the journal does not have.
    Stored {
        /// Its bytes.
        bytes: u64,
    },
}

/// Data of an answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// JSON text. Line breaks between its tokens are spaces, so that it is one line.
    Json(Box<RawValue>),
    /// A text, which may be JSON.
    Text(String),
    /// A text that is not decoded.
    Verbatim(String),
    /// Bytes that are neither, in base64.
    Base64(String),
}

/// JSON text of one line; `None` if it is not JSON.
pub fn raw_json(text: &[u8]) -> Option<Box<RawValue>> {
    let text = std::str::from_utf8(text).ok()?;
    // JSON has no raw line break inside of a string.
    let line = match text.contains(['\n', '\r']) {
        true => text.replace(['\n', '\r'], " "),
        false => text.to_owned(),
    };
    RawValue::from_string(line).ok()
}

impl Content {
    /// Bytes that are expected to be JSON.
    pub fn from_json(bytes: &[u8]) -> Content {
        match raw_json(bytes) {
            Some(json) => Content::Json(json),
            None => Content::Base64(BASE64_STANDARD.encode(bytes)),
        }
    }

    /// The bytes again.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Content::Json(json) => json.get().as_bytes().to_vec(),
            Content::Text(text) | Content::Verbatim(text) => text.as_bytes().to_vec(),
            Content::Base64(text) => BASE64_STANDARD.decode(text).unwrap_or_default(),
        }
    }
}
