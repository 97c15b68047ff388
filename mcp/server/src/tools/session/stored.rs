//! Stores each session as a log of its programs and call answers (`--state`), and restores it in another process by
//! running them again.
//!
//! A process that does not have the session, or not all of it, runs these programs again before the next one
//! ([`super::changes`]).

use super::changes::{SessionLog, changes_of};
use super::counted;
use super::fault::{SessionFault, SessionReason};
use super::preludes::RequestedPreludes;
use super::table::{OpenSession, SessionTable, now};
use super::turn::LogLock;
use super::view;
use crate::tools::CallOwner;
use jiff::Timestamp;
use ptc_base::store::StoreError;
use ptc_base::tasks::{self, TaskOwner};
use ptc_calls::journal::DurableRuns;
use ptc_calls::limits::LimitTable;
use ptc_engine::session::{SessionEnd, SessionLimits};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Keys of sessions begin so, before the id.
const PREFIX: &str = "session/";

/// The pause between two looks for stored sessions whose time is over: the time that sessions live, within these.
const SHORTEST_SWEEP: Duration = Duration::from_secs(1);
const LONGEST_SWEEP: Duration = Duration::from_secs(3_600);

/// How long the entry of a session stays in a database that is over, in milliseconds: longer than any attempt to add a
/// change.
const SETTLED: i64 = 20_000;

/// The pause before a removal is tried again grows within these.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// What is stored of a session apart from its changes.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredSession {
    owner: u64,
    /// The servers that its token may use; `None`: all. A token with others does not have it.
    #[serde(default)]
    servers: Option<Vec<String>>,
    title: Option<String>,
    /// In milliseconds since 1970.
    created_ms: i64,
    expires_ms: i64,
    /// When it was closed.
    #[serde(default)]
    ended_ms: Option<i64>,
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
    pub(super) fn is_over(&self) -> bool {
        self.expires_ms <= now().as_millisecond()
    }

    /// True if it has been over for so long that no process adds a change any more.
    fn is_settled(&self) -> bool {
        let since = self.ended_ms.unwrap_or(self.expires_ms);
        self.is_over() && now().as_millisecond().saturating_sub(since) > SETTLED
    }

    /// The text of this session when it has ended.
    pub(super) fn ended(self) -> Vec<u8> {
        let ended_ms = Some(now().as_millisecond());
        // Plain data.
        serde_json::to_vec(&StoredSession { expires_ms: 0, ended_ms, ..self }).unwrap_or_default()
    }
}

pub(super) fn unavailable(why: impl std::fmt::Display) -> SessionFault {
    let message = format!("the session cannot be stored or restored: {why}");
    SessionFault::new(SessionReason::Unavailable, message)
}

pub(super) fn key_of(id: &str) -> String {
    format!("{PREFIX}{id}")
}

pub(super) fn closed() -> SessionFault {
    SessionFault::new(SessionReason::Closed, "session is closed")
}

/// Ends a session and removes its changes. In a database its own entry stays for a moment: a process that has not learned
/// of the end may still add a change, which a later sweep removes ([`SessionTable::sweep`]).
async fn remove(runs: &DurableRuns, id: &str) -> Result<(), StoreError> {
    let text = runs.read_note(&key_of(id)).await?;
    let stored = text.and_then(|text| serde_json::from_slice::<StoredSession>(&text).ok());
    let is_settled = stored.as_ref().is_none_or(StoredSession::is_settled);
    // It is over for every process before its changes go one by one.
    if let Some(stored) = stored.filter(|stored| !stored.is_over()) {
        if runs.is_shared() {
            counted::end(runs, CallOwner(stored.owner), id).await;
        }
        runs.note(&key_of(id), Some(stored.ended())).await?;
    }
    for (key, _) in runs.notes(&changes_of(id)).await? {
        runs.note(&key, None).await?;
    }
    match is_settled || !runs.is_shared() {
        true => runs.note(&key_of(id), None).await,
        false => Ok(()),
    }
}

/// Removes a session and its changes, and tries again until the store takes it. If this process ends before, a session
/// that is over is removed by a later sweep ([`SessionTable::sweep`]).
pub(super) async fn remove_until_done(runs: &DurableRuns, id: &str) {
    let mut pause = FIRST_PAUSE;
    while let Err(error) = remove(runs, id).await {
        tracing::warn!(%error, "a session is not removed from the store yet");
        if runs.is_closing() {
            return;
        }
        tokio::time::sleep(pause).await;
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}

/// A session that is stored and not over.
pub(super) async fn stored_session(
    runs: &DurableRuns,
    id: &str,
) -> Result<Option<StoredSession>, SessionFault> {
    let Some(text) = runs.read_note(&key_of(id)).await.map_err(unavailable)? else { return Ok(None) };
    let stored: StoredSession = serde_json::from_slice(&text).map_err(unavailable)?;
    Ok(Some(stored).filter(|stored| !stored.is_over()))
}

/// The stored sessions with their ids.
async fn all_stored(runs: &DurableRuns) -> Result<Vec<(String, StoredSession)>, StoreError> {
    let read = |(key, text): (String, Vec<u8>)| {
        Some((key.strip_prefix(PREFIX)?.to_owned(), serde_json::from_slice(&text).ok()?))
    };
    Ok(runs.notes(PREFIX).await?.into_iter().filter_map(read).collect())
}

/// A session, and the turn in it if it is stored.
pub(super) type WithLock = Result<(Arc<OpenSession>, Option<LogLock>), SessionFault>;

fn is_closed<T>(found: &Result<T, SessionFault>) -> bool {
    found.as_ref().is_err_and(|fault| fault.reason == SessionReason::Closed)
}

impl SessionTable {
    /// Stores a session that was started.
    ///
    /// # Errors
    /// The store cannot be used; in a database, the owner has as many sessions as it may have, in the memory of a process
    /// or not.
    pub(super) async fn store_start(
        &self,
        owner: CallOwner,
        session: &OpenSession,
    ) -> Result<(), SessionFault> {
        let Some(log) = session.log() else { return Ok(()) };
        let stored = StoredSession {
            owner: owner.0,
            servers: self.servers(),
            title: session.title.clone(),
            created_ms: session.created.as_millisecond(),
            expires_ms: session.expires.as_millisecond(),
            ended_ms: None,
            preludes: session.preludes.references.clone(),
            limits: limits_by_name(session.session.limits()),
        };
        let text = serde_json::to_vec(&stored).map_err(unavailable)?;
        if log.runs.is_shared() {
            let mut others = all_stored(&log.runs).await.map_err(unavailable)?;
            others.retain(|(_, other)| self.may_use(owner, other) && !other.is_over());
            let others = others.into_iter().map(|(id, _)| id).collect();
            let most = self.quotas.quota().most_of_owner;
            let start = (owner, &*session.id, session.expires.as_millisecond());
            counted::start(&log.runs, start, &others, most).await?;
        }
        let added = log.runs.add_note(&key_of(&session.id), text).await;
        // It may be stored all the same.
        added.inspect_err(|_| log.remove()).map_err(unavailable)?;
        log.set_begun();
        Ok(())
    }

    /// Finds a session of this owner as all processes have left it, with the turn in it if it is stored.
    ///
    /// # Errors
    /// There is no such session; a program is under way in it; it cannot be restored.
    pub(super) async fn take_turn(self: &Arc<SessionTable>, owner: CallOwner, id: &str) -> WithLock {
        loop {
            let session = match self.find(owner, id) {
                Ok(session) => session,
                Err(missing) => self.load(owner, id).await?.ok_or(missing)?,
            };
            let Some(turn) = session.turn().await? else { return Ok((session, None)) };
            if session.log().is_some_and(SessionLog::is_lost) {
                self.drop_from_memory(owner, &session);
                continue;
            }
            if !self.find(owner, id).is_ok_and(|present| Arc::ptr_eq(&present, &session)) {
                // It has left the memory while this request waited.
                continue;
            }
            let caught_up = self.catch_up(&session).await;
            if session.log().is_some_and(SessionLog::is_lost) {
                self.drop_from_memory(owner, &session);
            } else if is_closed(&caught_up) {
                // It may have been closed here meanwhile.
                let _ = self.close(owner, id, SessionEnd::Closed);
            }
            return caught_up.map(|()| (session, Some(turn)));
        }
    }

    async fn catch_up(&self, session: &OpenSession) -> Result<(), SessionFault> {
        let Some(log) = session.log().filter(|log| !log.is_current()) else { return Ok(()) };
        if log.runs.is_shared() && stored_session(&log.runs, &session.id).await?.is_none() {
            // Another process has closed it.
            return Err(closed());
        }
        log.catch_up(&self.runtime, session).await
    }

    /// Takes a session to the state in which all processes have left it. One with a program under way stays in the state
    /// that the program has.
    ///
    /// # Errors
    /// As for [`SessionTable::take_turn`].
    pub(super) async fn reopen(
        self: &Arc<SessionTable>,
        owner: CallOwner,
        id: &str,
    ) -> Result<Arc<OpenSession>, SessionFault> {
        match self.take_turn(owner, id).await {
            Ok((session, _)) => Ok(session),
            Err(SessionFault { reason: SessionReason::Busy, .. }) => self.find(owner, id),
            Err(fault) => Err(fault),
        }
    }

    /// What a list says of the sessions of an owner, at all processes, the most recently used first. They are opened one
    /// after the other: this process may have room for fewer.
    pub(super) async fn list(
        self: &Arc<SessionTable>,
        owner: CallOwner,
    ) -> Result<Vec<Map<String, Value>>, SessionFault> {
        let mut stored = match self.durable() {
            Some(runs) => all_stored(runs).await.map_err(unavailable)?,
            None => Vec::new(),
        };
        stored.retain(|(_, stored)| self.may_use(owner, stored) && !stored.is_over());
        let in_memory = self.all(owner).into_iter().filter(|session| !session.is_begun());
        let mut listed: Vec<_> = in_memory.map(|session| (session.used(), view::summary(&session))).collect();
        for (id, _) in stored {
            match self.reopen(owner, &id).await {
                Ok(session) => listed.push((session.used(), view::summary(&session))),
                Err(fault) => tracing::warn!("a stored session is not listed: {}", fault.message),
            }
        }
        listed.sort_by_key(|(used, _)| std::cmp::Reverse(used.1));
        Ok(listed.into_iter().map(|(_, summary)| summary).collect())
    }

    /// True if an owner, as this table serves it, may use a stored session.
    pub(super) fn may_use(&self, owner: CallOwner, stored: &StoredSession) -> bool {
        stored.owner == owner.0 && stored.servers == self.servers()
    }

    /// The servers that programs of this table may use; `None`: all.
    fn servers(&self) -> Option<Vec<String>> {
        let servers = self.runtime.broker().catalog().shown_names()?;
        Some(servers.iter().map(str::to_owned).collect())
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
        let stored = stored_session(runs, id).await?.filter(|stored| self.may_use(owner, stored));
        let Some(StoredSession { title, created_ms, expires_ms, preludes, limits, .. }) = stored else {
            return Ok(None);
        };
        let limits = limits_named(&limits, self.limits);
        let [created, expires] =
            [created_ms, expires_ms].map(|ms| Timestamp::from_millisecond(ms).unwrap_or_default());
        let preludes = RequestedPreludes::again(preludes.as_ref())?;
        let (table, id) = (self.clone(), id.to_owned());
        let opened = tasks::blocking(TaskOwner::Run, move |stop| {
            table.open_again(owner, &id, (title, limits), (created, expires), preludes, stop)
        });
        opened.await.unwrap_or_else(|| Err(unavailable("the process ends"))).map(Some)
    }

    /// Removes sessions from the store whose time is over, now and then while the table is used. Other processes may
    /// have stored them, so no table knows of them all.
    pub(super) fn sweep(table: &Arc<SessionTable>) {
        let Some(runs) = table.durable().cloned() else { return };
        let (table, pause) = (Arc::downgrade(table), table.quotas.ttl().clamp(SHORTEST_SWEEP, LONGEST_SWEEP));
        tasks::spawn(TaskOwner::Process, async move {
            while table.strong_count() > 0 {
                // Without an answer of the store, the next turn does it.
                for (id, stored) in all_stored(&runs).await.unwrap_or_default() {
                    if stored.is_over() {
                        // If it fails, the next turn does it.
                        let _ = remove(&runs, &id).await;
                    }
                }
                tokio::time::sleep(pause).await;
            }
        });
    }
}

/// True for a text that may be the id of a session: no other key of the store begins like one.
pub(super) fn is_id(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}
