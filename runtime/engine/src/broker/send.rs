//! Sends a prepared tool call, waits for the response, and records the outcome in the ledger, the list of a run's
//! calls.

use super::cache::{CameBack, Keepable, Repeat};
use super::direct::DirectCall;
use super::held::HeldCall;
use super::login::LoginRetry;
use super::reserve::refuse;
use super::time::TimeLimit;
use super::{CallError, CallPayload, ToolBroker, WorldFault};
use ptc_calls::journal::RunJournal;
use ptc_calls::policy::SharedPolicy;
use ptc_calls::run::account::{CallTag, RunAccount};
use ptc_calls::run::ledger::OpenCall;
use ptc_calls::run::outcome::{CallFault, CallStatus};
use ptc_calls::tools::{CallTarget, UpstreamTool};
use ptc_upstream::{ServerRequest, TaskNotes, Upstream, UpstreamFault};
use std::sync::Arc;
use std::time::Duration;

/// A call that is ready to be sent.
pub struct PreparedCall {
    pub(super) route: Route,
    /// What the journal of its run knows it by.
    pub(super) mark: Option<CallMark>,
    /// The task that its server has made of it in an earlier process.
    pub(super) task: Option<Arc<str>>,
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

/// A call in the journal of its run.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallMark {
    pub(super) seq: u64,
    /// It changes nothing.
    pub(super) is_read: bool,
    /// It may be made again.
    pub(super) may_repeat: bool,
}

/// The limit of answers in the configuration of a server, in the message about an answer that exceeds it.
pub(crate) const OWN_CAP: &str = "max_response_bytes of the server";

/// How it gets there.
pub(super) enum Route {
    Upstream(Box<UpstreamCall>),
    Direct(DirectCall),
    /// It is not cleared yet.
    Held(Box<HeldCall>),
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

/// A call of a server.
pub(super) struct UpstreamCall {
    pub(super) broker: Arc<ToolBroker>,
    pub(super) account: Arc<RunAccount>,
    pub(super) upstream: Arc<dyn Upstream>,
    /// Time limit of the whole call, of which the request has the rest.
    pub(super) limit: TimeLimit,
    pub(super) request: ServerRequest,
    /// The member that the tool wraps its results in.
    pub(super) wrapped_in: Option<&'static str>,
    /// The tool, if it has no output schema: the shapes of its results are learned.
    pub(super) observed: Option<Arc<UpstreamTool>>,
    /// What it means for cached results.
    pub(super) repeat: Repeat,
    /// It was made in an earlier process: its server is asked for what has become of it.
    pub(super) polls_on: bool,
    pub(super) call: OpenCall,
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
            Route::Upstream(call) => call.call.tag(),
            Route::Direct(call) => call.tag(),
            Route::Held(call) => call.tag(),
            Route::Recorded(call) => call.call.tag(),
        }
    }

    /// The tool of the host that is called, if it is one.
    pub(crate) fn granted(&self) -> Option<&Arc<str>> {
        match &self.route {
            Route::Upstream(_) => None,
            Route::Direct(call) => Some(call.tool()),
            Route::Held(call) => call.granted(),
            Route::Recorded(call) => call.granted.as_ref(),
        }
    }

    /// Sends it and waits for what comes back. Dropping the future cancels the call upstream.
    ///
    /// # Errors
    /// The upstream did not answer; the answer does not fit.
    pub async fn send(self) -> Result<CallResponse, CallError> {
        let PreparedCall { mut route, mark, task } = self;
        while let Route::Held(call) = route {
            route = call.cleared().await?;
        }
        if let Some(mark) = mark {
            route = journaled(route, mark, task).await?;
        }
        let made = match route {
            Route::Upstream(call) => *call,
            Route::Direct(call) => return call.send().await,
            // A call that is held was cleared above, and a recorded one has its answer: neither is made.
            route @ (Route::Held(_) | Route::Recorded(_)) => {
                let message = "the call was not cleared".to_owned();
                let fault = WorldFault { reason: CallFault::Denied, message };
                let (_, call) = PreparedCall { route, mark: None, task: None }.into_open();
                return Err(refuse(call, fault).into());
            }
        };
        let UpstreamCall { broker, account, upstream, limit, mut request, call, .. } = made;
        let mut retry = LoginRetry::of_call(&account, &broker.client, &request);
        let (result, cached, keepable) = loop {
            let CameBack { result, cached, keepable } = match &broker.cache {
                Some(cache) => cache.ask(&account, &upstream, request, made.repeat).await,
                None => CameBack::upstream(upstream.call(request).await),
            };
            match result {
                Ok(result) => break (result, cached, keepable),
                Err(fault) => match retry.after(&fault, &account, &upstream).await {
                    Some(again) => request = again,
                    // The server does not know the task any more.
                    None if made.polls_on
                        && matches!(fault, UpstreamFault::Rpc(_) | UpstreamFault::Protocol(_)) =>
                    {
                        return Err(refuse(call, WorldFault::outcome_unknown()).into());
                    }
                    None => {
                        let own_cap = upstream.limits().max_response_bytes;
                        return Err(unanswered(&broker, call, &fault, limit, own_cap));
                    }
                },
            }
        };
        // Large results wait for their turn to be read, on the account of the run.
        let Some(waiting) = account.hold(result.answer().held_bytes()) else {
            return Err(over_memory(call, result.answer().bytes().len() as u64));
        };
        let payload = match CallPayload::is_quick(&result) {
            true => CallPayload::of(result, made.wrapped_in),
            false => CallPayload::read(result, made.wrapped_in).await,
        };
        drop(waiting);
        if cached {
            call.set_cached();
        }
        if payload.failure().is_none() {
            keepable.into_iter().for_each(Keepable::keep);
            if let Some(tool) = made.observed.filter(|_| !cached) {
                broker.seen.note(upstream.name(), &tool, payload.bytes(), || payload.given());
            }
        }
        answered(&account, call, payload)
    }

    /// The same call, which a person has to approve because it may have been made already.
    pub(crate) fn in_doubt(self) -> PreparedCall {
        match self.route {
            Route::Held(call) => PreparedCall { route: Route::Held(Box::new(call.in_doubt())), ..self },
            route => PreparedCall { route, ..self },
        }
    }

    /// The same call, which its server has made this task of: the task is asked for in the place of another call.
    pub(crate) fn continued(self, task: &str) -> PreparedCall {
        let route = match self.route {
            Route::Held(call) => Route::Held(Box::new(call.made())),
            route => route,
        };
        PreparedCall { route, task: Some(task.into()), ..self }
    }

    /// True if the call may be made again although it may have been made.
    pub(crate) fn may_repeat(&self) -> bool {
        self.mark.is_some_and(|mark| mark.may_repeat)
    }
}

/// The same call once the journal of its run lets it leave.
async fn journaled(
    mut route: Route,
    CallMark { seq, is_read, may_repeat }: CallMark,
    known: Option<Arc<str>>,
) -> Result<Route, CallError> {
    let account = match &route {
        Route::Upstream(call) => &call.account,
        Route::Direct(call) => &call.account,
        Route::Held(_) | Route::Recorded(_) => return Ok(route),
    };
    let Some(journal) = account.journal().cloned() else { return Ok(route) };
    if let (Route::Upstream(call), true) = (&mut route, journal.outlives()) {
        let is_known = known.is_some();
        call.request.tasks = Some(Arc::new(JournaledTask { journal: journal.clone(), seq, known }));
        if is_known {
            call.polls_on = true;
            return Ok(route);
        }
    }
    match journal.leaves(seq, is_read, may_repeat).await {
        Ok(()) => Ok(route),
        // A call that changes nothing needs no record.
        Err(_) if is_read => Ok(route),
        Err(error) => {
            let message = format!("it was not made, because the run cannot be stored: {error}");
            let (_, call) = PreparedCall { route, mark: None, task: None }.into_open();
            Err(refuse(call, WorldFault { reason: CallFault::StateUnavailable, message }).into())
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
