//! From a guest to a run in the queue: every run gets its number, its handle and its recipient here.

use super::queue::{Queue, QueuedRun, RunHandle};
use crate::guest::MakeGuest;
use crate::run::RunId;
use crate::run::limits::Limits;
use crate::run::watcher::{Recipient, RunWatcher};
use crate::secrets::SecretRegistry;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Where runs are handed in.
pub(crate) struct Dispatcher {
    pub(crate) queue: Arc<Queue>,
    secrets: SecretRegistry,
    runs: AtomicU64,
}

/// Who may run a guest.
#[derive(Clone, Copy)]
pub(crate) enum RunPlace {
    /// Whichever worker has time.
    Anywhere,
    /// This one: what the guest needs is on its thread.
    Worker(usize),
}

impl Dispatcher {
    pub(crate) fn new(queue: Arc<Queue>, secrets: SecretRegistry) -> Dispatcher {
        Dispatcher { queue, secrets, runs: AtomicU64::new(0) }
    }

    /// Queues a guest; its watcher is told how it goes.
    pub(crate) fn submit(
        &self,
        place: RunPlace,
        limits: Limits,
        make: MakeGuest,
        watcher: Box<dyn RunWatcher>,
        queued: Instant,
    ) -> Submitted {
        let handle = Arc::new(RunHandle::new(RunId(self.runs.fetch_add(1, Ordering::Relaxed))));
        let recipient = Recipient::new(watcher, handle.interrupt.clone(), limits, self.secrets.clone());
        let job =
            Box::new(QueuedRun { handle: handle.clone(), limits, make, recipient: Some(recipient), queued });
        match place {
            RunPlace::Anywhere => self.queue.submit(job),
            RunPlace::Worker(worker) => self.queue.submit_to(worker, job),
        }
        Submitted { handle }
    }
}

/// A program under way whose watcher is told its outcome.
#[derive(Clone)]
pub struct Submitted {
    handle: Arc<RunHandle>,
}

impl Submitted {
    /// Stops the program, calls in flight included; its watcher is told that it was cancelled.
    pub fn cancel(&self) {
        self.handle.cancel();
    }

    /// It was asked to stop, or its time was over.
    pub fn is_cancelled(&self) -> bool {
        self.handle.interrupt.get().is_some()
    }
}
