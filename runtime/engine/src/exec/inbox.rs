//! Queues messages for a worker thread, which runs programs, and wakes the thread: answers to tool calls, programs for
//! this worker only, cancellations, closures to run on the thread, and shutdown.

use super::queue::QueuedRun;
use crate::guest::{CallId, Reply};
use ptc_base::sync::Locked;
use ptc_calls::run::RunId;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

/// A message to a worker about a started program.
pub(crate) enum WorkerMessage {
    /// Work that it handed out is done.
    Replies { run: RunId, replies: Vec<(CallId, Reply)> },
    /// A program that only this worker can run.
    Begin(Box<QueuedRun>),
    /// Short work that has to be done on the worker's thread.
    Do(Box<dyn FnOnce() + Send>),
    /// The caller has cancelled the run.
    Cancelled(RunId),
    /// The runtime is shutting down.
    Stop,
}

/// The inbox of one worker.
#[derive(Default)]
pub(crate) struct Inbox {
    inner: Mutex<InboxInner>,
    arrived: Condvar,
}

#[derive(Default)]
struct InboxInner {
    messages: VecDeque<WorkerMessage>,
    woken: bool,
}

impl Inbox {
    pub(crate) fn push(&self, message: WorkerMessage) {
        self.inner.locked().messages.push_back(message);
        self.arrived.notify_one();
    }

    /// Makes the worker look at the shared queue.
    pub(super) fn wake(&self) {
        self.inner.locked().woken = true;
        self.arrived.notify_one();
    }

    /// Takes everything that has arrived.
    pub(crate) fn drain(&self) -> VecDeque<WorkerMessage> {
        std::mem::take(&mut self.inner.locked().messages)
    }

    /// Waits until something arrives or `deadline` passes.
    pub(crate) fn wait(&self, deadline: Option<Instant>) {
        let mut inner = self.inner.locked();
        while inner.messages.is_empty() && !inner.woken {
            inner = match deadline {
                None => self.arrived.wait(inner).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return;
                    }
                    self.arrived.wait_timeout(inner, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        inner.woken = false;
    }
}
