//! Stores tool calls that outlive their requests, so that a later process, or another node (server process) after a
//! crash, can go on with them.

use super::run::{DetachedRun, End, HandleKind, State, now_ms};
use super::table::DetachedRuns;
use crate::server::handler::Handler;
use crate::server::input_required::{InputRequiredCall, JobReporter};
use crate::tools::{CallOwner, Started};
use ptc_base::store::{LogNote, StoreError};
use ptc_base::tasks::{self, TaskOwner};
use ptc_calls::asker::ClientIdentity;
use ptc_calls::journal::{DurableRun, DurableRuns, RunKeeper};
use ptc_calls::tools::ServerNames;
use ptc_upstream::{CallingClient, ClientTag, Offered};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Keys begin so, before the id.
const PREFIX: &str = "task/";

/// The first pause before the end of a call without a stored run is stored again, and the longest one.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// What is stored of a call.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredHandle {
    owner: u64,
    kind: HandleKind,
    tool: String,
    created_ms: u64,
    updated_ms: u64,
    ttl_ms: u64,
    /// What the client can be asked: forms, folders, addresses.
    offered: (bool, bool, bool),
    /// The stored run, and what its tool needs to go on.
    run: Option<(String, String)>,
    end: Option<End>,
}

impl StoredHandle {
    pub(super) fn new(
        run: &DetachedRun,
        updated_ms: u64,
        end: Option<&End>,
        stored: Option<&(Arc<str>, String)>,
    ) -> StoredHandle {
        let Offered { elicitation, roots, urls } = run.offered;
        StoredHandle {
            owner: run.owner.0,
            kind: run.kind,
            tool: run.tool.clone(),
            created_ms: run.created_ms,
            updated_ms,
            ttl_ms: u64::try_from(run.ttl.as_millis()).unwrap_or(u64::MAX),
            offered: (elicitation, roots, urls),
            run: stored.map(|(run, memo)| (run.to_string(), memo.clone())),
            end: end.cloned(),
        }
    }

    /// How long it stays; `None`: its time is over.
    fn time_left(&self) -> Option<Duration> {
        let age = now_ms().saturating_sub(self.created_ms);
        self.ttl_ms.checked_sub(age).filter(|left| *left > 0).map(Duration::from_millis)
    }
}

/// The note of a call.
fn note(run: &DetachedRun, with_end: bool) -> LogNote {
    // Plain data.
    let text = serde_json::to_vec(&run.stored(with_end)).unwrap_or_default();
    LogNote { key: key(&run.id), value: Some(text) }
}

fn key(id: &str) -> String {
    format!("{PREFIX}{id}")
}

/// Stores one that has begun, with its run, which has this keeper and memo. Resolves when it is stored, or the store has been
/// away for long.
pub(super) async fn write(store: &DurableRuns, run: &DetachedRun, kept: Option<(RunKeeper, String)>) {
    // Its end comes behind it.
    let _order = run.order.lock().await;
    // One that was removed stays so.
    if run.is_forgotten() {
        return;
    }
    let kept = match kept {
        Some((keeper, memo)) => keeper.keep().await.map(|kept| (kept, memo)),
        None => None,
    };
    let written = match kept {
        Some((DurableRun { name, is_stored }, memo)) => {
            run.set_stored(name.clone(), memo);
            let noted = store.note_of(&name, note(run, false));
            // While the store is away, the writer of the run tries again.
            if is_stored { noted.done().await } else { Ok(()) }
        }
        None if run.stored_run().is_some() => Ok(()),
        None => {
            let LogNote { key, value } = note(run, false);
            store.note(&key, value).await
        }
    };
    if let Err(error) = written {
        tracing::error!(%error, "a task is not stored");
    }
}

/// What has become of the end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Conclusion {
    /// It is stored, or the call was removed meanwhile.
    Stored,
    /// It is void: another process has the run.
    Taken,
    /// It is not stored, because this process ends.
    ProcessEnds,
}

/// Stores the end of a call, in the place of its run. It is tried again until the store takes it.
pub(super) async fn conclude(store: &DurableRuns, run: &DetachedRun) -> Conclusion {
    let _order = run.order.lock().await;
    let mut pause = FIRST_PAUSE;
    // One that was removed stays so.
    while !run.is_forgotten() {
        let note = note(run, true);
        if let Some(name) = run.stored_run() {
            return match store.conclude(&name, note).await {
                Ok(()) => Conclusion::Stored,
                Err(StoreError::LeaseLost) => Conclusion::Taken,
                Err(_) => Conclusion::ProcessEnds,
            };
        }
        match store.note(&note.key, note.value).await {
            Ok(()) => return Conclusion::Stored,
            Err(error) => tracing::error!(%error, "the end of a task is not stored yet"),
        }
        tokio::time::sleep(pause).await;
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
    Conclusion::Stored
}

/// Removes one for good, with its run if it has not ended.
pub(super) async fn remove_run(store: &DurableRuns, run: &DetachedRun) {
    let _order = run.order.lock().await;
    match run.stored_run().filter(|_| !run.has_lasting_end()) {
        Some(name) => remove_with_run(store, &run.id, &name).await,
        None => remove(store, &run.id).await,
    }
}

/// Removes one with its run, which this process has. What another process has taken stays.
async fn remove_with_run(store: &DurableRuns, id: &str, run: &str) {
    if let Err(error) = store.conclude(run, LogNote { key: key(id), value: None }).await {
        tracing::warn!(%error, "a task stays stored");
    }
}

/// Removes one.
async fn remove(store: &DurableRuns, id: &str) {
    if let Err(error) = store.note(&key(id), None).await {
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

/// The stored runs, and whether another process executes them. `None`: they cannot be read.
async fn stored_runs(store: &DurableRuns) -> Option<HashMap<String, bool>> {
    match store.list().await {
        Ok(runs) => Some(runs.into_iter().map(|run| (run.name, run.is_executed)).collect()),
        Err(error) => {
            tracing::error!(%error, "stored runs cannot be read");
            None
        }
    }
}

/// A call of an earlier process, with a run that is to go on.
pub struct Unfinished {
    handle: Arc<DetachedRun>,
    call: InputRequiredCall,
    run: String,
    memo: String,
}

/// When a process takes in stored calls that have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeEnded {
    /// When it starts.
    AtStart,
    /// When a client asks for one. The others take no room of this process.
    OnDemand,
}

/// What the owner of a stored call may do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnerRights {
    /// Nothing: its token is gone.
    Gone,
    /// Use all servers.
    All,
    /// Use these servers.
    Servers(ServerNames),
}

/// Whether a run that could call its servers may go on with these. What becomes of a run that cannot be read shows when it
/// goes on.
async fn may_go_on(store: &DurableRuns, run: &str, servers: &ServerNames) -> bool {
    let journal = store.journal(run).await;
    journal.map_or(true, |journal| {
        journal.header().servers.iter().all(|server| servers.contains(&server.server))
    })
}

/// Where a call is that this process does not have.
pub(in crate::server) enum Elsewhere {
    /// It is here now; its run, if it has not ended, is to go on.
    TakenIn(Option<Box<Unfinished>>),
    /// Another process has it, or has died a moment ago.
    Held,
    /// It is stored, and this process has no room for it.
    NoRoom,
    /// Nothing is stored of it.
    Unknown,
}

impl DetachedRuns {
    /// Takes in the call with this id, after no other process has said that it has it. Its owner may use these servers,
    /// or all.
    pub(in crate::server) async fn take_over(
        &self,
        (owner, servers): (CallOwner, Option<&ServerNames>),
        id: &str,
    ) -> Elsewhere {
        let Some(store) = self.store.clone() else { return Elsewhere::Unknown };
        let _alone = self.taking_over.lock().await;
        if self.find(owner, id).is_some() {
            return Elsewhere::TakenIn(None);
        }
        let stored = match store.read_note(&key(id)).await {
            Ok(Some(text)) => serde_json::from_slice::<StoredHandle>(&text).ok(),
            Ok(None) => None,
            Err(_) => return Elsewhere::Held,
        };
        let Some(stored) = stored.filter(|stored| stored.owner == owner.0) else { return Elsewhere::Unknown };
        let Some(left) = stored.time_left() else { return Elsewhere::Unknown };
        let run = stored.run.as_ref().filter(|_| stored.end.is_none()).map(|(run, _)| run);
        if let (Some(servers), Some(run)) = (servers, run)
            && !may_go_on(&store, run, servers).await
        {
            self.clear(&store, id, Some(run)).await;
            return Elsewhere::Unknown;
        }
        let is_held = match (&stored.end, &stored.run) {
            (Some(_), _) => false,
            (None, Some((run, _))) => !store.claim(run).await.unwrap_or(false),
            // It is under way in the memory of another process, which may only be slow to say so.
            (None, None) => store.is_shared(),
        };
        if is_held {
            return Elsewhere::Held;
        }
        let goes_on = self.goes_on.load(Ordering::Relaxed);
        let unfinished = self.take_in(id.to_owned(), stored, left, goes_on);
        match self.find(owner, id) {
            Some(_) => Elsewhere::TakenIn(unfinished.map(Box::new)),
            None => Elsewhere::NoRoom,
        }
    }

    /// Takes in what earlier processes have stored. Returns the calls with runs that are to go on; if none are to, they have
    /// failed. Calls that have expired, or of an owner that is gone or may not use a server of the run any more (`rights`), are
    /// removed with their runs.
    pub async fn load(
        &self,
        goes_on: bool,
        ended: TakeEnded,
        rights: impl Fn(CallOwner) -> OwnerRights,
    ) -> Vec<Unfinished> {
        let Some(store) = self.store.clone() else { return Vec::new() };
        self.goes_on.store(goes_on, Ordering::Relaxed);
        let mut unfinished = Vec::new();
        // Before the calls: a run that ends meanwhile is one that is executed.
        let Some(runs) = stored_runs(&store).await else { return Vec::new() };
        for (id, stored) in all(&store).await {
            let run = stored.run.as_ref().filter(|_| stored.end.is_none()).map(|(run, _)| run);
            if run.is_some_and(|run| runs.get(run) == Some(&true)) {
                continue;
            }
            let (left, rights) = (stored.time_left(), rights(CallOwner(stored.owner)));
            let is_gone = match (rights, run) {
                (OwnerRights::Gone, _) => true,
                (OwnerRights::Servers(servers), Some(run)) => !may_go_on(&store, run, &servers).await,
                (OwnerRights::All | OwnerRights::Servers(_), _) => false,
            };
            let Some(left) = left.filter(|_| !is_gone) else {
                // Another node may know the token: what does nothing any more stays until its time is over.
                if left.is_none() || run.is_some() || !store.is_shared() {
                    self.clear(&store, &id, run.filter(|run| runs.contains_key(*run))).await;
                }
                continue;
            };
            let is_left = match (run, store.is_shared()) {
                (None, _) if stored.end.is_some() => ended == TakeEnded::OnDemand,
                // Another process may just have begun it.
                (None, is_shared) => is_shared,
                // Of nodes that start at the same time one goes on with it; the others ask that one.
                (Some(run), true) if goes_on => !store.claim(run).await.unwrap_or(false),
                (Some(_), _) => false,
            };
            if !is_left {
                unfinished.extend(self.take_in(id, stored, left, goes_on));
            }
        }
        unfinished
    }

    /// Removes a stored call, with its run if no other process has that.
    async fn clear(&self, store: &DurableRuns, id: &str, run: Option<&String>) {
        let Some(run) = run else { return remove(store, id).await };
        if store.claim(run).await.unwrap_or(false) {
            let (store, id, run) = (store.clone(), id.to_owned(), run.clone());
            // The start does not wait for it.
            self.spawn(async move { remove_with_run(&store, &id, &run).await });
        }
    }

    fn take_in(&self, id: String, stored: StoredHandle, left: Duration, goes_on: bool) -> Option<Unfinished> {
        let StoredHandle { owner, kind, tool, created_ms, updated_ms: _, ttl_ms, offered, run, end } = stored;
        let offered = Offered { elicitation: offered.0, roots: offered.1, urls: offered.2 };
        // Names of questions are never used again.
        let call = InputRequiredCall::vacant(&format!("question-{:x}", now_ms()));
        let has_ended = end.is_some();
        let end = match (end, &run) {
            (Some(end), _) => Some(end),
            (None, None) => Some(End::Error("the server ended while the call was under way".to_owned())),
            (None, Some((run, _))) if !goes_on => Some(End::Error(format!(
                "the server ended while the call was under way, and does not go on with it (--resume never); `ptc runs \
                 resume {run}` does"
            ))),
            (None, Some(_)) => None,
        };
        let is_over = end.is_some();
        let was_claimed = run.as_ref().filter(|_| !has_ended).map(|(run, _)| run.clone());
        let release = || {
            if let (Some(store), Some(run)) = (&self.store, &was_claimed) {
                store.release(run);
            }
        };
        if is_over {
            // `ptc runs resume` may go on with it.
            release();
        }
        let handle = Arc::new(DetachedRun {
            id,
            owner: CallOwner(owner),
            number: self.number(),
            kind,
            tool,
            created_ms,
            ttl: Duration::from_millis(ttl_ms),
            offered,
            requests: call.requests.clone(),
            table: self.this.clone(),
            order: tokio::sync::Mutex::default(),
            state: State::new(created_ms, end),
        });
        if let Err(refused) = self.insert(&handle, left) {
            tracing::warn!("a stored task is not taken in: {}", refused.message());
            release();
            return None;
        }
        let (run, memo) = run?;
        handle.set_stored(run.as_str().into(), memo.clone());
        if is_over && !has_ended {
            self.store_end(&handle);
        }
        (!is_over).then_some(Unfinished { handle, call, run, memo })
    }

    /// Stores the end of a call with which this process does not go on. Its run stays.
    fn store_end(&self, handle: &Arc<DetachedRun>) {
        // Another node may go on with it.
        let Some(store) = self.store.clone().filter(|store| !store.is_shared()) else { return };
        let handle = handle.clone();
        self.spawn(async move {
            let _order = handle.order.lock().await;
            let LogNote { key, value } = note(&handle, true);
            if !handle.is_forgotten()
                && let Err(error) = store.note(&key, value).await
            {
                tracing::error!(%error, "the end of a task is not stored");
            }
        });
    }

    /// Goes on with the runs of these calls.
    pub fn go_on(&self, unfinished: Vec<Unfinished>, handler: &Arc<Handler>) {
        for Unfinished { handle, call, run, memo } in unfinished {
            if handle.is_elsewhere() {
                continue;
            }
            let Some(job) = handler.resume(&handle.tool, &run, &memo, handle.owner) else {
                handle.ended(None);
                self.store.iter().for_each(|store| store.release(&run));
                continue;
            };
            call.detach_to(&handle);
            let (tag, identity) = (ClientTag::unique(), ClientIdentity::default());
            let asked = Some(call.requests.clone() as Arc<dyn ptc_upstream::ServedClient>);
            let (owner, offered) = (handle.owner.0, handle.offered);
            let caller = CallingClient { tag, owner, identity, offered, asked };
            let reporter = JobReporter {
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
