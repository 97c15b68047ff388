//! Lets a running tool call ask its client questions in MCP 2026-07-28, where servers cannot send requests: a response
//! carries the questions, and the client repeats the call with the answers.
//!
//! So one run has several requests. The one that waits is answered with the questions of an upstream.

use super::client_requests::{ClientQuestion, ClientRequests};
use super::parked::CallKey;
use crate::answer::Content;
use crate::protocol::notify::ProgressToken;
use crate::protocol::params::Params;
use crate::protocol::{Raw, RpcError, ServerMessage};
use crate::server::detached::{DetachedRun, Handle};
use crate::server::gate::JobPermit;
use crate::server::handler::{Handler, Ticket};
use crate::server::mailbox::{Event, Mailbox, Slot};
use crate::server::progress::ProgressReporter;
use crate::tools::{Reporter, ToolAnswer};
use ptc_base::sync::Locked;
use ptc_calls::outcome::Outcome;
use ptc_calls::watcher::RunView;
use ptc_upstream::{CallingClient, Offered, ProgressListener, ToolStep};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// Names of questions begin so.
const QUESTIONS: &str = "question";

/// A request that waits for a run.
pub(in crate::server) struct AttachedRequest {
    pub(in crate::server) slot: Slot,
    pub(in crate::server) ticket: Ticket,
    pub(in crate::server) mailbox: Arc<Mailbox>,
    /// Where progress goes, if the client wants any.
    pub(in crate::server) progress: Option<Arc<ProgressReporter>>,
    /// The features that the request declares.
    pub(in crate::server) offered: Offered,
}

impl AttachedRequest {
    fn ended(self, handler: &Handler, answer: Option<&ToolAnswer<'_>>) {
        let AttachedRequest { slot, mut ticket, mailbox, .. } = self;
        let mut end = RequestEnd { slot, mailbox, messages: None };
        end.messages = answer.map(|answer| handler.finish(&mut ticket, answer));
    }
}

/// Ends a request when it is dropped, so that a panic while the answer is written does not leave the client waiting.
struct RequestEnd {
    slot: Slot,
    mailbox: Arc<Mailbox>,
    /// `None` after a defect.
    messages: Option<Vec<ServerMessage>>,
}

impl Drop for RequestEnd {
    fn drop(&mut self) {
        self.mailbox.push((self.slot, Event::Ended(self.messages.take())));
    }
}

/// The request that waits for a run, if there is one.
pub(in crate::server) struct PendingRequestSlot {
    state: Mutex<RequestSlotState>,
    /// The run, for the page.
    run: OnceLock<RunView>,
}

enum RequestSlotState {
    Attached(Box<AttachedRequest>),
    /// No request waits, until the client calls again.
    Vacant,
    /// The run goes on without its request.
    Detached(Arc<DetachedRun>),
    /// The run has ended. The answer is `None` after a defect, or once it was fetched.
    Ended(Option<Box<StoredAnswer>>),
}

impl PendingRequestSlot {
    /// Notifies the waiting request of a new question.
    pub(super) fn notify_question(&self) {
        let detached = match &*self.state.locked() {
            RequestSlotState::Detached(run) => Some(run.clone()),
            _ => None,
        };
        match detached {
            // Not under the lock: it asks for the questions.
            Some(run) => run.questions_arrived(),
            None => self.notify(|_| Some(Event::InputRequired)),
        }
    }

    fn notify(&self, event: impl FnOnce(&AttachedRequest) -> Option<Event>) {
        if let RequestSlotState::Attached(request) = &*self.state.locked()
            && let Some(event) = event(request)
        {
            request.mailbox.push((request.slot, event));
        }
    }

    /// Where progress goes. `None` when no request waits, or its client wants none.
    fn progress(&self) -> Option<Arc<ProgressReporter>> {
        match &*self.state.locked() {
            RequestSlotState::Attached(request) => request.progress.clone(),
            RequestSlotState::Vacant | RequestSlotState::Detached(_) | RequestSlotState::Ended(_) => None,
        }
    }

    /// Ends the run with this answer, or stores the answer until the client calls again.
    fn end(&self, handler: &Handler, answer: Option<&ToolAnswer<'_>>) {
        let mut state = self.state.locked();
        match std::mem::replace(&mut *state, RequestSlotState::Ended(None)) {
            RequestSlotState::Attached(request) => {
                drop(state);
                request.ended(handler, answer);
            }
            RequestSlotState::Vacant => {
                *state = RequestSlotState::Ended(answer.map(|answer| Box::new(StoredAnswer::new(answer))))
            }
            RequestSlotState::Detached(run) => {
                drop(state);
                run.ended(answer);
            }
            over @ RequestSlotState::Ended(_) => *state = over,
        }
    }
}

impl fmt::Debug for PendingRequestSlot {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("PendingRequestSlot").finish_non_exhaustive()
    }
}

impl ProgressListener for PendingRequestSlot {
    fn listens(&self) -> bool {
        self.progress().is_some()
    }

    fn stepped(&self, step: ToolStep) {
        if let Some(progress) = self.progress() {
            progress.stepped(step);
        }
    }
}

/// A run together with its client's successive requests.
#[derive(Clone)]
pub(in crate::server) struct InputRequiredCall {
    /// Where upstream servers ask the client.
    pub(in crate::server) requests: Arc<ClientRequests>,
    slot: Arc<PendingRequestSlot>,
}

impl InputRequiredCall {
    /// A run that is about to start for this request.
    pub(in crate::server) fn new(request: AttachedRequest) -> InputRequiredCall {
        InputRequiredCall::with(RequestSlotState::Attached(Box::new(request)), QUESTIONS)
    }

    /// A run that is about to start without a request. `questions` begins the names of its questions.
    pub(in crate::server) fn vacant(questions: &str) -> InputRequiredCall {
        InputRequiredCall::with(RequestSlotState::Vacant, questions)
    }

    fn with(state: RequestSlotState, questions: &str) -> InputRequiredCall {
        let slot = Arc::new(PendingRequestSlot { state: Mutex::new(state), run: OnceLock::new() });
        let requests = ClientRequests::for_input_required(questions.to_owned(), slot.clone());
        InputRequiredCall { requests: Arc::new(requests), slot }
    }

    /// True when the run has ended.
    pub(super) fn is_over(&self) -> bool {
        matches!(*self.slot.state.locked(), RequestSlotState::Ended(_))
    }

    /// Takes the waiting request from the run; `None` when the run has ended.
    pub(in crate::server) fn detach(&self) -> Option<Box<AttachedRequest>> {
        let mut state = self.slot.state.locked();
        match std::mem::replace(&mut *state, RequestSlotState::Vacant) {
            RequestSlotState::Attached(request) => Some(request),
            other => {
                *state = other;
                None
            }
        }
    }

    /// Lets the run go on without a request, as this. Returns the request that waited; `None` if none did, because the run
    /// has not started or has ended.
    pub(in crate::server) fn detach_to(&self, run: &Arc<DetachedRun>) -> Option<Box<AttachedRequest>> {
        let mut state = self.slot.state.locked();
        let request = match std::mem::replace(&mut *state, RequestSlotState::Detached(run.clone())) {
            RequestSlotState::Attached(request) => Some(request),
            RequestSlotState::Vacant => None,
            other => {
                *state = other;
                return None;
            }
        };
        drop(state);
        // Some may have come before.
        run.questions_arrived();
        request
    }

    /// Attaches the request that waits for the run from now on.
    pub(in crate::server) fn attach(&self, request: Box<AttachedRequest>, handler: &Handler) {
        let mut state = self.slot.state.locked();
        match std::mem::replace(&mut *state, RequestSlotState::Ended(None)) {
            RequestSlotState::Vacant | RequestSlotState::Attached(_) => {
                if let Some(run) = self.slot.run.get() {
                    request.ticket.watch(run.clone());
                }
                *state = RequestSlotState::Attached(request)
            }
            // Parked runs are attached to, and those are not detached.
            detached @ RequestSlotState::Detached(_) => *state = detached,
            RequestSlotState::Ended(stored) => {
                drop(state);
                request.ended(handler, stored.as_deref().map(StoredAnswer::answer).as_ref());
            }
        }
    }

    /// Takes the open questions. Those that the waiting request does not support are refused.
    pub(in crate::server) fn questions(&self) -> Vec<ClientQuestion> {
        let mut offered = Offered::default();
        self.slot.notify(|request| {
            offered = request.offered;
            None
        });
        let (may_be, others): (Vec<_>, Vec<_>) =
            self.requests.questions().into_iter().partition(|question| supports(offered, question));
        self.refuse(&others, "the client whose call is under way does not offer this");
        may_be
    }

    /// Fails questions that the client will not be asked.
    pub(in crate::server) fn refuse(&self, questions: &[ClientQuestion], why: &str) {
        questions.iter().for_each(|question| self.requests.refuse(question, why));
    }

    /// Passes on the client's answers to `asked`.
    pub(in crate::server) fn answered(
        &self,
        asked: Vec<ClientQuestion>,
        mut responses: HashMap<String, Box<RawValue>>,
    ) {
        for question in asked {
            match responses.remove(&question.id) {
                Some(response) => self.requests.answered(&question, response.get().to_owned()),
                None => self.requests.unanswered_once(question),
            }
        }
        // Covers questions that came meanwhile, and those that have to be asked once more.
        self.slot.notify_question();
    }
}

/// True if a client that offers this can be asked.
pub(in crate::server) fn supports(offered: Offered, question: &ClientQuestion) -> bool {
    match question.method {
        "elicitation/create" if leads_to_an_address(&question.params) => offered.urls,
        "elicitation/create" => offered.elicitation,
        "roots/list" => offered.roots,
        _ => false,
    }
}

/// True for parameters of an elicitation that leads a person to an address.
fn leads_to_an_address(params: &str) -> bool {
    serde_json::from_str::<Value>(params).is_ok_and(|params| params["mode"] == "url")
}

/// Builds `inputRequests` from questions.
pub(in crate::server) fn input_requests(asked: &[ClientQuestion]) -> Map<String, Value> {
    let request = |ClientQuestion { id, method, params, .. }: &ClientQuestion| {
        let params: Value = serde_json::from_str(params).unwrap_or_default();
        (id.clone(), serde_json::json!({ "method": method, "params": params }))
    };
    asked.iter().map(request).collect()
}

/// Builds the response that asks.
pub(in crate::server) fn input_required(requests: Map<String, Value>, state: String) -> ToolAnswer<'static> {
    let content = Content::InputRequired { requests: Box::new(requests), state: Some(state) };
    ToolAnswer::new(content)
}

/// The answer of a run that ended while no request waited for it.
#[derive(Debug)]
struct StoredAnswer {
    answer: ToolAnswer<'static>,
    run: Option<Outcome>,
}

impl StoredAnswer {
    fn new(answer: &ToolAnswer<'_>) -> StoredAnswer {
        StoredAnswer { answer: answer.clone().without_run(), run: answer.summary.run.cloned() }
    }

    fn answer(&self) -> ToolAnswer<'_> {
        let mut answer: ToolAnswer<'_> = self.answer.clone();
        answer.summary.run = self.run.as_ref();
        answer
    }
}

/// Reports on a run to the request that waits for it. Dropping it frees the permit.
pub(in crate::server) struct JobReporter {
    pub(in crate::server) call: InputRequiredCall,
    pub(in crate::server) handler: Arc<Handler>,
    pub(in crate::server) caller: Option<CallingClient>,
    /// `None` for a run that goes on after a restart.
    pub(in crate::server) permit: Option<JobPermit>,
    pub(in crate::server) answered: bool,
}

impl Reporter for JobReporter {
    fn begun(&mut self) {
        if let Some(permit) = &mut self.permit {
            permit.begun();
        }
    }

    fn entered(&mut self, run: RunView) {
        if let RequestSlotState::Attached(request) = &*self.call.slot.state.locked() {
            request.ticket.watch(run.clone());
        }
        let _ = self.call.slot.run.set(run);
    }

    fn caller(&self) -> Option<CallingClient> {
        self.caller.clone()
    }

    fn progress(&mut self, done: u64, part: &'static str) {
        if let Some(progress) = self.call.slot.progress() {
            progress.done(done, part);
        }
    }

    fn progress_listener(&self) -> Option<Arc<dyn ProgressListener>> {
        Some(self.call.slot.clone())
    }

    fn settled(&mut self) {
        if let RequestSlotState::Attached(request) = &*self.call.slot.state.locked() {
            request.mailbox.push((request.slot, Event::Settled));
        }
    }

    fn ended(mut self: Box<Self>, answer: &ToolAnswer<'_>) {
        self.call.slot.end(&self.handler, Some(answer));
        self.answered = true;
    }
}

impl Drop for JobReporter {
    // A defect while the answer was written must not leave the client waiting for ever.
    fn drop(&mut self) {
        if !self.answered {
            self.call.slot.end(&self.handler, None);
        }
        self.call.requests.close();
    }
}

/// A call that goes on with the run of an earlier one.
pub struct ResumedCall {
    /// How to answer.
    pub(in crate::server) ticket: Ticket,
    pub(in crate::server) progress: Option<ProgressToken>,
    pub(in crate::server) offered: Offered,
    pub(in crate::server) key: CallKey,
    /// The state that the client sends back. It is not validated yet.
    pub(in crate::server) state: String,
    pub(in crate::server) responses: HashMap<String, Box<RawValue>>,
    /// When the run goes on without this request, if it takes longer.
    pub(in crate::server) detach: Option<(Handle, Duration)>,
}

/// Reads the state and the responses of a call.
///
/// # Errors
/// They do not have the shape that the protocol requires.
pub(in crate::server) fn inputs(
    state: Raw<'_>,
    params: &Params<'_>,
) -> Result<(String, HashMap<String, Box<RawValue>>), RpcError> {
    let state = serde_json::from_str(state.get())
        .map_err(|_| RpcError::invalid_params("requestState must be a string"))?;
    Ok((state, params.responses()?))
}
