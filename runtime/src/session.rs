//! Sessions as hosts see them: programs that build on each other, one after another.

use crate::exec::dispatch::{Dispatcher, RunPlace, Submitted};
use crate::guest::lisp::Lisp;
use crate::guest::lisp::session::{self, SessionRun, SessionState};
pub use crate::guest::lisp::session::{
    Accept, CommitNote, HistoryEntry, SessionBinding, SessionContents, SessionLimits, SessionUsage,
};
use crate::handle::Run;
use crate::run::options::RunOptions;
use crate::run::outcome::Outcome;
use crate::run::watcher::RunWatcher;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// A session: what its programs define stays, as long as they end well.
///
/// A program is an ordinary run. What it defines, and its result as `*1`, is kept when it ended with a value or
/// `(return v)`, its answer was accepted, and what is kept is within the [`SessionLimits`]; otherwise the session stays as
/// it was. Calls of upstream tools are not taken back.
pub struct Session {
    state: Arc<SessionState>,
    turn: Arc<OneAtATime>,
    lisp: Arc<Lisp>,
    dispatcher: Arc<Dispatcher>,
    worker: usize,
}

/// Something of this session is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionBusy;

/// The program that is under way.
#[derive(Default)]
struct OneAtATime {
    is_taken: AtomicBool,
    running: Mutex<Option<Submitted>>,
}

impl OneAtATime {
    fn take(&self) -> Result<(), SessionBusy> {
        match self.is_taken.swap(true, Ordering::AcqRel) {
            false => Ok(()),
            true => Err(SessionBusy),
        }
    }

    fn give_back(&self) {
        // Whoever is entering it just now overwrites what the next one does not: cancelling it then does nothing.
        if let Ok(mut running) = self.running.try_lock() {
            *running = None;
        }
        self.is_taken.store(false, Ordering::Release);
    }
}

impl Session {
    pub(crate) fn begin(
        lisp: Arc<Lisp>,
        dispatcher: Arc<Dispatcher>,
        worker: usize,
        limits: SessionLimits,
    ) -> Session {
        Session { state: Arc::new(SessionState::new(limits)), turn: Arc::default(), lisp, dispatcher, worker }
    }

    /// Queues a program; its watcher is told how it goes. `accept` judges its answer before anything is kept.
    ///
    /// # Errors
    /// Another program is under way.
    pub fn submit(
        &self,
        source: impl Into<Arc<str>>,
        options: RunOptions,
        accept: Option<Accept>,
        watcher: Box<dyn RunWatcher>,
    ) -> Result<Submitted, SessionBusy> {
        self.turn.take()?;
        self.state.contents().attempts += 1;
        let (limits, since) = (options.limits, options.since.unwrap_or_else(Instant::now));
        let run = SessionRun { state: self.state.clone(), accept };
        let guest = self.lisp.session_guest(source.into(), options, run);
        let watcher = TurnWatcher { watcher, state: self.state.clone(), turn: self.turn.clone() };
        // Held until it is entered, so that it cannot be entered over the next one.
        let mut running = self.turn.running.lock().unwrap_or_else(PoisonError::into_inner);
        let place = RunPlace::Worker(self.worker);
        let submitted = self.dispatcher.submit(place, limits, guest, Box::new(watcher), since);
        *running = Some(submitted.clone());
        Ok(submitted)
    }

    /// Queues a program as [`Session::submit`] does, and gives its outcome. Dropping the future cancels it.
    ///
    /// # Errors
    /// Another program is under way.
    pub fn run(
        &self,
        source: impl Into<Arc<str>>,
        options: RunOptions,
        accept: Option<Accept>,
    ) -> Result<Run, SessionBusy> {
        Run::try_begin(|watcher| self.submit(source, options, accept, watcher))
    }

    /// What it keeps.
    pub fn contents<T>(&self, look: impl FnOnce(&SessionContents) -> T) -> T {
        look(&self.state.contents())
    }

    /// Its limits.
    pub fn limits(&self) -> &SessionLimits {
        &self.state.limits
    }

    /// A program is under way.
    pub fn is_busy(&self) -> bool {
        self.turn.is_taken.load(Ordering::Acquire)
    }

    /// Forgets, and then says which names are gone.
    ///
    /// # Errors
    /// A program is under way.
    pub fn forget(
        &self,
        forget: Forget,
        done: impl FnOnce(Vec<String>) + Send + 'static,
    ) -> Result<(), SessionBusy> {
        self.turn.take()?;
        let (state, turn) = (self.state.clone(), self.turn.clone());
        self.dispatcher.queue.on_worker(self.worker, move || {
            let Forget { bindings, history, prints, calls } = forget;
            let names = match &bindings {
                Bindings::All => None,
                Bindings::Named(names) => Some(names.as_slice()),
            };
            let gone = session::forget(&state, names, history);
            {
                let mut contents = state.contents();
                if prints {
                    contents.prints.clear();
                }
                if calls {
                    contents.calls.clear();
                }
            }
            turn.give_back();
            done(gone);
        });
        Ok(())
    }

    /// Ends it; a program under way is cancelled.
    pub fn close(&self) {
        self.state.close();
        if let Some(running) = &*self.turn.running.lock().unwrap_or_else(PoisonError::into_inner) {
            running.cancel();
        }
        let state = self.state.clone();
        self.dispatcher.queue.on_worker(self.worker, move || session::release(&state));
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.close();
    }
}

/// What a session is to forget.
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
    /// These, as far as there are such.
    Named(Vec<String>),
}

/// Follows a program of a session, and lets the next one begin.
struct TurnWatcher {
    watcher: Box<dyn RunWatcher>,
    state: Arc<SessionState>,
    turn: Arc<OneAtATime>,
}

impl RunWatcher for TurnWatcher {
    fn begun(&mut self) {
        self.watcher.begun();
    }

    fn suspended(&mut self, live_bytes: u64) {
        self.watcher.suspended(live_bytes);
    }

    fn resumed(&mut self) {
        self.watcher.resumed();
    }

    fn call_ended(&mut self, ended: u64) {
        self.watcher.call_ended(ended);
    }

    fn ended(self: Box<Self>, outcome: Outcome) {
        {
            let mut contents = self.state.contents();
            if outcome.result.is_ok() {
                contents.calls.extend(outcome.upstream_calls.iter().cloned());
                contents.trim(&self.state.limits);
            } else {
                // A program that could not begin has not said so itself.
                (contents.committed, contents.note) = (false, None);
                contents.changed.clear();
            }
        }
        self.turn.give_back();
        self.watcher.ended(outcome);
    }
}
