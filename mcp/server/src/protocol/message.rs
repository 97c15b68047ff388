//! JSON-RPC messages that we send: answers, errors, notifications and requests.
//!
//! A message is JSON text alone. The transport adds what separates it from the next one.

use super::frame::{FrameError, Id};
use super::version::Version;
use serde::Serialize;
use serde_json::json;

/// The JSON-RPC error codes we use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum ErrorCode {
    /// The line is not JSON.
    Parse = -32700,
    /// JSON, but not a request.
    InvalidRequest = -32600,
    /// No such method.
    MethodNotFound = -32601,
    /// Wrong parameters.
    InvalidParams = -32602,
    /// A defect of this implementation.
    Internal = -32603,
    /// The server cannot take the request now: it drains, or is full.
    Unavailable = -32000,
    /// Headers of the request contradict its body (2026-07-28, over HTTP).
    HeaderMismatch = -32020,
    /// The request needs something of its client that it has not declared (2026-07-28).
    MissingCapability = -32021,
    /// The request names a protocol version that we do not speak (2026-07-28).
    UnsupportedVersion = -32022,
}

/// A JSON-RPC error without its id.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcError {
    /// Code on the wire.
    pub code: ErrorCode,
    /// One sentence.
    pub message: String,
    /// Details that the protocol defines.
    pub data: Option<serde_json::Value>,
}

impl RpcError {
    /// An error with this code and message.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> RpcError {
        RpcError { code, message: message.into(), data: None }
    }

    /// -32601.
    pub fn method_not_found() -> RpcError {
        RpcError::new(ErrorCode::MethodNotFound, "Method not found")
    }

    /// -32602 with the detail.
    pub fn invalid_params(detail: &str) -> RpcError {
        RpcError::new(ErrorCode::InvalidParams, format!("Invalid params: {detail}"))
    }

    /// -32600 for an id that is still in use.
    pub fn duplicate_id(id: &Id<'_>) -> RpcError {
        let message = format!("Invalid Request: id {} is already in flight", id.as_json());
        RpcError::new(ErrorCode::InvalidRequest, message)
    }

    /// -32603.
    pub fn internal() -> RpcError {
        RpcError::new(ErrorCode::Internal, "Internal error")
    }

    /// -32021, with what the client would have to declare: an object of capabilities.
    pub fn missing_capability(required: serde_json::Value) -> RpcError {
        RpcError {
            code: ErrorCode::MissingCapability,
            message: "Missing required client capability".into(),
            data: Some(json!({ "requiredCapabilities": required })),
        }
    }

    /// -32022, with the versions that a client may use instead.
    pub fn unsupported_version(requested: &str) -> RpcError {
        RpcError {
            code: ErrorCode::UnsupportedVersion,
            message: "Unsupported protocol version".into(),
            data: Some(json!({ "supported": Version::names(), "requested": requested })),
        }
    }
}

impl From<FrameError> for RpcError {
    fn from(error: FrameError) -> RpcError {
        match error {
            FrameError::Parse => RpcError::new(ErrorCode::Parse, "Parse error"),
            FrameError::Invalid => RpcError::new(ErrorCode::InvalidRequest, "Invalid Request"),
        }
    }
}

/// One complete message for the peer, without a newline in it or after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerMessage(Vec<u8>);

impl ServerMessage {
    /// An answer.
    pub fn result(id: &Id<'_>, result: &(impl Serialize + ?Sized)) -> ServerMessage {
        let mut text = Vec::with_capacity(256);
        ServerMessage::write_result(id, result, &mut text);
        ServerMessage(text)
    }

    /// Appends an answer.
    pub fn write_result(id: &Id<'_>, result: &(impl Serialize + ?Sized), out: &mut Vec<u8>) {
        let start = out.len();
        ServerMessage::begin_result(id, out);
        // Writing our own types to memory fails only if one of them has a key that is not a string.
        if serde_json::to_writer(&mut *out, result).is_err() {
            out.truncate(start);
            let ServerMessage(error) = ServerMessage::error(Some(id), &RpcError::internal());
            return out.extend_from_slice(&error);
        }
        out.push(b'}');
    }

    /// Appends an answer up to its result. The caller writes the result and a closing brace.
    pub(crate) fn begin_result(id: &Id<'_>, out: &mut Vec<u8>) {
        ServerMessage::begin(id, out);
        out.extend_from_slice(b",\"result\":");
    }

    /// Appends an answer up to its id. The caller writes a comma and the rest.
    pub(crate) fn begin(id: &Id<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        out.extend_from_slice(id.as_json().as_bytes());
    }

    /// A message that another module has written.
    pub(crate) fn from_text(text: Vec<u8>) -> ServerMessage {
        ServerMessage(text)
    }

    /// An error. `None` stands for the null id of a message with an unreadable id.
    pub fn error(id: Option<&Id<'_>>, error: &RpcError) -> ServerMessage {
        let mut body = json!({ "code": error.code as i32, "message": error.message });
        if let Some(data) = &error.data {
            body["data"] = data.clone();
        }
        let id = id.map_or("null", Id::as_json);
        ServerMessage(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{body}}}").into_bytes())
    }

    /// A request, with the JSON text of its parameters.
    pub fn request(id: &str, method: &str, params: &str) -> ServerMessage {
        ServerMessage(
            format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{id}\",\"method\":\"{method}\",\"params\":{params}}}")
                .into_bytes(),
        )
    }

    /// A notification.
    pub fn notification(method: &str, params: &impl Serialize) -> ServerMessage {
        // Our own types have string keys, so this cannot fail.
        let params = serde_json::to_string(params).unwrap_or_else(|_| "{}".into());
        ServerMessage(
            format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{params}}}").into_bytes(),
        )
    }

    /// Its JSON text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}
