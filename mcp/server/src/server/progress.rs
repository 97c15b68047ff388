//! Turns the progress that several threads report for one request into MCP notifications for its client, in order, with
//! increasing numbers, and limited in rate.

use super::mailbox::{Event, Mailbox, Slot};
use crate::protocol::ServerMessage;
use crate::protocol::notify::{self, ProgressToken};
use ptc_base::sync::Locked;
use ptc_upstream::{ProgressListener, ToolStep};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

/// Steps of tools that are all sent. Of those after them only the latest waits, for [`INTERVAL`].
const STEPS: usize = 256;

/// Shortest time before a notification that may stand for several events.
const INTERVAL: Duration = Duration::from_millis(100);

/// Progress that waits to be sent. All tools and calls of a request share one number, the count of their events,
/// because it has to increase with each notification.
#[derive(Debug)]
pub struct ProgressFeed {
    token: ProgressToken,
    state: Mutex<FeedState>,
}

#[derive(Debug, Default)]
struct FeedState {
    /// Parts that are done.
    done: u64,
    /// Steps of tools.
    steps: u64,
    /// Steps among the first [`STEPS`] that wait.
    queue: VecDeque<Note>,
    /// The latest of the steps after them.
    last_step: Option<Note>,
    /// The latest number of parts.
    last_part: Option<Note>,
    /// When the latest ones may be sent; `None` at once.
    next: Option<Instant>,
    /// The reader knows that something waits.
    is_announced: bool,
}

#[derive(Debug)]
struct Note {
    progress: u64,
    message: String,
}

impl FeedState {
    /// Adds an event; true when the reader has to be notified.
    fn add(&mut self, message: String, is_step: bool) -> bool {
        let note = Note { progress: self.done.saturating_add(self.steps), message };
        if is_step && self.steps <= STEPS as u64 {
            // It counts the parts that are done, too.
            self.last_part = None;
            self.queue.push_back(note);
        } else if is_step {
            self.last_step = Some(note);
        } else {
            self.last_part = Some(note);
        }
        !std::mem::replace(&mut self.is_announced, true)
    }
}

impl ProgressFeed {
    /// No progress yet.
    pub fn new(token: ProgressToken) -> Arc<ProgressFeed> {
        Arc::new(ProgressFeed { token, state: Mutex::default() })
    }

    fn done(&self, done: u64, part: &str) -> bool {
        let mut state = self.state.locked();
        if done <= state.done {
            return false;
        }
        state.done = done;
        let plural = if done == 1 { "" } else { "s" };
        state.add(format!("{done} {part}{plural} done"), false)
    }

    fn stepped(&self, step: &ToolStep) -> bool {
        let mut state = self.state.locked();
        state.steps += 1;
        state.add(step.to_string(), true)
    }

    /// Sends what is due. True when nothing waits any more.
    pub fn report(&self, now: Instant, send: impl FnMut(ServerMessage)) -> bool {
        self.take(|next| next.is_none_or(|next| next <= now), now, send)
    }

    /// Sends everything: the answer follows.
    pub fn flush(&self, now: Instant, send: impl FnMut(ServerMessage)) {
        self.take(|_| true, now, send);
    }

    fn take(
        &self,
        is_due: impl Fn(Option<Instant>) -> bool,
        now: Instant,
        send: impl FnMut(ServerMessage),
    ) -> bool {
        let mut state = self.state.locked();
        let mut notes = std::mem::take(&mut state.queue);
        if !notes.is_empty() {
            state.next = Some(now + INTERVAL);
        }
        if is_due(state.next) {
            let mut latest = [state.last_step.take(), state.last_part.take()];
            latest.sort_by_key(|note| note.as_ref().map(|note| note.progress));
            let sent = notes.len();
            notes.extend(latest.into_iter().flatten());
            if notes.len() > sent {
                state.next = Some(now + INTERVAL);
            }
        }
        state.is_announced = state.last_step.is_some() || state.last_part.is_some();
        let is_empty = !state.is_announced;
        drop(state);
        notes.iter().map(|note| notify::progress(&self.token, note.progress, &note.message)).for_each(send);
        is_empty
    }

    /// When there is something to send.
    pub fn due(&self) -> Instant {
        let state = self.state.locked();
        state.next.filter(|_| state.queue.is_empty()).unwrap_or_else(Instant::now)
    }
}

/// Puts the progress of a job into its feed, and announces it to the connection.
#[derive(Debug)]
pub struct ProgressReporter {
    pub(super) slot: Slot,
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) feed: Arc<ProgressFeed>,
}

impl ProgressReporter {
    /// Reports `done` finished parts; `part` names one.
    pub fn done(&self, done: u64, part: &str) {
        self.announce(self.feed.done(done, part));
    }

    fn announce(&self, is_new: bool) {
        if is_new {
            self.mailbox.push((self.slot, Event::Progress));
        }
    }
}

impl ProgressListener for ProgressReporter {
    fn stepped(&self, step: ToolStep) {
        self.announce(self.feed.stepped(&step));
    }
}
