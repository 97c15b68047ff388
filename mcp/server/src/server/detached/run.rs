//! Holds the state of one tool call that outlives its request: its status, open questions to the client and outcome. It
//! notifies watchers of every change.

use super::stored::StoredHandle;
use super::table::DetachedRuns;
use super::wire;
use crate::answer::Content;
use crate::protocol::RpcError;
use crate::server::handler::Ticket;
use crate::server::input_required::{ClientQuestion, ClientRequests, supports};
use crate::server::mailbox::{Event, Mailbox, Slot};
use crate::tools::owned_table::Owned;
use crate::tools::{CallOwner, Cancel, ToolAnswer};
use ptc_base::sync::Locked;
use ptc_upstream::Offered;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// How a client knows the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::server) enum HandleKind {
    /// As a task that it asked for (2025-11-25).
    Requested,
    /// As a task of the extension (2026-07-28).
    Extension,
    /// As a `run_id`.
    RunId,
}

/// The status of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Working,
    InputRequired,
    Completed,
    Failed,
    Cancelled,
}

impl Status {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Status::Working => "working",
            Status::InputRequired => "input_required",
            Status::Completed => "completed",
            Status::Failed => "failed",
            Status::Cancelled => "cancelled",
        }
    }

    pub(super) const fn is_over(self) -> bool {
        matches!(self, Status::Completed | Status::Failed | Status::Cancelled)
    }
}

/// How a call has ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::server) enum End {
    /// With this result, without the members of its era.
    Result { members: Map<String, Value>, is_error: bool },
    /// With an internal error of JSON-RPC.
    Error(String),
    /// Its client has cancelled it.
    Cancelled,
}

/// Who is notified of changes: a reader of events, about one of its requests or in general.
#[derive(Clone)]
pub(in crate::server) struct Watcher {
    pub(in crate::server) mailbox: Weak<Mailbox>,
    pub(in crate::server) slot: Option<Slot>,
}

/// A call that goes on without its request.
pub(in crate::server) struct DetachedRun {
    pub(in crate::server) id: String,
    pub(in crate::server) owner: CallOwner,
    /// Its place in lists.
    pub(super) number: u64,
    pub(in crate::server) kind: HandleKind,
    /// The tool that it calls.
    pub(super) tool: String,
    pub(super) created_ms: u64,
    pub(super) ttl: Duration,
    /// What the client can be asked.
    pub(super) offered: Offered,
    pub(super) requests: Arc<ClientRequests>,
    pub(super) table: Weak<DetachedRuns>,
    /// Held while it is written to the store.
    pub(super) order: tokio::sync::Mutex<()>,
    pub(super) state: Mutex<State>,
}

#[derive(Default)]
pub(super) struct State {
    updated_ms: u64,
    /// Grows with each change that a client can see.
    version: u64,
    asked: Vec<ClientQuestion>,
    end: Option<End>,
    /// Clients see the end. It is stored then, but for that of a defect, and where nothing is stored.
    is_settled: bool,
    /// The end is a defect of this process, and none of the call.
    is_defect: bool,
    cancel: Option<Cancel>,
    /// The ticket of the call, for its record.
    ticket: Option<Ticket>,
    watchers: Vec<Watcher>,
    /// The stored run, and what its tool needs to go on.
    stored: Option<(Arc<str>, String)>,
    /// It is no longer in the table, and not to be stored again.
    is_forgotten: bool,
    /// Another process has it.
    is_elsewhere: bool,
    /// The request that asks its questions.
    asker: Weak<()>,
}

/// What a client sees of a task.
pub(super) struct View {
    pub(super) status: Status,
    pub(super) updated_ms: u64,
    /// Questions by their names.
    pub(super) asked: Map<String, Value>,
    pub(super) end: Option<End>,
}

/// Milliseconds since 1970.
pub(super) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

impl Owned for Arc<DetachedRun> {
    /// It expires by its age only.
    fn last_used(&self) -> Instant {
        Instant::now()
    }
}

impl State {
    pub(super) fn new(created_ms: u64, end: Option<End>) -> Mutex<State> {
        let is_settled = end.is_some();
        Mutex::new(State { updated_ms: created_ms, version: 1, is_settled, end, ..State::default() })
    }
}

impl DetachedRun {
    /// What a client sees.
    pub(super) fn view(&self) -> View {
        let mut state = self.state.locked();
        // A server may have withdrawn a question.
        state.asked.retain(|question| self.requests.is_open(question));
        let end = state.end.as_ref().filter(|_| state.is_settled);
        let status = match end {
            Some(end) => self.status_of(end),
            None if state.asked.is_empty() => Status::Working,
            None => Status::InputRequired,
        };
        let asked =
            if status == Status::InputRequired { wire::input_requests(&state.asked) } else { Map::new() };
        View { status, updated_ms: state.updated_ms, asked, end: end.cloned() }
    }

    /// In 2025-11-25 a result that is an error means that the task has failed.
    fn status_of(&self, end: &End) -> Status {
        match end {
            End::Result { is_error: true, .. } if self.kind == HandleKind::Requested => Status::Failed,
            End::Result { .. } => Status::Completed,
            End::Error(_) => Status::Failed,
            End::Cancelled => Status::Cancelled,
        }
    }

    /// True when clients see that it has ended.
    pub(in crate::server) fn is_over(&self) -> bool {
        self.state.locked().is_settled
    }

    /// True when no other process can have another end of it.
    pub(super) fn has_lasting_end(&self) -> bool {
        let state = self.state.locked();
        state.is_settled && !state.is_defect
    }

    /// True when another process has it.
    pub(in crate::server) fn is_elsewhere(&self) -> bool {
        self.state.locked().is_elsewhere
    }

    /// Shows its end to clients.
    pub(super) fn settle(&self) {
        self.change(|state| state.is_settled = true);
    }

    /// The number of its changes.
    pub(in crate::server) fn version(&self) -> u64 {
        self.state.locked().version
    }

    /// Notifies this reader of later changes.
    pub(in crate::server) fn watch(&self, watcher: Watcher) {
        let mut state = self.state.locked();
        state.watchers.retain(|watcher| watcher.mailbox.strong_count() > 0);
        state.watchers.push(watcher);
    }

    /// Sets what stops it. One that has ended or was cancelled meanwhile is not stopped later.
    pub(in crate::server) fn set_cancel(&self, cancel: Option<Cancel>) {
        let mut state = self.state.locked();
        match state.end {
            None => state.cancel = cancel,
            Some(End::Cancelled) => {
                drop(state);
                if let Some(cancel) = cancel {
                    cancel();
                }
            }
            Some(_) => {}
        }
    }

    /// Sets the ticket of the call, for its record.
    pub(in crate::server) fn set_ticket(&self, ticket: Option<Ticket>) {
        self.state.locked().ticket = ticket;
    }

    /// Its run is stored under this name.
    pub(super) fn set_stored(&self, run: Arc<str>, memo: String) {
        self.state.locked().stored = Some((run, memo));
    }

    /// What is to be stored of it, with its end or as it is for clients.
    pub(super) fn stored(&self, with_end: bool) -> StoredHandle {
        let state = self.state.locked();
        let end = state.end.as_ref().filter(|_| with_end || state.is_settled);
        StoredHandle::new(self, state.updated_ms, end, state.stored.as_ref())
    }

    /// Name of the stored run.
    pub(super) fn stored_run(&self) -> Option<Arc<str>> {
        self.state.locked().stored.as_ref().map(|(run, _)| run.clone())
    }

    /// Takes new questions of the run. Those that the client cannot be asked are refused.
    pub(in crate::server) fn questions_arrived(&self) {
        let new = self.requests.questions();
        if new.is_empty() {
            return;
        }
        let can_be_asked = self.kind != HandleKind::RunId;
        let (asked, others): (Vec<_>, Vec<_>) =
            new.into_iter().partition(|question| can_be_asked && supports(self.offered, question));
        for question in &others {
            self.requests.refuse(question, "the client whose call is under way does not offer this");
        }
        if !asked.is_empty() {
            self.change(|state| state.asked.extend(asked));
        }
    }

    /// Passes on the client's answers. Names of questions that are not open are ignored.
    pub(super) fn update(&self, mut responses: HashMap<String, Box<RawValue>>) {
        let mut answered = Vec::new();
        self.change(|state| {
            for question in std::mem::take(&mut state.asked) {
                match responses.remove(&question.id) {
                    Some(response) => answered.push((question, response)),
                    None => state.asked.push(question),
                }
            }
        });
        for (question, response) in answered {
            self.requests.answered(&question, response.get().to_owned());
        }
    }

    /// True for the request that asks the questions: the first one, and the next when that is gone.
    pub(super) fn may_ask(&self, request: &Arc<()>) -> bool {
        let mut state = self.state.locked();
        match state.asker.upgrade() {
            Some(asker) => Arc::ptr_eq(&asker, request),
            None => {
                state.asker = Arc::downgrade(request);
                true
            }
        }
    }

    /// Passes on the client's answer to one question; false if this question is not open.
    pub(in crate::server) fn answer(&self, question: &str, answer: Result<&str, &str>) -> bool {
        let mut found = None;
        self.change(|state| {
            let place = state.asked.iter().position(|asked| asked.id == question);
            found = place.map(|place| state.asked.remove(place));
        });
        let Some(question) = found else { return false };
        self.requests.settled(&question, answer);
        true
    }

    /// Stops it for its client, for good. Returns false if clients have seen that it has ended; otherwise they are to wait
    /// for its end, which may be another one that is still to be stored.
    pub(super) fn cancel(&self) -> bool {
        let mut cancel = None;
        let was_over = self.is_over();
        self.end(End::Cancelled, |state| cancel = state.cancel.take());
        if let Some(cancel) = cancel {
            cancel();
        }
        !was_over
    }

    /// Stops it without a trace: its time is over, or its owner has gone.
    pub(super) fn drop_run(&self) {
        let cancel = {
            let mut state = self.state.locked();
            state.is_forgotten = true;
            state.cancel.take()
        };
        if let Some(cancel) = cancel {
            cancel();
        }
    }

    /// Another process has it: stops what this one does for it, and says so to those who wait.
    pub(super) fn leave(&self) {
        let mut cancel = None;
        self.change(|state| {
            (state.is_elsewhere, state.is_forgotten) = (true, true);
            cancel = state.cancel.take();
        });
        if let Some(cancel) = cancel {
            cancel();
        }
    }

    /// True when it is not to be stored again.
    pub(super) fn is_forgotten(&self) -> bool {
        self.state.locked().is_forgotten
    }

    /// The call has ended. `None` after a defect.
    pub(in crate::server) fn ended(&self, answer: Option<&ToolAnswer<'_>>) {
        let ticket = self.state.locked().ticket.take();
        if let (Some(ticket), Some(answer)) = (ticket, answer) {
            ticket.recorded(answer);
        }
        let is_closing = self.table.upgrade().is_some_and(|table| table.is_closing());
        if is_closing && answer.is_none_or(|answer| answer.summary.reason.as_deref() == Some("cancelled")) {
            // The process ends, and the run does not: a later process goes on with it.
            return;
        }
        let end = match answer {
            Some(answer) => End::of(answer),
            None => End::Error(RpcError::internal().message),
        };
        self.end(end, |_| {});
    }

    /// Sets the end, unless there is one.
    fn end(&self, end: End, also: impl FnOnce(&mut State)) {
        let is_defect = matches!(end, End::Error(_));
        {
            let mut state = self.state.locked();
            if state.end.is_some() || state.is_elsewhere {
                return;
            }
            (state.end, state.is_defect) = (Some(end), is_defect);
            also(&mut state);
            state.asked.clear();
            // What stops it is of no use any more.
            state.cancel = None;
        }
        // A client that has seen the end sees no other one later, also after a crash: it is stored first.
        // A defect is none of the run: another process may go on with what is stored.
        let is_stored_first = !is_defect && self.table.upgrade().is_some_and(|table| table.ended(self));
        if !is_stored_first {
            self.settle();
        }
    }

    /// Changes the state, and notifies those who watch.
    fn change(&self, change: impl FnOnce(&mut State)) {
        let watchers = {
            let mut state = self.state.locked();
            change(&mut state);
            state.version += 1;
            state.updated_ms = now_ms();
            state.watchers.retain(|watcher| watcher.mailbox.strong_count() > 0);
            state.watchers.clone()
        };
        for Watcher { mailbox, slot } in watchers {
            let Some(mailbox) = mailbox.upgrade() else { continue };
            match slot {
                Some(slot) => mailbox.push((slot, Event::Detached)),
                None => mailbox.wake(),
            }
        }
    }
}

impl End {
    /// The end of a call with this answer.
    pub(in crate::server) fn of(answer: &ToolAnswer<'_>) -> End {
        if let Content::InputRequired { .. } = &answer.content {
            return End::Error("a task cannot ask its client to call again".to_owned());
        }
        End::Result { members: wire::members(answer), is_error: answer.is_error }
    }
}
