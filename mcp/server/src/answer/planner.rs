//! Collects metrics for the answer and the trace of a `lisp_task` call, in which a language model (the planner) writes
//! programs to solve a task: tool calls, model requests, tokens and times.

use ptc_agent::{AgentStep, AttemptKind, AttemptStatus, TokenUsage};
use ptc_base::digest::hex;
use ptc_calls::CallTotals;
use ptc_calls::metrics::PtcMetrics;
use ptc_calls::outcome::CallRecord;
use serde_json::{Value, json};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

/// What the efficiency ratio leaves out.
const EFFICIENCY_NOTE: &str = "The ratio counts upstream payload against the answer. It excludes what the planner model of \
    this server read and wrote, and the envelope of the response.";

/// Summary of a task, apart from its answer.
#[derive(Clone, Debug)]
pub struct TaskSummary {
    /// Upstream calls of all its programs. Their start is relative to the start of the task.
    pub calls: Vec<CallRecord>,
    /// Totals of its upstream calls.
    pub totals: CallTotals,
    /// From its beginning to its end.
    pub duration: Duration,
    /// Why there is no answer.
    pub message: Option<String>,
    /// Metrics of its model.
    pub planner: PlannerSummary,
    /// The programs of its rounds.
    pub programs: Vec<Option<String>>,
    /// The prompts of its model, where they are recorded.
    pub prompts: Vec<Value>,
    /// The prelude of its programs.
    pub prelude: Option<Arc<Value>>,
}

/// Metrics of a model's requests in one task.
#[derive(Clone, Debug)]
pub struct PlannerSummary {
    /// Trace id of the task, in its answer and in traces.
    pub trace_id: String,
    /// Name of the model.
    pub model: String,
    /// Answered requests, in order.
    pub turns: Vec<PlannerRound>,
    /// Number of failed requests.
    pub errors: usize,
    /// Bytes of all prompts, each counted in full.
    pub prompt_bytes: u64,
    /// Bytes of all replies.
    pub completion_bytes: u64,
    /// Bytes of the answer, as text and as data; 0 without an answer.
    pub final_bytes: u64,
}

/// One answered request to a model.
#[derive(Clone, Debug)]
pub struct PlannerRound {
    /// When it began, relative to the start of the task.
    pub begun: Duration,
    /// Time until the reply.
    pub waited: Duration,
    /// Bytes of the prompt.
    pub prompt_bytes: u64,
    /// Bytes of the reply.
    pub completion_bytes: u64,
    /// Tokens, as far as the model reports them.
    pub tokens: TokenUsage,
    /// It was an extra request after a failure.
    pub is_retry: bool,
    /// What the reply led to.
    pub status: AttemptStatus,
}

impl PlannerRound {
    /// True if the reply had no program, or the program failed, or its answer was refused.
    pub fn is_rejected(&self) -> bool {
        matches!(self.status, AttemptStatus::NoProgram | AttemptStatus::Failed)
    }
}

impl TaskSummary {
    /// Summarizes a run of an agent.
    pub fn from_step(step: &AgentStep, model: &str, duration: Duration) -> TaskSummary {
        let (mut at, mut calls) = (Duration::ZERO, Vec::with_capacity(step.calls.len()));
        let mut left = step.calls.iter();
        let mut turns = Vec::with_capacity(step.turns.len());
        for turn in &step.turns {
            turns.push(PlannerRound {
                begun: at,
                waited: turn.model_time,
                prompt_bytes: turn.prompt_bytes,
                completion_bytes: turn.reply.len() as u64,
                tokens: turn.tokens,
                is_retry: turn.kind == AttemptKind::Retry,
                status: turn.status,
            });
            at += turn.model_time;
            let own = left.by_ref().take(turn.calls.len());
            calls.extend(own.map(|call| CallRecord { begun: at + call.begun, ..call.clone() }));
            at += turn.program_time;
        }
        let usage = &step.usage;
        TaskSummary {
            calls,
            totals: step.call_totals,
            duration,
            message: step.result.as_ref().err().map(|failure| failure.message.clone()),
            planner: PlannerSummary {
                trace_id: trace_id(),
                model: model.to_owned(),
                errors: (usage.requests as usize).saturating_sub(turns.len()),
                turns,
                prompt_bytes: usage.prompt_bytes,
                completion_bytes: usage.reply_bytes,
                final_bytes: 0,
            },
            prelude: step.prelude_trace.clone(),
            prompts: Vec::new(),
            programs: step.turns.iter().map(|turn| turn.program.clone()).collect(),
        }
    }
}

/// A unique trace id: 32 hexadecimal digits.
pub fn trace_id() -> String {
    let mut random = [0; 16];
    if getrandom::fill(&mut random).is_err() {
        // Random enough to tell calls of one process apart.
        let chance = |bytes: &mut [u8]| {
            bytes.copy_from_slice(&RandomState::new().build_hasher().finish().to_le_bytes());
        };
        random.chunks_exact_mut(8).for_each(chance);
    }
    hex(&random)
}

impl PlannerSummary {
    /// Number of requests.
    pub fn calls(&self) -> usize {
        self.turns.len() + self.errors
    }

    /// Number of rejected replies.
    pub fn rejects(&self) -> usize {
        self.turns.iter().filter(|turn| turn.is_rejected()).count()
    }

    /// Number of extra requests after failures.
    pub fn retries(&self) -> usize {
        self.turns.iter().filter(|turn| turn.is_retry).count()
    }

    /// Tokens of prompts and of replies; `None` unless the model reported them for each request.
    pub fn tokens(&self) -> Option<(u64, u64)> {
        let is_reported = self.errors == 0
            && !self.turns.is_empty()
            && self.turns.iter().all(|turn| turn.tokens.total().is_some());
        let sum = |part: fn(&TokenUsage) -> Option<u64>| {
            // The numbers come from a server, so the sum saturates.
            self.turns.iter().filter_map(|turn| part(&turn.tokens)).fold(0, u64::saturating_add)
        };
        is_reported.then(|| (sum(|tokens| tokens.input), sum(|tokens| tokens.output)))
    }

    /// Tokens of all prompts and replies, estimated from their bytes.
    pub fn estimated_tokens(&self) -> u64 {
        (self.prompt_bytes + self.completion_bytes).div_ceil(4)
    }

    /// Metrics of a task: those of its calls, and those of its model.
    pub fn metrics(&self, calls: &CallTotals) -> Value {
        // Our numbers under string keys, so this cannot fail.
        let mut metrics =
            serde_json::to_value(PtcMetrics::from_parts(calls, self.final_bytes, 0)).unwrap_or_default();
        let tokens = self.tokens();
        metrics["server_side_llm"] = json!({
            "planner_calls": self.calls(), "provider_reported": tokens.is_some(),
            "prompt_tokens": tokens.map(|(prompt, _)| prompt),
            "completion_tokens": tokens.map(|(_, completion)| completion),
            "total_tokens": tokens.map(|(prompt, completion)| prompt.saturating_add(completion)),
            "prompt_bytes": self.prompt_bytes, "completion_bytes": self.completion_bytes,
            "estimated_prompt_tokens": self.prompt_bytes.div_ceil(4),
            "estimated_completion_tokens": self.completion_bytes.div_ceil(4),
            "estimated_total_tokens": self.estimated_tokens(),
            "estimate_method": "utf8_bytes_div_4",
        });
        metrics["efficiency_note"] = EFFICIENCY_NOTE.into();
        metrics
    }

    /// The form in records.
    pub fn as_json(&self) -> Value {
        let tokens = self.tokens();
        json!({
            "model": self.model, "planner_calls": self.calls(), "planner_errors": self.errors,
            "planner_rejects": self.rejects(), "retries": self.retries(),
            "prompt_bytes": self.prompt_bytes, "completion_bytes": self.completion_bytes,
            "prompt_tokens": tokens.map(|(prompt, _)| prompt),
            "completion_tokens": tokens.map(|(_, completion)| completion),
        })
    }
}
