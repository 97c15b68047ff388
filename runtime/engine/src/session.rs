//! Provides the handle by which an application uses a session (values that last from one program to the next): it runs
//! one program at a time, removes stored values, and closes the session. It can also cancel the program, and move the
//! session to another scope.

use crate::exec::handle::Submitted;
use crate::exec::queue::{Queue, WorkerChoice};
use crate::guest::lisp::Lisp;
use crate::guest::lisp::driver::Execution;
use crate::guest::lisp::session::{self, SessionRun, SessionState};
pub use crate::guest::lisp::session::{
    Accept, CommitNote, HistoryEntry, PrintedSize, SessionBinding, SessionContents, SessionEnd,
    SessionLimits, SessionUsage,
};
use crate::handle::Run;
use ptc_base::sync::Locked;
use ptc_calls::journal::PreludeRecord;
use ptc_calls::policy::{SessionAnswers, SharedPolicy};
use ptc_calls::run::options::RunOptions;
use ptc_calls::run::outcome::{Failure, Outcome, Report};
use ptc_calls::run::watcher::RunWatcher;
use ptc_vm::{Class, Reason};
use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;
use tokio::sync::Notify;

/// A session: it stores what its successful programs define.
///
/// A program is an ordinary run. Its definitions, and its result as `*1`, are stored when it ended with a
/// value or `(return v)`, its answer was accepted, and everything stored is within the [`SessionLimits`].
/// Otherwise the session stays as it was; calls of tools are not undone. Dropping the session ends
/// it and cancels a running program.
pub struct Session {
    shared: Arc<SessionShared>,
}

/// State that a session shares with work that is under way in it.
struct SessionShared {
    state: Arc<SessionState>,
    permits: Mutex<Permits>,
    /// Notifies that the permit was released.
    released: Notify,
    /// The environment that its programs run in.
    lisp: Mutex<Arc<Lisp>>,
    queue: Arc<Queue>,
    worker: usize,
}

/// The permits of a session.
#[derive(Default)]
struct Permits {
    /// One is out.
    is_taken: bool,
    /// The number of the last one.
    last: u64,
    /// The program that has the last one, or had it: a client that has just cancelled it may ask for the next permit.
    program: Option<Submitted>,
}

impl SessionShared {
    /// Takes the permit if it is free.
    fn take(self: &Arc<SessionShared>) -> Option<SessionPermit> {
        let mut permits = self.permits.locked();
        if permits.is_taken {
            return None;
        }
        *permits = Permits { is_taken: true, last: permits.last + 1, program: None };
        Some(SessionPermit { shared: self.clone(), number: permits.last })
    }

    /// Records the program of a permit. Not before it is queued, because it may end on this thread then.
    fn record(&self, number: u64, program: &Submitted) {
        let mut permits = self.permits.locked();
        if permits.last == number {
            permits.program = Some(program.clone());
        }
        drop(permits);
        if self.state.end().is_some() {
            // The session was closed before it knew the program.
            program.cancel();
        }
    }

    fn lisp(&self) -> Arc<Lisp> {
        self.lisp.locked().clone()
    }
}

/// The session is busy with another program or change. A program that was cancelled by a drop is busy for a moment more: try
/// again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionBusy;

impl fmt::Display for SessionBusy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("another program of this session is under way")
    }
}

impl std::error::Error for SessionBusy {}

/// The permit to do one thing in a session. There is one at a time, and work that is started with it holds it
/// until it ends.
pub struct SessionPermit {
    shared: Arc<SessionShared>,
    number: u64,
}

impl Drop for SessionPermit {
    fn drop(&mut self) {
        self.shared.permits.locked().is_taken = false;
        self.shared.released.notify_waiters();
    }
}

impl Session {
    pub(crate) fn begin(lisp: Arc<Lisp>, queue: Arc<Queue>, worker: usize, limits: SessionLimits) -> Session {
        let shared = SessionShared {
            state: Arc::new(SessionState::new(limits)),
            permits: Mutex::default(),
            released: Notify::new(),
            lisp: Mutex::new(lisp),
            queue,
            worker,
        };
        Session { shared: Arc::new(shared) }
    }

    /// Takes the permit.
    ///
    /// # Errors
    /// Something else is under way.
    #[doc(hidden)]
    pub fn acquire(&self) -> Result<SessionPermit, SessionBusy> {
        self.shared.take().ok_or(SessionBusy)
    }

    /// Waits for the permit after cancelling the program that has it; `None` when that was not cancelled. A program that
    /// has ended since then counts, so a caller that was refused before is not refused again.
    #[doc(hidden)]
    pub fn acquire_after_cancel(&self) -> Option<impl Future<Output = SessionPermit> + Send + use<>> {
        let is_cancelled = {
            let permits = self.shared.permits.locked();
            permits.program.as_ref().is_some_and(Submitted::is_cancelled)
        };
        let shared = self.shared.clone();
        is_cancelled.then_some(async move {
            loop {
                // Registered before the check, so that no notification is missed.
                let released = shared.released.notified();
                if let Some(permit) = shared.take() {
                    return permit;
                }
                released.await;
            }
        })
    }

    /// [`SessionPermit::submit`] with a permit that is taken now.
    ///
    /// # Errors
    /// Something else is under way.
    #[doc(hidden)]
    pub fn submit(
        &self,
        source: impl Into<Arc<str>>,
        options: RunOptions,
        accept: Option<Accept>,
        watcher: Box<dyn RunWatcher>,
    ) -> Result<Submitted, SessionBusy> {
        Ok(self.acquire()?.submit(source, options, accept, watcher))
    }

    /// Queues a program and returns its outcome. Dropping the future cancels it. `accept` may refuse the answer: then the
    /// program fails with that failure, and the session stays as it was; `None` accepts every answer.
    ///
    /// # Errors
    /// Another program is running, or one that was cancelled has not ended yet.
    pub fn run(
        &self,
        source: impl Into<Arc<str>>,
        options: RunOptions,
        accept: Option<Accept>,
    ) -> Result<Run, SessionBusy> {
        Run::try_begin(|watcher| self.submit(source, options, accept, watcher))
    }

    /// Gives access to what the session stores.
    #[doc(hidden)]
    pub fn contents<T>(&self, look: impl FnOnce(&SessionContents) -> T) -> T {
        look(&self.shared.state.contents())
    }

    /// The name of a recorded prelude that is not the one that its programs have.
    pub(crate) fn changed_prelude<'r>(&self, recorded: &'r [PreludeRecord]) -> Option<&'r str> {
        let lisp = self.shared.lisp();
        let present = lisp.prelude();
        let is_present = |record: &PreludeRecord| {
            present.is_some_and(|present| present.digests().any(|digest| digest == record.text))
        };
        recorded.iter().find(|record| !is_present(record)).map(|record| record.name.as_str())
    }

    /// What its programs have been answered, as far as a policy has rules for data flows.
    #[doc(hidden)]
    pub fn answers(&self) -> SessionAnswers {
        self.with_policy(SharedPolicy::session_answers)
    }

    /// Notes what its programs have been answered in another process.
    #[doc(hidden)]
    pub fn add_answers(&self, answers: SessionAnswers) {
        self.with_policy(|policy, session| policy.add_session_answers(session, answers));
    }

    /// Sets the name under which limits of the policy count its calls, in every process that has the session.
    #[doc(hidden)]
    pub fn count_as(&self, name: &str) {
        self.with_policy(|policy, session| policy.name_session(session, name.into()));
    }

    /// Notes that the model has seen what its programs have been answered.
    #[doc(hidden)]
    pub fn show_answers(&self) {
        self.with_policy(SharedPolicy::shown_all);
    }

    fn with_policy<T>(&self, act: impl FnOnce(&SharedPolicy, &Weak<dyn Any + Send + Sync>) -> T) -> T {
        let state: Arc<dyn Any + Send + Sync> = self.shared.state.clone();
        act(self.shared.lisp().broker().policy(), &Arc::downgrade(&state))
    }

    /// Its limits.
    pub fn limits(&self) -> &SessionLimits {
        &self.shared.state.limits
    }

    /// True while a program or change is under way.
    pub fn is_busy(&self) -> bool {
        self.shared.permits.locked().is_taken
    }

    /// Ends the session. A running program is cancelled and reports the reason. Has no effect on a session
    /// that has ended.
    #[doc(hidden)]
    pub fn close(&self, why: SessionEnd) {
        let SessionShared { state, permits, queue, worker, .. } = &*self.shared;
        if state.close(why) {
            return;
        }
        let program = permits.locked().program.clone();
        if let Some(program) = program {
            program.cancel();
        }
        let state = state.clone();
        queue.on_worker(*worker, move || session::release(&state));
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.close(SessionEnd::Closed);
    }
}

impl SessionPermit {
    /// Queues a program; its watcher is notified of its progress. `accept` judges its answer before anything
    /// is stored.
    pub fn submit(
        self,
        source: impl Into<Arc<str>>,
        options: RunOptions,
        accept: Option<Accept>,
        watcher: Box<dyn RunWatcher>,
    ) -> Submitted {
        let shared = self.shared.clone();
        let SessionShared { state, queue, worker, .. } = &*shared;
        state.contents().attempts += 1;
        let (limits, since) = (options.limits, options.since.unwrap_or_else(Instant::now));
        let run = SessionRun { state: state.clone(), accept };
        let (lisp, source) = (shared.lisp(), source.into());
        let make = Box::new(move |account, port, preemption| {
            Execution::begin(lisp, source, options, Some(run), account, port, preemption)
        });
        let (number, worker) = (self.number, WorkerChoice::Worker(*worker));
        let watcher = SessionWatcher { watcher, permit: self };
        let submitted = queue.submit(worker, limits, make, Box::new(watcher), since);
        shared.record(number, &submitted);
        submitted
    }

    /// Stores a failure as `*e`, and calls `done` afterwards.
    pub fn note_failure(self, failure: &Failure, done: impl FnOnce() + Send + 'static) {
        let (shared, failure) = (self.shared.clone(), failure.clone());
        shared.queue.on_worker(shared.worker, move || {
            session::note_failure(&self.shared.state, &self.shared.lisp(), &failure);
            drop(self);
            done();
        });
    }

    /// Moves the session to another scope, and calls `done` afterwards. Later programs have that scope's
    /// namespaces and tools, and functions of the session call what is there.
    pub(crate) fn move_to(self, lisp: Arc<Lisp>, done: impl FnOnce() + Send + 'static) {
        let shared = self.shared.clone();
        shared.queue.on_worker(shared.worker, move || {
            session::move_to(&self.shared.state, &lisp);
            *self.shared.lisp.locked() = lisp;
            drop(self);
            done();
        });
    }

    /// Forgets, and passes the forgotten names to `done`.
    pub fn forget(self, forget: Forget, done: impl FnOnce(Vec<String>) + Send + 'static) {
        let shared = self.shared.clone();
        shared.queue.on_worker(shared.worker, move || {
            let Forget { bindings, history, prints, calls } = forget;
            let state = &self.shared.state;
            let names = match &bindings {
                Bindings::All => None,
                Bindings::Named(names) => Some(names.as_slice()),
            };
            let gone = session::forget(state, names, history);
            {
                let mut contents = state.contents();
                if prints {
                    contents.prints.clear();
                }
                if calls {
                    contents.calls.clear();
                }
            }
            drop(self);
            done(gone);
        });
    }
}

/// What a session should forget.
#[derive(Clone, Debug)]
pub struct Forget {
    /// Names.
    pub bindings: Bindings,
    /// Results.
    pub history: bool,
    /// Printed lines.
    pub prints: bool,
    /// Upstream calls.
    pub calls: bool,
}

/// Names of a session.
#[derive(Clone, Debug)]
pub enum Bindings {
    /// All.
    All,
    /// These, if they exist.
    Named(Vec<String>),
}

/// Watches a program of a session, and releases the permit when it ends.
struct SessionWatcher {
    watcher: Box<dyn RunWatcher>,
    permit: SessionPermit,
}

impl RunWatcher for SessionWatcher {
    fn inner(&mut self) -> Option<&mut dyn RunWatcher> {
        Some(&mut *self.watcher)
    }

    fn ended(self: Box<Self>, mut outcome: Outcome) {
        let SessionWatcher { watcher, permit } = *self;
        if let (Err(failure), Some(end)) = (&mut outcome.result, permit.shared.state.end())
            && failure.reason.class() == Class::Cancelled
        {
            *failure = session_ended(end);
        }
        {
            let state = &permit.shared.state;
            let mut contents = state.contents();
            if outcome.result.is_ok() {
                contents.calls.extend(outcome.upstream_calls.iter().cloned());
                contents.trim(&state.limits);
            } else {
                // A program that could not begin has not recorded its failure.
                (contents.committed, contents.note) = (false, None);
                contents.changed.clear();
            }
        }
        drop(permit);
        watcher.ended(outcome);
    }
}

/// The failure of a program after its session has ended.
fn session_ended(why: SessionEnd) -> Failure {
    let message = format!("the session ended while the program ran: it {}", why.words());
    let report = Report::new(Reason::Cancelled, message);
    report.hint("Nothing is wrong with the program. What the session held is gone: start another one.").into()
}
