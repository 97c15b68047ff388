//! What jobs and the gate tell a connection: gathered under one lock, one wake-up for many.

use super::gate::JobPlace;
use super::handler::{Finished, Handler, Ticket};
use crate::tools::{Reporter, ToolAnswer};
use ptc_runtime::upstream::CallingClient;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// Number of a job in its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u64);

/// Something that happened to a job.
#[derive(Debug)]
pub enum Event {
    /// It may start.
    Admitted(JobPlace),
    /// It has lost its place in the queue to another request of its party.
    Displaced,
    /// So many of its parts are done, each one of these.
    Progress(u64, &'static str),
    /// There is something to ask the client of a call that is answered in rounds.
    Asks,
    /// It is over, and this is to be sent. `None` after a defect.
    Ended(Option<Finished>),
}

/// What was told to whoever reads it, a connection mostly.
#[derive(Debug)]
pub struct Mailbox<E = (Slot, Event)> {
    events: Mutex<Vec<E>>,
    arrived: Notify,
}

impl<E> Default for Mailbox<E> {
    fn default() -> Mailbox<E> {
        Mailbox { events: Mutex::default(), arrived: Notify::new() }
    }
}

impl<E> Mailbox<E> {
    /// Adds an event; wakes the reader unless it has been woken already.
    pub fn push(&self, event: E) {
        let first = {
            let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
            events.push(event);
            events.len() == 1
        };
        if first {
            self.arrived.notify_one();
        }
    }

    /// Wakes the reader for what it finds elsewhere.
    pub fn wake(&self) {
        self.arrived.notify_one();
    }

    /// Everything that has happened, in order.
    pub fn take(&self) -> Vec<E> {
        std::mem::take(&mut *self.events.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until something has happened.
    pub async fn arrival(&self) {
        self.arrived.notified().await;
    }
}

/// Follows one job, and writes its answer on the thread that it ended on. Its place is free when this is dropped.
pub(super) struct JobReporter {
    pub(super) slot: Slot,
    pub(super) ticket: Ticket,
    pub(super) handler: Arc<Handler>,
    pub(super) mailbox: Arc<Mailbox>,
    /// The client wishes to hear of progress.
    pub(super) tells_progress: bool,
    /// Whose job it is, where it is not the one client of a process.
    pub(super) caller: Option<CallingClient>,
    pub(super) permit: JobPlace,
    pub(super) answered: bool,
}

impl Reporter for JobReporter {
    fn begun(&mut self) {
        self.permit.begun();
    }

    fn caller(&self) -> Option<CallingClient> {
        self.caller.clone()
    }

    fn progress(&mut self, done: u64, part: &'static str) {
        if self.tells_progress {
            self.mailbox.push((self.slot, Event::Progress(done, part)));
        }
    }

    fn ended(mut self: Box<Self>, answer: &ToolAnswer<'_>) {
        let finished = self.handler.finish(&mut self.ticket, answer);
        self.answered = true;
        self.mailbox.push((self.slot, Event::Ended(Some(finished))));
    }
}

impl Drop for JobReporter {
    // A defect while the answer was written must not leave the client waiting for ever.
    fn drop(&mut self) {
        if !self.answered {
            self.mailbox.push((self.slot, Event::Ended(None)));
        }
    }
}
