//! An isolate worker: a plain thread that runs many programs in turn and owns no sockets.

use crate::driver::{Execution, Progress};
use crate::engine::Engine;
use crate::queue::{Inbox, Job, Message, Queue, RunId};
use crate::watchdog::Watchdog;
use ptc_vm::InterruptKind;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Programs that one worker runs in turn; more are started only when these wait.
const MOST_READY: usize = 16;

/// How long a program may wait in the shared queue before a worker that is busy takes it too.
const PATIENCE: Duration = Duration::from_millis(5);

/// One worker thread.
pub(crate) struct Worker {
    index: usize,
    inbox: Arc<Inbox>,
    queue: Arc<Queue>,
    engine: Arc<Engine>,
    watchdog: Arc<Watchdog>,
    programs: HashMap<RunId, Program>,
    /// Programs that can run, in turn.
    ready: VecDeque<RunId>,
    /// Deadlines of the programs that wait.
    deadlines: BTreeSet<(Instant, RunId)>,
    stopping: bool,
}

/// A started program. Boxed: an isolate is large, and the table moves its entries.
struct Program {
    execution: Box<Execution>,
    waiting: bool,
}

impl Worker {
    pub(crate) fn new(
        index: usize,
        inbox: Arc<Inbox>,
        queue: Arc<Queue>,
        engine: Arc<Engine>,
        watchdog: Arc<Watchdog>,
    ) -> Worker {
        Worker {
            index,
            inbox,
            queue,
            engine,
            watchdog,
            programs: HashMap::new(),
            ready: VecDeque::new(),
            deadlines: BTreeSet::new(),
            stopping: false,
        }
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
            if let Some(run) = self.ready.pop_front() {
                self.advance(run);
                if self.ready.len() < MOST_READY
                    && let Some(job) = self.queue.take_overdue(PATIENCE)
                {
                    self.begin(job);
                }
            } else if let Some(job) = self.queue.take_or_idle(self.index) {
                self.begin(job);
            } else {
                self.inbox.wait(self.deadlines.first().map(|(deadline, _)| *deadline));
                self.queue.busy(self.index);
            }
        }
    }

    fn handle(&mut self, message: Message) {
        match message {
            Message::Reply { run, call, reply } => {
                let answered = self.watched(run, |execution| execution.answer(call, reply));
                if answered == Some(true) {
                    self.make_ready(run);
                }
            }
            Message::Cancelled(run) => self.end_waiting(run, InterruptKind::Cancelled),
            Message::Stop => {
                self.stopping = true;
                let runs: Vec<RunId> = self.programs.keys().copied().collect();
                for run in runs {
                    self.guarded(run, |execution| execution.end_waiting(InterruptKind::Cancelled));
                    self.remove(run);
                }
            }
        }
    }

    fn begin(&mut self, job: Job) {
        let begun = catch_unwind(AssertUnwindSafe(|| Execution::begin(job, &self.engine, &self.inbox)));
        match begun {
            Ok(Some(execution)) => {
                let run = execution.id();
                self.programs.insert(run, Program { execution: Box::new(execution), waiting: false });
                self.advance(run);
            }
            Ok(None) => {}
            // The recipient went down with the job, and told its caller.
            Err(_) => tracing::error!("a program could not be started because of a defect"),
        }
    }

    /// Runs one slice of a program.
    fn advance(&mut self, run: RunId) {
        match self.watched(run, Execution::advance) {
            Some(Progress::Ready) => self.ready.push_back(run),
            Some(Progress::Waiting) => {
                if let Some(program) = self.programs.get_mut(&run) {
                    program.waiting = true;
                    program.execution.suspended();
                    if let Some(deadline) = program.execution.context.deadline() {
                        self.deadlines.insert((deadline, run));
                    }
                    // A cancellation that arrived during the slice has raised the flag only.
                    if let Some(kind) = program.execution.context.interrupted() {
                        self.end_waiting(run, kind);
                    }
                }
            }
            Some(Progress::Finished) => self.remove(run),
            None => {}
        }
    }

    /// Puts a program that waited back among those that can run.
    fn make_ready(&mut self, run: RunId) {
        if let Some(program) = self.programs.get_mut(&run)
            && program.waiting
        {
            program.waiting = false;
            program.execution.resumed();
            if let Some(deadline) = program.execution.context.deadline() {
                self.deadlines.remove(&(deadline, run));
            }
            self.ready.push_back(run);
        }
    }

    fn end_overdue(&mut self) {
        while let Some(&(deadline, run)) = self.deadlines.first() {
            if Instant::now() < deadline {
                return;
            }
            self.end_waiting(run, InterruptKind::Deadline);
        }
    }

    /// Ends a program that waits. One that can run ends by itself: its interrupt is raised.
    fn end_waiting(&mut self, run: RunId, kind: InterruptKind) {
        if self.programs.get(&run).is_some_and(|program| program.waiting) {
            self.guarded(run, |execution| execution.end_waiting(kind));
            self.remove(run);
        }
    }

    fn remove(&mut self, run: RunId) {
        if let Some(program) = self.programs.remove(&run) {
            if program.waiting
                && let Some(deadline) = program.execution.context.deadline()
            {
                self.deadlines.remove(&(deadline, run));
            }
            let freed = catch_unwind(AssertUnwindSafe(|| program.execution.close()));
            if freed.is_err() {
                tracing::error!("a defect while freeing a program");
            }
        }
    }

    /// [`Worker::guarded`] for work of any length: the watchdog raises the interrupt at the deadline.
    fn watched<T>(&mut self, run: RunId, work: impl FnOnce(&mut Execution) -> T) -> Option<T> {
        self.watchdog.enter(self.index, &self.programs.get(&run)?.execution.context);
        let result = self.guarded(run, work);
        self.watchdog.leave(self.index);
        result
    }

    /// Lets a program work; a panic ends that program only.
    fn guarded<T>(&mut self, run: RunId, work: impl FnOnce(&mut Execution) -> T) -> Option<T> {
        let program = self.programs.get_mut(&run)?;
        match catch_unwind(AssertUnwindSafe(|| work(&mut program.execution))) {
            Ok(result) => Some(result),
            Err(panic) => {
                let text = panic
                    .downcast_ref::<String>()
                    .map(String::as_str)
                    .or_else(|| panic.downcast_ref::<&str>().copied())
                    .unwrap_or("unknown");
                tracing::error!(panic = text, "a program hit a defect");
                program.execution.abandon(&format!("internal defect: {text}"));
                self.remove(run);
                None
            }
        }
    }
}
