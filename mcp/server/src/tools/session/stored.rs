//! Stores each session as a log of its programs and call answers (`--state`), and restores it in another process by
//! running them again.
//!
//! The log has each committed program with the answers of its calls, and each `forget`. Of a program that failed it has
//! which tools had answered it, since the model has seen why it failed. A process that does not have
//! the session, or not all of it, runs these programs again before the next one. Changes are numbered, and a number is
//! written once: a process that has missed a change cannot add one.

use super::fault::{SessionFault, SessionReason};
use super::preludes::RequestedPreludes;
use super::table::{OWNER_IS_FULL, OpenSession, SessionTable, now};
use crate::tools::CallOwner;
use jiff::Timestamp;
use ptc_base::store::StoreError;
use ptc_base::sync::Locked;
use ptc_base::tasks::{self, TaskOwner};
use ptc_calls::journal::{DurableRuns, Recording, RunJournal};
use ptc_calls::limits::LimitTable;
use ptc_calls::policy::SessionAnswers;
use ptc_engine::Runtime;
use ptc_engine::session::{Bindings, Forget, SessionBusy, SessionLimits};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::oneshot;

/// Keys of sessions begin so, before the id.
const PREFIX: &str = "session/";

/// Keys of changes begin so, before the id and the number: who lists sessions does not read what they hold.
const CHANGES: &str = "session-change/";

/// The pause between two looks for stored sessions whose time is over: the time that sessions live, within these.
const SHORTEST_SWEEP: Duration = Duration::from_secs(1);
const LONGEST_SWEEP: Duration = Duration::from_secs(3_600);

/// Most bytes of the changes of a session.
const MOST_BYTES: usize = 64 << 20;

/// What is stored of a session apart from its changes.
#[derive(Debug, Serialize, Deserialize)]
struct StoredSession {
    owner: u64,
    title: Option<String>,
    /// In milliseconds since 1970.
    created_ms: i64,
    expires_ms: i64,
    /// Its preludes with versions and checksums.
    preludes: Option<Value>,
    /// Its limits by name: what it holds is within these.
    #[serde(default)]
    limits: BTreeMap<String, u64>,
}

/// Limits of a session by name.
fn limits_by_name(limits: &SessionLimits) -> BTreeMap<String, u64> {
    SessionLimits::TABLE.iter().map(|row| (row.field.to_owned(), (row.get)(limits))).collect()
}

/// Limits that are `others`, except those that have a name here.
fn limits_named(named: &BTreeMap<String, u64>, others: SessionLimits) -> SessionLimits {
    let mut limits = others;
    for row in SessionLimits::TABLE {
        if let Some(value) = named.get(row.field) {
            (row.set)(&mut limits, *value);
        }
    }
    limits
}

impl StoredSession {
    fn is_over(&self) -> bool {
        self.expires_ms <= now().as_millisecond()
    }
}

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

/// Begins the text of [`SessionAnswers`].
const ANSWERS: &[u8] = b"answers ";

/// The changes of a stored session.
pub(super) struct SessionLog {
    runs: DurableRuns,
    id: String,
    state: Mutex<LogState>,
    /// Held while changes are read or written, so that they stay in order.
    order: tokio::sync::Mutex<()>,
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
    /// The answers that were added last.
    answers: SessionAnswers,
}

fn unavailable(why: impl std::fmt::Display) -> SessionFault {
    let message = format!("the session cannot be stored or restored: {why}");
    SessionFault::new(SessionReason::Unavailable, message)
}

fn key_of(id: &str) -> String {
    format!("{PREFIX}{id}")
}

/// The beginning of the keys of the changes of a session.
fn changes_of(id: &str) -> String {
    format!("{CHANGES}{id}/")
}

impl LogState {
    /// Adds a change; `None` is one that is too large by itself.
    fn add(&mut self, change: Option<Vec<u8>>) {
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
            answers: SessionAnswers::default(),
        };
        SessionLog { runs, id: id.to_owned(), state: Mutex::new(state), order: tokio::sync::Mutex::default() }
    }

    /// True if this process has all changes.
    pub(super) fn is_current(&self) -> bool {
        !self.runs.is_shared() && !self.state.locked().is_behind
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

    /// Stores what was added.
    ///
    /// # Errors
    /// The store cannot be written, or another process has changed the session.
    pub(super) async fn store(&self) -> Result<(), SessionFault> {
        let _order = self.order.lock().await;
        loop {
            let (number, change) = {
                let state = self.state.locked();
                if state.is_cut {
                    return Err(unavailable(
                        "its programs have more answers than fit (16 MiB each, 64 MiB in all)",
                    ));
                }
                let Some(change) = state.waiting.front() else { return Ok(()) };
                (state.known, change.clone())
            };
            if !self.add(&self.change(number), change).await? {
                return Err(unavailable("another process has changed it meanwhile"));
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
        if stored_session(&self.runs, &self.id).await?.is_none() {
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

    /// Runs the programs again that the session has missed.
    ///
    /// # Errors
    /// The store cannot be read; a program does something else than it did.
    async fn catch_up(&self, runtime: &Runtime, session: &OpenSession) -> Result<(), SessionFault> {
        let _order = self.order.lock().await;
        let known = self.state.locked().known;
        let missed = self.runs.notes_from(&changes_of(&self.id), &self.change(known)).await;
        // Sorted by key, so in order.
        let missed = missed.map_err(unavailable)?;
        for (key, change) in missed {
            if key != self.change(self.state.locked().known) {
                // Another process removes the session.
                return Err(closed());
            }
            match (change.strip_prefix(FORGET), change.strip_prefix(ANSWERS)) {
                (Some(forget), _) => forget_again(session, forget).await?,
                (None, Some(answers)) => {
                    session.session().add_answers(serde_json::from_slice(answers).map_err(unavailable)?);
                }
                (None, None) => {
                    let recording = Recording::from_lines(&key, &change).map_err(unavailable)?;
                    runtime.restore(session.session(), recording).await.map_err(unavailable)?;
                }
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
        tasks::spawn(TaskOwner::Process, async move { remove(&runs, &id).await });
    }

    /// Removes it when it was not used for long, unless another process may use it.
    pub(super) fn remove_idle(&self) {
        if !self.runs.is_shared() {
            self.remove();
        }
    }
}

fn closed() -> SessionFault {
    SessionFault::new(SessionReason::Closed, "session is closed")
}

/// Removes a session and its changes. If it fails, a later sweep does the rest ([`SessionTable::sweep`]).
async fn remove(runs: &DurableRuns, id: &str) {
    let removed = async {
        // It is over for every process before its changes go one by one.
        if let Ok(Some(stored)) = stored_session(runs, id).await {
            let ended = StoredSession { expires_ms: 0, ..stored };
            // Plain data.
            let text = serde_json::to_vec(&ended).unwrap_or_default();
            runs.note(&key_of(id), Some(text)).await?;
        }
        remove_changes(runs, id).await?;
        runs.note(&key_of(id), None).await
    };
    if let Err(error) = removed.await {
        tracing::warn!(%error, "a session is not removed from the store yet");
    }
}

/// A session that is stored and not over.
async fn stored_session(runs: &DurableRuns, id: &str) -> Result<Option<StoredSession>, SessionFault> {
    let Some(text) = runs.read_note(&key_of(id)).await.map_err(unavailable)? else { return Ok(None) };
    let stored: StoredSession = serde_json::from_slice(&text).map_err(unavailable)?;
    Ok(Some(stored).filter(|stored| !stored.is_over()))
}

async fn remove_changes(runs: &DurableRuns, id: &str) -> Result<(), StoreError> {
    for (key, _) in runs.notes(&changes_of(id)).await? {
        runs.note(&key, None).await?;
    }
    Ok(())
}

/// The stored sessions with their ids.
async fn all_stored(runs: &DurableRuns) -> Result<Vec<(String, StoredSession)>, StoreError> {
    let read = |(key, text): (String, Vec<u8>)| {
        Some((key.strip_prefix(PREFIX)?.to_owned(), serde_json::from_slice(&text).ok()?))
    };
    Ok(runs.notes(PREFIX).await?.into_iter().filter_map(read).collect())
}

async fn forget_again(session: &OpenSession, text: &[u8]) -> Result<(), SessionFault> {
    let StoredForget { bindings, history, prints, calls } =
        serde_json::from_slice(text).map_err(unavailable)?;
    let bindings = bindings.map_or(Bindings::All, Bindings::Named);
    let permit = session.session().acquire().map_err(|SessionBusy| SessionFault::busy(session.id()))?;
    let (done, is_done) = oneshot::channel();
    permit.forget(Forget { bindings, history, prints, calls }, move |_| {
        let _ = done.send(());
    });
    is_done.await.map_err(|_| unavailable("the process ends"))
}

impl OpenSession {
    /// Adds a committed program to what is stored of the session.
    pub(super) fn add_program(&self, journal: &RunJournal) {
        let Some(log) = self.log() else { return };
        log.state.locked().add(journal.take_collected());
    }

    /// Adds which tools have answered its programs, where no program in the log says so: one has failed, or the model
    /// has seen more than the answers of its programs.
    pub(super) fn add_answers(&self) {
        let Some(log) = self.log() else { return };
        let answers = self.session().answers();
        let mut state = log.state.locked();
        if !answers.is_empty() && state.answers != answers {
            // Plain data.
            let text = serde_json::to_vec(&answers).unwrap_or_default();
            state.add(Some([ANSWERS, &text].concat()));
            state.answers = answers;
        }
    }

    /// True if everything that was added is stored, or nothing is stored of it at all.
    pub(super) fn is_stored(&self) -> bool {
        self.log().is_none_or(|log| log.state.locked().waiting.is_empty())
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

impl SessionTable {
    /// Stores a session that was started.
    ///
    /// # Errors
    /// The store cannot be used; in a database, the owner has as many sessions as it may have, in the memory of a process
    /// or not. (Sessions that start at several nodes in the same moment do not count each other.)
    pub(super) async fn store_start(
        &self,
        owner: CallOwner,
        session: &OpenSession,
    ) -> Result<(), SessionFault> {
        let Some(log) = session.log() else { return Ok(()) };
        let stored = StoredSession {
            owner: owner.0,
            title: session.title().map(str::to_owned),
            created_ms: session.created().as_millisecond(),
            expires_ms: session.expires().as_millisecond(),
            preludes: session.preludes().references.clone(),
            limits: limits_by_name(session.session().limits()),
        };
        let text = serde_json::to_vec(&stored).map_err(unavailable)?;
        if log.runs.is_shared() {
            let others = all_stored(&log.runs).await.map_err(unavailable)?;
            let of_owner = others.iter().filter(|(_, other)| other.owner == owner.0 && !other.is_over());
            if of_owner.count() >= self.quotas().quota().most_of_owner {
                return Err(SessionFault::new(SessionReason::TooMany, OWNER_IS_FULL));
            }
        }
        let added = log.runs.add_note(&key_of(&log.id), text).await;
        // It may be stored all the same.
        added.inspect_err(|_| log.remove()).map_err(unavailable).map(drop)
    }

    /// Finds a session of this owner as all processes have left it.
    pub(super) async fn reopen(
        self: &Arc<SessionTable>,
        owner: CallOwner,
        id: &str,
    ) -> Result<Arc<OpenSession>, SessionFault> {
        let session = match self.find(owner, id) {
            Ok(session) => session,
            Err(missing) => self.load(owner, id).await?.ok_or(missing)?,
        };
        let Some(log) = session.log().filter(|log| !log.is_current()) else { return Ok(session) };
        if session.session().is_busy() {
            return Err(SessionFault::busy(id));
        }
        if log.runs.is_shared() && stored_session(&log.runs, id).await?.is_none() {
            // Another process has closed it.
            self.drop_from_memory(owner, id);
            return Err(closed());
        }
        // A change of this process that is not stored yet goes first, or is lost to one of another process.
        let restored = match log.store().await {
            Ok(()) => log.catch_up(self.runtime(), &session).await,
            Err(fault) => Err(fault),
        };
        if restored.is_err() {
            self.drop_from_memory(owner, id);
        }
        restored.map(|()| session)
    }

    /// Opens all stored sessions of an owner.
    pub(super) async fn reopen_all(self: &Arc<SessionTable>, owner: CallOwner) -> Result<(), SessionFault> {
        let Some(runs) = self.durable() else { return Ok(()) };
        for (id, stored) in all_stored(runs).await.map_err(unavailable)? {
            if stored.owner == owner.0
                && let Err(fault) = self.reopen(owner, &id).await
            {
                tracing::warn!("a stored session is not listed: {}", fault.message);
            }
        }
        Ok(())
    }

    /// Opens a stored session of this owner, without its changes.
    pub(super) async fn load(
        self: &Arc<SessionTable>,
        owner: CallOwner,
        id: &str,
    ) -> Result<Option<Arc<OpenSession>>, SessionFault> {
        let Some(runs) = self.durable().filter(|_| is_id(id)) else { return Ok(None) };
        let _one = self.loading.lock().await;
        if let Ok(session) = self.find(owner, id) {
            return Ok(Some(session));
        }
        let stored = stored_session(runs, id).await?.filter(|stored| stored.owner == owner.0);
        let Some(StoredSession { title, created_ms, expires_ms, preludes, limits, .. }) = stored else {
            return Ok(None);
        };
        let limits = limits_named(&limits, self.limits());
        let [created, expires] =
            [created_ms, expires_ms].map(|ms| Timestamp::from_millisecond(ms).unwrap_or_default());
        let preludes = RequestedPreludes::again(preludes.as_ref())?;
        let (table, id) = (self.clone(), id.to_owned());
        let opened = tasks::blocking(TaskOwner::Run, move |stop| {
            table.open_again(owner, &id, (title, limits), (created, expires), preludes, stop)
        });
        opened.await.unwrap_or_else(|| Err(unavailable("the process ends"))).map(Some)
    }

    /// True if a session of this owner is stored.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(super) async fn is_stored(&self, owner: CallOwner, id: &str) -> Result<bool, SessionFault> {
        let Some(runs) = self.durable().filter(|_| is_id(id)) else { return Ok(false) };
        Ok(stored_session(runs, id).await?.is_some_and(|stored| stored.owner == owner.0))
    }

    /// Removes a session that was closed from the store.
    pub(super) async fn remove_stored(&self, id: &str) {
        if let Some(runs) = self.durable() {
            remove(runs, id).await;
        }
    }

    /// Removes sessions from the store whose time is over, now and then while the table is used. Other processes may
    /// have stored them, so no table knows of them all.
    pub(super) fn sweep(table: &Arc<SessionTable>) {
        let Some(runs) = table.durable().cloned() else { return };
        let (table, pause) =
            (Arc::downgrade(table), table.quotas().ttl().clamp(SHORTEST_SWEEP, LONGEST_SWEEP));
        tasks::spawn(TaskOwner::Process, async move {
            while table.strong_count() > 0 {
                // Without an answer of the store, the next turn does it.
                for (id, stored) in all_stored(&runs).await.unwrap_or_default() {
                    if stored.is_over() {
                        remove(&runs, &id).await;
                    }
                }
                tokio::time::sleep(pause).await;
            }
        });
    }
}

/// True for a text that may be the id of a session: no other key of the store begins like one.
fn is_id(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}
