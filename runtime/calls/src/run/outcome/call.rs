//! Defines the record of one tool call in the outcome of a run: duration, bytes, policy decision, and the reason if it
//! failed.

use super::effect::Effect;
use super::ruling::PolicyRuling;
use ptc_base::named_enum;
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

named_enum! {
    /// Reasons of world faults.
    #[derive(Hash)]
    pub enum CallFault, ALL {
        /// The server could not start, its handshake failed, or it is restarting after a crash.
        UpstreamUnavailable = "upstream_unavailable",
        /// The upstream answered with a JSON-RPC error.
        UpstreamError = "upstream_error",
        /// The tool answered with `isError: true`.
        ToolError = "tool_error",
        /// The per-call deadline passed.
        Timeout = "timeout",
        /// The server was still starting after the time that a call waits for a start.
        Starting = "starting",
        /// The server, or this call, needs a login by a person.
        LoginRequired = "login_required",
        /// The server refuses the call for scopes that a person has agreed to already.
        ScopeDenied = "scope_denied",
        /// The answer was too large, and was refused before decoding.
        ResponseTooLarge = "response_too_large",
        /// The program's call budget is used up.
        CapExhausted = "cap_exhausted",
        /// The program or branch ended while the call was in flight.
        Cancelled = "cancelled",
        /// The policy, or a person that it asked, does not allow the call.
        Denied = "denied",
        /// The tool is not the one that was pinned.
        ToolChanged = "tool_changed",
        /// The policy wants a person to approve the call, and there is none to ask.
        ApprovalUnavailable = "approval_unavailable",
        /// A replay has no recorded answer for the call.
        NotRecorded = "not_recorded",
        /// The process ended while the call was under way, and it may have changed something: it is not repeated.
        OutcomeUnknown = "outcome_unknown",
        /// The run cannot be stored, so the call, which may change something, was not made.
        StateUnavailable = "state_unavailable",
    }
}

impl CallFault {
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
}
