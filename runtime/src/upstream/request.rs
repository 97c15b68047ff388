//! The request of a call to an upstream, its result, and the limits that an upstream sets on calls.

use super::{Arguments, RawAnswer};
use crate::run::client::CallingClient;
use crate::run::trace::TraceContext;
use crate::spill::{RawSpill, SpillStore};
use crate::tools::CallTarget;
use std::sync::Arc;
use std::time::Duration;

/// One call, ready to be sent.
#[derive(Debug)]
pub struct CallRequest {
    /// The target of the call.
    pub target: CallTarget,
    /// Text of a JSON object; empty for a list or a resource.
    pub arguments: Arguments,
    /// Time limit of the call, including a start of the server and waiting for a permit.
    pub timeout: Duration,
    /// Where the result goes.
    pub sink: ResultSink,
    /// The trace that is sent to the server.
    pub trace: Option<TraceContext>,
    /// The client that the server may ask while the call is under way.
    pub client: Option<CallingClient>,
}

/// Where the result of a call goes.
#[derive(Clone, Debug)]
pub enum ResultSink {
    /// Into memory; a larger result is refused before it is decoded.
    Inline {
        /// Size limit of the result.
        max_bytes: usize,
    },
    /// Into memory, or into a file if it is larger.
    Spill {
        /// Size limit of a result in memory.
        max_bytes: usize,
        /// Where the file is created.
        store: SpillStore,
    },
}

impl ResultSink {
    /// The size limit in memory, and the store for larger results, if any.
    pub fn parts(self) -> (usize, Option<SpillStore>) {
        match self {
            ResultSink::Inline { max_bytes } => (max_bytes, None),
            ResultSink::Spill { max_bytes, store } => (max_bytes, Some(store)),
        }
    }
}

/// The result of a call: its kind by the server's protocol, with the raw bytes.
#[derive(Clone, Debug)]
pub enum CallResult {
    /// The `result` of a `tools/call` of MCP: content, structuredContent, isError; or that of a `resources/read`.
    Mcp(ResultBody),
    /// JSON text that is the value itself; an empty text means no value.
    Json(ResultBody),
    /// UTF-8 text that is the value itself, even if it looks like JSON.
    Text(ResultBody),
    /// The tool failed; the server is healthy.
    Failed {
        /// A short message, with secrets redacted.
        message: String,
        /// JSON text with details; may be empty.
        body: ResultBody,
    },
}

/// The bytes of a result, in the requested sink.
#[derive(Clone, Debug)]
pub enum ResultBody {
    /// In memory.
    Inline(RawAnswer),
    /// In a file, as received: for MCP, the whole message.
    Spilled(Arc<RawSpill>),
}

impl From<RawAnswer> for ResultBody {
    fn from(answer: RawAnswer) -> ResultBody {
        match answer.spilled() {
            Some(raw) => ResultBody::Spilled(raw.clone()),
            None => ResultBody::Inline(answer),
        }
    }
}

/// Configured limits of calls to one upstream. Where one is `None`, the program's own limits apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallLimits {
    /// Time limit of one call.
    pub timeout: Option<Duration>,
    /// Size limit of one result.
    pub max_response_bytes: Option<usize>,
    /// Limit of concurrent calls, of all programs; further calls wait.
    pub max_concurrent: Option<usize>,
    /// Limit of calls of one program.
    pub max_calls_per_program: Option<u32>,
    /// Results that are too large are spilled instead of refused.
    pub spills_large: bool,
}
