//! Decides whether an agent may take another turn: by default the agent must stop after a tool call that may have
//! changed data, because the next program could repeat the change.
//!
//! A guard looks at the calls of each turn that does not end the agent anyway.

use ptc_calls::run::outcome::{CallRecord, CallStatus};
use serde::Serialize;
use std::sync::Arc;

/// Decides whether an agent goes on to its next turn.
pub trait ContinuationGuard: Send + Sync {
    /// Looks at the calls of the turn that has just ended, in completion order.
    fn decide(&self, calls: &[CallRecord]) -> Continuation;
}

/// What a guard decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Continuation {
    /// The agent takes its next turn.
    Continue,
    /// The agent ends with `partial_side_effects`.
    Stop {
        /// The calls that are the reason.
        matched_calls: Vec<MatchedCall>,
    },
}

/// A call that stops an agent, without its arguments and result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MatchedCall {
    /// Configured name of the server; `tool` for tools of the host.
    pub server: Arc<str>,
    /// Name of the tool.
    pub tool: Arc<str>,
    /// `write` or `unknown`.
    pub effect: &'static str,
}

impl From<&CallRecord> for MatchedCall {
    fn from(call: &CallRecord) -> MatchedCall {
        MatchedCall { server: call.server.clone(), tool: call.tool.clone(), effect: call.effect.name() }
    }
}

/// The default guard. Calls that only read allow another turn; calls with effect `write` or `unknown` do not,
/// answered or not.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadsOnly;

impl ContinuationGuard for ReadsOnly {
    fn decide(&self, calls: &[CallRecord]) -> Continuation {
        let matched_calls: Vec<MatchedCall> =
            calls.iter().filter(|call| may_have_changed(call)).map(MatchedCall::from).collect();
        match matched_calls.is_empty() {
            true => Continuation::Continue,
            false => Continuation::Stop { matched_calls },
        }
    }
}

/// The call was sent and is not known to only read.
fn may_have_changed(call: &CallRecord) -> bool {
    let was_refused = matches!(&call.status, CallStatus::Error { reason, .. } if reason.is_refusal());
    call.effect != ptc_calls::run::outcome::Effect::Read && !was_refused
}
