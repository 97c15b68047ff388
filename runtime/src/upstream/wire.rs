//! JSON-RPC frames: only the id, and the place of the result or the error, are read.

use super::line::Oversize;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::ops::Range;

/// The raw JSON text of a `result` member, still inside the line it came in (no copy).
#[derive(Clone)]
pub struct RawAnswer {
    line: Vec<u8>,
    result: Range<usize>,
}

impl RawAnswer {
    /// Wraps a whole JSON text.
    pub fn from_json(text: impl Into<Vec<u8>>) -> RawAnswer {
        let line = text.into();
        let result = 0..line.len();
        RawAnswer { line, result }
    }

    /// The JSON text of the result.
    pub fn bytes(&self) -> &[u8] {
        self.line.get(self.result.clone()).unwrap_or_default()
    }

    /// Bytes kept alive by this answer.
    pub fn held_bytes(&self) -> usize {
        self.line.capacity()
    }
}

impl std::fmt::Debug for RawAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RawAnswer({} bytes)", self.result.len())
    }
}

/// One incoming frame.
#[derive(Debug)]
pub(super) enum Incoming {
    /// An answer to one of our requests.
    Response { id: u64, body: Result<RawAnswer, RpcError> },
    /// A request of the server; `id` is the raw JSON of its id.
    Request { id: String, method: String },
    /// A notification of the server.
    Notification { method: String },
    /// Not JSON-RPC: something the server printed.
    Noise,
}

/// A JSON-RPC error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RpcError {
    pub(super) code: i64,
    pub(super) message: String,
    /// JSON text.
    pub(super) data: Option<String>,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<String>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ErrorObject {
    code: i64,
    message: String,
    data: Option<Box<RawValue>>,
}

/// Reads one frame.
pub(super) fn parse(line: Vec<u8>) -> Incoming {
    // The derived reader would take an array for the members in order.
    if line.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return Incoming::Noise;
    }
    let Ok(envelope) = serde_json::from_slice::<Envelope<'_>>(&line) else { return Incoming::Noise };
    match (envelope.id, envelope.method) {
        (Some(id), Some(method)) => Incoming::Request { id: id.get().to_owned(), method },
        (None, Some(method)) => Incoming::Notification { method },
        (Some(id), None) => {
            let Some(id) = our_id(id.get()) else { return Incoming::Noise };
            if let Some(error) = envelope.error {
                let error: ErrorObject = serde_json::from_str(error.get()).unwrap_or_default();
                let data = error.data.map(|data| data.get().to_owned());
                let error = RpcError { code: error.code, message: error.message, data };
                return Incoming::Response { id, body: Err(error) };
            }
            let result = match envelope.result {
                Some(result) => place_of(&line, result.get()),
                None => {
                    let message = "response has neither result nor error".to_owned();
                    return Incoming::Response { id, body: Err(RpcError { code: 0, message, data: None }) };
                }
            };
            Incoming::Response { id, body: Ok(RawAnswer { line, result }) }
        }
        (None, None) => Incoming::Noise,
    }
}

/// The result in a frame that is an answer.
pub(crate) fn response(line: Vec<u8>) -> Option<RawAnswer> {
    match parse(line) {
        Incoming::Response { body: Ok(answer), .. } => Some(answer),
        _ => None,
    }
}

/// Where `part`, a slice of `line`, sits in it.
fn place_of(line: &[u8], part: &str) -> Range<usize> {
    let start = (part.as_ptr() as usize).saturating_sub(line.as_ptr() as usize);
    start..start + part.len()
}

/// Our ids are numbers; some servers send them back as strings.
fn our_id(raw: &str) -> Option<u64> {
    raw.trim_matches('"').parse().ok()
}

/// What the two ends of an over-long line tell about it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OversizeKind {
    /// The answer to this request.
    Response(u64),
    /// A request or notification of the server.
    Other,
    /// No id in sight.
    Unknown,
}

/// Finds out whose answer an over-long line was.
pub(super) fn identify(oversize: &Oversize) -> OversizeKind {
    match scan_head(&oversize.head) {
        OversizeKind::Unknown => scan_tail(&oversize.tail),
        known => known,
    }
}

/// Walks the members of the outermost object as far as the kept bytes go.
fn scan_head(head: &[u8]) -> OversizeKind {
    let mut depth = 0usize;
    let mut at = 0;
    let mut expect_key = false;
    let mut key: &[u8] = b"";
    while at < head.len() {
        match head[at] {
            b'"' => {
                let Some(end) = string_end(head, at) else { return OversizeKind::Unknown };
                if depth == 1 && expect_key {
                    key = &head[at + 1..end];
                    expect_key = false;
                    if key == b"method" {
                        return OversizeKind::Other;
                    }
                } else if depth == 1
                    && key == b"id"
                    && let Some(id) = digits(&head[at + 1..end])
                {
                    return OversizeKind::Response(id);
                }
                at = end;
            }
            b'{' | b'[' => {
                depth += 1;
                expect_key = depth == 1 && head[at] == b'{';
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' => expect_key = depth == 1,
            b'0'..=b'9' if depth == 1 && key == b"id" => {
                let end = head[at..].iter().position(|byte| !byte.is_ascii_digit());
                let Some(end) = end else { return OversizeKind::Unknown };
                return digits(&head[at..at + end]).map_or(OversizeKind::Unknown, OversizeKind::Response);
            }
            _ => {}
        }
        at += 1;
    }
    OversizeKind::Unknown
}

/// Looks for an `"id"` from which the rest of the line is a complete tail of the outermost object.
fn scan_tail(tail: &[u8]) -> OversizeKind {
    let mut end = tail.len();
    while let Some(at) = memchr::memmem::rfind(&tail[..end], b"\"id\"") {
        end = at;
        let mut object = Vec::with_capacity(tail.len() - at + 1);
        object.push(b'{');
        object.extend_from_slice(&tail[at..]);
        if let Ok(envelope) = serde_json::from_slice::<Envelope<'_>>(&object)
            && let Some(id) = envelope.id.and_then(|id| our_id(id.get()))
        {
            return OversizeKind::Response(id);
        }
    }
    OversizeKind::Unknown
}

/// Index of the quote that closes the string opened at `open`.
fn string_end(bytes: &[u8], open: usize) -> Option<usize> {
    let mut at = open + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'"' => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}

fn digits(bytes: &[u8]) -> Option<u64> {
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

/// A request frame, newline included. `params` is JSON text.
pub(super) fn request(id: u64, method: &str, params: &str) -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\n").into_bytes()
}

/// A notification frame, newline included.
pub(super) fn notification(method: &str, params: Option<&str>) -> Vec<u8> {
    match params {
        Some(params) => {
            format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{params}}}\n").into_bytes()
        }
        None => format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\"}}\n").into_bytes(),
    }
}

/// The answer to a request of the server. We offer nothing: `ping` works, roots are empty.
pub(super) fn reply(id: &str, method: &str) -> Vec<u8> {
    let body = match method {
        "ping" => r#""result":{}"#,
        "roots/list" => r#""result":{"roots":[]}"#,
        _ => r#""error":{"code":-32601,"message":"Method not found"}"#,
    };
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{body}}}\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over(head: &str, tail: &str) -> Oversize {
        Oversize { bytes: 1 << 20, head: head.into(), tail: tail.into() }
    }

    #[test]
    fn a_response_keeps_its_result_raw() {
        let line = br#"{"jsonrpc":"2.0","id":7,"result":{"a": [1, 2]}}"#.to_vec();
        let Incoming::Response { id: 7, body: Ok(answer) } = parse(line) else { panic!() };
        assert_eq!(answer.bytes(), br#"{"a": [1, 2]}"#);
    }

    #[test]
    fn ids_may_come_back_as_strings() {
        let line = br#"{"id":"12","result":null,"error":{"code":-1,"message":"no"}}"#.to_vec();
        let Incoming::Response { id: 12, body: Err(error) } = parse(line) else { panic!() };
        assert_eq!(error, RpcError { code: -1, message: "no".into(), data: None });
    }

    #[test]
    fn noise_requests_and_notifications_are_told_apart() {
        assert!(matches!(parse(b"Server started".to_vec()), Incoming::Noise));
        assert!(matches!(parse(b"".to_vec()), Incoming::Noise));
        assert!(matches!(parse(b"[1]".to_vec()), Incoming::Noise));
        assert!(matches!(parse(b"{\"id\":1,\"result\":\"\xff\"}".to_vec()), Incoming::Noise));
        let ping = parse(br#"{"id":"x","method":"ping"}"#.to_vec());
        assert!(matches!(ping, Incoming::Request { id, .. } if id == "\"x\""));
        let changed = parse(br#"{"method":"notifications/tools/list_changed"}"#.to_vec());
        assert!(matches!(changed, Incoming::Notification { .. }));
    }

    #[test]
    fn the_id_of_an_over_long_line_is_found_at_either_end() {
        let find = |head: &str, tail: &str| identify(&over(head, tail));
        assert_eq!(
            find(r#"{"jsonrpc":"2.0","id":41,"result":{"id":9,"x":"yyy"#, "yyy"),
            OversizeKind::Response(41)
        );
        assert_eq!(find(r#"{"id":"41","result":[["#, "yyy"), OversizeKind::Response(41));
        assert_eq!(
            find(r#"{"result":{"id":9,"x":"yyy"#, r#"yy"}],"id":5,"jsonrpc":"2.0"}"#),
            OversizeKind::Response(5)
        );
        assert_eq!(find(r#"{"result":{"id":9,"x":"yyy"#, r#"yy","id":3}}"#), OversizeKind::Unknown);
        assert_eq!(
            find(r#"{"method":"notifications/message","params":{"#, r#""id":3}}"#),
            OversizeKind::Other
        );
        assert_eq!(find(r#"{"result":{"text":"\"id\":1"#, r#"\"id\":1"}}"#), OversizeKind::Unknown);
    }
}
