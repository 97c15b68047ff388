//! Defines the trait [`Upstream`], through which callers start a server of any kind, query its status and its tools,
//! and call it.

use crate::{CallLimits, CallResult, CallingClient, ServerRequest, StartUnderWay, UpstreamFault};
use ptc_base::named_enum;
use ptc_calls::tools::{ServerText, ToolList};
use std::sync::Arc;
use std::time::Duration;

named_enum! {
    /// The state of an upstream.
    pub enum UpstreamState {
        /// Configured, not started yet.
        Idle = "idle",
        /// Handshake or first listing under way.
        Starting = "starting",
        /// Takes calls.
        Ready = "ready",
        /// It crashed; calls are refused until the recovery window has passed.
        BackingOff = "backing off",
        /// It could not start; the next call after the recovery window tries again.
        Failed = "failed",
        /// It waits for a login; the next call after that starts it.
        LoginRequired = "login required",
        /// Shut down.
        Stopped = "stopped",
    }
}

/// A snapshot of one upstream.
#[derive(Clone, Debug)]
pub struct UpstreamStatus {
    /// Its state.
    pub state: UpstreamState,
    /// Why it is not ready, when that is known.
    pub error: Option<ServerText>,
    /// How long the last successful start took, handshake and listing included.
    pub start_duration: Option<Duration>,
    /// The start that is under way.
    pub starting: Option<StartUnderWay>,
    /// `name version` as the server reported them.
    pub server_info: Option<String>,
    /// Negotiated version of the protocol.
    pub protocol: Option<String>,
}

impl UpstreamStatus {
    /// Why its tools cannot be called while it is not ready.
    pub fn trouble(self) -> String {
        self.error.map_or_else(|| format!("upstream is {}", self.state.name()), |error| error.to_string())
    }
}

/// A server with tools that programs can call. It may be a process, a remote server, a plain JSON service or a
/// set of local tools.
#[async_trait::async_trait]
pub trait Upstream: Send + Sync {
    /// Configured name.
    fn name(&self) -> &Arc<str>;

    /// Configured description.
    fn description(&self) -> Option<&str>;

    /// Its state.
    fn status(&self) -> UpstreamStatus;

    /// True if it takes calls at once.
    fn is_ready(&self) -> bool {
        self.status().state == UpstreamState::Ready
    }

    /// Configured limits of calls.
    fn limits(&self) -> &CallLimits;

    /// The last tool list; `None` until one was loaded. The same as in the catalog.
    fn tools(&self) -> Option<Arc<ToolList>>;

    /// The connection of this caller, where each caller has one of its own.
    fn for_caller(&self, _caller: Option<&CallingClient>) -> Option<Arc<dyn Upstream>> {
        None
    }

    /// Starts it if necessary and waits until it takes calls. Concurrent callers share one start.
    async fn start(&self) -> Result<(), UpstreamFault>;

    /// Calls a tool or another target. Starts the upstream if its recovery window allows that. Dropping the
    /// future cancels the call at the server.
    async fn call(&self, request: ServerRequest) -> Result<CallResult, UpstreamFault>;

    /// Shuts it down for good; calls in flight fail.
    async fn stop(&self);
}
