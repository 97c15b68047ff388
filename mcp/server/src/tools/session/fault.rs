//! Defines the errors with which calls of the session tools (`lisp_session_…`) fail, as clients see them.

/// Why a call of a session tool failed.
#[derive(Clone, Debug)]
pub struct SessionFault {
    /// The reason on the wire.
    pub reason: SessionReason,
    /// The message.
    pub message: String,
    /// The session, where its id helps.
    pub session_id: Option<String>,
}

/// The reasons of session tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionReason {
    /// The arguments are wrong.
    Arguments,
    /// No session had this id.
    NotFound,
    /// The session has ended.
    Closed,
    /// A program is running in it.
    Busy,
    /// A quota of sessions is used up.
    TooMany,
    /// The state of the server does not hold it.
    Unavailable,
}

impl SessionReason {
    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            SessionReason::Arguments => "session_args_error",
            SessionReason::NotFound => "session_not_found",
            SessionReason::Closed => "session_closed",
            SessionReason::Busy => "session_busy",
            SessionReason::TooMany => "session_limit_exceeded",
            SessionReason::Unavailable => "state_unavailable",
        }
    }
}

impl SessionFault {
    /// Makes a fault with this reason and message.
    pub fn new(reason: SessionReason, message: impl Into<String>) -> SessionFault {
        SessionFault { reason, message: message.into(), session_id: None }
    }

    /// Makes a fault about wrong arguments.
    pub fn arguments(message: impl Into<String>) -> SessionFault {
        SessionFault::new(SessionReason::Arguments, message)
    }

    /// Makes a fault about a session with a running program.
    pub fn busy(id: &str) -> SessionFault {
        let fault = SessionFault::new(SessionReason::Busy, "an eval is already running for this session");
        SessionFault { session_id: Some(id.to_owned()), ..fault }
    }
}
