//! Defines the error of a failed request to a server ([`UpstreamFault`]), and maps it to the reason that programs see.

use crate::{ErrorObject, LoginNeed};
use ptc_base::net::{NetError, NetFault};
use ptc_calls::run::outcome::CallFault;
use std::sync::Arc;
use std::time::Duration;

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamFault {
    /// The server could not start, crashed, is waiting to restart, or was stopped.
    Unavailable(String),
    /// This request failed, but the server may take the next one: it refuses requests for now, or the connection of this
    /// request broke.
    Transient {
        /// What happened, in words for people.
        why: String,
        /// How long the server wants to be left alone, if it says so.
        after: Option<Duration>,
    },
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
    /// A failure that may pass.
    pub(crate) fn transient(why: impl Into<String>) -> UpstreamFault {
        UpstreamFault::Transient { why: why.into(), after: None }
    }

    /// The reason that programs see.
    pub fn reason(&self) -> CallFault {
        match self {
            UpstreamFault::Unavailable(_) | UpstreamFault::Transient { .. } => CallFault::UpstreamUnavailable,
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
            NetFault::Reset | NetFault::Idle | NetFault::ConnectTimeout | NetFault::Unreachable => {
                UpstreamFault::transient(error.to_string())
            }
            NetFault::Setup | NetFault::Dns | NetFault::Refused | NetFault::Tls => {
                UpstreamFault::Unavailable(error.to_string())
            }
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
            | UpstreamFault::Transient { why: text, .. }
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

/// A start that is under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StartUnderWay {
    /// How long it has taken so far.
    pub elapsed: Duration,
    /// How long the last start took, if that is known.
    pub usual: Option<Duration>,
}
