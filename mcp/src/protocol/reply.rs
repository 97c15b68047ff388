//! The JSON-RPC envelope of an answer.

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
    /// JSON, but no request.
    InvalidRequest = -32600,
    /// No such method.
    MethodNotFound = -32601,
    /// Wrong parameters.
    InvalidParams = -32602,
    /// A defect of this implementation.
    Internal = -32603,
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
    fn new(code: ErrorCode, message: impl Into<String>) -> RpcError {
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

    /// -32600 for an id that is still being worked on.
    pub fn duplicate_id(id: &Id) -> RpcError {
        let message = format!("Invalid Request: id {} is already in flight", id.as_json());
        RpcError::new(ErrorCode::InvalidRequest, message)
    }

    /// -32603.
    pub fn internal() -> RpcError {
        RpcError::new(ErrorCode::Internal, "Internal error")
    }

    /// -32022, with the versions that a client may use instead.
    pub fn unsupported_version(requested: &str) -> RpcError {
        let supported: Vec<&str> = Version::STATELESS.iter().map(|version| version.name()).collect();
        RpcError {
            code: ErrorCode::UnsupportedVersion,
            message: "Unsupported protocol version".into(),
            data: Some(json!({ "supported": supported, "requested": requested })),
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

/// Writes the answer of a tool that is one text and no error; of the stateless era when there is metadata.
pub(super) fn text_result(id: &[u8], text: &str, meta: Option<&str>, out: &mut Vec<u8>) {
    const HEAD: &[u8] = br#"{"jsonrpc":"2.0","id":"#;
    const HANDSHAKE: &[u8] = br#","result":{"content":[{"type":"text","text":""#;
    const STATELESS: &[u8] = br#","result":{"resultType":"complete","content":[{"type":"text","text":""#;
    const AFTER: &[u8] = br#""}],"isError":false"#;
    const META: &[u8] = br#","_meta":"#;
    const END: &[u8] = b"}}\n";
    out.extend_from_slice(HEAD);
    out.extend_from_slice(id);
    out.extend_from_slice(if meta.is_some() { STATELESS } else { HANDSHAKE });
    if text.bytes().any(|byte| byte < 0x20 || matches!(byte, b'"' | b'\\')) {
        // Without the quote before it. Writing a string to memory cannot fail.
        out.pop();
        let _ = serde_json::to_writer(&mut *out, text);
        out.pop();
    } else {
        out.extend_from_slice(text.as_bytes());
    }
    out.extend_from_slice(AFTER);
    if let Some(meta) = meta {
        out.extend_from_slice(META);
        out.extend_from_slice(meta.as_bytes());
    }
    out.extend_from_slice(END);
}

/// One complete line for the peer, newline included; or several, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply(Vec<u8>);

impl Reply {
    /// An answer whose result is serialised straight into the line.
    pub fn result(id: &Id, result: &impl Serialize) -> Reply {
        let mut line = Vec::with_capacity(256);
        line.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        line.extend_from_slice(id.as_json().as_bytes());
        line.extend_from_slice(b",\"result\":");
        // Writing our own types to memory fails only if one of them has a key that is not a string.
        if serde_json::to_writer(&mut line, result).is_err() {
            return Reply::error(Some(id), &RpcError::internal());
        }
        line.extend_from_slice(b"}\n");
        Reply(line)
    }

    /// An error; `None` is the null id of a line whose id could not be read.
    pub fn error(id: Option<&Id>, error: &RpcError) -> Reply {
        let mut body = json!({ "code": error.code as i32, "message": error.message });
        if let Some(data) = &error.data {
            body["data"] = data.clone();
        }
        let id = id.map_or("null", Id::as_json);
        Reply(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{body}}}\n").into_bytes())
    }

    /// A message that wants no answer.
    pub fn notification(method: &str, params: &impl Serialize) -> Reply {
        let mut line = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":").into_bytes();
        // Our own types have string keys, so this cannot fail; an unwritten line would say nothing at all.
        if serde_json::to_writer(&mut line, params).is_err() {
            return Reply(Vec::new());
        }
        line.extend_from_slice(b"}\n");
        Reply(line)
    }

    /// This, and then the other.
    pub fn then(mut self, other: &Reply) -> Reply {
        self.0.extend_from_slice(&other.0);
        self
    }

    /// The line.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}
