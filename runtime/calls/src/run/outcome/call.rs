//! Defines the record of one tool call in the outcome of a run: duration, bytes, policy decision, and the reason if it
//! failed.

use super::effect::Effect;
use super::ruling::PolicyRuling;
use ptc_vm::Span;
use std::sync::Arc;
use std::time::Duration;

/// One upstream call as the operator sees it.
#[derive(Clone, Debug)]
pub struct CallRecord {
    /// Configured name of the server; `tool` for functions of the application.
    pub server: Arc<str>,
    /// Tool name as the server lists it.
    pub tool: Arc<str>,
    /// Success, or the reason of the failure.
    pub status: CallStatus,
    /// When it began, since the beginning of the run.
    pub begun: Duration,
    /// Time from sending to the answer.
    pub duration: Duration,
    /// Bytes of the tool-result payload as received: structuredContent if present, else the content text.
    /// `None` when nothing was received.
    pub result_bytes: Option<u64>,
    /// What the call may have changed.
    pub effect: Effect,
    /// SHA-256 of its arguments as canonical JSON; `None` unless the server `ptc` keeps records of calls.
    pub arguments_hash: Option<ArgumentsHash>,
    /// Its result was taken from an equal call: the server was not asked.
    pub cached: bool,
    /// What the policy decided; `None` without a policy.
    #[doc(hidden)]
    pub ruling: Option<Box<PolicyRuling>>,
    /// Its number among the calls of its run from 0, in the order of their beginnings; `None` if it was refused at once.
    pub number: Option<u64>,
    /// Where the text of its program makes it; `None` if other text does, or if that is not known.
    #[doc(hidden)]
    pub place: Option<Span>,
}

/// A SHA-256 hash.
pub type ArgumentsHash = [u8; 32];

/// How an upstream call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallStatus {
    /// The call succeeded.
    Ok,
    /// The call failed. Of a server: the program got `{:ok false …}` and went on. Of a function of the application: the
    /// program ended with `tool_error`.
    Error {
        /// The reason.
        reason: CallFault,
        /// The detail text.
        error: String,
    },
}

/// Reasons of world faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallFault {
    /// The server could not start, its handshake failed, or it is restarting after a crash.
    UpstreamUnavailable,
    /// The upstream answered with a JSON-RPC error.
    UpstreamError,
    /// The tool answered with `isError: true`.
    ToolError,
    /// The per-call deadline passed.
    Timeout,
    /// The server was still starting after the time that a call waits for a start.
    Starting,
    /// The server, or this call, needs a login by a person.
    LoginRequired,
    /// The server refuses the call for scopes that a person has agreed to already.
    ScopeDenied,
    /// The answer was too large, and was refused before decoding.
    ResponseTooLarge,
    /// The program's call budget is used up.
    CapExhausted,
    /// The program or branch ended while the call was in flight.
    Cancelled,
    /// The policy, or a person that it asked, does not allow the call.
    Denied,
    /// The tool is not the one that was pinned.
    ToolChanged,
    /// The policy wants a person to approve the call, and there is none to ask.
    ApprovalUnavailable,
    /// A replay has no recorded answer for the call.
    NotRecorded,
    /// The process ended while the call was under way, and it may have changed something: it is not repeated.
    OutcomeUnknown,
    /// The run cannot be stored, so the call, which may change something, was not made.
    StateUnavailable,
}

impl CallFault {
    /// All of them.
    pub const ALL: [CallFault; 16] = [
        CallFault::UpstreamUnavailable,
        CallFault::UpstreamError,
        CallFault::ToolError,
        CallFault::Timeout,
        CallFault::Starting,
        CallFault::LoginRequired,
        CallFault::ScopeDenied,
        CallFault::ResponseTooLarge,
        CallFault::CapExhausted,
        CallFault::Cancelled,
        CallFault::Denied,
        CallFault::ToolChanged,
        CallFault::ApprovalUnavailable,
        CallFault::NotRecorded,
        CallFault::OutcomeUnknown,
        CallFault::StateUnavailable,
    ];

    /// The reason of this name.
    pub fn parse(name: &str) -> Option<CallFault> {
        CallFault::ALL.into_iter().find(|fault| fault.name() == name)
    }

    /// True if the call never reached its server because this process refused it.
    pub const fn is_refusal(self) -> bool {
        matches!(
            self,
            CallFault::CapExhausted
                | CallFault::Denied
                | CallFault::ToolChanged
                | CallFault::ApprovalUnavailable
                | CallFault::NotRecorded
                | CallFault::StateUnavailable
        )
    }

    /// The name programs see as `:reason`.
    pub const fn name(self) -> &'static str {
        match self {
            CallFault::UpstreamUnavailable => "upstream_unavailable",
            CallFault::UpstreamError => "upstream_error",
            CallFault::ToolError => "tool_error",
            CallFault::Timeout => "timeout",
            CallFault::Starting => "starting",
            CallFault::LoginRequired => "login_required",
            CallFault::ScopeDenied => "scope_denied",
            CallFault::ResponseTooLarge => "response_too_large",
            CallFault::CapExhausted => "cap_exhausted",
            CallFault::Cancelled => "cancelled",
            CallFault::ToolChanged => "tool_changed",
            CallFault::Denied => "denied",
            CallFault::ApprovalUnavailable => "approval_unavailable",
            CallFault::NotRecorded => "not_recorded",
            CallFault::OutcomeUnknown => "outcome_unknown",
            CallFault::StateUnavailable => "state_unavailable",
        }
    }
}
