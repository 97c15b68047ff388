//! Builds the answers to tool calls: a response profile selects how much of the full record of a run the client sees.
//!
//! # Layout
//!
//! - [`record`]: one run with the result of validation, before any profile.
//! - [`profile`]: slim, structured and debug; the only place where a response is cut down.
//! - [`caps`]: size limits of the profiles.
//! - [`effects`]: what a failed program may have changed. `summary`: what records of calls contain. `planner`:
//!   what records of tasks contain.
//! - [`outcome`]: the JSON form of an outcome on the command line. [`report`]: the JSON form of errors and
//!   warnings.

pub mod caps;
pub mod effects;
pub mod outcome;
mod planner;
pub mod profile;
pub mod record;
pub mod report;
mod summary;

pub use planner::{PlannerRound, PlannerSummary, TaskSummary, trace_id};
pub use summary::{CallSummary, SessionEntry};

use crate::protocol::LogMessage;
use ptc_calls::outcome::Media;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// A finished call: the result of `tools/call` without the envelope of its era, and what is logged and recorded of it.
#[derive(Clone, Debug)]
pub struct ToolAnswer<'a> {
    /// True for every ending without an answer.
    pub is_error: bool,
    /// Content for the model.
    pub content: Content<'a>,
    /// `structuredContent`.
    pub structured: Option<Value>,
    /// Log notifications to send before it, if the client asked for them.
    pub log: Vec<LogMessage>,
    /// Data for the record of the call.
    pub summary: CallSummary<'a>,
}

impl<'a> ToolAnswer<'a> {
    /// A success with this content alone.
    pub fn new(content: Content<'a>) -> ToolAnswer<'a> {
        let (log, summary) = (Vec::new(), CallSummary::default());
        ToolAnswer { is_error: false, content, structured: None, log, summary }
    }

    /// Copies what is borrowed, except for the run.
    pub fn without_run(self) -> ToolAnswer<'static> {
        let ToolAnswer { is_error, content, structured, log, summary } = self;
        let (content, summary) = (content.into_owned(), summary.without_run());
        ToolAnswer { is_error, content, structured, log, summary }
    }
}

impl ToolAnswer<'static> {
    /// An answer that no profile shortens: data, repeated as text.
    pub fn data(data: Value, is_error: bool) -> ToolAnswer<'static> {
        let content = Content::Text(data.to_string().into());
        ToolAnswer { is_error, structured: Some(data), ..ToolAnswer::new(content) }
    }
}

/// What the data of an answer say of a call that failed.
pub fn refusal_data(reason: &str, message: &str) -> Value {
    json!({ "status": "error", "reason": reason, "message": message, "feedback": message })
}

/// The content blocks of a result.
#[derive(Clone, Debug)]
pub enum Content<'a> {
    /// One text block.
    Text(Cow<'a, str>),
    /// An array of content blocks in MCP's JSON form.
    Blocks(Box<RawValue>),
    /// Blocks, and members of the result that MCP does not define.
    Extended {
        /// An array of blocks.
        blocks: Box<RawValue>,
        /// Further members.
        members: Map<String, Value>,
    },
    /// No content yet: the client is to answer these requests and to repeat its call (2026-07-28 only).
    InputRequired {
        /// Requests by the names that the answers will have.
        requests: Box<Map<String, Value>>,
        /// State that the client is to send back with its answers.
        state: Option<String>,
    },
}

impl<'a> Content<'a> {
    /// Appends images and sounds.
    fn with(self, media: &[Media]) -> Content<'a> {
        let Content::Text(text) = &self else { return self };
        let text = json!({ "type": "text", "text": text });
        let media = media.iter().map(serde_json::value::to_raw_value);
        let blocks: Result<Vec<_>, _> =
            std::iter::once(serde_json::value::to_raw_value(&text)).chain(media).collect();
        match blocks.and_then(|blocks| serde_json::value::to_raw_value(&blocks)) {
            Ok(blocks) => Content::Blocks(blocks),
            // Serializing strings cannot fail.
            Err(_) => self,
        }
    }

    /// Copies a borrowed text.
    pub fn into_owned(self) -> Content<'static> {
        match self {
            Content::Text(text) => Content::Text(text.into_owned().into()),
            Content::Blocks(blocks) => Content::Blocks(blocks),
            Content::Extended { blocks, members } => Content::Extended { blocks, members },
            Content::InputRequired { requests, state } => Content::InputRequired { requests, state },
        }
    }
}

/// The values of `reason` that this crate adds to those of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// The arguments of the call are wrong.
    ArgsError,
    /// Too many requests wait, on a transport that cannot hold its client back.
    Busy,
    /// No such tool.
    UnknownTool,
    /// `shutdown` was received.
    ShuttingDown,
    /// Another request of its client cancelled it, on a transport where each request needs a response.
    Cancelled,
    /// A session cannot be used; its reason.
    Session(&'static str),
}

impl RefusalReason {
    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            RefusalReason::ArgsError => "args_error",
            RefusalReason::Busy => "busy",
            RefusalReason::UnknownTool => "unknown_tool",
            RefusalReason::ShuttingDown => "shutting_down",
            RefusalReason::Cancelled => "cancelled",
            RefusalReason::Session(reason) => reason,
        }
    }
}

/// Answers a call that was refused before anything ran.
pub fn refused(
    profile: caps::Profile,
    reason: RefusalReason,
    message: impl Into<String>,
) -> ToolAnswer<'static> {
    let record = record::Record::refused(reason, message);
    let ToolAnswer { is_error, content, structured, log, .. } = profile::apply(profile, &record);
    let (content, summary) = (content.into_owned(), CallSummary::failed(reason.name()));
    ToolAnswer { is_error, content, structured, log, summary }
}
