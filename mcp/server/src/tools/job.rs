//! Defines a job, the part of a tool call that takes a while: the server starts it, may cancel it, and gets reports of
//! its progress and its answer.

use super::ToolAnswer;
use ptc_base::tasks::{self, TaskOwner};
use ptc_calls::journal::RunKeeper;
use ptc_calls::outcome::Outcome;
use ptc_calls::watcher::{RunView, RunWatcher};
use ptc_upstream::{CallingClient, ProgressListener};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Stops a job, which still reports its end. Has no effect after the end.
pub type Cancel = Box<dyn FnOnce() + Send>;

/// A job that was started.
pub struct Started {
    /// Stops it.
    pub cancel: Cancel,
    /// Keeps its run beyond the end of the process, if it can be.
    pub keeper: Option<RunKeeper>,
}

/// Work of a tool that takes a while.
pub struct Job {
    /// Bytes that it may hold while it runs.
    pub(crate) memory_bytes: u64,
    /// What [`super::Tool::resume`] needs apart from the run; `None` for a job that cannot go on.
    pub(crate) memo: Option<String>,
    /// Starts it. Must run on the thread that serves the connection, within its tokio runtime.
    pub(crate) start: Box<dyn FnOnce(Box<dyn Reporter>) -> Started + Send>,
}

impl Job {
    /// Makes a job that `start` begins without blocking. `start` gets the reporter and returns the way to
    /// cancel.
    ///
    /// `memory_bytes` is memory of the job that nothing else accounts for. The gate keeps the sum of all
    /// running jobs below its bound. Programs of the runtime pass 0, because the runtime counts them quantum
    /// by quantum, as it does answers of servers.
    pub fn new(memory_bytes: u64, start: impl FnOnce(Box<dyn Reporter>) -> Cancel + Send + 'static) -> Job {
        Job::keepable(memory_bytes, None, |reporter| Started { cancel: start(reporter), keeper: None })
    }

    /// [`Job::new`] for a job with a run that can be kept beyond the end of the process. `memo` is what
    /// [`super::Tool::resume`] needs apart from the run.
    pub fn keepable(
        memory_bytes: u64,
        memo: Option<String>,
        start: impl FnOnce(Box<dyn Reporter>) -> Started + Send + 'static,
    ) -> Job {
        Job { memory_bytes, memo, start: Box::new(start) }
    }

    /// Makes a job that is a task of its own. The receiver gets a message when the job is cancelled; a sender that is
    /// dropped without a message means that the call is over.
    pub fn task<F: Future<Output = ()> + Send + 'static>(
        work: impl FnOnce(Box<dyn Reporter>, oneshot::Receiver<()>) -> F + Send + 'static,
    ) -> Job {
        Job::new(0, |mut reporter| {
            reporter.begun();
            let (cancel, cancelled) = oneshot::channel();
            tasks::spawn(TaskOwner::Run, work(reporter, cancelled));
            Box::new(move || {
                let _ = cancel.send(());
            })
        })
    }
}

/// Receives the progress and the end of a job, on any thread. A reporter that is dropped without an answer is
/// a defect of the tool; the client then gets an error.
pub trait Reporter: Send {
    /// The job has begun. Until then it counts as started ahead.
    fn begun(&mut self);

    /// The job is this run.
    fn entered(&mut self, _run: RunView) {}

    /// The client that makes the call, which upstreams may ask while the job runs. `None` where a process has
    /// only one client, which its upstreams know.
    fn caller(&self) -> Option<CallingClient> {
        None
    }

    /// Receives the progress of tools that the job calls, if the client wants any ([`ProgressListener::listens`]).
    fn progress_listener(&self) -> Option<Arc<dyn ProgressListener>> {
        None
    }

    /// Reports `done` finished parts; `part` names what a part is ("upstream call").
    fn progress(&mut self, done: u64, part: &'static str);

    /// The job has done what it does, and its answer will say so: a cancellation that comes later has no effect.
    fn settled(&mut self) {}

    /// The job is over, cancelled or not. The server does not send the answer of a cancelled call.
    fn ended(self: Box<Self>, answer: &ToolAnswer<'_>);
}

/// Reports the progress of a run to the client of a job, as the inner watcher of one that makes the answer.
impl RunWatcher for Box<dyn Reporter> {
    fn entered(&mut self, view: RunView) {
        (**self).entered(view);
    }

    fn begun(&mut self) {
        (**self).begun();
    }

    fn progress_listener(&mut self) -> Option<Arc<dyn ProgressListener>> {
        (**self).progress_listener()
    }

    fn call_ended(&mut self, ended: u64) {
        self.progress(ended, "upstream call");
    }

    // The outer watcher gets it.
    fn ended(self: Box<Self>, _: Outcome) {}
}

/// Makes a watcher that reports a run to the client of a job. `ended` makes the answer, on the thread where
/// the run ends.
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
    fn inner(&mut self) -> Option<&mut dyn RunWatcher> {
        Some(&mut self.reporter)
    }

    fn ended(self: Box<Self>, outcome: Outcome) {
        (self.ended)(self.reporter, outcome);
    }
}
