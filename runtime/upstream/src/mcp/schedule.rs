//! Decides when a server is asked for the state of a task: as often as it advises, once more shortly before the call ends,
//! and again after a failure that may pass.

use super::created::LEAST;
use crate::UpstreamFault;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// The pause after a failure; each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// The longest pause after a failure, whatever the server asks for.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How long one answer may take, while there is time for another question. It may have a large result.
const LONGEST_ANSWER: Duration = Duration::from_secs(600);

/// How long before the end of the call the server is asked once more, at most.
const MARGIN: Duration = Duration::from_secs(1);

/// When the next question is due.
pub(super) struct Schedule {
    deadline: Instant,
    /// The last question is not later.
    last: Instant,
    pause: Duration,
    failures: u32,
}

impl Schedule {
    /// The first question after `pause`, for a call that may take `timeout` until `deadline`.
    pub(super) fn new(pause: Duration, timeout: Duration, deadline: Instant) -> Schedule {
        let margin = (timeout / 10).min(MARGIN);
        let last = deadline.checked_sub(margin).unwrap_or(deadline);
        Schedule { deadline, last, pause, failures: 0 }
    }

    /// Waits until the next question is due.
    pub(super) async fn wait(&self) {
        let now = Instant::now();
        let due = now + self.pause;
        sleep_until(if now < self.last { due.min(self.last) } else { due }).await;
    }

    /// How long the next answer may take. A lost one leaves time for another question.
    pub(super) fn patience(&self) -> Duration {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left > MARGIN * 10 { (left / 2).min(LONGEST_ANSWER) } else { left }
    }

    /// The task works, and its server advises this pause.
    pub(super) fn works(&mut self, advised: Duration) {
        (self.pause, self.failures) = (advised, 0);
    }

    /// A question has failed.
    ///
    /// # Errors
    /// The failure does not pass, or not in time.
    pub(super) fn failed(&mut self, fault: UpstreamFault) -> Result<(), UpstreamFault> {
        let usual = FIRST_PAUSE * 2u32.pow(self.failures.min(8));
        let wanted = match fault {
            UpstreamFault::Transient { after, .. } => after.unwrap_or(usual),
            UpstreamFault::Timeout(_) => usual,
            other => return Err(other),
        };
        if Instant::now() >= self.last {
            return Err(fault);
        }
        self.pause = wanted.clamp(LEAST, LONGEST_PAUSE);
        self.failures += 1;
        Ok(())
    }
}
