//! One message of JSON-RPC, read in one borrowing pass with the parameters that we know.

use super::borrowed::{Object, Raw, Text, present};
use super::message::RpcError;
use super::params::Params;
use super::usual;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// A request id as JSON text: a number or a string, never null.
///
/// Two spellings of the same string are the same id, because strings with escapes are normalised.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Id(Box<str>);

impl Id {
    /// Reads an id; `None` when the value is neither a number nor a string.
    pub fn from_raw(raw: Raw<'_>) -> Option<Id> {
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
        method: Text<'a>,
        /// Parameters. Wrong ones are for a method that is known.
        params: Result<Params<'a>, RpcError>,
    },
    /// Wants none.
    Notification {
        /// Method name.
        method: Text<'a>,
        /// Parameters.
        params: Result<Params<'a>, RpcError>,
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
pub(super) struct Frame<'a, P> {
    #[serde(borrow, default)]
    pub(super) jsonrpc: Option<Text<'a>>,
    // An explicit null is not an absent id: the first is invalid, the second a notification.
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) id: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub(super) method: Option<Text<'a>>,
    #[serde(default = "Option::default")]
    pub(super) params: Option<P>,
    #[serde(default)]
    result: Option<IgnoredAny>,
    #[serde(default)]
    error: Option<IgnoredAny>,
}

impl<P> Default for Frame<'_, P> {
    fn default() -> Self {
        Frame { jsonrpc: None, id: None, method: None, params: None, result: None, error: None }
    }
}

/// Classifies one message.
pub fn parse(text: &[u8]) -> Result<Message<'_>, FrameError> {
    // Looked through once, instead of each string by itself.
    let text = std::str::from_utf8(text).map_err(|_| FrameError::Parse)?;
    let mut frame = Frame::default();
    if usual::read(text, &mut frame) {
        return classify(frame, |params| Ok(params.unwrap_or_default()));
    }
    read_any(text)
}

/// In one pass unless the parameters are wrong: their fault is not one of the message.
pub(super) fn read_any(text: &str) -> Result<Message<'_>, FrameError> {
    match read::<Object<Params<'_>>>(text) {
        Ok(frame) => classify(frame, |params| Ok(params.map(|Object(params)| params).unwrap_or_default())),
        Err(_) => classify(read::<Raw<'_>>(text).map_err(|_| not_a_message(text))?, Params::read),
    }
}

fn read<'a, P: Deserialize<'a>>(text: &'a str) -> serde_json::Result<Frame<'a, P>> {
    serde_json::from_str(text).map(|Object(frame)| frame)
}

pub(super) fn classify<'a, P>(
    frame: Frame<'a, P>,
    params: impl FnOnce(Option<P>) -> Result<Params<'a>, RpcError>,
) -> Result<Message<'a>, FrameError> {
    if frame.jsonrpc.as_deref() != Some("2.0") {
        return Err(FrameError::Invalid);
    }
    match (frame.method, frame.id) {
        (Some(method), Some(raw)) => match Id::from_raw(raw) {
            Some(id) => Ok(Message::Request { id, method, params: params(frame.params) }),
            None => Err(FrameError::Invalid),
        },
        (Some(method), None) => Ok(Message::Notification { method, params: params(frame.params) }),
        (None, _) if frame.result.is_some() || frame.error.is_some() => Ok(Message::Response),
        (None, _) => Err(FrameError::Invalid),
    }
}

fn not_a_message(text: &str) -> FrameError {
    serde_json::from_str::<IgnoredAny>(text).map_or(FrameError::Parse, |_| FrameError::Invalid)
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

    #[test]
    fn wrong_parameters_do_not_spoil_their_message() {
        let params = |text: &str| {
            let line = format!(r#"{{"jsonrpc":"2.0","id":1,"params":{text},"method":"tools/call"}}"#);
            match parse(line.as_bytes()) {
                Ok(Message::Request { params, .. }) => {
                    params.map(|params| params.name.is_some()).map_err(|error| error.message)
                }
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(params(r#"{"name":"a\u0062"}"#), Ok(true));
        assert_eq!(params("null"), Ok(false));
        assert_eq!(params("[]"), Err("Invalid params: params must be an object".into()));
        assert_eq!(params("7"), Err("Invalid params: params must be an object".into()));
        let wrong = params(r#"{"name":7}"#).expect_err("a wrong type");
        assert!(wrong.starts_with("Invalid params: invalid type: integer `7`, expected"), "{wrong}");
    }
}
