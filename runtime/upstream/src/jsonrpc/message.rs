//! Parses incoming JSON-RPC messages, malformed and oversized ones included, and writes requests, notifications and
//! answers. Of a response only the id, and the range of the result or error, are read. Framing (a line, an event,
//! a body) belongs to the transport.

use super::answer::RawAnswer;
use super::error::{ErrorObject, integer};
use super::scan;
use ptc_calls::run::client::ClientError;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::ops::Range;
use tokio::time::Instant;

/// One incoming frame.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// A response to one of our requests.
    Response { id: u64, body: Result<RawAnswer, ErrorObject> },
    /// A malformed response, and the requests that it may belong to. Without an id it belongs to the only
    /// request in flight, if there is just one.
    Broken { ids: Vec<u64>, why: String, is_cut: bool },
    /// A request of the server; `id` and `params` are raw JSON.
    Request { id: String, method: String, params: String },
    /// The server cancels its request with this id.
    Withdrawal { id: String },
    /// The server has made progress with a request of ours.
    Progress(ProgressNote),
    /// Another notification of the server.
    Notification { method: String },
    /// Several frames in a list, or one after the other.
    Batch(Vec<Incoming>),
    /// An incomplete text.
    Open(Vec<u8>),
    /// Not JSON-RPC: other output of the server.
    Noise,
}

/// The parameters of a progress notification.
#[derive(Debug, PartialEq)]
pub(crate) struct ProgressNote {
    pub(crate) token: u64,
    pub(crate) progress: Option<f64>,
    pub(crate) total: Option<f64>,
    pub(crate) message: Option<String>,
}

/// The notification that the server works at a request.
pub(crate) const PROGRESS: &str = "notifications/progress";

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<String>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// Limit of frames in one batch.
const BATCH: usize = 1_000;

/// Length limit of the id of a server's request: it is returned with the response.
const LONGEST_ID: usize = 256;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Parses one frame.
pub(crate) fn parse(mut line: Vec<u8>) -> Incoming {
    // Some servers write a byte order mark, which JSON does not allow (RFC 8259, section 8.1, lets parsers
    // ignore it).
    if line.starts_with(BYTE_ORDER_MARK) {
        line.drain(..BYTE_ORDER_MARK.len());
    }
    match line.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => {}
        Some(b'[') => return batch(scan::items(&line).map(|item| item.value)),
        _ => return behind_noise(&line),
    }
    let envelope = match serde_json::from_slice::<Envelope<'_>>(&line) {
        Ok(envelope) => envelope,
        Err(why) => {
            let why = why.to_string();
            return unreadable(line, &why);
        }
    };
    // With a result or an error it is a response, whatever other members it has.
    let is_answer = envelope.error.is_some() || envelope.result.is_some();
    match (envelope.id, envelope.method.filter(|_| !is_answer)) {
        (Some(id), Some(_)) if id.get().len() > LONGEST_ID => Incoming::Noise,
        (Some(id), Some(method)) => {
            let params = envelope.params.map_or("", RawValue::get).to_owned();
            Incoming::Request { id: id.get().to_owned(), method, params }
        }
        (None, Some(method)) => notified(method, envelope.params),
        (Some(id), None) => {
            // An unknown id may belong to another client of the server.
            let Some(id) = our_id(id.get().as_bytes()) else { return Incoming::Noise };
            let body = match (envelope.error, envelope.result) {
                (Some(error), _) => Err(ErrorObject::read(error.get().as_bytes())),
                (None, Some(result)) => Ok(place_of(&line, result.get().as_bytes())),
                // A null result is valid.
                (None, None) => match member(&line, b"result") {
                    Some(result) => Ok(place_of(&line, result)),
                    None => Err(ErrorObject::about("response has neither result nor error")),
                },
            };
            Incoming::Response { id, body: body.map(|result| RawAnswer::within(line, result)) }
        }
        // By the specification, an error without an id answers a request that the server could not parse.
        (None, None) if envelope.error.is_some() && member(&line, b"jsonrpc").is_some() => {
            let error = envelope.error.map_or("", RawValue::get);
            Incoming::Broken {
                ids: Vec::new(),
                why: ErrorObject::read(error.as_bytes()).message,
                is_cut: false,
            }
        }
        (None, None) if envelope.result.is_some() && member(&line, b"id").is_none() => {
            Incoming::Broken { ids: Vec::new(), why: "the answer has no id".to_owned(), is_cut: false }
        }
        (None, None) => Incoming::Noise,
    }
}

/// What an object is that is no valid frame.
fn unreadable(line: Vec<u8>, why: &str) -> Incoming {
    match scan::end(&line) {
        None => Incoming::Open(line),
        Some(end) if is_object_again(&line[end..]) => batch(scan::sequence(&line)),
        Some(_) => salvage(line, why),
    }
}

/// A notification.
fn notified(method: String, params: Option<&RawValue>) -> Incoming {
    let params = params.map_or(&b""[..], |params| params.get().as_bytes());
    let known = match &*method {
        "notifications/cancelled" => withdrawal(params),
        PROGRESS => progress(params),
        _ => None,
    };
    known.unwrap_or(Incoming::Notification { method })
}

/// A response after the prefix that a logger, a terminal or an event stream wrote on its line. Requests are
/// not searched for there: a log may contain ours.
fn behind_noise(line: &[u8]) -> Incoming {
    let begin = memchr::memchr(b'{', line).filter(|_| memchr::memmem::find(line, b"\"jsonrpc\"").is_some());
    let text = begin.map(|begin| &line[begin..]);
    let whole = text.and_then(|text| scan::end(text).map(|end| &text[..end]));
    match whole.map(|text| parse(text.to_vec())) {
        Some(answer @ (Incoming::Response { .. } | Incoming::Broken { .. })) => answer,
        _ => Incoming::Noise,
    }
}

/// The frames among these texts.
fn batch<'l>(texts: impl Iterator<Item = &'l [u8]>) -> Incoming {
    let objects = texts.filter(|text| text.starts_with(b"{")).take(BATCH);
    let frames: Vec<Incoming> = objects.map(|text| parse(text.to_vec())).collect();
    if frames.is_empty() { Incoming::Noise } else { Incoming::Batch(frames) }
}

/// True for an object that names its protocol; only such an object is taken for a frame inside another text.
pub(crate) fn is_frame(line: &[u8]) -> bool {
    member(line, b"jsonrpc").is_some() && scan::end(line).is_some()
}

fn withdrawal(params: &[u8]) -> Option<Incoming> {
    let id = member(params, b"requestId").filter(|id| id.len() <= LONGEST_ID)?;
    Some(Incoming::Withdrawal { id: std::str::from_utf8(id).ok()?.to_owned() })
}

/// Reads what it can: a value of a wrong type is left out. Without a token of ours it concerns no request.
fn progress(params: &[u8]) -> Option<Incoming> {
    let token = our_id(member(params, b"progressToken")?)?;
    let number =
        |key| std::str::from_utf8(member(params, key)?).ok()?.parse().ok().filter(|n: &f64| n.is_finite());
    let message = member(params, b"message").and_then(|text| serde_json::from_slice(text).ok());
    Some(Incoming::Progress(ProgressNote {
        token,
        progress: number(b"progress"),
        total: number(b"total"),
        message,
    }))
}

fn is_object_again(rest: &[u8]) -> bool {
    rest.trim_ascii_start().starts_with(b"{")
}

fn member<'l>(line: &'l [u8], key: &[u8]) -> Option<&'l [u8]> {
    scan::members(line).find(|part| part.key == key).map(|part| part.value)
}

/// Recovers what it can from an object that is no valid JSON-RPC frame.
fn salvage(line: Vec<u8>, why: &str) -> Incoming {
    let mut ids = Vec::new();
    let (mut all_ids, mut results, mut errors, mut is_rpc) = (0, Vec::new(), 0, false);
    for part in scan::members(&line) {
        match part.key {
            // A malformed request or notification cannot be used.
            b"method" => return Incoming::Noise,
            b"id" => {
                all_ids += 1;
                ids.extend(our_id(part.value).filter(|id| part.is_whole && !ids.contains(id)));
            }
            b"result" => results.push(place_of(&line, part.value)),
            b"error" => errors += 1,
            b"jsonrpc" => is_rpc = true,
            _ => {}
        }
    }
    let is_closed = scan::end(&line).is_some();
    if let ([id], [result], 1, 0, true) = (&ids[..], &results[..], all_ids, errors, is_closed)
        && serde_json::from_slice::<&RawValue>(&line[result.clone()]).is_err()
    {
        // Only the result is malformed; the code that decodes it reports the error.
        let (id, result) = (*id, result.clone());
        return Incoming::Response { id, body: Ok(RawAnswer::within(line, result)) };
    }
    if !is_rpc && results.is_empty() && errors == 0 {
        return Incoming::Noise;
    }
    let why = match (all_ids, results.len(), errors) {
        _ if !is_closed => "the answer is cut short".to_owned(),
        (2.., _, _) => "the answer has more than one id".to_owned(),
        (_, 2.., _) | (_, _, 2..) => "the answer has more than one result or error".to_owned(),
        _ => format!("the answer cannot be read: {why}"),
    };
    Incoming::Broken { ids, why, is_cut: !is_closed }
}

/// Finds the request that an incomplete text responds to.
pub(crate) fn cut_short(text: Vec<u8>) -> Incoming {
    salvage(text, "")
}

/// The result in a frame that is a response.
pub fn response(line: Vec<u8>) -> Option<RawAnswer> {
    match parse(line) {
        Incoming::Response { body: Ok(answer), .. } => Some(answer),
        _ => None,
    }
}

/// The range of `part`, a slice of `line`.
fn place_of(line: &[u8], part: &[u8]) -> Range<usize> {
    let start = (part.as_ptr() as usize).saturating_sub(line.as_ptr() as usize);
    start..start + part.len()
}

/// Our ids are whole numbers; some servers return them as strings or floats.
fn our_id(raw: &[u8]) -> Option<u64> {
    integer(raw).and_then(|id| id.try_into().ok())
}

/// The kind of an oversized message, from its two ends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OversizeKind {
    /// The response to this request.
    Response(u64),
    /// A request or notification of the server.
    Other,
    /// No id was found.
    Unknown,
}

/// Finds the request that an oversized message responds to, from its two ends.
pub(crate) fn identify(head: &[u8], tail: &[u8]) -> OversizeKind {
    for part in scan::members(head) {
        match part.key {
            b"method" => return OversizeKind::Other,
            b"id" if part.is_whole => {
                if let Some(id) = our_id(part.value) {
                    return OversizeKind::Response(id);
                }
            }
            _ => {}
        }
    }
    scan_tail(tail)
}

/// Finds an `"id"` after which the rest of the line completes the outermost object.
fn scan_tail(tail: &[u8]) -> OversizeKind {
    let mut end = tail.len();
    while let Some(at) = memchr::memmem::rfind(&tail[..end], b"\"id\"") {
        end = at;
        let mut object = Vec::with_capacity(tail.len() - at + 1);
        object.push(b'{');
        object.extend_from_slice(&tail[at..]);
        if let Ok(envelope) = serde_json::from_slice::<Envelope<'_>>(&object)
            && let Some(id) = envelope.id.and_then(|id| our_id(id.get().as_bytes()))
        {
            return OversizeKind::Response(id);
        }
    }
    OversizeKind::Unknown
}

/// A request. `params` is JSON text.
pub(crate) fn request(id: u64, method: &str, params: &str) -> String {
    begin(id, method, params) + "}"
}

/// The beginning of a request. `head` is the beginning of the JSON text of its params.
pub(crate) fn begin(id: u64, method: &str, head: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{head}")
}

/// A notification.
pub(crate) fn notification(method: &str, params: Option<&str>) -> String {
    match params {
        Some(params) => format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{params}}}"),
        None => format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\"}}"),
    }
}

/// The notification that a request is cancelled; its time ended or ends at `deadline`.
pub(crate) fn cancelled(id: u64, deadline: Instant) -> String {
    let reason = if Instant::now() >= deadline { "timeout" } else { "cancelled" };
    notification("notifications/cancelled", Some(&format!("{{\"requestId\":{id},\"reason\":\"{reason}\"}}")))
}

/// The response to a server's request that was forwarded to the client.
pub(crate) fn answer(id: &str, answer: &Result<String, ClientError>) -> String {
    let body = match answer {
        Ok(result) => format!("\"result\":{result}"),
        Err(ClientError { code, message }) => {
            format!("\"error\":{{\"code\":{code},\"message\":{}}}", serde_json::Value::from(&**message))
        }
    };
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{body}}}")
}

/// The response to a server's request that is not forwarded. This client itself supports little: `ping`
/// works, roots are empty.
pub(crate) fn reply(id: &str, method: &str) -> String {
    let body = match method {
        "ping" => r#""result":{}"#,
        "roots/list" => r#""result":{"roots":[]}"#,
        _ => r#""error":{"code":-32601,"message":"Method not found"}"#,
    };
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{body}}}")
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(error, ErrorObject { code: -1, message: "no".into(), data: None });
    }

    #[test]
    fn noise_requests_and_notifications_are_told_apart() {
        assert!(matches!(parse(b"Server started".to_vec()), Incoming::Noise));
        assert!(matches!(parse(b"".to_vec()), Incoming::Noise));
        assert!(matches!(parse(b"[1]".to_vec()), Incoming::Noise));
        let ping = parse(br#"{"id":"x","method":"ping"}"#.to_vec());
        assert!(matches!(ping, Incoming::Request { id, .. } if id == "\"x\""));
        let changed = parse(br#"{"method":"notifications/tools/list_changed"}"#.to_vec());
        assert!(matches!(changed, Incoming::Notification { .. }));
    }

    /// `=text`: the result; `ids: why`: malformed; `noise`.
    fn read(text: &[u8]) -> String {
        let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match parse(text.to_vec()) {
            Incoming::Response { id, body: Ok(answer) } => format!("{id}={}", lossy(answer.bytes())),
            Incoming::Response { id, body: Err(error) } => format!("{id}!{}", error.message),
            Incoming::Broken { ids, why, .. } => format!("{ids:?} {why}"),
            Incoming::Batch(frames) => format!("batch of {}", frames.len()),
            Incoming::Noise => "noise".to_owned(),
            Incoming::Open(text) => match cut_short(text) {
                Incoming::Broken { ids, why, .. } => format!("{ids:?} {why}"),
                other => format!("open {other:?}"),
            },
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn a_broken_answer_says_whose_it_is() {
        let table: &[(&[u8], &str)] = &[
            (br#"{"id":7.0,"result":1}"#, "7=1"),
            (br#"{"id":"7","result":null}"#, "7=null"),
            (br#"{"id":7e0,"result":1}"#, "7=1"),
            (br#"{"id":7.5,"result":1}"#, "noise"),
            (br#"{"jsonrpc":"2.0","id":7}"#, "7!response has neither result nor error"),
            (b"{\"id\":7,\"result\":\"\xff\"}", "7=\"\u{fffd}\""),
            (br#"{"id":7,"result":NaN}"#, "7=NaN"),
            (br#"{"result":{"a":-Infinity},"id":7}"#, "7={\"a\":-Infinity}"),
            (br#"{"id":7,"result":{"a":"\ud800"}}"#, r#"7={"a":"\ud800"}"#),
            (br#"{"id":7,"id":8,"result":1}"#, "[7, 8] the answer has more than one id"),
            (br#"{"id":7,"id":7,"result":1}"#, "[7] the answer has more than one id"),
            (br#"{"id":7,"result":1,"result":2}"#, "[7] the answer has more than one result or error"),
            (br#"{"id":7,"result":1,"error":{"message":"both"}}"#, "7!both"),
            (br#"{"id":7,"error":"as text"}"#, "7!as text"),
            (br#"{"id":7,"result":{"cont"#, "[7] the answer is cut short"),
            (br#"{"result":{"cont":1},"id":7"#, "[] the answer is cut short"),
            (br#"{"jsonrpc":"2.0","result":{}}"#, "[] the answer has no id"),
            (br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}"#, "[] what?"),
            (br#"{"id":null,"result":{}}"#, "noise"),
            (br#"{"level":"error","error":"a log line"}"#, "noise"),
            (br#"{"level":"error","id":7,"msg":NaN}"#, "noise"),
            (br#"{"id":7,"method":"x","params":NaN}"#, "noise"),
            (br#"[{"id":7,"result":1},{"method":"x"}, 5]"#, "batch of 2"),
            (b"[1, 2]", "noise"),
            (b"{ booting", "open Noise"),
            (
                br#"{"id":7,"result":1} trailing"#,
                "[7] the answer cannot be read: trailing characters at line 1 column 21",
            ),
            (
                br#"{"id":7,"result":1,,}"#,
                "[7] the answer cannot be read: key must be a string at line 1 column 20",
            ),
            (br#"{"id":7,"result":1}{"id":8,"result":1} {"id":9,"#, "batch of 3"),
        ];
        for (text, want) in table {
            assert_eq!(read(text), *want, "{}", String::from_utf8_lossy(text));
        }
        let nested = format!("{{\"id\":7,\"result\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(read(nested.as_bytes()).starts_with("7=[[["));
        let long_id = format!("{{\"id\":\"{}\",\"method\":\"ping\"}}", "x".repeat(1 << 20));
        assert_eq!(read(long_id.as_bytes()), "noise");
    }

    #[test]
    fn the_id_of_an_over_long_line_is_found_at_either_end() {
        let find = |head: &str, tail: &str| identify(head.as_bytes(), tail.as_bytes());
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
