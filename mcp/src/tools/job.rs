//! Work that takes a while: what a server needs to admit, start and cancel it, and nothing of what it does.

use super::ToolAnswer;
use ptc_runtime::outcome::Outcome;
use ptc_runtime::upstream::CallingClient;
use ptc_runtime::watcher::RunWatcher;
use std::fmt;

/// Stops a job, which reports its end all the same. Without effect once it has ended.
pub type Cancel = Box<dyn FnOnce() + Send>;

/// Work that takes a while.
pub struct Job {
    memory_bytes: u64,
    start: Box<dyn FnOnce(Box<dyn Reporter>) -> Cancel + Send>,
}

impl Job {
    /// A job that `start` sets in motion, without blocking; it is told where to report and says how to stop it.
    ///
    /// `memory_bytes` is what the job may hold while it runs and what nobody else counts: the gate keeps the sum
    /// below its bound. Programs of the runtime weigh nothing here, because the runtime counts them turn by turn.
    pub fn new(memory_bytes: u64, start: impl FnOnce(Box<dyn Reporter>) -> Cancel + Send + 'static) -> Job {
        Job { memory_bytes, start: Box::new(start) }
    }

    /// Bytes that it may hold while it runs.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Sets it in motion. Runs on the thread that serves the connection, within its tokio runtime.
    pub fn start(self, reporter: Box<dyn Reporter>) -> Cancel {
        (self.start)(reporter)
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Job").field("memory_bytes", &self.memory_bytes).finish_non_exhaustive()
    }
}

/// Where a job reports. Any thread may; dropping it without an answer is a defect of the tool, of which the client
/// is told.
pub trait Reporter: Send {
    /// The job has really begun; until then it counts among those that were started ahead.
    fn begun(&mut self);

    /// Whose job it is, and where that client is asked while the job runs; `None` where a process has one client, which
    /// its servers know of.
    fn caller(&self) -> Option<CallingClient> {
        None
    }

    /// So many parts are done, each a `part` ("upstream call").
    fn progress(&mut self, done: u64, part: &'static str);

    /// It is over, cancelled or not. The answer to a cancelled call is not sent.
    fn ended(self: Box<Self>, answer: &ToolAnswer<'_>);
}

/// Follows a run for the client of a job. `ended` makes the answer, on the thread that the run ended on.
pub fn follow(
    reporter: Box<dyn Reporter>,
    ended: impl FnOnce(Box<dyn Reporter>, Outcome) + Send + 'static,
) -> Box<dyn RunWatcher> {
    Box::new(FollowedRun { reporter, ended })
}

struct FollowedRun<E> {
    reporter: Box<dyn Reporter>,
    ended: E,
}

impl<E: FnOnce(Box<dyn Reporter>, Outcome) + Send> RunWatcher for FollowedRun<E> {
    fn begun(&mut self) {
        self.reporter.begun();
    }

    fn call_ended(&mut self, ended: u64) {
        self.reporter.progress(ended, "upstream call");
    }

    fn ended(self: Box<Self>, outcome: Outcome) {
        (self.ended)(self.reporter, outcome);
    }
}
