//! Progress of one request, told at a bounded rate.

use crate::protocol::ServerMessage;
use crate::protocol::notify::{self, ProgressToken};
use std::time::Duration;
use tokio::time::Instant;

/// The shortest time between two messages for one request.
const INTERVAL: Duration = Duration::from_millis(100);

/// What the client knows, and what it does not know yet.
#[derive(Debug)]
pub struct ProgressLimiter {
    token: ProgressToken,
    done: u64,
    part: &'static str,
    told: u64,
    next: Option<Instant>,
}

impl ProgressLimiter {
    /// Nothing has happened yet.
    pub fn new(token: ProgressToken) -> ProgressLimiter {
        ProgressLimiter { token, done: 0, part: "", told: 0, next: None }
    }

    /// So many parts are done.
    pub fn advance(&mut self, done: u64, part: &'static str) {
        self.done = self.done.max(done);
        self.part = part;
    }

    /// The message that is due now: none when the last one was a moment ago.
    pub fn report(&mut self, now: Instant) -> Option<ServerMessage> {
        if self.done == self.told || self.next.is_some_and(|next| now < next) {
            return None;
        }
        self.told = self.done;
        self.next = Some(now + INTERVAL);
        Some(notify::progress(&self.token, self.done, self.part))
    }

    /// When the next message may be sent.
    pub fn due(&self) -> Instant {
        self.next.unwrap_or_else(Instant::now)
    }
}
