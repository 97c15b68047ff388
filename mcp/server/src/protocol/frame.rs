//! Parses a JSON-RPC message from a client and classifies it as request, notification or response. A message with valid
//! parameters takes one pass.

use super::borrowed::{Object, Raw, Text, present};
use super::message::RpcError;
use super::params::Params;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::borrow::{Borrow, Cow};

/// Most bytes of an id, as JSON text.
const LONGEST_ID: usize = 4 << 10;

/// A request id as JSON text: a number or a string, never null.
///
/// Two spellings of the same string are the same id, because strings with escapes are normalised.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Id<'a>(Cow<'a, str>);

impl<'a> Id<'a> {
    /// Reads an id. `None` when it is neither a number nor a string, or too long: ids are echoed and stored.
    pub fn from_raw(raw: Raw<'a>) -> Option<Id<'a>> {
        let text = Some(raw.get()).filter(|text| text.len() <= LONGEST_ID)?;
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

    /// Copies a borrowed id.
    pub fn into_owned(self) -> Id<'static> {
        Id(self.0.into_owned().into())
    }
}

impl Borrow<str> for Id<'_> {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// A well-formed message of the client, borrowed from its [`Frame`].
#[derive(Debug)]
pub enum Message<'f, 'a> {
    /// A message that needs an answer.
    Request {
        /// The id to echo.
        id: Id<'a>,
        /// Method name.
        method: &'f str,
        /// Parameters. Invalid ones matter only for a known method.
        params: Result<&'f Params<'a>, Box<RpcError>>,
    },
    /// A message that needs no answer.
    Notification {
        /// Method name.
        method: &'f str,
        /// Parameters.
        params: Result<&'f Params<'a>, Box<RpcError>>,
    },
    /// The answer to one of our requests.
    Response {
        /// Id of the request.
        id: Option<Raw<'a>>,
        /// The JSON text of its result, or of its error.
        answer: Result<Raw<'a>, Raw<'a>>,
    },
}

/// Why a line is not a message. Either way the answer has a null id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// Not JSON.
    Parse,
    /// JSON, but not a JSON-RPC 2.0 message.
    Invalid,
}

/// The members of a message: storage, because a parsed message is too large to be moved.
#[derive(Debug, Default, Deserialize)]
pub struct Frame<'a, P = Object<Params<'a>>> {
    #[serde(borrow, default)]
    jsonrpc: Option<Text<'a>>,
    // An explicit null is not an absent id: the first is invalid, the second a notification.
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<Raw<'a>>,
    #[serde(borrow, default)]
    method: Option<Text<'a>>,
    #[serde(default = "Option::default")]
    params: Option<P>,
    #[serde(borrow, default)]
    result: Option<Raw<'a>>,
    #[serde(borrow, default)]
    error: Option<Raw<'a>>,
}

impl<'a> Frame<'a> {
    /// Reads and classifies one message, into an empty frame.
    ///
    /// # Errors
    /// What is not a message.
    pub fn read(&mut self, message: &'a [u8]) -> Result<Message<'_, 'a>, FrameError> {
        // Validated as UTF-8 once, instead of string by string.
        self.read_text(std::str::from_utf8(message).map_err(|_| FrameError::Parse)?)
    }

    /// [`Frame::read`] for text. A second pass is needed only for invalid parameters, which must not invalidate the
    /// message.
    ///
    /// # Errors
    /// What is not a message.
    pub fn read_text(&mut self, text: &'a str) -> Result<Message<'_, 'a>, FrameError> {
        let mut fault = None;
        match serde_json::from_str(text) {
            Ok(Object(frame)) => *self = frame,
            Err(_) => {
                let Object(Frame { jsonrpc, id, method, params, result, error }) =
                    serde_json::from_str::<Object<Frame<'_, Raw<'_>>>>(text)
                        .map_err(|_| not_a_message(text))?;
                let params = Params::read(params).map(Object).map_err(|error| fault = Some(Box::new(error)));
                *self = Frame { jsonrpc, id, method, params: params.ok(), result, error };
            }
        }
        let Frame { jsonrpc, id, method, params, result, error } = self;
        if jsonrpc.as_deref() != Some("2.0") {
            return Err(FrameError::Invalid);
        }
        let Some(method) = method else {
            let answer = match (*error, *result) {
                (Some(error), _) => Err(error),
                (None, Some(result)) => Ok(result),
                (None, None) => return Err(FrameError::Invalid),
            };
            return Ok(Message::Response { id: *id, answer });
        };
        let id = id.map(|raw| Id::from_raw(raw).ok_or(FrameError::Invalid)).transpose()?;
        let params = match fault {
            None => Ok(&params.get_or_insert_default().0),
            Some(fault) => Err(fault),
        };
        Ok(match id {
            Some(id) => Message::Request { id, method, params },
            None => Message::Notification { method, params },
        })
    }
}

fn not_a_message(text: &str) -> FrameError {
    serde_json::from_str::<IgnoredAny>(text).map_or(FrameError::Parse, |_| FrameError::Invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(line: &str) -> FrameError {
        Frame::default().read(line.as_bytes()).expect_err("not a message")
    }

    #[test]
    fn malformed_lines_have_their_proper_error() {
        assert_eq!(error(""), FrameError::Parse);
        assert_eq!(error("{"), FrameError::Parse);
        assert_eq!(error("nope"), FrameError::Parse);
        assert_eq!(error(r#"{"jsonrpc":"2.0","id":1,"method":"ping"} x"#), FrameError::Parse);
        assert_eq!(Frame::default().read(b"\"\xff\"").expect_err("bad text"), FrameError::Parse);
        assert_eq!(error("[]"), FrameError::Invalid);
        assert_eq!(error(r#"["2.0",1,"ping"]"#), FrameError::Invalid);
        assert_eq!(error("42"), FrameError::Invalid);
        assert_eq!(error("{}"), FrameError::Invalid);
        assert_eq!(error(r#"{"id":1,"method":"ping"}"#), FrameError::Invalid);
        assert_eq!(error(r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#), FrameError::Invalid);
        assert_eq!(error(r#"{"jsonrpc":"2.0","id":1,"method":7}"#), FrameError::Invalid);
        assert_eq!(error(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#), FrameError::Invalid);
        assert_eq!(error(r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#), FrameError::Invalid);
        let long = "x".repeat(LONGEST_ID - 1);
        let line = format!(r#"{{"jsonrpc":"2.0","id":"{long}","method":"ping"}}"#);
        assert_eq!(error(&line), FrameError::Invalid);
        assert!(Frame::default().read(line.replacen('x', "", 1).as_bytes()).is_ok());
    }

    #[test]
    fn deep_nesting_is_an_error_and_not_a_crash() {
        let deep = "[".repeat(1_000_000);
        assert_eq!(error(&deep), FrameError::Parse);
        let line =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{deep}{}}}"#, "]".repeat(1_000_000));
        let mut frame = Frame::default();
        assert!(matches!(frame.read(line.as_bytes()), Ok(_) | Err(FrameError::Parse)));
    }

    #[test]
    fn ids_are_numbers_and_strings() {
        let id = |text: &str| {
            let line = format!(r#"{{"jsonrpc":"2.0","id":{text},"method":"ping"}}"#);
            match Frame::default().read(line.as_bytes()) {
                Ok(Message::Request { id, .. }) => id.into_owned(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(id("1").as_json(), "1");
        assert_eq!(id("\"a\""), id(r#""\u0061""#));
        assert_ne!(id("1"), id("\"1\""));
    }

    #[test]
    fn a_missing_id_makes_a_notification() {
        let mut frame = Frame::default();
        let message = frame.read(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        assert!(matches!(message, Ok(Message::Notification { .. })));
        let mut frame = Frame::default();
        assert!(matches!(
            frame.read(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
            Ok(Message::Response { answer: Ok(_), .. })
        ));
    }

    #[test]
    fn wrong_parameters_do_not_spoil_their_message() {
        let params = |text: &str| {
            let line = format!(r#"{{"jsonrpc":"2.0","id":1,"params":{text},"method":"tools/call"}}"#);
            match Frame::default().read(line.as_bytes()) {
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
