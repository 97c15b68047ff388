//! Sends a prepared tool call, waits for the response, and records the outcome in the ledger, the list of a run's
//! calls.

use super::cache::{CameBack, Keepable, Repeat};
use super::load::Loaded;
use super::login::LoginRetry;
use super::reserve::{CallPlan, Callee, refuse};
use super::time::TimeLimit;
use super::waited::DecidedCall;
use super::{CallError, CallPayload, ToolBroker, WorldFault};
use ptc_calls::journal::RunJournal;
use ptc_calls::policy::{Permitted, SharedPolicy};
use ptc_calls::run::account::{CallTag, RunAccount};
use ptc_calls::run::ledger::OpenCall;
use ptc_calls::run::outcome::{CallFault, CallStatus};
use ptc_calls::tools::CallTarget;
use ptc_upstream::{ResultSink, ServerRequest, TaskNotes, Upstream, UpstreamFault};
use std::sync::Arc;
use std::time::Duration;

/// A call that is ready to be sent.
pub struct PreparedCall {
    pub(super) route: Route,
}

/// What the journal of a run has of the task that a server makes of a call.
#[derive(Debug)]
struct JournaledTask {
    journal: Arc<RunJournal>,
    seq: u64,
    known: Option<Arc<str>>,
}

impl TaskNotes for JournaledTask {
    fn known(&self) -> Option<Arc<str>> {
        self.known.clone()
    }

    fn created(&self, task: &str) {
        self.journal.task(self.seq, task);
    }

    fn goes_on(&self) -> bool {
        self.journal.is_closing()
    }
}

/// The limit of answers in the configuration of a server, in the message about an answer that exceeds it.
pub(crate) const OWN_CAP: &str = "max_response_bytes of the server";

/// How it gets there.
pub(super) enum Route {
    /// To its callee.
    Loaded(Box<Loaded>),
    /// Nowhere: it has its answer in the journal.
    Recorded(RecordedCall),
}

/// A call of a session that is restored, or of a run that goes on.
pub(super) struct RecordedCall {
    /// Its server.
    pub(super) server: Arc<str>,
    pub(super) target: CallTarget,
    pub(super) policy: SharedPolicy,
    pub(super) account: Arc<RunAccount>,
    pub(super) call: OpenCall,
    /// The tool of the host that was called.
    pub(super) granted: Option<Arc<str>>,
}

/// The response to a call, on the account of its run until it is dropped. Its reader settles it; dropped before, the call
/// counts as cancelled.
pub struct CallResponse {
    payload: CallPayload,
    call: OpenCall,
    duration: Duration,
}

impl PreparedCall {
    /// The call in the ledger.
    pub fn tag(&self) -> CallTag {
        match &self.route {
            Route::Loaded(call) => call.call.tag(),
            Route::Recorded(call) => call.call.tag(),
        }
    }

    /// The tool of the host that is called, if it is one.
    pub(crate) fn granted(&self) -> Option<&Arc<str>> {
        match &self.route {
            Route::Loaded(call) => call.plan.callee.granted(),
            Route::Recorded(call) => call.granted.as_ref(),
        }
    }

    /// Sends it and waits for what comes back. Dropping the future cancels the call upstream.
    ///
    /// # Errors
    /// The upstream did not answer; the answer does not fit.
    pub async fn send(self) -> Result<CallResponse, CallError> {
        let loaded = match self.route {
            Route::Loaded(loaded) => loaded,
            // It has its answer in the journal: it is not made.
            Route::Recorded(RecordedCall { call, .. }) => {
                let message = "the call was not cleared".to_owned();
                return Err(refuse(call, WorldFault { reason: CallFault::Denied, message }).into());
            }
        };
        let (loaded, permitted) = loaded.cleared().await?;
        let loaded = loaded.departed().await?;
        match loaded.plan.callee.clone() {
            Callee::Server(upstream) => loaded.ask(upstream, permitted).await,
            Callee::Host(tool) => loaded.run(tool, permitted).await,
        }
    }

    /// The same call, which a person has to approve because it may have been made already.
    pub(crate) fn in_doubt(mut self) -> PreparedCall {
        if let Route::Loaded(call) = &mut self.route {
            call.is_in_doubt = true;
        }
        self
    }

    /// The same call, which its server has made this task of: the task is asked for in the place of another call.
    pub(crate) fn continued(mut self, task: &str) -> PreparedCall {
        if let Route::Loaded(call) = &mut self.route {
            call.task = Some(task.into());
        }
        self
    }

    /// True if the call may be made again although it may have been made.
    pub(crate) fn may_repeat(&self) -> bool {
        matches!(&self.route, Route::Loaded(call) if call.may_repeat())
    }
}

impl Loaded {
    /// The journal that it is in, with its number there.
    fn journal(&self) -> Option<(Arc<RunJournal>, u64)> {
        Some((self.plan.account.journal()?.clone(), self.seq?))
    }

    /// What is known and noted of the task that its server makes of it, if its run outlives this process.
    fn task_notes(&self) -> Option<JournaledTask> {
        let (journal, seq) = self.journal()?;
        let is_noted = matches!(self.plan.callee, Callee::Server(_)) && journal.outlives();
        is_noted.then(|| JournaledTask { journal, seq, known: self.task.clone() })
    }

    /// The call once the journal of its run lets it leave.
    async fn departed(self) -> Result<Loaded, CallError> {
        let Some((journal, seq)) = self.journal() else { return Ok(self) };
        if self.task_notes().is_some_and(|task| task.known.is_some()) {
            return Ok(self);
        }
        let is_read = self.is_read();
        match journal.leaves(seq, is_read, self.may_repeat()).await {
            Ok(()) => Ok(self),
            // A call that changes nothing needs no record.
            Err(_) if is_read => Ok(self),
            Err(error) => {
                let message = format!("it was not made, because the run cannot be stored: {error}");
                Err(refuse(self.call, WorldFault { reason: CallFault::StateUnavailable, message }).into())
            }
        }
    }

    /// Most bytes of its result in memory.
    pub(super) fn max_bytes(&self) -> usize {
        let most = self.plan.account.limits().max_upstream_response_bytes;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        self.plan.callee.limits().max_response_bytes.unwrap_or(most)
    }

    /// Asks its server.
    async fn ask(self, upstream: Arc<dyn Upstream>, permitted: Permitted) -> Result<CallResponse, CallError> {
        let (max_bytes, tasks) = (self.max_bytes(), self.task_notes());
        let decided = Arc::new(DecidedCall::new(&self));
        let Loaded { plan, tool, arguments, store, left, deadline, call, .. } = self;
        let CallPlan { broker, account, target, limit, .. } = plan;
        let repeat = Repeat::of(&target, &tool);
        let is_observed = matches!(target, CallTarget::Tool(_)) && !tool.declares_result();
        // Its server is asked for what has become of a task.
        let polls_on = tasks.as_ref().is_some_and(|task| task.known.is_some());
        let sink = ResultSink { max_bytes, store };
        let mut request = ServerRequest::new(permitted, target, arguments, left, sink);
        request.deadline = deadline;
        request.trace = account.trace().map(|trace| trace.for_call(call.tag().number()));
        request.client = account.client().cloned();
        request.progress = account.progress_listener().cloned();
        if !polls_on {
            request.recheck = Some(decided.clone());
        }
        request.tasks = tasks.map(|task| Arc::new(task) as Arc<dyn TaskNotes>);
        let CameBack { result, cached, keepable } =
            asked(&broker, &account, &upstream, request, repeat).await;
        let call = decided.sent(call)?;
        let result = match result {
            Ok(result) => result,
            // The server does not know the task any more.
            Err(UpstreamFault::Rpc(_) | UpstreamFault::Protocol(_)) if polls_on => {
                return Err(refuse(call, WorldFault::outcome_unknown()).into());
            }
            Err(fault) => {
                let own_cap = upstream.limits().max_response_bytes;
                return Err(unanswered(&broker, call, &fault, limit, own_cap));
            }
        };
        // Large results wait for their turn to be read, on the account of the run.
        let Some(waiting) = account.hold(result.answer().held_bytes()) else {
            return Err(over_memory(call, result.answer().bytes().len() as u64));
        };
        let payload = match CallPayload::is_quick(&result) {
            true => CallPayload::of(result, tool.wraps_result_in()),
            false => CallPayload::read(result, tool.wraps_result_in()).await,
        };
        drop(waiting);
        if cached {
            call.set_cached();
        }
        if payload.failure().is_none() {
            keepable.into_iter().for_each(Keepable::keep);
            if is_observed && !cached {
                broker.seen.note(upstream.name(), &tool, payload.bytes(), || payload.given());
            }
        }
        answered(&account, call, payload)
    }
}

/// What comes back from a server, which is asked again after a login.
async fn asked(
    broker: &ToolBroker,
    account: &Arc<RunAccount>,
    upstream: &Arc<dyn Upstream>,
    mut request: ServerRequest,
    repeat: Repeat,
) -> CameBack {
    let mut retry = LoginRetry::of_call(account, &broker.client, &request);
    loop {
        let back = match &broker.cache {
            Some(cache) => cache.ask(account, upstream, request, repeat).await,
            None => CameBack::upstream(upstream.call(request).await),
        };
        let Err(fault) = &back.result else { return back };
        match retry.after(fault, account, upstream).await {
            Some(again) => request = again,
            None => return back,
        }
    }
}

/// A call that came back, with its payload on the account of its run.
pub(super) fn answered(
    account: &Arc<RunAccount>,
    call: OpenCall,
    payload: CallPayload,
) -> Result<CallResponse, CallError> {
    let (bytes, duration) = (payload.bytes(), call.elapsed());
    match account.hold(payload.held_bytes()) {
        Some(held) => Ok(CallResponse { payload: payload.held(held), call, duration }),
        None => Err(over_memory(call, bytes)),
    }
}

/// Enters a call into the ledger whose result does not fit into the memory of its program.
fn over_memory(call: OpenCall, bytes: u64) -> CallError {
    let duration = call.elapsed();
    call.end(CallStatus::Ok, duration, Some(bytes));
    CallError::OverMemory { bytes }
}

/// Enters a call without answer into the ledger. Returns the error for its caller. `own_cap`: the most bytes of an answer
/// that the configuration of the server sets.
pub(super) fn unanswered(
    broker: &ToolBroker,
    call: OpenCall,
    fault: &UpstreamFault,
    limit: TimeLimit,
    own_cap: Option<usize>,
) -> CallError {
    let (bytes, fault) = match fault {
        UpstreamFault::TooLarge { bytes, cap } if own_cap.is_some_and(|own| own as u64 == *cap) => {
            let message = format!("response {bytes} bytes exceeds {OWN_CAP} ({cap})");
            (Some(*bytes), WorldFault { reason: fault.reason(), message })
        }
        UpstreamFault::TooLarge { bytes, .. } => (Some(*bytes), broker.upstream_fault(fault, limit)),
        fault => (None, broker.upstream_fault(fault, limit)),
    };
    let status = CallStatus::Error { reason: fault.reason, error: fault.message.clone() };
    let duration = call.elapsed();
    call.end(status, duration, bytes);
    fault.into()
}

impl CallResponse {
    /// What it holds.
    pub fn payload(&self) -> &CallPayload {
        &self.payload
    }

    /// Enters the call into the ledger as failed, if a reader says so, or as what it is.
    pub fn settle(self, failure: Option<WorldFault>) -> CallPayload {
        let CallResponse { payload, call, duration } = self;
        let status = match failure {
            None => CallStatus::Ok,
            Some(WorldFault { reason, message }) => CallStatus::Error { reason, error: message },
        };
        call.end(status, duration, Some(payload.bytes()));
        payload
    }

    /// [`CallResponse::settle`] for a reader who takes it as it is.
    pub fn settled(self) -> CallPayload {
        let failure = self.payload.failure();
        let failure = failure.map(|(reason, error)| WorldFault { reason, message: error.to_owned() });
        self.settle(failure)
    }
}
