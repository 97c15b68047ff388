//! Stores tool calls that outlive their requests, so that a later process, or another node (server process) after a
//! crash, can go on with them.

use super::run::{DetachedRun, End, HandleKind, NewRun, now_ms};
use super::table::DetachedRuns;
use crate::protocol::{ErrorCode, RpcError};
use crate::server::handler::Handler;
use crate::server::input_required::{InputRequiredCall, InputRequiredReporter};
use crate::tools::{CallOwner, Started};
use ptc_base::tasks::{self, TaskOwner};
use ptc_calls::asker::ClientIdentity;
use ptc_calls::journal::DurableRuns;
use ptc_upstream::{CallingClient, ClientTag, Offered};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Keys begin so, before the id.
const PREFIX: &str = "task/";

/// What is stored of a call.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredHandle {
    owner: u64,
    kind: StoredKind,
    tool: String,
    created_ms: u64,
    updated_ms: u64,
    ttl_ms: u64,
    /// What the client can be asked: forms, folders, addresses.
    offered: (bool, bool, bool),
    /// The stored run, and what its tool needs to go on.
    run: Option<(String, String)>,
    end: Option<StoredEnd>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredKind {
    Requested,
    Extension,
    RunId,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredEnd {
    Result { members: Map<String, Value>, is_error: bool },
    Error(String),
    Cancelled,
}

impl From<HandleKind> for StoredKind {
    fn from(kind: HandleKind) -> StoredKind {
        match kind {
            HandleKind::Requested => StoredKind::Requested,
            HandleKind::Extension => StoredKind::Extension,
            HandleKind::RunId => StoredKind::RunId,
        }
    }
}

impl From<StoredKind> for HandleKind {
    fn from(kind: StoredKind) -> HandleKind {
        match kind {
            StoredKind::Requested => HandleKind::Requested,
            StoredKind::Extension => HandleKind::Extension,
            StoredKind::RunId => HandleKind::RunId,
        }
    }
}

impl From<&End> for StoredEnd {
    fn from(end: &End) -> StoredEnd {
        match end {
            End::Result { members, is_error } => {
                StoredEnd::Result { members: members.clone(), is_error: *is_error }
            }
            End::Error(error) => StoredEnd::Error(error.message.clone()),
            End::Cancelled => StoredEnd::Cancelled,
        }
    }
}

impl From<StoredEnd> for End {
    fn from(end: StoredEnd) -> End {
        match end {
            StoredEnd::Result { members, is_error } => End::Result { members, is_error },
            StoredEnd::Error(message) => failed(message),
            StoredEnd::Cancelled => End::Cancelled,
        }
    }
}

fn failed(message: impl Into<String>) -> End {
    End::Error(RpcError::new(ErrorCode::Internal, message))
}

impl StoredHandle {
    pub(super) fn new(
        run: &DetachedRun,
        updated_ms: u64,
        end: Option<&End>,
        stored: Option<&(Arc<str>, String)>,
    ) -> StoredHandle {
        let Offered { elicitation, roots, urls } = run.offered();
        StoredHandle {
            owner: run.owner.0,
            kind: run.kind.into(),
            tool: run.tool.clone(),
            created_ms: run.created_ms,
            updated_ms,
            ttl_ms: u64::try_from(run.ttl.as_millis()).unwrap_or(u64::MAX),
            offered: (elicitation, roots, urls),
            run: stored.map(|(run, memo)| (run.to_string(), memo.clone())),
            end: end.map(StoredEnd::from),
        }
    }
}

/// Stores one. False if that fails.
pub(super) async fn write(store: &DurableRuns, run: &DetachedRun) -> bool {
    let _order = run.order.lock().await;
    // One that was removed stays so.
    if run.is_forgotten() {
        return false;
    }
    // Plain data. It is read in the order in which it is written.
    let text = serde_json::to_vec(&run.stored()).unwrap_or_default();
    let written = store.note(&format!("{PREFIX}{}", run.id), Some(text)).await;
    if let Err(error) = &written {
        tracing::error!(%error, "a task is not stored");
    }
    written.is_ok()
}

/// Removes one for good.
pub(super) async fn remove_run(store: &DurableRuns, run: &DetachedRun) {
    let _order = run.order.lock().await;
    remove(store, &run.id).await;
}

/// Removes one.
async fn remove(store: &DurableRuns, id: &str) {
    if let Err(error) = store.note(&format!("{PREFIX}{id}"), None).await {
        tracing::error!(%error, "a task stays stored");
    }
}

/// All that are stored.
async fn all(store: &DurableRuns) -> Vec<(String, StoredHandle)> {
    let notes = match store.notes(PREFIX).await {
        Ok(notes) => notes,
        Err(error) => {
            tracing::error!(%error, "stored tasks cannot be read");
            return Vec::new();
        }
    };
    let read = |(key, text): (String, Vec<u8>)| {
        let stored = serde_json::from_slice(&text);
        let stored = stored.inspect_err(|error| tracing::error!(%error, key, "a stored task is unreadable"));
        Some((key.strip_prefix(PREFIX)?.to_owned(), stored.ok()?))
    };
    let mut all: Vec<(String, StoredHandle)> = notes.into_iter().filter_map(read).collect();
    all.sort_by_key(|(_, stored)| stored.created_ms);
    all
}

/// Runs that other processes execute.
async fn executed_elsewhere(store: &DurableRuns) -> HashSet<String> {
    if !store.is_shared() {
        return HashSet::new();
    }
    let runs = store.list().await.unwrap_or_default();
    runs.into_iter().filter(|run| run.is_executed).map(|run| run.name).collect()
}

/// A call of an earlier process, with a run that is to go on.
pub struct Unfinished {
    handle: Arc<DetachedRun>,
    call: InputRequiredCall,
    run: String,
    memo: String,
    offered: Offered,
}

/// Where a call is that this process does not have.
pub(in crate::server) enum Elsewhere {
    /// It is here now; its run, if it has not ended, is to go on.
    TakenIn(Option<Box<Unfinished>>),
    /// Another process has it, or has died a moment ago.
    Held,
    /// Nothing is stored of it.
    Unknown,
}

impl DetachedRuns {
    /// Takes in the call with this id, after no other process has said that it has it.
    pub(in crate::server) async fn take_over(&self, owner: CallOwner, id: &str) -> Elsewhere {
        let Some(store) = self.store.clone() else { return Elsewhere::Unknown };
        let _alone = self.taking_over.lock().await;
        if self.find(owner, id).is_some() {
            return Elsewhere::TakenIn(None);
        }
        let stored = match store.read_note(&format!("{PREFIX}{id}")).await {
            Ok(Some(text)) => serde_json::from_slice::<StoredHandle>(&text).ok(),
            Ok(None) => None,
            Err(_) => return Elsewhere::Held,
        };
        let Some(stored) = stored.filter(|stored| stored.owner == owner.0) else { return Elsewhere::Unknown };
        let age = now_ms().saturating_sub(stored.created_ms);
        let Some(left) = stored.ttl_ms.checked_sub(age).filter(|left| *left > 0) else {
            return Elsewhere::Unknown;
        };
        if let (None, Some((run, _))) = (&stored.end, &stored.run)
            && !store.claim(run).await.unwrap_or(false)
        {
            return Elsewhere::Held;
        }
        let goes_on = self.goes_on.load(Ordering::Relaxed);
        let unfinished = self.take_in(id.to_owned(), stored, Duration::from_millis(left), goes_on);
        Elsewhere::TakenIn(unfinished.map(Box::new))
    }

    /// Takes in what an earlier process has stored. Returns the calls with runs that are to go on; if none are to, they have
    /// failed.
    pub async fn load(&self, goes_on: bool) -> Vec<Unfinished> {
        let Some(store) = self.store.clone() else { return Vec::new() };
        self.goes_on.store(goes_on, Ordering::Relaxed);
        let mut unfinished = Vec::new();
        let executed = executed_elsewhere(&store).await;
        for (id, stored) in all(&store).await {
            let is_elsewhere = match (&stored.end, &stored.run) {
                (Some(_), _) => false,
                (None, Some((run, _))) => executed.contains(run),
                // Another process may just have begun it.
                (None, None) => store.is_shared(),
            };
            if is_elsewhere {
                continue;
            }
            let age = now_ms().saturating_sub(stored.created_ms);
            let Some(left) = stored.ttl_ms.checked_sub(age).filter(|left| *left > 0) else {
                remove(&store, &id).await;
                if let Some((run, _)) = &stored.run {
                    store.forget(run);
                }
                continue;
            };
            if let (Some(_), Some((run, _))) = (&stored.end, &stored.run) {
                // The process has ended between both.
                store.forget(run);
            }
            // Of nodes that start at the same time one goes on with it; the others ask that one.
            if let (None, Some((run, _)), true) = (&stored.end, &stored.run, goes_on && store.is_shared())
                && !store.claim(run).await.unwrap_or(false)
            {
                continue;
            }
            unfinished.extend(self.take_in(id, stored, Duration::from_millis(left), goes_on));
        }
        unfinished
    }

    fn take_in(&self, id: String, stored: StoredHandle, left: Duration, goes_on: bool) -> Option<Unfinished> {
        let StoredHandle { owner, kind, tool, created_ms, updated_ms: _, ttl_ms, offered, run, end } = stored;
        let offered = Offered { elicitation: offered.0, roots: offered.1, urls: offered.2 };
        // Names of questions are never used again.
        let call = InputRequiredCall::vacant(&format!("question-{:x}", now_ms()));
        let end = match (end, &run) {
            (Some(end), _) => Some(end.into()),
            (None, None) => Some(failed("the server ended while the call was under way")),
            (None, Some((run, _))) if !goes_on => Some(failed(format!(
                "the server ended while the call was under way, and does not go on with it (--resume never); `ptc runs \
                 resume {run}` does"
            ))),
            (None, Some(_)) => None,
        };
        let is_over = end.is_some();
        let handle = self.make(NewRun {
            id,
            owner: CallOwner(owner),
            number: self.number(),
            kind: kind.into(),
            tool,
            created_ms,
            ttl: Duration::from_millis(ttl_ms),
            offered,
            requests: call.requests(),
            ticket: None,
            end,
        })?;
        if let Err(refused) = self.insert(&handle, left) {
            tracing::warn!("a stored task is not taken in: {}", refused.message());
            return None;
        }
        let (run, memo) = run?;
        handle.set_stored(run.as_str().into(), memo.clone());
        (!is_over).then_some(Unfinished { handle, call, run, memo, offered })
    }

    /// Goes on with the runs of these calls.
    pub fn go_on(&self, unfinished: Vec<Unfinished>, handler: &Arc<Handler>) {
        for Unfinished { handle, call, run, memo, offered } in unfinished {
            let Some(job) = handler.resume(&handle.tool, &run, &memo, handle.owner) else {
                handle.ended(None);
                continue;
            };
            call.detach_to(&handle);
            let (tag, identity) = (ClientTag::unique(), ClientIdentity::default());
            let asked = Some(call.requests() as Arc<dyn ptc_upstream::ServedClient>);
            let caller = CallingClient { tag, owner: handle.owner.0, identity, offered, asked };
            let reporter = InputRequiredReporter {
                call,
                handler: handler.clone(),
                caller: Some(caller),
                // It was admitted in its first process.
                permit: None,
                answered: false,
            };
            let Started { cancel, keeper } = (job.start)(Box::new(reporter));
            handle.set_cancel(Some(cancel));
            if let Some(stored) = self.store(&handle, keeper, Some(memo)) {
                tasks::spawn(TaskOwner::Process, stored);
            }
        }
    }
}
