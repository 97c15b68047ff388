//! Queues the events of running tool calls (admission, progress, questions, completion) for the connection that serves
//! them. The answer of a call is written on the thread where its job has ended. Events are collected under one lock,
//! with one wake-up for many.

use super::gate::JobPermit;
use super::handler::{Handler, Ticket};
use super::progress::ProgressReporter;
use crate::protocol::ServerMessage;
use crate::tools::{Reporter, ToolAnswer};
use ptc_base::sync::Locked;
use ptc_calls::watcher::RunView;
use ptc_upstream::{CallingClient, ProgressListener};
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// Number of a job within its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u64);

/// Something that happened to a job.
#[derive(Debug)]
pub enum Event {
    /// It has a permit and may start.
    Admitted(JobPermit),
    /// Another request of its tenant has displaced it from the queue.
    Displaced,
    /// Its feed has progress to send.
    Progress,
    /// A call that goes on without its request was stored or has changed.
    Detached,
    /// There are questions for a client that is asked in responses.
    InputRequired,
    /// It has done what it does: it is not cancelled any more.
    Settled,
    /// It has ended, with these messages, the answer last. `None` after a defect.
    Ended(Option<Vec<ServerMessage>>),
}

/// Events for one reader, usually a connection.
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
            let mut events = self.events.locked();
            events.push(event);
            events.len() == 1
        };
        if first {
            self.arrived.notify_one();
        }
    }

    /// Wakes the reader for something that is not an event.
    pub fn wake(&self) {
        self.arrived.notify_one();
    }

    /// Takes all events, in order.
    pub fn take(&self) -> Vec<E> {
        std::mem::take(&mut *self.events.locked())
    }

    /// Waits until there is an event.
    pub async fn arrival(&self) {
        self.arrived.notified().await;
    }
}

/// Reports on one job, and writes its answer on the thread that it ended on. Dropping it frees the permit.
pub(super) struct JobReporter {
    pub(super) slot: Slot,
    pub(super) ticket: Ticket,
    pub(super) handler: Arc<Handler>,
    pub(super) mailbox: Arc<Mailbox>,
    /// Where progress goes, if the client wants any.
    pub(super) progress: Option<Arc<ProgressReporter>>,
    /// The calling client, where the process has more than one.
    pub(super) caller: Option<CallingClient>,
    pub(super) permit: JobPermit,
    pub(super) answered: bool,
}

impl Reporter for JobReporter {
    fn begun(&mut self) {
        self.permit.begun();
    }

    fn entered(&mut self, run: RunView) {
        self.ticket.watch(run);
    }

    fn caller(&self) -> Option<CallingClient> {
        self.caller.clone()
    }

    fn progress(&mut self, done: u64, part: &'static str) {
        if let Some(progress) = &self.progress {
            progress.done(done, part);
        }
    }

    fn progress_listener(&self) -> Option<Arc<dyn ProgressListener>> {
        Some(self.progress.clone()?)
    }

    fn settled(&mut self) {
        self.mailbox.push((self.slot, Event::Settled));
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
