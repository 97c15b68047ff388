//! Defines the JSON messages between nodes (server processes with the same database): relayed requests, their answers,
//! and changes of sessions.

use crate::protocol::log_level::LogLevel;
use crate::protocol::{Frame, Message, Raw};
use crate::tools::{CallOwner, lisp_run};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A message, with its sender.
#[derive(Debug, Serialize, Deserialize)]
struct Envelope {
    from: String,
    message: NodeMessage,
}

/// A message to other nodes.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::server::http) enum NodeMessage {
    /// The node that has this is to say so, before it gets a large request.
    Find { id: u64, owner: u64, claim: Claim },
    /// The node that has what this request needs is to answer it.
    Ask { id: u64, request: SentRequest },
    /// A part of the answer to the request of a node. Its number is how many parts went before, those that only say that
    /// the node lives left out.
    Reply { to: String, id: u64, number: u64, reply: Reply },
    /// The client of a request has gone.
    Left { id: u64 },
    /// Something about a session: the nodes that have it are to know.
    Session { owner: u64, session: String, update: SessionUpdate },
}

/// A request as it is sent. What it needs is not said: the node that answers reads that from the body, so that the body
/// cannot be for something else.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::server::http) struct SentRequest {
    pub(super) owner: u64,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
}

/// A request that another node is to answer.
#[derive(Clone, Debug)]
pub(in crate::server::http) struct AskedRequest {
    pub(in crate::server::http) claim: Claim,
    pub(super) sent: SentRequest,
}

/// What a request needs that one node has in memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::server::http) enum Claim {
    /// The task, or the run of `lisp_run`, with this id.
    Task(String),
    /// The parked run with this `requestState`.
    State(String),
}

/// A part of an answer: the whole one, or a head, some text, and the end.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::server::http) enum Reply {
    /// The node has what the request needs, and works on it.
    Alive,
    /// The node has what the request needs, and cannot answer.
    Cannot(Inability),
    /// An answer that is no stream.
    Whole { status: u16, headers: Vec<(String, String)>, text: String },
    /// Status and headers.
    Head { status: u16, headers: Vec<(String, String)> },
    /// Some text of the body.
    Text(String),
    /// The body is over.
    Over,
}

/// Why a node that has what a request needs cannot answer it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::server::http) enum Inability {
    /// It has not seen a token of this owner since it started, or not since the last one expired.
    NoToken,
    /// It answers too many requests of other nodes.
    Busy,
}

/// Something about a session.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::server::http) enum SessionUpdate {
    /// The client has closed it.
    Closed,
    /// The client has sent an answer or a cancellation that fits no call of the sender: the text of the message.
    Message(String),
    /// The level of its log messages.
    Log(String),
}

impl NodeMessage {
    /// The text of a message of this node.
    pub(super) fn sent_by(self, from: &str) -> String {
        // Plain data.
        serde_json::to_string(&Envelope { from: from.to_owned(), message: self }).unwrap_or_default()
    }

    /// The sender and the message; `None` for a message of a node of another version.
    pub(super) fn read(text: &str) -> Option<(String, NodeMessage)> {
        let Envelope { from, message } = serde_json::from_str(text).ok()?;
        Some((from, message))
    }

    /// A new level of log messages.
    pub(in crate::server::http) fn log(owner: u64, session: &str, level: LogLevel) -> NodeMessage {
        NodeMessage::Session {
            owner,
            session: session.to_owned(),
            update: SessionUpdate::Log(level.name().to_owned()),
        }
    }
}

impl AskedRequest {
    /// A request with this claim. `None`: its body is no text.
    pub(in crate::server::http) fn new(
        owner: CallOwner,
        claim: Claim,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Option<AskedRequest> {
        let body = String::from_utf8(body.to_vec()).ok()?;
        let sent = SentRequest { owner: owner.0, headers: sent_headers(headers), body };
        Some(AskedRequest { claim, sent })
    }
}

impl SentRequest {
    /// What it needs, if it needs something that one node has.
    pub(super) fn claim(&self) -> Option<Claim> {
        let mut frame = Frame::default();
        Claim::of(&frame.read(self.body.as_bytes()).ok()?)
    }
}

impl Claim {
    /// What a message needs, if it needs something that one node has.
    pub(in crate::server::http) fn of(message: &Message<'_, '_>) -> Option<Claim> {
        let Message::Request { method, params: Ok(params), .. } = message else { return None };
        let text = |raw: Option<Raw<'_>>| Some(raw?.string()?.into_owned());
        match *method {
            "tools/call" => match text(params.request_state) {
                Some(state) => Some(Claim::State(state)),
                None if params.name.as_deref() == Some(lisp_run::NAME) => {
                    match &params.arguments_value()["run_id"] {
                        Value::String(run) => Some(Claim::Task(run.clone())),
                        _ => None,
                    }
                }
                None => None,
            },
            "tasks/get" | "tasks/result" | "tasks/update" | "tasks/cancel" => {
                text(params.task_id).map(Claim::Task)
            }
            _ => None,
        }
    }
}

/// The headers that a message takes along: all but those that belong to one connection, and credentials.
pub(in crate::server::http) fn sent_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let is_sent = |name: &HeaderName| {
        let name = name.as_str();
        name.starts_with("mcp-")
            || matches!(
                name,
                "accept" | "content-type" | "retry-after" | "cache-control" | "traceparent" | "tracestate"
            )
    };
    let sent = headers.iter().filter(|(name, _)| is_sent(name));
    sent.filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())))
        .collect()
}

/// Headers of a message.
pub(in crate::server::http) fn received_headers(headers: Vec<(String, String)>) -> HeaderMap {
    let read = |(name, value): (String, String)| {
        Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?))
    };
    headers.into_iter().filter_map(read).collect()
}
