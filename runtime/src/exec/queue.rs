//! How work reaches the isolate workers: one shared queue of programs that have not started, and one inbox
//! a worker for what concerns the programs it has started.

use crate::guest::{CallId, MakeGuest, Reply, ReplySink};
use crate::run::RunId;
use crate::run::limits::Limits;
use crate::run::watcher::Recipient;
use ptc_vm::{Interrupt, InterruptKind};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// A program that waits for a worker.
pub(crate) struct QueuedRun {
    pub(crate) handle: Arc<RunHandle>,
    pub(crate) limits: Limits,
    pub(crate) make: MakeGuest,
    /// Taken by whoever begins the run.
    pub(crate) recipient: Option<Recipient>,
    pub(crate) queued: Instant,
}

/// How everybody else reaches a run.
pub(crate) struct RunHandle {
    pub(crate) id: RunId,
    pub(crate) interrupt: Interrupt,
    worker: OnceLock<Arc<Inbox>>,
}

impl RunHandle {
    pub(crate) fn new(id: RunId) -> RunHandle {
        RunHandle { id, interrupt: Interrupt::default(), worker: OnceLock::new() }
    }

    /// Stops the run, wherever it is.
    pub(crate) fn cancel(&self) {
        self.interrupt.set(InterruptKind::Cancelled);
        // Pairs with `pin`: either we see the worker, or the worker sees the flag.
        fence(Ordering::SeqCst);
        if let Some(worker) = self.worker.get() {
            worker.push(WorkerMessage::Cancelled(self.id));
        }
    }

    /// Ties the run to a worker; false when it was cancelled before.
    pub(crate) fn pin(&self, worker: &Arc<Inbox>) -> bool {
        let _ = self.worker.set(worker.clone());
        fence(Ordering::SeqCst);
        self.interrupt.get().is_none()
    }
}

/// What concerns a started program.
pub(crate) enum WorkerMessage {
    /// Work that it handed out is done.
    Replies { run: RunId, replies: Vec<(CallId, Reply)> },
    /// A program that only this worker can run.
    Begin(Box<QueuedRun>),
    /// Short work that belongs on its thread.
    Do(Box<dyn FnOnce() + Send>),
    /// The caller gave up.
    Cancelled(RunId),
    /// The runtime shuts down.
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
    fn lock(&self) -> MutexGuard<'_, InboxInner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, message: WorkerMessage) {
        self.lock().messages.push_back(message);
        self.arrived.notify_one();
    }

    /// Makes the worker look at the shared queue.
    fn wake(&self) {
        self.lock().woken = true;
        self.arrived.notify_one();
    }

    /// Everything that has arrived.
    pub(crate) fn drain(&self) -> VecDeque<WorkerMessage> {
        std::mem::take(&mut self.lock().messages)
    }

    /// Waits for something to arrive, at most until `deadline`.
    pub(crate) fn wait(&self, deadline: Option<Instant>) {
        let mut inner = self.lock();
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

impl ReplySink for Inbox {
    fn deliver(&self, run: RunId, replies: Vec<(CallId, Reply)>) {
        self.push(WorkerMessage::Replies { run, replies });
    }
}

/// The shared queue.
pub(crate) struct Queue {
    inner: Mutex<QueueInner>,
    inboxes: Vec<Arc<Inbox>>,
    /// Programs that have begun and can run, of all workers.
    runnable: AtomicUsize,
    /// As many take turns; one more begins when it has waited for [`PATIENCE`].
    most_runnable: AtomicUsize,
}

#[derive(Default)]
struct QueueInner {
    jobs: VecDeque<Box<QueuedRun>>,
    /// Workers with nothing to do.
    idle: Vec<usize>,
    /// Workers on their way out of `idle`.
    woken: usize,
    closed: bool,
}

/// How long a program waits for one that runs to end before it begins beside them. Short programs end within that
/// time, and are better run one after the other.
const PATIENCE: Duration = Duration::from_millis(5);

/// What a worker without a program that can run finds.
pub(crate) enum Found {
    /// A program to begin.
    Job(Box<QueuedRun>),
    /// Nothing; it is among the idle workers now, and will be woken.
    Nothing,
    /// A program that may not begin yet.
    Refused,
}

impl Queue {
    pub(crate) fn new(workers: usize, most_runnable: usize) -> Queue {
        Queue {
            inner: Mutex::default(),
            inboxes: (0..workers).map(|_| Arc::default()).collect(),
            runnable: AtomicUsize::new(0),
            most_runnable: AtomicUsize::new(most_runnable),
        }
    }

    pub(crate) fn inboxes(&self) -> &[Arc<Inbox>] {
        &self.inboxes
    }

    /// Changes how many programs take turns before others have to wait a little.
    pub(crate) fn set_most_runnable(&self, most: usize) {
        self.most_runnable.store(most, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, QueueInner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a program and wakes a worker that has nothing to do. After [`Queue::close`] the program is
    /// dropped as cancelled, which its caller is told.
    pub(crate) fn submit(&self, job: Box<QueuedRun>) {
        let idle = {
            let mut inner = self.lock();
            if inner.closed {
                job.handle.interrupt.set(InterruptKind::Cancelled);
                return;
            }
            inner.jobs.push_back(job);
            let idle = inner.idle.pop();
            inner.woken += usize::from(idle.is_some());
            idle
        };
        if let Some(inbox) = idle.and_then(|worker| self.inboxes.get(worker)) {
            inbox.wake();
        }
    }

    /// Hands a program to the worker that alone can run it; otherwise as [`Queue::submit`].
    pub(crate) fn submit_to(&self, worker: usize, job: Box<QueuedRun>) {
        let is_closed = self.lock().closed;
        match self.inboxes.get(worker).filter(|_| !is_closed) {
            Some(inbox) => inbox.push(WorkerMessage::Begin(job)),
            None => job.handle.interrupt.set(InterruptKind::Cancelled),
        }
    }

    /// Has short work done on the thread of a worker; it is dropped when the workers stop before.
    pub(crate) fn on_worker(&self, worker: usize, work: impl FnOnce() + Send + 'static) {
        if let Some(inbox) = self.inboxes.get(worker) {
            inbox.push(WorkerMessage::Do(Box::new(work)));
        }
    }

    /// The next program if it `may` begin, or a place among the idle workers.
    pub(crate) fn take_or_idle(&self, worker: usize, may: impl FnOnce(&QueuedRun) -> bool) -> Found {
        let mut inner = self.lock();
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

    /// Since when the next program has waited, if a worker that is busy with others should begin it: no other worker
    /// will, and few programs take turns or it has waited long enough.
    pub(crate) fn offer(&self) -> Option<Instant> {
        let inner = self.lock();
        let queued = inner.jobs.front()?.queued;
        let is_free = inner.idle.is_empty()
            && inner.woken == 0
            && self.runnable.load(Ordering::Relaxed) < self.most_runnable.load(Ordering::Relaxed);
        (is_free || queued.elapsed() > PATIENCE).then_some(queued)
    }

    /// Takes what was offered, unless another worker was faster or it may not begin.
    pub(crate) fn take(&self, may: impl FnOnce(&QueuedRun) -> bool) -> Option<Box<QueuedRun>> {
        let mut inner = self.lock();
        let job = inner.jobs.pop_front()?;
        if may(&job) {
            self.runnable(1);
            return Some(job);
        }
        inner.jobs.push_front(job);
        None
    }

    /// Counts programs that can run now, or that cannot any more.
    pub(crate) fn runnable(&self, change: isize) {
        // Two's complement: adding a negative number this way subtracts.
        self.runnable.fetch_add(change as usize, Ordering::Relaxed);
    }

    /// Leaves the idle workers.
    pub(crate) fn busy(&self, worker: usize) {
        let mut inner = self.lock();
        match inner.idle.iter().position(|&idle| idle == worker) {
            Some(place) => {
                inner.idle.swap_remove(place);
            }
            None => inner.woken = inner.woken.saturating_sub(1),
        }
    }

    /// Drops everything that waits and tells every worker to stop.
    pub(crate) fn close(&self) {
        let jobs = {
            let mut inner = self.lock();
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
