//! Queues the events of running tool calls (admission, progress, questions, completion) for the connection that serves
//! them. The answer of a call is written on the thread where its job has ended. Events are collected under one lock,
//! with one wake-up for many.

use super::gate::JobPermit;
use crate::protocol::ServerMessage;
use ptc_base::sync::Locked;
use std::sync::Mutex;
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
