//! Progress of one request: calls that have ended, told at a bounded rate.

use crate::protocol::Reply;
use crate::protocol::notify::{self, ProgressToken};
use std::time::Duration;
use tokio::time::Instant;

/// The shortest time between two messages for one request.
const INTERVAL: Duration = Duration::from_millis(100);

/// What the client knows, and what it does not know yet.
#[derive(Debug)]
pub struct Progress {
    token: ProgressToken,
    ended: u64,
    told: u64,
    next: Option<Instant>,
}

impl Progress {
    /// Nothing has happened yet.
    pub fn new(token: ProgressToken) -> Progress {
        Progress { token, ended: 0, told: 0, next: None }
    }

    /// More calls have ended.
    pub fn advance(&mut self, ended: u64) {
        self.ended = self.ended.max(ended);
    }

    /// The message that is due now: none when the last one was a moment ago.
    pub fn report(&mut self, now: Instant) -> Option<Reply> {
        if self.ended == self.told || self.next.is_some_and(|next| now < next) {
            return None;
        }
        self.told = self.ended;
        self.next = Some(now + INTERVAL);
        Some(notify::progress(&self.token, self.ended))
    }

    /// When the next message may be sent.
    pub fn due(&self) -> Instant {
        self.next.unwrap_or_else(Instant::now)
    }
}
