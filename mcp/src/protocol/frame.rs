//! One line of JSON-RPC, classified without copying its parameters.

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A request id as JSON text: a number or a string, never null.
///
/// Two spellings of the same string are the same id, because strings with escapes are normalised.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Id(Box<str>);

impl Id {
    /// Reads an id; `None` when the value is neither a number nor a string.
    pub fn from_raw(raw: &RawValue) -> Option<Id> {
        let text = raw.get();
        match text.as_bytes().first()? {
            b'"' if text.contains('\\') => {
                let value: String = serde_json::from_str(text).ok()?;
                Some(Id(serde_json::to_string(&value).ok()?.into()))
            }
            b'"' | b'-' | b'0'..=b'9' => Some(Id(text.into())),
            _ => None,
        }
    }

    /// The JSON text to echo.
    pub fn as_json(&self) -> &str {
        &self.0
    }
}

/// A well-formed message of the peer.
#[derive(Debug)]
pub enum Message<'a> {
    /// Wants an answer.
    Request {
        /// To be echoed.
        id: Id,
        /// Method name.
        method: Cow<'a, str>,
        /// Raw parameters.
        params: Option<&'a RawValue>,
    },
    /// Wants none.
    Notification {
        /// Method name.
        method: Cow<'a, str>,
        /// Raw parameters.
        params: Option<&'a RawValue>,
    },
    /// An answer. We never ask, so it is ignored.
    Response,
}

/// Why a line is not a message. Both are answered with a null id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// Not JSON.
    Parse,
    /// JSON, but not a JSON-RPC 2.0 message.
    Invalid,
}

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<Cow<'a, str>>,
    // An explicit null is not an absent id: the first is invalid, the second a notification.
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(default)]
    result: Option<IgnoredAny>,
    #[serde(default)]
    error: Option<IgnoredAny>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Classifies one line (without its newline).
pub fn parse(line: &[u8]) -> Result<Message<'_>, FrameError> {
    // A derived struct also accepts an array, which would be a JSON-RPC batch here.
    let is_object = line.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    if !is_object {
        return Err(not_a_message(line));
    }
    let frame: Frame<'_> = serde_json::from_slice(line).map_err(|_| not_a_message(line))?;
    if frame.jsonrpc.as_deref() != Some("2.0") {
        return Err(FrameError::Invalid);
    }
    match (frame.method, frame.id) {
        (Some(method), Some(raw)) => match Id::from_raw(raw) {
            Some(id) => Ok(Message::Request { id, method, params: frame.params }),
            None => Err(FrameError::Invalid),
        },
        (Some(method), None) => Ok(Message::Notification { method, params: frame.params }),
        (None, _) if frame.result.is_some() || frame.error.is_some() => Ok(Message::Response),
        (None, _) => Err(FrameError::Invalid),
    }
}

fn not_a_message(line: &[u8]) -> FrameError {
    match serde_json::from_slice::<IgnoredAny>(line) {
        Ok(_) if std::str::from_utf8(line).is_ok() => FrameError::Invalid,
        _ => FrameError::Parse,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(line: &str) -> FrameError {
        parse(line.as_bytes()).expect_err("not a message")
    }

    #[test]
    fn malformed_lines_have_their_proper_error() {
        assert_eq!(error(""), FrameError::Parse);
        assert_eq!(error("{"), FrameError::Parse);
        assert_eq!(error("nope"), FrameError::Parse);
        assert_eq!(error(r#"{"jsonrpc":"2.0","id":1,"method":"ping"} x"#), FrameError::Parse);
        assert_eq!(parse(b"\"\xff\"").expect_err("bad text"), FrameError::Parse);
        assert_eq!(error("[]"), FrameError::Invalid);
        assert_eq!(error(r#"["2.0",1,"ping"]"#), FrameError::Invalid);
        assert_eq!(error("42"), FrameError::Invalid);
        assert_eq!(error("{}"), FrameError::Invalid);
        assert_eq!(error(r#"{"id":1,"method":"ping"}"#), FrameError::Invalid);
        assert_eq!(error(r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#), FrameError::Invalid);
        assert_eq!(error(r#"{"jsonrpc":"2.0","id":1,"method":7}"#), FrameError::Invalid);
        assert_eq!(error(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#), FrameError::Invalid);
        assert_eq!(error(r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#), FrameError::Invalid);
    }

    #[test]
    fn deep_nesting_is_an_error_and_not_a_crash() {
        let deep = "[".repeat(1_000_000);
        assert_eq!(error(&deep), FrameError::Parse);
        let line =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{deep}{}}}"#, "]".repeat(1_000_000));
        assert!(parse(line.as_bytes()).is_ok() || parse(line.as_bytes()).is_err());
    }

    #[test]
    fn ids_are_numbers_and_strings() {
        let id = |text: &str| {
            let line = format!(r#"{{"jsonrpc":"2.0","id":{text},"method":"ping"}}"#);
            match parse(line.as_bytes()) {
                Ok(Message::Request { id, .. }) => id,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(id("1").as_json(), "1");
        assert_eq!(id("\"a\""), id(r#""\u0061""#));
        assert_ne!(id("1"), id("\"1\""));
    }

    #[test]
    fn a_missing_id_makes_a_notification() {
        let message = parse(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).expect("message");
        assert!(matches!(message, Message::Notification { .. }));
        assert!(matches!(parse(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#), Ok(Message::Response)));
    }
}
