//! What running programs tell their connection: gathered under one lock, one wake-up for many.

use crate::protocol::Reply;
use crate::protocol::handler::{Handler, Ticket};
use ptc_runtime::outcome::Outcome;
use ptc_runtime::watcher::RunWatcher;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// Number of a program in its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u64);

/// Something that happened to a program.
#[derive(Debug)]
pub enum Event {
    /// It has begun.
    Begun,
    /// So many of its upstream calls have ended.
    CallEnded(u64),
    /// It is over, and this is the answer. `None` after a defect.
    Ended(Option<Reply>),
}

/// The events of one connection.
#[derive(Debug, Default)]
pub struct Mailbox {
    events: Mutex<Vec<(Slot, Event)>>,
    arrived: Notify,
}

impl Mailbox {
    /// Adds an event; wakes the connection unless it has been woken already.
    pub fn push(&self, slot: Slot, event: Event) {
        let first = {
            let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
            events.push((slot, event));
            events.len() == 1
        };
        if first {
            self.arrived.notify_one();
        }
    }

    /// Everything that has happened, in order.
    pub fn take(&self) -> Vec<(Slot, Event)> {
        std::mem::take(&mut *self.events.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until something has happened.
    pub async fn arrival(&self) {
        self.arrived.notified().await;
    }
}

/// Follows one program, and writes its answer on the thread that it ended on.
pub(super) struct Watcher {
    pub(super) slot: Slot,
    pub(super) ticket: Ticket,
    pub(super) handler: Arc<Handler>,
    pub(super) mailbox: Arc<Mailbox>,
    /// The client wishes to hear of progress.
    pub(super) tells_calls: bool,
    pub(super) answered: bool,
}

impl RunWatcher for Watcher {
    fn begun(&mut self) {
        self.mailbox.push(self.slot, Event::Begun);
    }

    fn call_ended(&mut self, ended: u64) {
        if self.tells_calls {
            self.mailbox.push(self.slot, Event::CallEnded(ended));
        }
    }

    fn ended(mut self: Box<Self>, outcome: Outcome) {
        let reply = self.handler.finish(&self.ticket, outcome);
        self.answered = true;
        self.mailbox.push(self.slot, Event::Ended(Some(reply)));
    }
}

impl Drop for Watcher {
    // A defect while the answer was written must not leave the client waiting for ever.
    fn drop(&mut self) {
        if !self.answered {
            self.mailbox.push(self.slot, Event::Ended(None));
        }
    }
}
