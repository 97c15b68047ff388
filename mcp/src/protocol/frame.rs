//! One message of JSON-RPC, read in one borrowing pass with the parameters that we know.

use super::json::{Json, Malformed, Members, Reader};
use super::message::RpcError;
use super::params::Params;
use std::borrow::Cow;

/// A request id as JSON text: a number or a string, never null.
///
/// Two spellings of the same string are the same id, because strings with escapes are normalised.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Id(Box<str>);

impl Id {
    /// Reads an id; `None` when the value is neither a number nor a string.
    pub fn read(value: Json<'_>) -> Option<Id> {
        match value.string() {
            Some(Ok(Cow::Owned(text))) => Some(Id(serde_json::to_string(&text).ok()?.into())),
            Some(text) => text.ok().map(|_| Id(value.get().into())),
            None => matches!(value.type_name(), "integer" | "number").then(|| Id(value.get().into())),
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
        /// Parameters. Wrong ones are for a method that is known.
        params: Result<Params<'a>, RpcError>,
    },
    /// Wants none.
    Notification {
        /// Method name.
        method: Cow<'a, str>,
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

const NAMES: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];
const PARAMS: usize = 3;

/// Reads one message.
pub fn parse(text: &[u8]) -> Result<Message<'_>, FrameError> {
    // Looked through once, instead of each string by itself.
    let text = std::str::from_utf8(text).map_err(|_| FrameError::Parse)?;
    read(text).unwrap_or(Err(FrameError::Parse))
}

fn read(text: &str) -> Result<Result<Message<'_>, FrameError>, Malformed> {
    let mut reader = Reader::new(text);
    if reader.peek() != Some(b'{') {
        reader.value()?;
        reader.end()?;
        return Ok(Err(FrameError::Invalid));
    }
    let mut params = Ok(Params::default());
    let members = reader.members(&NAMES, |reader, place| {
        if place != PARAMS {
            return reader.value();
        }
        let mut whole = reader.clone();
        params = Params::read(reader)?;
        whole.until(reader)
    })?;
    reader.end()?;
    Ok(classify(&members, params))
}

fn classify<'a>(
    members: &Members<'a, 6>,
    params: Result<Params<'a>, RpcError>,
) -> Result<Message<'a>, FrameError> {
    let [version, id, method, _, result, error] = members.values;
    let text = |value: Json<'a>| value.string().and_then(Result::ok).ok_or(FrameError::Invalid);
    if members.twice.is_some() || version.map(text).transpose()?.as_deref() != Some("2.0") {
        return Err(FrameError::Invalid);
    }
    let method = method.filter(|method| !method.is_null()).map(text).transpose()?;
    match (method, id) {
        // An explicit null is not an absent id: the first is invalid, the second a notification.
        (Some(method), Some(id)) => {
            Ok(Message::Request { id: Id::read(id).ok_or(FrameError::Invalid)?, method, params })
        }
        (Some(method), None) => Ok(Message::Notification { method, params }),
        (None, _) if [result, error].into_iter().flatten().any(|said| !said.is_null()) => {
            Ok(Message::Response)
        }
        (None, _) => Err(FrameError::Invalid),
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
        let wrong = [
            (r#"{"name":7}"#, "`name` must be a string, got integer"),
            (r#"{"name":"a","name":"b"}"#, "duplicate field `name`"),
            (r#"{"_meta":[]}"#, "`_meta` must be an object"),
            (r#"{"notifications":{"toolsListChanged":1}}"#, "`notifications` must be an object of booleans"),
        ];
        for (text, message) in wrong {
            assert_eq!(params(text), Err(format!("Invalid params: {message}")));
        }
    }
}
