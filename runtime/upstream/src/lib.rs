//! Clients of upstream servers (a name, a list of tools, calls that end in raw bytes or a fault), and the configuration
//! of servers.
//!
//! [`Upstream`] hides processes, sockets and protocols. From top to bottom:
//!
//! - `config`: the configuration file, read into entries of servers.
//! - `owners`: a server with a connection for each caller, which has its own login.
//! - `supervisor`: the life of a server, whatever its transport: starts, restarts, its tool list, its end.
//! - `openapi`: plain JSON services that a document describes.
//! - `mcp`: the protocol as a client speaks it: a connection that wraps another one.
//! - `transport`: how a server is reached: connections, events; a folder for each transport.
//! - `request`: one request to a server, from the broker to the wire. `listing`: lists of tools, bounded.
//! - `relay`: one server for another process of this user.
//! - `recorded`: a server of a recording.
//! - `overflow`: a response in memory, or in a spill file if it is large.
//! - `jsonrpc`: messages as text.
//! - `login`: a login that a server waits for.
//! - `progress`: which call a progress notification belongs to, and what its listener gets.
//! - `client_features`: what servers may ask of the client that this process serves; `callers`: which of many is meant.
//!
//! The [`Catalog`](ptc_calls::tools::Catalog) holds the tools of all servers.

mod callers;
mod client_features;
pub mod config;
#[cfg(test)]
mod documents;
mod jsonrpc;
mod listing;
mod login;
mod mcp;
mod openapi;
mod overflow;
mod owners;
mod progress;
mod recorded;
mod relay;
mod request;
mod supervisor;
mod transport;

pub use client_features::ClientFeatures;
pub use jsonrpc::error::shorten;
pub use jsonrpc::message::response;
pub use jsonrpc::{ErrorObject, RawAnswer};
pub use login::LoginNeed;
pub(crate) use openapi::DEFAULT_SCHEMA_BYTES;
pub(crate) use openapi::is_pattern;
pub use openapi::{
    OpenApiInspection, OpenApiSpec, OperationOverride, SchemaSource, inspect_openapi, is_openapi_document,
};
pub use overflow::AnswerWriter;
pub use owners::OwnedUpstreams;
pub use ptc_calls::run::client::{
    CallingClient, ClientAnswer, ClientError, ClientTag, Offered, ProgressListener, ServedClient, ToolStep,
};
pub use ptc_calls::run::outgoing::Arguments;
pub use recorded::RecordedUpstream;
pub use relay::ServerRelay;
pub use request::{CallLimits, CallResult, Envelope, Era, Mirrored, ResultSink, ServerRequest, TaskNotes};
pub use supervisor::{FailedStart, StartPermits, SupervisedUpstream, SupervisorOptions};
pub use transport::http::{EventParser, ServerSentEvent};
pub use transport::http::{HttpProtocol, HttpSpec};
pub use transport::local::{LocalHandler, LocalSpec, LocalWork};
pub(crate) use transport::stdio::is_inherited;
pub use transport::stdio::{
    ATTACHED, AttachedSpec, Environment, Guardian, StdioSpec, forget_companion, resolve_command,
    spawn_companion,
};
pub(crate) use transport::unusable::UnusableEntry;
pub use transport::{
    ConnectContext, Connection, ConnectionEnd, Location, Opened, Opening, ServerEvents, Transport,
};

use ptc_base::net::{NetError, NetFault};
use ptc_calls::run::outcome::CallFault;
use ptc_calls::tools::{ServerText, ToolList};
use std::sync::Arc;
use std::time::Duration;

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamFault {
    /// The server could not start, crashed, is waiting to restart, or was stopped.
    Unavailable(String),
    /// The upstream answered with a JSON-RPC error.
    Rpc(ErrorObject),
    /// The upstream answered with something that is no answer.
    Protocol(String),
    /// The deadline passed.
    Timeout(Duration),
    /// The server still starts; the start goes on.
    Starting {
        /// Which.
        server: Arc<str>,
        /// The start.
        start: StartUnderWay,
        /// How long the caller was ready to wait.
        patience: Duration,
    },
    /// The server, or this request, needs a login by a person.
    LoginRequired(LoginNeed),
    /// The server refuses the request for scopes that a person has agreed to already.
    ScopeDenied(String),
    /// The answer was too large.
    TooLarge {
        /// Size of the answer as received.
        bytes: u64,
        /// The limit of this call.
        cap: u64,
    },
}

impl UpstreamFault {
    /// The reason that programs see.
    pub fn reason(&self) -> CallFault {
        match self {
            UpstreamFault::Unavailable(_) => CallFault::UpstreamUnavailable,
            UpstreamFault::Rpc(_) | UpstreamFault::Protocol(_) => CallFault::UpstreamError,
            UpstreamFault::Timeout(_) => CallFault::Timeout,
            UpstreamFault::Starting { .. } => CallFault::Starting,
            UpstreamFault::LoginRequired(_) => CallFault::LoginRequired,
            UpstreamFault::ScopeDenied(_) => CallFault::ScopeDenied,
            UpstreamFault::TooLarge { .. } => CallFault::ResponseTooLarge,
        }
    }
}

impl From<&NetError> for UpstreamFault {
    fn from(error: &NetError) -> UpstreamFault {
        match error.fault {
            NetFault::TooLarge { bytes, cap } => UpstreamFault::TooLarge { bytes, cap },
            // A server answers, but with a wrong protocol.
            NetFault::Garbage | NetFault::Redirect => UpstreamFault::Protocol(error.to_string()),
            _ => UpstreamFault::Unavailable(error.to_string()),
        }
    }
}

impl From<String> for UpstreamFault {
    fn from(why: String) -> UpstreamFault {
        UpstreamFault::Unavailable(why)
    }
}

impl From<NetError> for UpstreamFault {
    fn from(error: NetError) -> UpstreamFault {
        UpstreamFault::from(&error)
    }
}

impl std::fmt::Display for UpstreamFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            UpstreamFault::Unavailable(text)
            | UpstreamFault::Protocol(text)
            | UpstreamFault::ScopeDenied(text) => f.write_str(text),
            UpstreamFault::Rpc(error) => f.write_str(&error.message),
            UpstreamFault::LoginRequired(need) => need.fmt(f),
            UpstreamFault::Timeout(after) => write!(f, "no answer within {} ms", after.as_millis()),
            UpstreamFault::Starting { server, start, patience } => {
                let elapsed = start.elapsed.as_secs_f64();
                write!(f, "{server} is still starting: {elapsed:.1} s so far")?;
                if let Some(usual) = start.usual {
                    write!(f, ", usually {:.1} s", usual.as_secs_f64())?;
                }
                let most = patience.as_secs_f64();
                write!(f, ". The start goes on; a call waits {most} s for it (--upstream-start-timeout)")
            }
            UpstreamFault::TooLarge { bytes, cap } => {
                write!(f, "response {bytes} bytes exceeds max_upstream_response_bytes ({cap})")
            }
        }
    }
}

/// The state of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamState {
    /// Configured, not started yet.
    Idle,
    /// Handshake or first listing under way.
    Starting,
    /// Takes calls.
    Ready,
    /// It crashed; calls are refused until the recovery window has passed.
    BackingOff,
    /// It could not start; the next call after the recovery window tries again.
    Failed,
    /// It waits for a login; the next call after that starts it.
    LoginRequired,
    /// Shut down.
    Stopped,
}

impl UpstreamState {
    /// Its name for people.
    pub const fn name(self) -> &'static str {
        match self {
            UpstreamState::Idle => "idle",
            UpstreamState::Starting => "starting",
            UpstreamState::Ready => "ready",
            UpstreamState::BackingOff => "backing off",
            UpstreamState::Failed => "failed",
            UpstreamState::LoginRequired => "login required",
            UpstreamState::Stopped => "stopped",
        }
    }
}

/// A start that is under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StartUnderWay {
    /// How long it has taken so far.
    pub elapsed: Duration,
    /// How long the last start took, if that is known.
    pub usual: Option<Duration>,
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
