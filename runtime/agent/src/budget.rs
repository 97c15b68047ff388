//! Counts the turns, tokens and time that an agent and the agents that it calls have used of their shared budget.

use super::llm::LlmReply;
use super::step::{AgentFailure, AgentReason};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Estimated bytes per token, for models that report no token counts.
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

    /// Takes one turn. Fails when turns, tokens or time are used up.
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

    /// Charges the tokens of a reply. Without counts from the model, estimates them from the bytes.
    pub(super) fn spend(&self, reply: &LlmReply, prompt_bytes: usize) {
        let estimate = (prompt_bytes + reply.text.len()) as u64 / TOKEN_BYTES;
        let cost = reply.usage.total().unwrap_or(estimate);
        // Saturating: the numbers come from a server, and their sum must not wrap around.
        let add = |spent: u64| Some(spent.saturating_add(cost));
        let _ = self.tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// The time that is left.
    pub(super) fn left(&self) -> Duration {
        self.timeout.saturating_sub(self.begun.elapsed())
    }

    pub(super) fn timed_out(&self) -> AgentFailure {
        let text = format!("no answer within {} ms", self.timeout.as_millis());
        AgentFailure::new(AgentReason::Timeout, text)
    }
}
