//! Holds what is known of one client connection from message to message: owner, session, MCP version, declared client
//! features, log level, trace, and whether the connection is closing.

use crate::protocol::Version;
use crate::protocol::log_level::LogLevel;
use crate::tools::{CallOwner, SessionTag};
use ptc_calls::trace::TraceContext;
use ptc_upstream::Offered;
use serde_json::Value;

/// Per-connection state. Stateless clients use only `owner`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionState {
    pub(super) owner: CallOwner,
    pub(super) session: SessionTag,
    pub(super) draining: bool,
    pub(super) log: Option<LogLevel>,
    /// The negotiated version.
    pub(super) version: Option<Version>,
    /// The client has finished its handshake, so it may be sent notifications.
    pub(super) initialized: bool,
    /// The features that it declared in `initialize`.
    pub(super) offered: Option<Offered>,
    /// Trace of a request that names none itself.
    pub(super) trace: Option<TraceContext>,
}

impl ConnectionState {
    /// A fresh connection of this owner.
    pub fn for_owner(owner: CallOwner) -> ConnectionState {
        ConnectionState { owner, ..ConnectionState::default() }
    }

    /// A connection whose client has finished this handshake.
    pub(super) fn negotiated(self, version: Version, offered: Offered) -> ConnectionState {
        ConnectionState { version: Some(version), offered: Some(offered), initialized: true, ..self }
    }

    /// Sets the level of log messages.
    pub(super) fn logging(self, log: Option<LogLevel>) -> ConnectionState {
        ConnectionState { log, ..self }
    }

    /// Sets the session, which may end before the connection does.
    pub fn within(self, session: SessionTag) -> ConnectionState {
        ConnectionState { session, ..self }
    }

    /// Sets the trace for requests that name none themselves.
    pub fn traced(self, trace: Option<TraceContext>) -> ConnectionState {
        ConnectionState { trace, ..self }
    }
}

/// Reads the declared features from a client's capabilities. An `elicitation` that names no mode means forms.
pub(super) fn offered(capabilities: &str) -> Offered {
    let capabilities: Value = serde_json::from_str(capabilities).unwrap_or_default();
    let modes = capabilities["elicitation"].as_object();
    Offered {
        elicitation: modes.is_some_and(|modes| modes.is_empty() || modes.contains_key("form")),
        roots: capabilities["roots"].is_object(),
        urls: modes.is_some_and(|modes| modes.contains_key("url")),
    }
}
