//! Holds all tool calls that outlive their requests, by owner and within limits: creates, finds, stores, cancels and
//! removes them.

use super::run::{DetachedRun, End, HandleKind, State, Watcher, now_ms};
use super::stored::{self, Conclusion};
use crate::answer::{CallSummary, Content};
use crate::protocol::{ErrorCode, Raw, RpcError};
use crate::server::handler::Ticket;
use crate::server::input_required::InputRequiredCall;
use crate::server::mailbox::Mailbox;
use crate::tools::lisp_run::{RunHandles, RunOver, RunState};
use crate::tools::owned_table::{Full, OwnedTable, Quota, random_id};
use crate::tools::{CallOwner, ToolAnswer};
use ptc_base::tasks::{self, TaskOwner};
use ptc_calls::journal::{DurableRuns, RunKeeper};
use ptc_upstream::Offered;
use serde_json::value::RawValue;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::runtime::Handle as IoHandle;
use tokio::sync::mpsc;

/// Random bytes of an id.
const ID_BYTES: usize = 24;

/// The share of the table that one token may fill.
const SHARE: usize = 4;

/// Shortest time that a client may ask for.
const LEAST_TTL: Duration = Duration::from_secs(1);

/// Bounds of calls that go on without their requests.
#[derive(Clone, Copy, Debug)]
pub struct DetachedLimits {
    /// Most of them, with those that have ended and are still there.
    pub most: usize,
    /// How long one of them and its result stay.
    pub ttl: Duration,
    /// When a call becomes a task of a client that knows them (2026-07-28).
    pub tasks_after: Duration,
    /// When a call of another client gets a `run_id`; `None`: never.
    pub runs_after: Option<Duration>,
    /// Clients are known apart: each has an owner.
    pub knows_clients: bool,
}

impl Default for DetachedLimits {
    fn default() -> DetachedLimits {
        DetachedLimits {
            most: 4_096,
            ttl: Duration::from_secs(600),
            tasks_after: Duration::from_secs(3),
            runs_after: None,
            knows_clients: true,
        }
    }
}

/// What a call becomes when it goes on without its request.
#[derive(Clone, Debug)]
pub struct Handle {
    pub(in crate::server) kind: HandleKind,
    /// The tool.
    pub(in crate::server) tool: String,
    /// What the client can be asked.
    pub(in crate::server) offered: Offered,
    /// How long the client wants it to stay.
    pub(in crate::server) ttl: Option<Duration>,
}

/// Why a call cannot go on without its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum Refused {
    /// There are as many as may be.
    Full,
    /// The server ends, or has no random numbers.
    Ending,
}

impl Refused {
    /// Error text for the client.
    pub(in crate::server) fn message(self) -> &'static str {
        match self {
            Refused::Full => {
                "busy: there are as many tasks as may be (--max-tasks); cancel some, wait for the ttl of others, or call \
                 without a task"
            }
            Refused::Ending => "no task can be created: the server ends",
        }
    }
}

/// Calls that go on without their requests.
pub struct DetachedRuns {
    /// The bounds.
    pub limits: DetachedLimits,
    pub(super) table: Arc<OwnedTable<Arc<DetachedRun>>>,
    /// Where they are stored.
    pub(super) store: Option<DurableRuns>,
    /// Runs of processes that have ended go on.
    pub(super) goes_on: AtomicBool,
    /// Held while one of another process is taken over, so that it is taken over once.
    pub(super) taking_over: tokio::sync::Mutex<()>,
    next: AtomicU64,
    /// Where they are stored from: runs end on threads of their own.
    io: Option<IoHandle>,
    pub(super) this: Weak<DetachedRuns>,
}

impl DetachedRuns {
    /// An empty table. With a store they outlive the process, and this must be called on a tokio runtime.
    pub fn new(limits: DetachedLimits, store: Option<DurableRuns>) -> Arc<DetachedRuns> {
        Arc::new_cyclic(|this: &Weak<DetachedRuns>| {
            if let Some(store) = store.as_ref().filter(|store| store.is_shared()) {
                tasks::spawn(TaskOwner::Process, follow_lost(this.clone(), store.lost()));
            }
            let table = this.clone();
            let expired = move |run: Arc<DetachedRun>, _| {
                run.drop_run();
                if let Some(table) = table.upgrade() {
                    table.forget(&run);
                }
            };
            DetachedRuns {
                limits,
                table: OwnedTable::new(None, expired),
                store,
                goes_on: AtomicBool::new(false),
                taking_over: tokio::sync::Mutex::default(),
                next: AtomicU64::new(0),
                io: IoHandle::try_current().ok(),
                this: this.clone(),
            }
        })
    }

    /// Creates one for a run that is under way, is about to start, or has this end already.
    pub(in crate::server) fn begin(
        &self,
        owner: CallOwner,
        handle: Handle,
        call: &InputRequiredCall,
        ticket: Option<Ticket>,
        end: Option<End>,
    ) -> Result<Arc<DetachedRun>, (Refused, Option<Ticket>)> {
        let Handle { kind, tool, offered, ttl } = handle;
        let Some(id) = random_id::<ID_BYTES>("") else { return Err((Refused::Ending, ticket)) };
        let ttl = ttl.map_or(self.limits.ttl, |ttl| ttl.clamp(LEAST_TTL, self.limits.ttl));
        let created_ms = now_ms();
        let run = Arc::new(DetachedRun {
            id,
            owner,
            number: self.number(),
            kind,
            tool,
            created_ms,
            ttl,
            offered,
            requests: call.requests.clone(),
            table: self.this.clone(),
            order: tokio::sync::Mutex::default(),
            state: State::new(created_ms, end),
        });
        if let Err(refused) = self.insert(&run, ttl) {
            return Err((refused, ticket));
        }
        run.set_ticket(ticket);
        Ok(run)
    }

    /// Creates one for a call that is over already.
    ///
    /// # Errors
    /// There are too many.
    pub(in crate::server) fn ended_at_once(
        &self,
        owner: CallOwner,
        handle: Handle,
        end: Option<End>,
    ) -> Result<Arc<DetachedRun>, RpcError> {
        let begun = self.begin(owner, handle, &InputRequiredCall::vacant(""), None, end);
        let run = begun.map_err(|(refused, _)| RpcError::new(ErrorCode::Unavailable, refused.message()))?;
        if let Some(stored) = self.store(&run, None, None) {
            self.spawn(stored);
        }
        Ok(run)
    }

    pub(super) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Adds one that stays for this time.
    pub(super) fn insert(&self, run: &Arc<DetachedRun>, age: Duration) -> Result<(), Refused> {
        let most = self.limits.most;
        // The owner of a client over standard input is the only one.
        let most_of_owner = if run.owner == CallOwner::default() { most } else { (most / SHARE).max(1) };
        let added = self.table.insert((run.owner, &run.id), Quota { most, most_of_owner }, age, run.clone());
        added.map_err(|(_, full)| if full == Full::Closed { Refused::Ending } else { Refused::Full })
    }

    /// The one with this id of this owner.
    pub(in crate::server) fn find(&self, owner: CallOwner, id: &str) -> Option<Arc<DetachedRun>> {
        self.table.find(owner, id)
    }

    /// Passes on the answer to a question that was sent as a request; false if it was none of ours.
    pub(in crate::server) fn answer(
        &self,
        owner: CallOwner,
        id: Option<Raw<'_>>,
        answer: Result<Raw<'_>, Raw<'_>>,
    ) -> bool {
        let id: Option<String> = id.and_then(|id| serde_json::from_str(id.get()).ok());
        let Some((task, question)) = id.as_deref().and_then(split_question_id) else { return false };
        let answer = answer.map(Raw::get).map_err(Raw::get);
        // Not under the lock of the table: the end of a run can follow.
        self.find(owner, task).is_some_and(|run| run.answer(question, answer))
    }

    /// Removes one that no client knows, and stops it.
    pub(in crate::server) fn remove(&self, run: &Arc<DetachedRun>) {
        self.table.remove(run.owner, &run.id);
        run.drop_run();
        self.forget(run);
    }

    /// Ends all of an owner, and returns how many they were.
    pub(in crate::server) fn end_all(&self, owner: CallOwner) -> usize {
        let gone = self.table.remove_all(|whose, _| whose == owner);
        for run in &gone {
            run.drop_run();
            self.forget(run);
        }
        gone.len()
    }

    /// The process ends: what is stored stays.
    pub(super) fn is_closing(&self) -> bool {
        self.store.as_ref().is_some_and(DurableRuns::is_closing)
    }

    /// Stores a new one, with its run. Resolves when it is stored, or cannot be.
    pub(in crate::server) fn store(
        &self,
        run: &Arc<DetachedRun>,
        keeper: Option<RunKeeper>,
        memo: Option<String>,
    ) -> Option<impl Future<Output = ()> + Send + use<>> {
        let (store, run) = (self.store.clone()?, run.clone());
        Some(async move { stored::write(&store, &run, keeper.zip(memo)).await })
    }

    /// One has ended: its outcome replaces its run, and clients see it then. False if it is not stored.
    pub(super) fn ended(&self, run: &DetachedRun) -> bool {
        let run = self.find(run.owner, &run.id).filter(|known| std::ptr::eq(&**known, run));
        let (Some(store), Some(run), this) = (self.store.clone(), run, self.this.clone()) else {
            return false;
        };
        self.spawn(async move {
            match stored::conclude(&store, &run).await {
                Conclusion::Taken if store.is_shared() => {
                    if let (Some(table), Some(name)) = (this.upgrade(), run.stored_run()) {
                        table.lost(&name);
                    }
                }
                // Without other processes it was removed by hand.
                Conclusion::Stored | Conclusion::Taken => run.settle(),
                Conclusion::ProcessEnds => {}
            }
        })
    }

    /// Another process has the run of a call, and goes on with the call.
    fn lost(&self, run: &str) {
        let is_lost = |known: &Arc<DetachedRun>| {
            known.stored_run().is_some_and(|name| *name == *run) && !known.has_lasting_end()
        };
        for gone in self.table.remove_all(|_, known| is_lost(known)) {
            tracing::warn!(run, "another node goes on with a task of this one");
            gone.leave();
        }
        if let Some(store) = &self.store {
            store.release(run);
        }
    }

    /// Spawns work with the store; false if there is nowhere to.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> bool {
        let Some(io) = &self.io else { return false };
        let _entered = io.enter();
        tasks::spawn(TaskOwner::Process, work);
        true
    }

    /// Removes what is stored of one.
    fn forget(&self, run: &Arc<DetachedRun>) {
        let Some(store) = self.store.clone().filter(|store| !store.is_closing()) else { return };
        let run = run.clone();
        self.spawn(async move { stored::remove_run(&store, &run).await });
    }
}

/// Drops the calls of runs that other processes have taken.
async fn follow_lost(table: Weak<DetachedRuns>, mut lost: mpsc::UnboundedReceiver<Arc<str>>) {
    while let Some(run) = lost.recv().await {
        let Some(table) = table.upgrade() else { return };
        table.lost(&run);
    }
}

/// The name of a question as the id of a request.
pub(super) fn question_id(task: &str, question: &str) -> String {
    format!("task:{task}:{question}")
}

fn split_question_id(id: &str) -> Option<(&str, &str)> {
    id.strip_prefix("task:")?.split_once(':')
}

impl RunHandles for DetachedRuns {
    fn look(&self, owner: CallOwner, id: &str) -> Option<RunState> {
        let run = self.find(owner, id)?;
        let end = run.view().end;
        Some(match end {
            None => RunState::Working,
            Some(end) => RunState::Ended(Box::new(answer(end))),
        })
    }

    fn cancel(&self, owner: CallOwner, id: &str) {
        if let Some(run) = self.find(owner, id) {
            run.cancel();
        }
    }

    fn over(&self, owner: CallOwner, id: &str) -> Pin<Box<dyn Future<Output = RunOver> + Send>> {
        let run = self.find(owner, id);
        Box::pin(async move {
            let Some(run) = run else { return RunOver::Here };
            let mailbox = Arc::<Mailbox>::default();
            run.watch(Watcher { mailbox: Arc::downgrade(&mailbox), slot: None });
            while !run.is_over() {
                if run.is_elsewhere() {
                    return RunOver::GoesOnElsewhere;
                }
                mailbox.arrival().await;
            }
            RunOver::Here
        })
    }
}

/// The answer of a call with this end.
pub(super) fn answer(end: End) -> ToolAnswer<'static> {
    match end {
        End::Result { mut members, is_error } => {
            let content = members.remove("content").unwrap_or_default().to_string();
            let structured = members.remove("structuredContent");
            members.remove("isError");
            // It was JSON.
            let blocks = RawValue::from_string(content).unwrap_or_default();
            let content = match members.is_empty() {
                true => Content::Blocks(blocks),
                false => Content::Extended { blocks, members },
            };
            let summary = if is_error { CallSummary::failed("run_failed") } else { CallSummary::default() };
            ToolAnswer { is_error, structured, summary, ..ToolAnswer::new(content) }
        }
        End::Error(message) => failed(message),
        End::Cancelled => failed("cancelled: the call was stopped by its client".into()),
    }
}

fn failed(message: String) -> ToolAnswer<'static> {
    let (content, summary) = (Content::Text(message.into()), CallSummary::failed("run_failed"));
    ToolAnswer { is_error: true, summary, ..ToolAnswer::new(content) }
}
