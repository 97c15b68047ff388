//! From encoded arguments to the answer.

use super::{CallError, CallPayload, ToolBroker};
use crate::run::account::{CallTag, RunAccount};
use crate::run::ledger::OpenCall;
use crate::run::outcome::{CallFault, CallStatus};
use crate::tools::CallTarget;
use crate::upstream::{CallRequest, Upstream, UpstreamFault};
use std::sync::Arc;
use std::time::Duration;

/// A call that is ready to be sent.
pub struct Parcel {
    pub(super) broker: Arc<ToolBroker>,
    pub(super) account: Arc<RunAccount>,
    pub(super) upstream: Arc<dyn Upstream>,
    /// Wall clock of the whole call, of which the request has the rest.
    pub(super) whole: Duration,
    pub(super) request: CallRequest,
    /// The member that the tool wraps its results in.
    pub(super) wrapped_in: Option<&'static str>,
    /// It says what it gives, or nobody asks what it gave last.
    pub(super) declares_result: bool,
    /// It is for a tool of the host.
    pub(super) is_host: bool,
    pub(super) call: OpenCall,
}

/// What came back of a call, on the account of its run until it is dropped. Whoever reads it says what it was;
/// dropped before, the call counts as cancelled.
pub struct CallResponse {
    payload: CallPayload,
    call: OpenCall,
    duration: Duration,
}

impl Parcel {
    /// The call in the ledger.
    pub fn tag(&self) -> CallTag {
        self.call.tag()
    }

    /// The tool of the host that it is for.
    pub(crate) fn granted(&self) -> Option<Arc<str>> {
        self.is_host.then(|| self.request.target.shared_label())
    }

    /// Sends it and waits for what comes back. Dropping the future cancels the call upstream.
    ///
    /// # Errors
    /// The upstream did not answer; the answer does not fit.
    pub async fn send(self) -> Result<CallResponse, CallError> {
        let Parcel {
            broker,
            account,
            upstream,
            whole,
            request,
            wrapped_in,
            declares_result,
            is_host: _,
            call,
        } = self;
        let target = (!declares_result).then(|| request.target.clone());
        let result = match upstream.call(request).await {
            Ok(result) => result,
            Err(fault) => {
                let bytes = match fault {
                    UpstreamFault::TooLarge { bytes, .. } => Some(bytes),
                    _ => None,
                };
                let fault = broker.upstream_fault(&fault, whole);
                let status = CallStatus::Error { reason: fault.reason, error: fault.message.clone() };
                let duration = call.elapsed();
                call.end(status, duration, bytes);
                return Err(fault.into());
            }
        };
        let payload = CallPayload::read(result, wrapped_in).await;
        if let Some(CallTarget::Tool(tool)) = &target
            && payload.failure().is_none()
        {
            let (bytes, server) = (usize::try_from(payload.bytes()).unwrap_or(usize::MAX), upstream.name());
            broker.seen.note(server, tool, bytes, || payload.as_json());
        }
        let (bytes, duration) = (payload.bytes(), call.elapsed());
        match account.hold(payload.held_bytes()) {
            Some(held) => Ok(CallResponse { payload: payload.held(held), call, duration }),
            None => {
                call.end(CallStatus::Ok, duration, Some(bytes));
                Err(CallError::OverMemory { bytes })
            }
        }
    }
}

impl CallResponse {
    /// What it holds.
    pub fn payload(&self) -> &CallPayload {
        &self.payload
    }

    /// Enters the call into the ledger as failed, if a reader says so, or as what it is.
    pub fn settle(self, failure: Option<(CallFault, String)>) -> CallPayload {
        let CallResponse { payload, call, duration } = self;
        let status = match failure {
            None => CallStatus::Ok,
            Some((reason, error)) => CallStatus::Error { reason, error },
        };
        call.end(status, duration, Some(payload.bytes()));
        payload
    }

    /// [`CallResponse::settle`] for a reader who takes it as it is.
    pub fn settled(self) -> CallPayload {
        let failure = self.payload.failure().map(|(reason, error)| (reason, error.to_owned()));
        self.settle(failure)
    }
}
