//! Progress notifications of one request, at a bounded rate.

use crate::protocol::ServerMessage;
use crate::protocol::notify::{self, ProgressToken};
use std::time::Duration;
use tokio::time::Instant;

/// Shortest time between two notifications of one request.
const INTERVAL: Duration = Duration::from_millis(100);

/// Progress that the client was sent, and progress that it was not.
#[derive(Debug)]
pub struct ProgressLimiter {
    token: ProgressToken,
    done: u64,
    part: &'static str,
    sent: u64,
    next: Option<Instant>,
}

impl ProgressLimiter {
    /// No progress yet.
    pub fn new(token: ProgressToken) -> ProgressLimiter {
        ProgressLimiter { token, done: 0, part: "", sent: 0, next: None }
    }

    /// Notes that `done` parts are done.
    pub fn advance(&mut self, done: u64, part: &'static str) {
        self.done = self.done.max(done);
        self.part = part;
    }

    /// The notification that is due now; `None` when the last one was too recent.
    pub fn report(&mut self, now: Instant) -> Option<ServerMessage> {
        if self.done == self.sent || self.next.is_some_and(|next| now < next) {
            return None;
        }
        self.sent = self.done;
        self.next = Some(now + INTERVAL);
        Some(notify::progress(&self.token, self.done, self.part))
    }

    /// When the next notification may be sent.
    pub fn due(&self) -> Instant {
        self.next.unwrap_or_else(Instant::now)
    }
}
