//! Defines `AgentStep`, which despite the name holds the result of a whole agent run: the answer or the failure, the
//! resources used, and a record of every turn.

use super::guard::MatchedCall;
use super::llm::{LlmErrorKind, TokenUsage};
use ptc_base::named_enum;
use ptc_calls::run::outcome::{CallRecord, CallStatus};
use ptc_calls::run::totals::CallTotals;
use ptc_engine::history::{AgentRound, TurnHistory};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The result of one run of an agent.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AgentStep {
    /// The answer, as JSON.
    pub result: Result<Json, AgentFailure>,
    /// Every turn, in order.
    pub turns: Vec<AgentTurn>,
    /// The program that gave the answer, or the last one.
    pub program: Option<String>,
    /// The calls of all turns, in completion order within each.
    pub calls: Vec<CallRecord>,
    /// Totals of the calls of all turns.
    pub call_totals: CallTotals,
    /// What the model used, without children.
    pub usage: AgentUsage,
    /// Results of its children by name, in the order in which they began. A child that was abandoned by its
    /// caller has [`AgentReason::Cancelled`] and the turns that it had taken.
    pub children: Vec<(String, AgentStep)>,
    /// The prelude of its programs: hashes, namespaces, components and exports.
    pub prelude_trace: Option<Arc<Json>>,
}

impl Default for AgentStep {
    /// A run that has not begun.
    fn default() -> AgentStep {
        AgentStep {
            result: Ok(Json::Null),
            turns: Vec::new(),
            program: None,
            calls: Vec::new(),
            call_totals: CallTotals::default(),
            usage: AgentUsage::default(),
            children: Vec::new(),
            prelude_trace: None,
        }
    }
}

impl AgentStep {
    /// A run that could not begin.
    pub(super) fn failed(failure: AgentFailure) -> AgentStep {
        AgentStep { result: Err(failure), ..AgentStep::default() }
    }

    /// The answer as a type of the application.
    ///
    /// # Errors
    /// The failure of the agent, or an answer that does not deserialize to the type.
    pub fn value<T: DeserializeOwned>(&self) -> Result<T, AgentFailure> {
        let answer = self.result.clone()?;
        serde_json::from_value(answer).map_err(|error| {
            AgentFailure::new(AgentReason::ValidationFailed, format!("the answer does not fit: {error}"))
        })
    }

    /// Adds its turns to a history under this name, and those of its children under names that begin with it.
    pub fn record(&self, history: &TurnHistory, id: &str) {
        for turn in &self.turns {
            let is_error = matches!(
                turn.status,
                AttemptStatus::Failed | AttemptStatus::NoProgram | AttemptStatus::GivenUp
            );
            history.add_agent_round(
                id,
                &AgentRound {
                    number: turn.number,
                    is_error,
                    program_time: turn.program_time,
                    program: turn.program.as_deref(),
                    feedback: &turn.feedback,
                    prints: &turn.prints,
                    calls: serde_json::to_value(&turn.calls).unwrap_or_default(),
                },
            );
        }
        for (at, (name, child)) in self.children.iter().enumerate() {
            child.record(history, &format!("{id}/{name}#{}", at + 1));
        }
    }
}

/// What the model used in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AgentUsage {
    /// Requests to the model.
    pub requests: u32,
    /// Tokens, as far as the model reports them.
    pub tokens: TokenUsage,
    /// Bytes of all prompts; each prompt counts in full.
    pub prompt_bytes: u64,
    /// Bytes of all replies.
    pub reply_bytes: u64,
    /// Time spent waiting for the model.
    #[serde(serialize_with = "millis")]
    pub model_time: Duration,
}

fn millis<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// One turn: a reply of the model and its result.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct AgentTurn {
    /// Number of the turn, from 1.
    pub number: u32,
    /// Which allowance the turn was taken from.
    #[doc(hidden)]
    pub kind: AttemptKind,
    /// Bytes of the prompt.
    pub prompt_bytes: u64,
    /// The reply of the model, with secrets redacted.
    pub reply: String,
    /// The program in the reply.
    pub program: Option<String>,
    /// How the turn ended.
    pub status: AttemptStatus,
    /// The feedback that the model got, or the answer.
    pub feedback: String,
    /// Lines that the program printed.
    pub prints: Vec<String>,
    /// Its calls.
    pub calls: Vec<TracedCall>,
    /// Tokens, as far as the model reports them.
    pub tokens: TokenUsage,
    /// Time spent waiting for the model.
    #[serde(rename = "model_ms", serialize_with = "millis")]
    pub model_time: Duration,
    /// Time that the program ran.
    #[serde(rename = "program_ms", serialize_with = "millis")]
    pub program_time: Duration,
}

/// The allowance that a turn is taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AttemptKind {
    /// The agent's regular turns.
    Work,
    /// The extra turns for repairing failed ones.
    Retry,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AttemptStatus {
    /// The turn gave the answer.
    Answered,
    /// The program ended with a value, and the agent went on.
    Continued,
    /// The program failed, or its answer was refused.
    Failed,
    /// The program called `(fail v)`.
    GivenUp,
    /// The reply held no program.
    NoProgram,
}

/// A call in the trace of a turn, without its arguments and result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TracedCall {
    /// Configured name of the server; `tool` for tools of the host.
    pub server: Arc<str>,
    /// Name of the tool.
    pub tool: Arc<str>,
    /// `read`, `write` or `unknown`.
    pub effect: &'static str,
    /// `ok`, or the reason of the failure.
    pub status: &'static str,
}

impl From<&CallRecord> for TracedCall {
    fn from(call: &CallRecord) -> TracedCall {
        let status = match &call.status {
            CallStatus::Ok => "ok",
            CallStatus::Error { reason, .. } => reason.name(),
        };
        TracedCall {
            server: call.server.clone(),
            tool: call.tool.clone(),
            effect: call.effect.name(),
            status,
        }
    }
}

/// Why an agent has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentFailure {
    /// The reason.
    pub reason: AgentReason,
    /// One line that says what happened.
    pub message: String,
    /// For [`AgentReason::PartialSideEffects`]: the calls that stopped it.
    pub matched_calls: Vec<MatchedCall>,
    /// For [`AgentReason::LlmError`]: the kind of failure.
    pub model_error: Option<LlmErrorKind>,
}

named_enum! {
    /// Why an agent failed.
    #[derive(Hash)]
    #[non_exhaustive]
    pub enum AgentReason {
        /// The program called `(fail v)`.
        Failed = "failed",
        /// The last turn ended without an answer.
        MaxTurnsExceeded = "max_turns_exceeded",
        /// The turns of this agent, its parents and its children are used up.
        TurnBudgetExhausted = "turn_budget_exhausted",
        /// The tokens are used up.
        TokenBudgetExhausted = "token_budget_exhausted",
        /// The time is used up.
        Timeout = "timeout",
        /// The model gave no reply.
        LlmError = "llm_error",
        /// The last answer did not match the schema.
        ValidationFailed = "validation_failed",
        /// The only program of a single-shot agent failed.
        ProgramFailed = "program_failed",
        /// The guard stopped it.
        PartialSideEffects = "partial_side_effects",
        /// Something that a namespace needs is missing.
        PreludeAttachFailed = "prelude_attach_failed",
        /// The program that called this child ended first.
        Cancelled = "cancelled",
        /// Agents were nested more deeply than allowed.
        MaxDepthExceeded = "max_depth_exceeded",
        /// The agent is invalid and cannot be run.
        InvalidAgent = "invalid_agent",
    }
}

impl AgentFailure {
    /// A failure.
    pub fn new(reason: AgentReason, message: impl Into<String>) -> AgentFailure {
        AgentFailure { reason, message: message.into(), matched_calls: Vec::new(), model_error: None }
    }
}

impl fmt::Display for AgentFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason.name(), self.message)
    }
}

impl std::error::Error for AgentFailure {}
