//! Schedules programs that have not started: queues them, hands them to idle workers, and decides when a busy worker
//! should begin another one. Runs that need no worker go to the I/O runtime.

use super::async_runs::AsyncRuns;
use super::handle::{RunHandle, Submitted};
use super::inbox::{Inbox, WorkerMessage};
use crate::guest::{AsyncRun, MakeGuest};
use ptc_base::secrets::SecretRegistry;
use ptc_base::sync::Locked;
use ptc_calls::run::RunId;
use ptc_calls::run::limits::Limits;
use ptc_calls::run::watcher::{Recipient, RunWatcher};
use ptc_vm::InterruptKind;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

/// A program that waits for a worker.
pub(crate) struct QueuedRun {
    pub(crate) handle: Arc<RunHandle>,
    pub(crate) limits: Limits,
    pub(crate) make: MakeGuest,
    pub(crate) recipient: Recipient,
    pub(crate) queued: Instant,
}

/// Which worker may run a guest.
#[derive(Clone, Copy)]
pub(crate) enum WorkerChoice {
    /// The first worker that has time.
    Any,
    /// This worker: what the guest needs is on its thread.
    Worker(usize),
}

/// The shared queue.
pub(crate) struct Queue {
    /// Runs that need no worker.
    pub(crate) async_runs: AsyncRuns,
    secrets: SecretRegistry,
    /// Number of runs so far.
    runs: AtomicU64,
    inner: Mutex<QueueInner>,
    pub(crate) inboxes: Vec<Arc<Inbox>>,
    /// Programs of all workers that have begun and can run.
    runnable: AtomicUsize,
    /// Above this number another program begins only when it has waited for [`PATIENCE`].
    most_runnable: AtomicUsize,
}

#[derive(Default)]
struct QueueInner {
    jobs: VecDeque<Box<QueuedRun>>,
    /// Workers with nothing to do.
    idle: Vec<usize>,
    /// Workers that are leaving `idle`.
    woken: usize,
    closed: bool,
}

/// How long a program waits for a running one to end before both run at once. Short programs end within that
/// time, and are faster one after the other.
const PATIENCE: Duration = Duration::from_millis(5);

/// Result of a worker's look at the queue when it has nothing to run.
pub(crate) enum Found {
    /// A program to begin.
    Job(Box<QueuedRun>),
    /// Nothing. The worker is now in the list of idle workers, and will be woken.
    Nothing,
    /// A program that may not begin yet.
    Refused,
}

impl Queue {
    pub(crate) fn new(workers: usize, most_runnable: usize, io: Handle, secrets: SecretRegistry) -> Queue {
        Queue {
            async_runs: AsyncRuns::new(io),
            secrets,
            runs: AtomicU64::new(0),
            inner: Mutex::default(),
            inboxes: (0..workers).map(|_| Arc::default()).collect(),
            runnable: AtomicUsize::new(0),
            most_runnable: AtomicUsize::new(most_runnable),
        }
    }

    /// Sets how many programs may run before others have to wait for [`PATIENCE`].
    pub(crate) fn set_most_runnable(&self, most: usize) {
        self.most_runnable.store(most, Ordering::Relaxed);
    }

    /// Queues a guest and wakes an idle worker, or hands it to the only worker that can run it. Its watcher is notified of
    /// its progress. After [`Queue::close`] the guest is dropped as cancelled, and its watcher is notified.
    pub(crate) fn submit(
        &self,
        choice: WorkerChoice,
        limits: Limits,
        make: MakeGuest,
        watcher: Box<dyn RunWatcher>,
        queued: Instant,
    ) -> Submitted {
        let (handle, recipient) = self.begin(watcher);
        let job = Box::new(QueuedRun { handle: handle.clone(), limits, make, recipient, queued });
        let mut inner = self.inner.locked();
        match choice {
            _ if inner.closed => {
                drop(inner);
                handle.interrupt.set(InterruptKind::Cancelled);
            }
            WorkerChoice::Any => {
                inner.jobs.push_back(job);
                let idle = inner.idle.pop();
                inner.woken += usize::from(idle.is_some());
                drop(inner);
                if let Some(inbox) = idle.and_then(|worker| self.inboxes.get(worker)) {
                    inbox.wake();
                }
            }
            WorkerChoice::Worker(worker) => {
                drop(inner);
                if let Some(inbox) = self.inboxes.get(worker) {
                    inbox.push(WorkerMessage::Begin(job));
                }
            }
        }
        Submitted::new(handle)
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
        Submitted::new(handle)
    }

    fn begin(&self, watcher: Box<dyn RunWatcher>) -> (Arc<RunHandle>, Recipient) {
        let handle = Arc::new(RunHandle::new(RunId(self.runs.fetch_add(1, Ordering::Relaxed))));
        let recipient = Recipient::new(watcher, handle.interrupt.clone(), self.secrets.clone());
        (handle, recipient)
    }

    /// Runs short work on the thread of a worker. It is dropped if the workers stop first.
    pub(crate) fn on_worker(&self, worker: usize, work: impl FnOnce() + Send + 'static) {
        if let Some(inbox) = self.inboxes.get(worker) {
            inbox.push(WorkerMessage::Do(Box::new(work)));
        }
    }

    /// Takes the next program if it `may` begin, or enters the worker in the list of idle ones.
    pub(crate) fn take_or_idle(&self, worker: usize, may: impl FnOnce(&QueuedRun) -> bool) -> Found {
        let mut inner = self.inner.locked();
        match inner.jobs.pop_front() {
            Some(job) if may(&job) => {
                self.runnable(1);
                Found::Job(job)
            }
            Some(job) => {
                inner.jobs.push_front(job);
                Found::Refused
            }
            None => {
                if !inner.idle.contains(&worker) {
                    inner.idle.push(worker);
                }
                Found::Nothing
            }
        }
    }

    /// Since when the next program has waited, if a worker that is busy with others should begin it. That is
    /// the case when no worker is idle, and few programs are running or it has waited long enough.
    pub(crate) fn offer(&self) -> Option<Instant> {
        let inner = self.inner.locked();
        let queued = inner.jobs.front()?.queued;
        let is_free = inner.idle.is_empty()
            && inner.woken == 0
            && self.runnable.load(Ordering::Relaxed) < self.most_runnable.load(Ordering::Relaxed);
        (is_free || queued.elapsed() > PATIENCE).then_some(queued)
    }

    /// Takes the offered program, unless another worker was faster or it may not begin.
    pub(crate) fn take(&self, may: impl FnOnce(&QueuedRun) -> bool) -> Option<Box<QueuedRun>> {
        let mut inner = self.inner.locked();
        let job = inner.jobs.pop_front()?;
        if may(&job) {
            self.runnable(1);
            return Some(job);
        }
        inner.jobs.push_front(job);
        None
    }

    /// Changes the number of programs that can run.
    pub(crate) fn runnable(&self, change: isize) {
        // Two's complement: adding a negative number this way subtracts.
        self.runnable.fetch_add(change as usize, Ordering::Relaxed);
    }

    /// Removes a worker from the list of idle ones.
    pub(crate) fn busy(&self, worker: usize) {
        let mut inner = self.inner.locked();
        match inner.idle.iter().position(|&idle| idle == worker) {
            Some(place) => {
                inner.idle.swap_remove(place);
            }
            None => inner.woken = inner.woken.saturating_sub(1),
        }
    }

    /// Drops all queued programs and tells every worker to stop.
    pub(crate) fn close(&self) {
        let jobs = {
            let mut inner = self.inner.locked();
            inner.closed = true;
            std::mem::take(&mut inner.jobs)
        };
        for job in jobs {
            job.handle.interrupt.set(InterruptKind::Cancelled);
        }
        for inbox in &self.inboxes {
            inbox.push(WorkerMessage::Stop);
        }
    }
}
