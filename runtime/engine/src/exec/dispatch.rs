//! Turns a guest into a queued run, or a future into a run on the I/O runtime, with a number, a handle and a recipient.

use super::async_runs::AsyncRuns;
use super::queue::{Queue, QueuedRun, RunHandle};
use crate::guest::{AsyncRun, MakeGuest};
use ptc_base::secrets::SecretRegistry;
use ptc_calls::run::RunId;
use ptc_calls::run::limits::Limits;
use ptc_calls::run::watcher::{Recipient, RunWatcher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tokio::runtime::Handle;

/// Entry point for new runs.
pub(crate) struct Dispatcher {
    pub(crate) queue: Arc<Queue>,
    pub(crate) async_runs: AsyncRuns,
    secrets: SecretRegistry,
    runs: AtomicU64,
}

/// Which worker may run a guest.
#[derive(Clone, Copy)]
pub(crate) enum WorkerChoice {
    /// The first worker that has time.
    Any,
    /// This worker: what the guest needs is on its thread.
    Worker(usize),
}

impl Dispatcher {
    pub(crate) fn new(queue: Arc<Queue>, io: Handle, secrets: SecretRegistry) -> Dispatcher {
        Dispatcher { queue, async_runs: AsyncRuns::new(io), secrets, runs: AtomicU64::new(0) }
    }

    /// Queues a guest. Its watcher is notified of its progress.
    pub(crate) fn submit(
        &self,
        worker: WorkerChoice,
        limits: Limits,
        make: MakeGuest,
        watcher: Box<dyn RunWatcher>,
        queued: Instant,
    ) -> Submitted {
        let (handle, recipient) = self.begin(watcher);
        let job = Box::new(QueuedRun { handle: handle.clone(), limits, make, recipient, queued });
        match worker {
            WorkerChoice::Any => self.queue.submit(job),
            WorkerChoice::Worker(worker) => self.queue.submit_to(worker, job),
        }
        Submitted { handle }
    }

    /// Starts a run on the I/O runtime.
    pub(crate) fn submit_async(
        &self,
        limits: Limits,
        run: AsyncRun,
        watcher: Box<dyn RunWatcher>,
    ) -> Submitted {
        let (handle, recipient) = self.begin(watcher);
        self.async_runs.start(run, limits, handle.clone(), recipient);
        Submitted { handle }
    }

    fn begin(&self, watcher: Box<dyn RunWatcher>) -> (Arc<RunHandle>, Recipient) {
        let handle = Arc::new(RunHandle::new(RunId(self.runs.fetch_add(1, Ordering::Relaxed))));
        let recipient = Recipient::new(watcher, handle.interrupt.clone(), self.secrets.clone());
        (handle, recipient)
    }
}

/// A submitted program. Its watcher is notified of the outcome.
#[derive(Clone)]
pub struct Submitted {
    handle: Arc<RunHandle>,
}

impl Submitted {
    /// Stops the program with its calls in flight. Its watcher is notified that it was cancelled.
    pub fn cancel(&self) {
        self.handle.cancel();
    }

    /// It was cancelled, or its time is over.
    pub fn is_cancelled(&self) -> bool {
        self.handle.interrupt.get().is_some()
    }
}
