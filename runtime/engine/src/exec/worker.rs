//! The loop of a worker thread: begins programs, gives them time slices in turn, ends overdue ones, and holds back
//! those that lack memory. It owns no sockets.

use super::commitment::Commitment;
use super::coroutine::{Coroutines, Suspended, Switch, TURN};
use super::inbox::{Inbox, WorkerMessage};
use super::queue::{Found, Queue, QueuedRun};
use super::resources::SharedResources;
use super::scheduler::{NextRun, Scheduler};
use super::watchdog::Watchdog;
use super::work::{Needs, Work};
use crate::guest::{CallId, Port, Reply};
use ptc_base::memory;
use ptc_base::panics::caught;
use ptc_calls::run::RunId;
use ptc_calls::run::account::RunAccount;
use ptc_vm::InterruptKind;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long to wait before checking again whether other programs have freed memory.
const MEMORY_PATIENCE: Duration = Duration::from_millis(1);

/// One worker thread.
pub(crate) struct Worker {
    index: usize,
    inbox: Arc<Inbox>,
    queue: Arc<Queue>,
    resources: Arc<SharedResources>,
    watchdog: Arc<Watchdog>,
    coroutines: Coroutines<Work>,
    programs: HashMap<RunId, Program>,
    /// Programs that can run.
    scheduler: Scheduler,
    /// Programs that could run if there were memory for them.
    starved: Vec<RunId>,
    /// When starved programs get their next chance.
    next_retry: Instant,
    /// Until when no new program begins between the quanta of others, because memory was short.
    closed_until: Option<Instant>,
    /// Deadlines of the programs that did not end in their first quantum.
    deadlines: BTreeSet<(Instant, RunId)>,
    stopping: bool,
    /// How often free memory was returned to the system since a program ended here.
    collections: usize,
}

/// The pause before a program whose clock has stood still is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A program that has begun.
struct Program {
    /// When it was queued. Its clock has run since it began, so it goes before programs that were queued later.
    queued: Instant,
    account: Arc<RunAccount>,
    port: Rc<Port>,
    state: ProgramState,
    /// Replies that came while it was suspended half-way.
    replies: Vec<(CallId, Reply)>,
    /// Sum of its quanta.
    used: Duration,
    /// It needs a reply to go on.
    waits: bool,
    commitment: Commitment,
    /// When its deadline is checked next.
    watched: Option<Instant>,
}

/// State of a program between its quanta.
enum ProgramState {
    /// Between two slices; it needs no stack.
    Parked(Work),
    /// In the middle of native work.
    Halfway(Suspended<Work>),
    /// It is running now.
    Running,
}

impl Worker {
    pub(crate) fn new(
        index: usize,
        inbox: Arc<Inbox>,
        queue: Arc<Queue>,
        resources: Arc<SharedResources>,
        watchdog: Arc<Watchdog>,
    ) -> Worker {
        Worker {
            index,
            inbox,
            queue,
            resources,
            watchdog,
            coroutines: Coroutines::new(),
            programs: HashMap::new(),
            scheduler: Scheduler::default(),
            starved: Vec::new(),
            next_retry: Instant::now(),
            closed_until: None,
            deadlines: BTreeSet::new(),
            stopping: false,
            collections: usize::MAX,
        }
    }

    /// Raises the niceness of the calling thread by this many steps. Only on Linux does a thread have its own
    /// niceness.
    pub(crate) fn with_niceness(self, niceness: u8) -> Worker {
        #[cfg(target_os = "linux")]
        if niceness > 0
            && let Err(error) = rustix::process::nice(niceness.into())
        {
            tracing::debug!(%error, "the priority of a worker could not be lowered");
        }
        #[cfg(not(target_os = "linux"))]
        let _ = niceness;
        self
    }

    /// Works until the runtime shuts down.
    pub(crate) fn run(mut self) {
        loop {
            for message in self.inbox.drain() {
                self.handle(message);
            }
            if self.stopping {
                return;
            }
            self.end_overdue();
            self.retry_starved();
            // A worker with nothing else to do takes any program.
            let offered =
                if self.scheduler.is_empty() || self.is_closed() { None } else { self.queue.offer() };
            match self.scheduler.next(offered) {
                Some(NextRun::Begun(run)) => {
                    let Some(program) = self.programs.get_mut(&run) else { continue };
                    let limit = program.account.limits().memory_bytes;
                    match self.resources.commitments.begin_turn(limit, &mut program.commitment) {
                        true => self.turn(run),
                        false => self.starved.push(run),
                    }
                }
                Some(NextRun::New) => {
                    let mut commitment = Commitment::default();
                    match self.queue.take(|job| may_begin(&self.resources, job, &mut commitment)) {
                        Some(job) => {
                            let run = self.admit(job, commitment);
                            self.turn(run);
                        }
                        None => self.closed_until = Some(Instant::now() + MEMORY_PATIENCE),
                    }
                }
                None => self.look_for_work(),
            }
        }
    }

    /// No program can run: begins a new one, or waits for something to happen.
    fn look_for_work(&mut self) {
        let mut commitment = Commitment::default();
        let deadline = self.deadlines.first().map(|(deadline, _)| *deadline);
        let soon = Instant::now() + MEMORY_PATIENCE;
        match self.queue.take_or_idle(self.index, |job| may_begin(&self.resources, job, &mut commitment)) {
            Found::Job(job) => {
                let run = self.admit(job, commitment);
                self.turn(run);
            }
            Found::Refused => self.inbox.wait(Some(deadline.map_or(soon, |deadline| deadline.min(soon)))),
            Found::Nothing => {
                let until = if self.starved.is_empty() { deadline } else { Some(soon) };
                let idle = memory::COLLECT_AT.get(self.collections).map(|&wait| Instant::now() + wait);
                self.inbox.wait([until, idle].into_iter().flatten().min());
                if idle.is_some_and(|idle| Instant::now() >= idle) {
                    self.collections += 1;
                    memory::collect();
                }
                self.queue.busy(self.index);
            }
        }
    }

    fn handle(&mut self, message: WorkerMessage) {
        match message {
            WorkerMessage::Replies { run, mut replies } => {
                let Some(program) = self.programs.get_mut(&run) else { return };
                program.replies.append(&mut replies);
                if std::mem::take(&mut program.waits) {
                    self.queue.runnable(1);
                    self.scheduler.push(run, program.used, program.queued);
                }
            }
            WorkerMessage::Begin(job) => {
                self.queue.runnable(1);
                let queued = job.queued;
                let run = self.admit(job, Commitment::default());
                self.scheduler.push(run, Duration::ZERO, queued);
                self.watch(run);
            }
            WorkerMessage::Do(work) => {
                if caught(work).is_err() {
                    tracing::error!("a defect in work on a worker's thread");
                }
            }
            WorkerMessage::Cancelled(run) => self.end(run, InterruptKind::Cancelled),
            WorkerMessage::Stop => {
                self.stopping = true;
                let runs: Vec<RunId> = self.programs.keys().copied().collect();
                for run in runs {
                    self.end(run, InterruptKind::Cancelled);
                    // A suspended coroutine is resumed until it ends: its stack cannot be dropped.
                    while self.programs.contains_key(&run) {
                        self.turn(run);
                    }
                }
            }
        }
    }

    /// Watches the deadline of a program from now on.
    fn watch(&mut self, run: RunId) {
        if let Some(program) = self.programs.get_mut(&run)
            && let Some(deadline) = program.account.deadline()
        {
            program.watched = Some(deadline);
            self.deadlines.insert((deadline, run));
        }
    }

    /// Takes in a program that has not run yet.
    fn admit(&mut self, job: Box<QueuedRun>, commitment: Commitment) -> RunId {
        let run = job.handle.id;
        let account = Arc::new(RunAccount::new(job.limits, job.handle.interrupt.clone()));
        let inbox = self.inbox.clone();
        let deliver = Arc::new(move |replies| inbox.push(WorkerMessage::Replies { run, replies }));
        let port = Rc::new(Port::new(self.resources.io.clone(), deliver));
        let queued = job.queued;
        let work = Work::new(job, account.clone(), &self.inbox, port.clone());
        let program = Program {
            queued,
            account,
            port,
            state: ProgramState::Parked(work),
            replies: Vec::new(),
            used: Duration::ZERO,
            waits: false,
            commitment,
            watched: None,
        };
        self.programs.insert(run, program);
        run
    }

    /// True while no program may begin. Without this, an offered program that may not begin would keep all
    /// others from running: quanta that could not be given are not charged.
    fn is_closed(&mut self) -> bool {
        let is_closed = self.closed_until.is_some_and(|until| Instant::now() < until);
        if !is_closed {
            self.closed_until = None;
        }
        is_closed
    }

    /// Lets programs that lacked memory try again, at intervals: otherwise no other program would run.
    fn retry_starved(&mut self) {
        if self.starved.is_empty() || Instant::now() < self.next_retry {
            return;
        }
        self.next_retry = Instant::now() + MEMORY_PATIENCE;
        for run in std::mem::take(&mut self.starved) {
            if let Some(program) = self.programs.get(&run) {
                self.scheduler.push(run, program.used, program.queued);
            }
        }
    }

    /// Runs a program for one quantum.
    fn turn(&mut self, run: RunId) {
        let Some(program) = self.programs.get_mut(&run) else { return };
        self.watchdog.enter(self.index, &program.account);
        let begun = Instant::now();
        let turn_ends = (!self.stopping).then(|| begun + TURN);
        let switch = match std::mem::replace(&mut program.state, ProgramState::Running) {
            ProgramState::Parked(mut work) => {
                work.replies.append(&mut program.replies);
                self.coroutines.run(work, turn_ends)
            }
            ProgramState::Halfway(suspended) => suspended.resume(&mut self.coroutines, turn_ends),
            ProgramState::Running => unreachable!("a worker gives one turn at a time"),
        };
        self.watchdog.leave(self.index);
        program.port.start();
        let ended = Instant::now();
        let took = ended - begun;
        self.scheduler.charge(program.used, took);
        program.used += took;
        let (needs, held) = match switch {
            Switch::Preempted(suspended, live_bytes) => {
                program.state = ProgramState::Halfway(suspended);
                (Needs::Turn, live_bytes)
            }
            Switch::Done(work, needs) => {
                let held = work.live_bytes();
                program.state = ProgramState::Parked(work);
                (needs, held)
            }
        };
        self.resources.commitments.end_turn(held, &mut program.commitment);
        match needs {
            Needs::Turn => self.scheduler.push(run, program.used, program.queued),
            // A reply came while it was suspended half-way.
            Needs::Reply if !program.replies.is_empty() => {
                self.scheduler.push(run, program.used, program.queued)
            }
            Needs::Reply => {
                program.waits = true;
                self.queue.runnable(-1);
                self.resources.commitments.rest(&mut program.commitment);
            }
            Needs::Nothing => return self.remove(run),
        }
        if program.watched.is_none() {
            self.watch(run);
        }
    }

    fn remove(&mut self, run: RunId) {
        self.queue.runnable(-1);
        let Some(program) = self.programs.remove(&run) else { return };
        self.collections = 0;
        self.resources.commitments.end(program.commitment);
        if let Some(deadline) = program.watched {
            self.deadlines.remove(&(deadline, run));
        }
    }

    fn end_overdue(&mut self) {
        while let Some(&(deadline, run)) = self.deadlines.first() {
            let now = Instant::now();
            if now < deadline {
                return;
            }
            self.deadlines.remove(&(deadline, run));
            let Some(program) = self.programs.get_mut(&run) else { continue };
            if program.account.is_overdue(now) {
                self.end(run, InterruptKind::Deadline);
            } else {
                // Its clock has stood still, and may still do so.
                let later = now + program.account.time_left().max(LOOK_AGAIN);
                program.watched = Some(later);
                self.deadlines.insert((later, run));
            }
        }
    }

    /// Ends a program at once, wherever it is: the interrupt is the first thing that it checks.
    fn end(&mut self, run: RunId, kind: InterruptKind) {
        let Some(program) = self.programs.get_mut(&run) else { return };
        program.account.interrupt(kind);
        if std::mem::take(&mut program.waits) {
            self.queue.runnable(1);
        } else if !self.scheduler.remove(run, program.used) {
            self.starved.retain(|starved| *starved != run);
        }
        self.turn(run);
    }
}

fn may_begin(resources: &SharedResources, job: &QueuedRun, commitment: &mut Commitment) -> bool {
    resources.commitments.begin_turn(job.limits.memory_bytes, commitment)
}
