//! The entry point of new runs: queues programs and messages for the isolate workers, and decides when a busy worker
//! begins another program. One shared queue has the programs that have not started, and an inbox per worker the
//! messages about programs that it has started. A [`RunHandle`] cancels a run wherever it is.

use super::async_runs::AsyncRuns;
use crate::guest::{AsyncRun, CallId, MakeGuest, Reply};
use ptc_base::secrets::SecretRegistry;
use ptc_base::sync::Locked;
use ptc_calls::run::RunId;
use ptc_calls::run::limits::Limits;
use ptc_calls::run::watcher::{Recipient, RunWatcher};
use ptc_vm::{Interrupt, InterruptKind};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::Notify;

/// A program that waits for a worker.
pub(crate) struct QueuedRun {
    pub(crate) handle: Arc<RunHandle>,
    pub(crate) limits: Limits,
    pub(crate) make: MakeGuest,
    pub(crate) recipient: Recipient,
    pub(crate) queued: Instant,
}

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
    /// Stops the program with its calls in flight. Its watcher is notified that it was cancelled.
    pub fn cancel(&self) {
        self.handle.cancel();
    }

    /// It was cancelled, or its time is over.
    pub fn is_cancelled(&self) -> bool {
        self.handle.interrupt.get().is_some()
    }
}

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
    fn lock(&self) -> MutexGuard<'_, InboxInner> {
        self.inner.locked()
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

    /// Takes everything that has arrived.
    pub(crate) fn drain(&self) -> VecDeque<WorkerMessage> {
        std::mem::take(&mut self.lock().messages)
    }

    /// Waits until something arrives or `deadline` passes.
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
    inboxes: Vec<Arc<Inbox>>,
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

    pub(crate) fn inboxes(&self) -> &[Arc<Inbox>] {
        &self.inboxes
    }

    /// Sets how many programs may run before others have to wait for [`PATIENCE`].
    pub(crate) fn set_most_runnable(&self, most: usize) {
        self.most_runnable.store(most, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, QueueInner> {
        self.inner.locked()
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
        let mut inner = self.lock();
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

    /// Runs short work on the thread of a worker. It is dropped if the workers stop first.
    pub(crate) fn on_worker(&self, worker: usize, work: impl FnOnce() + Send + 'static) {
        if let Some(inbox) = self.inboxes.get(worker) {
            inbox.push(WorkerMessage::Do(Box::new(work)));
        }
    }

    /// Takes the next program if it `may` begin, or enters the worker in the list of idle ones.
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

    /// Since when the next program has waited, if a worker that is busy with others should begin it. That is
    /// the case when no worker is idle, and few programs are running or it has waited long enough.
    pub(crate) fn offer(&self) -> Option<Instant> {
        let inner = self.lock();
        let queued = inner.jobs.front()?.queued;
        let is_free = inner.idle.is_empty()
            && inner.woken == 0
            && self.runnable.load(Ordering::Relaxed) < self.most_runnable.load(Ordering::Relaxed);
        (is_free || queued.elapsed() > PATIENCE).then_some(queued)
    }

    /// Takes the offered program, unless another worker was faster or it may not begin.
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

    /// Changes the number of programs that can run.
    pub(crate) fn runnable(&self, change: isize) {
        // Two's complement: adding a negative number this way subtracts.
        self.runnable.fetch_add(change as usize, Ordering::Relaxed);
    }

    /// Removes a worker from the list of idle ones.
    pub(crate) fn busy(&self, worker: usize) {
        let mut inner = self.lock();
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
