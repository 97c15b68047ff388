//! Converts the result of a tool call to the reply for the script that made it: value, content blocks or failure, as
//! one line of JSON.

use ptc_engine::broker::{CallPayload, PayloadValue, looks_like_json};
use serde_json::json;
use serde_json::value::RawValue;
use std::fmt::Write;

/// The result of a call.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply {
    /// A result. At least one of its parts is there; each is JSON text on one line.
    Result {
        /// The value, if the result has one.
        value: Option<String>,
        /// All content blocks, when the value does not say everything.
        content: Option<String>,
    },
    /// A description of a result that is too large to carry, as JSON text on one line.
    Spilled(String),
}

/// A call that failed, as the script's `ToolError` shows it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CallFailure {
    /// The message, without secrets.
    pub message: String,
    /// All content blocks of the tool's error, when there are others than texts.
    pub content: Option<String>,
    /// The structured content of the tool's error, when the message does not say the same.
    pub structured: Option<String>,
}

impl From<String> for CallFailure {
    fn from(message: String) -> CallFailure {
        CallFailure { message, ..CallFailure::default() }
    }
}

impl Reply {
    /// A value, which says everything.
    pub fn value(json: String) -> Reply {
        Reply::Result { value: Some(json), content: None }
    }

    /// The parts of a result that a script receives.
    ///
    /// # Errors
    /// What the tool calls an error; a result that is no JSON although it should be.
    pub(crate) fn from_payload(payload: &CallPayload) -> Result<Reply, CallFailure> {
        let content = payload.blocks().map(one_line).transpose()?;
        if let Some((_, message)) = payload.failure() {
            let structured = match payload.value() {
                PayloadValue::Json(json) => Some(one_line(json)?),
                PayloadValue::Text(_) | PayloadValue::Nothing => None,
            };
            return Err(CallFailure { message: message.to_owned(), content, structured });
        }
        let value = match payload.value() {
            PayloadValue::Json(json) => Some(one_line(json)?),
            PayloadValue::Text(text) => {
                let json = looks_like_json(text).then(|| one_line(text.as_bytes()).ok()).flatten();
                Some(json.unwrap_or_else(|| json!(text).to_string()))
            }
            // A result that has nothing but other content is this content.
            PayloadValue::Nothing => content.is_none().then(|| "null".to_owned()),
        };
        Ok(Reply::Result { value, content })
    }
}

/// JSON text on one line, because the channel to the script is made of lines.
fn one_line(json: &[u8]) -> Result<String, String> {
    let text = std::str::from_utf8(json).map_err(|_| "its result is not UTF-8".to_owned())?;
    let value: &RawValue = serde_json::from_str(text).map_err(|_| "its result is not JSON".to_owned())?;
    Ok(value.get().replace(['\n', '\r'], " "))
}

/// The line that replies to a call.
pub(crate) fn line(number: u64, result: Result<Reply, CallFailure>) -> String {
    let (key, value, more) = match result {
        Ok(Reply::Result { value, content }) => {
            ("value", value, [("content", content), ("structured", None)])
        }
        Ok(Reply::Spilled(json)) => ("kept", Some(json), [("content", None), ("structured", None)]),
        Err(CallFailure { message, content, structured }) => {
            ("error", Some(json!(message).to_string()), [("content", content), ("structured", structured)])
        }
    };
    let mut line = format!("{{\"reply\":{number}");
    for (key, json) in std::iter::once((key, value)).chain(more) {
        if let Some(json) = json {
            // Writing to a String cannot fail.
            let _ = write!(line, ",\"{key}\":{json}");
        }
    }
    line.push_str("}\n");
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_the_parts_that_there_are() {
        let text = |json: &str| Some(json.to_owned());
        assert_eq!(line(1, Ok(Reply::value("[1]".to_owned()))), "{\"reply\":1,\"value\":[1]}\n");
        let content = Reply::Result { value: None, content: text("[{}]") };
        assert_eq!(line(2, Ok(content)), "{\"reply\":2,\"content\":[{}]}\n");
        let failure = CallFailure { message: "\"no\"".to_owned(), content: None, structured: text("{}") };
        assert_eq!(line(3, Err(failure)), "{\"reply\":3,\"error\":\"\\\"no\\\"\",\"structured\":{}}\n");
        assert_eq!(one_line(b"[1,\n2]").unwrap(), "[1, 2]");
    }
}
