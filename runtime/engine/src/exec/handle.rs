//! Defines the handle with which any thread can cancel a run, whether the run is queued, at a worker, or on the I/O
//! runtime.

use super::inbox::{Inbox, WorkerMessage};
use ptc_calls::run::RunId;
use ptc_vm::{Interrupt, InterruptKind};
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, OnceLock};
use tokio::sync::Notify;

/// Handle of a run for other threads than its worker.
pub(crate) struct RunHandle {
    pub(crate) id: RunId,
    pub(crate) interrupt: Interrupt,
    place: OnceLock<Executor>,
}

/// Where a run is, once it has begun.
enum Executor {
    Worker(Arc<Inbox>),
    /// On the I/O runtime; it is notified when it is cancelled.
    Io(Arc<Notify>),
}

impl RunHandle {
    pub(crate) fn new(id: RunId) -> RunHandle {
        RunHandle { id, interrupt: Interrupt::default(), place: OnceLock::new() }
    }

    /// Stops the run, wherever it is.
    pub(crate) fn cancel(&self) {
        self.interrupt.set(InterruptKind::Cancelled);
        // Pairs with `pin`: either this thread sees the place, or the run sees the flag.
        fence(Ordering::SeqCst);
        match self.place.get() {
            Some(Executor::Worker(worker)) => worker.push(WorkerMessage::Cancelled(self.id)),
            Some(Executor::Io(cancelled)) => cancelled.notify_one(),
            None => {}
        }
    }

    /// Ties the run to a worker; false when it was cancelled before.
    pub(crate) fn pin(&self, worker: &Arc<Inbox>) -> bool {
        self.begin_at(Executor::Worker(worker.clone()))
    }

    /// [`RunHandle::pin`] for a run on the I/O runtime.
    pub(crate) fn pin_to_io(&self, cancelled: &Arc<Notify>) -> bool {
        self.begin_at(Executor::Io(cancelled.clone()))
    }

    fn begin_at(&self, place: Executor) -> bool {
        let _ = self.place.set(place);
        fence(Ordering::SeqCst);
        self.interrupt.get().is_none()
    }
}

/// A submitted program. Its watcher is notified of the outcome.
#[derive(Clone)]
pub struct Submitted {
    handle: Arc<RunHandle>,
}

impl Submitted {
    pub(super) fn new(handle: Arc<RunHandle>) -> Submitted {
        Submitted { handle }
    }

    /// Stops the program with its calls in flight. Its watcher is notified that it was cancelled.
    pub fn cancel(&self) {
        self.handle.cancel();
    }

    /// It was cancelled, or its time is over.
    pub fn is_cancelled(&self) -> bool {
        self.handle.interrupt.get().is_some()
    }
}
