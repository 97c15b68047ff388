//! Stores the changes of a session as a log that another process can replay.
//!
//! The log holds each committed program with the answers of its calls, each use of `lisp_session_forget`, and which tools
//! had answered programs that failed, since the model has seen why they failed.
//!
//! Changes are numbered, and a number is written once. What this process has in memory is the state behind `known`
//! changes ([`super::turn`]). A change that loses its number to another process is dropped with everything that waits, and
//! with the session in memory: the next request reads the log.

use super::fault::SessionFault;
use super::stored::{closed, remove_until_done, stored_session, unavailable};
use super::table::OpenSession;
use super::turn::LogLocks;
use ptc_base::sync::Locked;
use ptc_base::tasks::{self, TaskOwner};
use ptc_calls::journal::{DurableRuns, Recording, RunJournal};
use ptc_calls::policy::SessionAnswers;
use ptc_engine::Runtime;
use ptc_engine::session::{Bindings, Forget, SessionBusy};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot;

/// Keys of changes begin so, before the id and the number: who lists sessions does not read what they hold.
const CHANGES: &str = "session-change/";

/// Most bytes of the changes of a session.
const MOST_BYTES: usize = 64 << 20;

/// A change that is no program.
#[derive(Debug, Serialize, Deserialize)]
struct StoredForget {
    /// `None`: all names.
    bindings: Option<Vec<String>>,
    history: bool,
    prints: bool,
    calls: bool,
}

/// Begins the text of a [`StoredForget`], and of no program's journal.
const FORGET: &[u8] = b"forget ";

/// Why a change is not stored.
const CHANGED_MEANWHILE: &str = "another process has changed it meanwhile";

/// Begins the text of [`SessionAnswers`].
const ANSWERS: &[u8] = b"answers ";

/// The changes of a stored session.
pub(super) struct SessionLog {
    /// Where it is stored.
    pub(super) runs: DurableRuns,
    id: String,
    state: Mutex<LogState>,
    /// Held while changes are read or written, so that they stay in order.
    order: tokio::sync::Mutex<()>,
    /// The turns in the session.
    pub(super) turns: Arc<LogLocks>,
    /// The session is stored: until then it is in the memory of this process alone.
    is_begun: AtomicBool,
}

struct LogState {
    /// How many stored changes this process has.
    known: u64,
    /// Changes that are not stored yet.
    waiting: VecDeque<Vec<u8>>,
    /// The store may have changes that this process does not have.
    is_behind: bool,
    /// Bytes of all changes, those that wait included.
    bytes: usize,
    /// A change was too large to be stored.
    is_cut: bool,
    /// Something was not stored, so the session in memory is another one than the stored one. Nothing more is stored of it.
    is_lost: bool,
    /// The answers that were added last.
    answers: SessionAnswers,
}

/// The beginning of the keys of the changes of a session.
pub(super) fn changes_of(id: &str) -> String {
    format!("{CHANGES}{id}/")
}

impl LogState {
    /// Adds a change; `None` is one that is too large by itself.
    fn add(&mut self, change: Option<Vec<u8>>) {
        if self.is_lost {
            return;
        }
        let fits = |change: &Vec<u8>| self.bytes + change.len() <= MOST_BYTES;
        match change.filter(fits) {
            Some(change) => {
                self.bytes += change.len();
                self.waiting.push_back(change);
            }
            None => self.is_cut = true,
        }
    }
}

impl SessionLog {
    /// The log of a new session, or of one that was stored by another process.
    pub(super) fn new(runs: DurableRuns, id: &str, is_behind: bool) -> SessionLog {
        let state = LogState {
            known: 0,
            waiting: VecDeque::new(),
            is_behind,
            bytes: 0,
            is_cut: false,
            is_lost: false,
            answers: SessionAnswers::default(),
        };
        SessionLog {
            runs,
            id: id.to_owned(),
            state: Mutex::new(state),
            order: tokio::sync::Mutex::default(),
            turns: Arc::default(),
            is_begun: AtomicBool::new(is_behind),
        }
    }

    /// The session is stored from now on.
    pub(super) fn set_begun(&self) {
        self.is_begun.store(true, Ordering::Release);
    }

    /// True if this process has all changes.
    pub(super) fn is_current(&self) -> bool {
        let state = self.state.locked();
        !(self.runs.is_shared() || state.is_behind || state.is_lost)
    }

    /// True if what is in memory is another session than the stored one.
    pub(super) fn is_lost(&self) -> bool {
        self.state.locked().is_lost
    }

    /// Stores nothing more of what is in memory.
    fn lose(&self) {
        let mut state = self.state.locked();
        state.is_lost = true;
        state.waiting.clear();
    }

    /// Adds that parts of the session were forgotten.
    pub(super) fn forgotten(&self, forget: &Forget) {
        let Forget { bindings, history, prints, calls } = forget.clone();
        let bindings = match bindings {
            Bindings::All => None,
            Bindings::Named(names) => Some(names),
        };
        // Plain data.
        let text = serde_json::to_vec(&StoredForget { bindings, history, prints, calls }).unwrap_or_default();
        self.state.locked().add(Some([FORGET, &text].concat()));
    }

    /// Stores what was added. After an error nothing more is stored of this session in memory.
    ///
    /// # Errors
    /// The store cannot be written, or another process has changed the session.
    pub(super) async fn store(&self) -> Result<(), SessionFault> {
        let _order = self.order.lock().await;
        let stored = self.store_waiting().await;
        if stored.is_err() {
            self.lose();
        }
        stored
    }

    async fn store_waiting(&self) -> Result<(), SessionFault> {
        loop {
            let (number, change) = {
                let state = self.state.locked();
                if state.is_lost {
                    return Err(unavailable(CHANGED_MEANWHILE));
                }
                if state.is_cut {
                    return Err(unavailable(
                        "its programs have more answers than fit (16 MiB each, 64 MiB in all)",
                    ));
                }
                let Some(change) = state.waiting.front() else { return Ok(()) };
                (state.known, change.clone())
            };
            if !self.add(&self.change(number), change).await? {
                return Err(unavailable(CHANGED_MEANWHILE));
            }
            let mut state = self.state.locked();
            state.waiting.pop_front();
            state.known += 1;
        }
    }

    /// Writes a change under a key that has no value yet. False if it has one.
    ///
    /// # Errors
    /// The store cannot be written; the session was closed meanwhile.
    async fn add(&self, key: &str, change: Vec<u8>) -> Result<bool, SessionFault> {
        let is_added = match self.runs.add_note(key, change.clone()).await {
            Ok(is_added) => is_added,
            // The change may be stored, and only the answer of the store lost.
            Err(fault) => match self.runs.read_note(key).await {
                Ok(Some(found)) if found == change => true,
                Ok(_) | Err(_) => return Err(unavailable(fault)),
            },
        };
        // A process that closes the session ends it before it removes the changes ([`remove`]): it sees this change, or
        // the session is over here.
        let session = stored_session(&self.runs, &self.id).await;
        if session.is_err() && is_added {
            // It is stored: a session that was closed meanwhile takes it along when that is seen.
            return Ok(true);
        }
        if session?.is_none() {
            if is_added {
                self.runs.note(key, None).await.map_err(unavailable)?;
            }
            return Err(closed());
        }
        Ok(is_added)
    }

    /// The key of a change. Keys sort by number.
    fn change(&self, number: u64) -> String {
        format!("{}{number:08}", changes_of(&self.id))
    }

    /// Runs the programs again that the session has missed. The caller has the turn.
    ///
    /// # Errors
    /// The store cannot be read or written; a program does something else than it did, and the session in memory is lost.
    pub(super) async fn catch_up(
        &self,
        runtime: &Runtime,
        session: &OpenSession,
    ) -> Result<(), SessionFault> {
        // What waits here goes first, or is lost to a change of another process.
        self.store().await?;
        let _order = self.order.lock().await;
        let known = self.state.locked().known;
        let missed = self.runs.notes_from(&changes_of(&self.id), &self.change(known)).await;
        // Sorted by key, so in order.
        for (key, change) in missed.map_err(unavailable)? {
            if key != self.change(self.state.locked().known) {
                // Another process removes the session.
                return Err(closed());
            }
            if let Err(fault) = apply(runtime, session, (&key, &change)).await {
                self.lose();
                return Err(fault);
            }
            let mut state = self.state.locked();
            state.known += 1;
            state.bytes += change.len();
        }
        self.state.locked().is_behind = false;
        Ok(())
    }

    /// Removes the session from the store, soon.
    pub(super) fn remove(&self) {
        let (runs, id) = (self.runs.clone(), self.id.clone());
        tasks::spawn(TaskOwner::Process, async move { remove_until_done(&runs, &id).await });
    }

    /// Removes it when it was not used for long, unless another process may use it.
    pub(super) fn remove_idle(&self) {
        if !self.runs.is_shared() {
            self.remove();
        }
    }
}

/// Makes a stored change in a session.
async fn apply(
    runtime: &Runtime,
    session: &OpenSession,
    (key, change): (&str, &[u8]),
) -> Result<(), SessionFault> {
    match (change.strip_prefix(FORGET), change.strip_prefix(ANSWERS)) {
        (Some(forget), _) => forget_again(session, forget).await,
        (None, Some(answers)) => {
            session.session.add_answers(serde_json::from_slice(answers).map_err(unavailable)?);
            Ok(())
        }
        (None, None) => {
            let recording = Recording::from_lines(key, change).map_err(unavailable)?;
            runtime.restore(&session.session, recording).await.map_err(unavailable).map(drop)
        }
    }
}

async fn forget_again(session: &OpenSession, text: &[u8]) -> Result<(), SessionFault> {
    let StoredForget { bindings, history, prints, calls } =
        serde_json::from_slice(text).map_err(unavailable)?;
    let bindings = bindings.map_or(Bindings::All, Bindings::Named);
    let permit = session.session.acquire().map_err(|SessionBusy| SessionFault::busy(&session.id))?;
    let (done, is_done) = oneshot::channel();
    permit.forget(Forget { bindings, history, prints, calls }, move |_| {
        let _ = done.send(());
    });
    is_done.await.map_err(|_| unavailable("the process ends"))
}

impl OpenSession {
    /// True if the session is stored.
    pub(super) fn is_begun(&self) -> bool {
        self.log().is_some_and(|log| log.is_begun.load(Ordering::Acquire))
    }

    /// Adds a committed program to what is stored of the session.
    pub(super) fn add_program(&self, journal: &RunJournal) {
        let Some(log) = self.log() else { return };
        log.state.locked().add(journal.take_collected());
    }

    /// Adds which tools have answered its programs, where no program in the log says so: one has failed, or the model
    /// has seen more than the answers of its programs.
    pub(super) fn add_answers(&self) {
        let Some(log) = self.log() else { return };
        let answers = self.session.answers();
        let mut state = log.state.locked();
        if !answers.is_empty() && state.answers != answers {
            // Plain data.
            let text = serde_json::to_vec(&answers).unwrap_or_default();
            state.add(Some([ANSWERS, &text].concat()));
            state.answers = answers;
        }
    }

    /// True if everything that was added is stored, or the session is not stored at all.
    pub(super) fn is_stored(&self) -> bool {
        self.log().is_none_or(|log| {
            let state = log.state.locked();
            state.waiting.is_empty() && !state.is_lost
        })
    }

    /// Stores what was added.
    ///
    /// # Errors
    /// As for [`SessionLog::store`].
    pub(super) async fn store(&self) -> Result<(), SessionFault> {
        match self.log() {
            Some(log) => log.store().await,
            None => Ok(()),
        }
    }
}
