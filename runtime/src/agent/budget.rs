//! What an agent may spend, its children included: they draw on the same budget.

use super::llm::LlmReply;
use super::step::{AgentFailure, AgentReason};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Bytes of a token, where a model does not count them.
const TOKEN_BYTES: u64 = 4;

/// Turns, tokens and time of a whole run.
pub(super) struct SharedBudget {
    turns: AtomicU32,
    most_turns: u32,
    tokens: AtomicU64,
    most_tokens: Option<u64>,
    begun: Instant,
    timeout: Duration,
}

impl SharedBudget {
    pub(super) fn new(most_turns: u32, most_tokens: Option<u64>, timeout: Duration) -> SharedBudget {
        let begun = Instant::now();
        SharedBudget {
            turns: AtomicU32::new(0),
            most_turns,
            tokens: AtomicU64::new(0),
            most_tokens,
            begun,
            timeout,
        }
    }

    /// Takes a turn, if there are turn, tokens and time for one.
    pub(super) fn take_turn(&self) -> Result<(), AgentFailure> {
        if self.left().is_zero() {
            return Err(self.timed_out());
        }
        if let Some(most) = self.most_tokens
            && self.tokens.load(Ordering::Relaxed) >= most
        {
            let text = format!("the budget of {most} tokens is used up");
            return Err(AgentFailure::new(AgentReason::TokenBudgetExhausted, text));
        }
        let take = |taken: u32| (taken < self.most_turns).then(|| taken + 1);
        match self.turns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            Ok(_) => Ok(()),
            Err(_) => {
                let text = format!("the budget of {} turns is used up, children included", self.most_turns);
                Err(AgentFailure::new(AgentReason::TurnBudgetExhausted, text))
            }
        }
    }

    /// Enters what a reply cost; where the model does not say, by bytes.
    pub(super) fn spend(&self, reply: &LlmReply, prompt_bytes: usize) {
        let estimate = (prompt_bytes + reply.text.len()) as u64 / TOKEN_BYTES;
        let cost = reply.usage.total().unwrap_or(estimate);
        // Numbers of a server: no sum of them begins anew.
        let add = |spent: u64| Some(spent.saturating_add(cost));
        let _ = self.tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// What is left of the time.
    pub(super) fn left(&self) -> Duration {
        self.timeout.saturating_sub(self.begun.elapsed())
    }

    pub(super) fn timed_out(&self) -> AgentFailure {
        let text = format!("no answer within {} ms", self.timeout.as_millis());
        AgentFailure::new(AgentReason::Timeout, text)
    }
}
