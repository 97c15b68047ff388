//! What was said on a connection before a request, and what is said around it.

use crate::protocol::Version;
use crate::protocol::log_level::LogLevel;
use crate::tools::{CallOwner, SessionTag};
use ptc_runtime::trace::TraceContext;
use ptc_runtime::upstream::Offered;
use serde_json::Value;

/// State of one connection; of the handshake era only but for whose it is, the other one has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HandshakeState {
    pub(super) owner: CallOwner,
    pub(super) session: SessionTag,
    pub(super) draining: bool,
    pub(super) log: Option<LogLevel>,
    /// The revision that was agreed on.
    pub(super) version: Option<Version>,
    /// The client has finished its handshake, so it may be sent notifications.
    pub(super) initialized: bool,
    /// What it offers, once it has said so.
    pub(super) offered: Option<Offered>,
    /// The trace that a request belongs to which does not say so itself.
    pub(super) trace: Option<TraceContext>,
}

impl HandshakeState {
    /// A connection of this owner, on which nothing has been said.
    pub fn of(owner: CallOwner) -> HandshakeState {
        HandshakeState { owner, ..HandshakeState::default() }
    }

    /// The same within a session that may end before the connection does.
    pub fn within(self, session: SessionTag) -> HandshakeState {
        HandshakeState { session, ..self }
    }

    /// The same for a request that belongs to this trace unless it says otherwise.
    pub fn traced(self, trace: Option<TraceContext>) -> HandshakeState {
        HandshakeState { trace, ..self }
    }

    /// The revision that was agreed on, if one was.
    pub fn version(&self) -> Option<Version> {
        self.version
    }

    /// True when the client may be told of changes without having subscribed.
    pub fn is_initialized(&self) -> bool {
        self.initialized
    }

    /// What the client offers, once it has said so.
    pub fn offered(&self) -> Option<Offered> {
        self.offered
    }
}

/// What the capabilities of a client say that it offers. An `elicitation` that names no mode means forms.
pub(super) fn offered(capabilities: &str) -> Offered {
    let capabilities: Value = serde_json::from_str(capabilities).unwrap_or_default();
    let modes = capabilities["elicitation"].as_object();
    Offered {
        elicitation: modes.is_some_and(|modes| modes.is_empty() || modes.contains_key("form")),
        roots: capabilities["roots"].is_object(),
    }
}
