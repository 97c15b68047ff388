//! How a call is answered: recorded in full, then cut down by a response profile.
//!
//! # Layout
//!
//! - [`record`]: one run, with the schema's verdict, before any profile.
//! - [`schema`]: the subset of JSON Schema that a caller may demand of a result.
//! - [`validate`]: a JSON value against such a schema.
//! - [`profile`]: slim, structured and debug; the only place where a response is cut down.
//! - [`caps`]: how much of each part a profile shows.
//! - [`effects`]: what a failed program may have changed. `summary`: what records of calls keep;
//!   `planner`: what they keep of tasks.
//! - [`outcome`]: the JSON rendering of an outcome on the command line. [`report`]: that of errors and warnings.

pub mod caps;
pub mod effects;
pub mod outcome;
mod planner;
pub mod profile;
pub mod record;
pub mod report;
pub mod schema;
mod summary;
pub mod validate;

pub use planner::{PlannerSummary, PlannerTurn, TaskSummary, trace_id};
pub use summary::{CallSummary, TurnSummary};

use crate::protocol::LogMessage;
use ptc_runtime::outcome::Media;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The end of a call.
#[derive(Clone, Debug)]
pub struct ToolAnswer<'a> {
    /// Its result.
    pub result: ToolResult<'a>,
    /// What is told before it, to a client that wished for that.
    pub log: Vec<LogMessage>,
    /// What there is to record of it.
    pub summary: CallSummary<'a>,
}

impl<'a> From<ToolResult<'a>> for ToolAnswer<'a> {
    fn from(result: ToolResult<'a>) -> ToolAnswer<'a> {
        ToolAnswer { result, log: Vec::new(), summary: CallSummary::default() }
    }
}

/// The result of `tools/call`, without the envelope of its era.
#[derive(Clone, Debug)]
pub struct ToolResult<'a> {
    /// True for every ending that is not an answer.
    pub is_error: bool,
    /// What a model reads.
    pub content: Content<'a>,
    /// `structuredContent`.
    pub structured: Option<Value>,
}

/// The content blocks of a result.
#[derive(Clone, Debug)]
pub enum Content<'a> {
    /// One text block.
    Text(Cow<'a, str>),
    /// An array of blocks as MCP writes them.
    Blocks(Box<RawValue>),
    /// Blocks, and members of the result beside those that MCP names.
    Extended {
        /// An array of blocks.
        blocks: Box<RawValue>,
        /// Further members.
        members: Map<String, Value>,
    },
    /// None yet: the client is to answer these requests and to repeat its call (2026-07-28 only).
    InputRequired {
        /// Requests by names that the answers will have.
        requests: Box<Map<String, Value>>,
        /// What the client is to send back with them.
        state: Option<String>,
    },
}

impl<'a> Content<'a> {
    /// The same text with these images and sounds after it.
    fn with(self, media: &[Media]) -> Content<'a> {
        let Content::Text(text) = &self else { return self };
        let text = serde_json::json!({ "type": "text", "text": text });
        let media = media.iter().map(serde_json::value::to_raw_value);
        let blocks: Result<Vec<_>, _> =
            std::iter::once(serde_json::value::to_raw_value(&text)).chain(media).collect();
        match blocks.and_then(|blocks| serde_json::value::to_raw_value(&blocks)) {
            Ok(blocks) => Content::Blocks(blocks),
            // Texts can always be written.
            Err(_) => self,
        }
    }
}

impl ToolResult<'_> {
    /// The same, on its own.
    pub fn into_owned(self) -> ToolResult<'static> {
        let content = match self.content {
            Content::Text(text) => Content::Text(text.into_owned().into()),
            Content::Blocks(blocks) => Content::Blocks(blocks),
            Content::Extended { blocks, members } => Content::Extended { blocks, members },
            Content::InputRequired { requests, state } => Content::InputRequired { requests, state },
        };
        ToolResult { is_error: self.is_error, content, structured: self.structured }
    }
}

/// The closed set of `reason`s that this crate adds to the classes of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeReason {
    /// The arguments of the call are wrong.
    ArgsError,
    /// Too many requests wait, on a transport that cannot hold its client back.
    Busy,
    /// No such tool.
    UnknownTool,
    /// `shutdown` was received.
    ShuttingDown,
    /// It was cancelled by another request of its client, on a transport where each request has to be answered.
    Cancelled,
}

impl EdgeReason {
    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            EdgeReason::ArgsError => "args_error",
            EdgeReason::Busy => "busy",
            EdgeReason::UnknownTool => "unknown_tool",
            EdgeReason::ShuttingDown => "shutting_down",
            EdgeReason::Cancelled => "cancelled",
        }
    }
}

/// A call that was refused before anything ran.
pub fn refused(
    profile: caps::Profile,
    reason: EdgeReason,
    message: impl Into<String>,
) -> ToolAnswer<'static> {
    let result = profile::apply(profile, &record::Record::refused(reason, message)).into_owned();
    ToolAnswer { summary: CallSummary::failed(reason.name()), ..result.into() }
}
