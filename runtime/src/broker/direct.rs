//! A call of a function in this process: nothing is between it and its caller, so it has no task, no timer and no trait of
//! its own. Whoever drives it polls it, and ends it when its time is over.

use super::send::{answered, unanswered};
use super::{CallError, CallPayload, CallResponse, ToolBroker};
use crate::host::{Answering, GrantedTool};
use crate::run::account::{CallTag, RunAccount};
use crate::run::ledger::OpenCall;
use crate::run::outgoing::Arguments;
use crate::upstream::{CallResult, RawAnswer, UpstreamFault};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// A call of a tool of the host that is paid for and encoded. Dropped before its end, it counts as cancelled.
pub(crate) struct DirectCall {
    pub(super) broker: Arc<ToolBroker>,
    pub(super) account: Arc<RunAccount>,
    pub(super) tool: Arc<GrantedTool>,
    /// Wall clock of the whole call.
    pub(super) whole: Duration,
    /// When that is over.
    pub(super) until: Instant,
    pub(super) max_bytes: usize,
    pub(super) stage: DirectStage,
    pub(super) tag: CallTag,
    /// Its place in the ledger, until it has ended.
    pub(super) call: Option<OpenCall>,
}

/// How far it is.
pub(super) enum DirectStage {
    /// The function has not been called.
    Encoded(Arguments),
    Called(Answering),
    Over,
}

impl DirectCall {
    /// The call in the ledger.
    pub(crate) fn tag(&self) -> CallTag {
        self.tag
    }

    /// Name of the tool.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.tool.listing().name
    }

    /// When its time is over.
    pub(crate) fn until(&self) -> Instant {
        self.until
    }

    /// All of it, for whoever has a task of its own.
    pub(super) async fn run(mut self) -> Result<CallResponse, CallError> {
        match tokio::time::timeout_at(self.until.into(), std::future::poll_fn(|cx| self.poll(cx))).await {
            Ok(ended) => ended,
            Err(_) => self.time_out(),
        }
    }

    /// Goes on with it. What panics in the function is a failure of this call, and of nothing else.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<CallResponse, CallError>> {
        if let DirectStage::Encoded(arguments) = &self.stage {
            match catch_unwind(AssertUnwindSafe(|| self.tool.function()(arguments.as_str()))) {
                // The arguments are off the account of their program from here on.
                Ok(work) => self.stage = DirectStage::Called(work),
                Err(_) => return Poll::Ready(self.panicked()),
            }
        }
        let DirectStage::Called(work) = &mut self.stage else { return Poll::Pending };
        match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(answer)) => Poll::Ready(self.end(Ok(answer))),
            Err(_) => Poll::Ready(self.panicked()),
        }
    }

    /// Ends it: its time is over.
    pub(crate) fn time_out(&mut self) -> Result<CallResponse, CallError> {
        self.end(Err(UpstreamFault::Timeout(self.whole)))
    }

    fn panicked(&mut self) -> Result<CallResponse, CallError> {
        self.end(Ok(Err("it panicked".to_owned())))
    }

    fn end(
        &mut self,
        ended: Result<Result<Vec<u8>, String>, UpstreamFault>,
    ) -> Result<CallResponse, CallError> {
        let stage = std::mem::replace(&mut self.stage, DirectStage::Over);
        // The work of an application is dropped here, and may panic at that.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(stage)));
        let Some(call) = self.call.take() else {
            return Err(self.broker.upstream_fault(&UpstreamFault::Timeout(self.whole), self.whole).into());
        };
        let result = match ended {
            Ok(Ok(json)) if json.len() > self.max_bytes => {
                Err(UpstreamFault::TooLarge { bytes: json.len() as u64, cap: self.max_bytes as u64 })
            }
            Ok(Ok(json)) => Ok(CallResult::Json(RawAnswer::from_bytes(json))),
            Ok(Err(message)) => Ok(CallResult::Failed { message, body: RawAnswer::from_bytes(Vec::new()) }),
            Err(fault) => Err(fault),
        };
        match result {
            Ok(result) => answered(&self.account, call, CallPayload::of(result, None)),
            Err(fault) => Err(unanswered(&self.broker, call, &fault, self.whole)),
        }
    }
}
