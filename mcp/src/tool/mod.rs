//! What `lisp_eval` promises its clients.
//!
//! # Layout
//!
//! - [`arguments`]: `{program, context?, output_schema?}`, checked in a fixed order.
//! - [`schema`]: the subset of JSON Schema that `output_schema` may use.
//! - [`validate`]: a JSON value against such a schema.
//! - [`record`]: one run, with the schema's verdict, before any profile.
//! - [`profile`]: slim, structured and debug; the only place where a response is cut down.
//! - [`report`]: the JSON form of errors and warnings.
//! - [`effects`]: what a failed program may have changed.
//! - [`caps`]: how much of each part a profile shows.
//! - [`description`]: the text that teaches a model the language and the configured servers.
//! - [`catalog`]: the servers and tools that the description may list.
//! - [`definition`]: the entry of `tools/list`.

pub mod arguments;
pub mod caps;
pub mod catalog;
pub mod definition;
pub mod description;
pub mod effects;
pub mod profile;
pub mod record;
pub mod report;
pub mod schema;
pub mod validate;

/// Name of the tool.
pub const LISP_EVAL: &str = "lisp_eval";

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
}

impl EdgeReason {
    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            EdgeReason::ArgsError => "args_error",
            EdgeReason::Busy => "busy",
            EdgeReason::UnknownTool => "unknown_tool",
            EdgeReason::ShuttingDown => "shutting_down",
        }
    }
}
