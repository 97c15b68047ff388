//! A call on its way to an upstream, what comes back, and the limits an upstream puts on calls.

use super::{Arguments, RawAnswer};
use crate::run::client::CallingClient;
use crate::run::trace::TraceContext;
use crate::spill::{RawSpill, SpillStore};
use crate::tools::CallTarget;
use std::sync::Arc;
use std::time::Duration;

/// One call, ready to send.
#[derive(Debug)]
pub struct CallRequest {
    /// What it asks for.
    pub target: CallTarget,
    /// JSON object text; of a list or a resource nothing.
    pub arguments: Arguments,
    /// Wall clock of the call, a needed start and a wait for its turn included.
    pub timeout: Duration,
    /// Where the result goes.
    pub sink: ResultSink,
    /// The trace that the server is told of.
    pub trace: Option<TraceContext>,
    /// Whom the server may ask while the call is under way.
    pub client: Option<CallingClient>,
}

/// Where the result of a call goes.
#[derive(Clone, Debug)]
pub enum ResultSink {
    /// Into memory; a larger answer is refused before it is decoded.
    Inline {
        /// Most bytes of the answer.
        max_bytes: usize,
    },
    /// Into memory, or as it comes into a file if it is larger.
    Spill {
        /// Most bytes of an answer in memory.
        max_bytes: usize,
        /// Where the file is made.
        store: SpillStore,
    },
}

impl ResultSink {
    /// Most bytes in memory, and where more of them go, if anywhere.
    pub fn parts(self) -> (usize, Option<SpillStore>) {
        match self {
            ResultSink::Inline { max_bytes } => (max_bytes, None),
            ResultSink::Spill { max_bytes, store } => (max_bytes, Some(store)),
        }
    }
}

/// The result of a call: what it is, as its server speaks, with its bytes as they came.
#[derive(Clone, Debug)]
pub enum CallResult {
    /// The `result` of a `tools/call` of MCP: content, structuredContent, isError; or that of a `resources/read`.
    Mcp(ResultBody),
    /// JSON text that is the value itself; no text at all is no value.
    Json(ResultBody),
    /// UTF-8 text that is the value itself, whatever it looks like.
    Text(ResultBody),
    /// The tool has failed, and its server is well.
    Failed {
        /// What it says, in short and without secrets.
        message: String,
        /// JSON text with more; no text at all is no more.
        body: ResultBody,
    },
}

/// The bytes of a result, in the sink that was asked for.
#[derive(Clone, Debug)]
pub enum ResultBody {
    /// In memory.
    Inline(RawAnswer),
    /// In a file, as it came: of MCP, the whole message.
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

/// What one upstream's configuration says about calls to it. What it leaves open the program's own limits
/// decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallLimits {
    /// Wall clock of one call.
    pub timeout: Option<Duration>,
    /// Most bytes of one answer.
    pub max_response_bytes: Option<usize>,
    /// Calls in flight at once, of all programs; more of them wait for their turn.
    pub max_concurrent: Option<usize>,
    /// Calls that one program may make.
    pub max_calls_per_program: Option<u32>,
    /// Results that are too large are kept for programs instead of being refused.
    pub spills_large: bool,
}
