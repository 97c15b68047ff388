//! Calls tools that the embedding application implements as functions in its own process, without a server.

use super::send::{answered, unanswered};
use super::time::TimeLimit;
use super::{CallError, CallPayload, CallResponse, ToolBroker};
use ptc_base::panics::contained;
use ptc_calls::host::GrantedTool;
use ptc_calls::policy::Permitted;
use ptc_calls::run::account::{CallTag, RunAccount};
use ptc_calls::run::ledger::OpenCall;
use ptc_calls::run::outgoing::Arguments;
use ptc_upstream::{CallResult, RawAnswer, UpstreamFault};
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};

/// A call of a tool of the host that is paid for and encoded. Dropped before its end, it counts as cancelled.
pub(super) struct DirectCall {
    pub(super) broker: Arc<ToolBroker>,
    pub(super) account: Arc<RunAccount>,
    pub(super) tool: Arc<GrantedTool>,
    pub(super) arguments: Arguments,
    /// Time limit of the whole call.
    pub(super) limit: TimeLimit,
    /// When that is over.
    pub(super) deadline: Instant,
    pub(super) max_bytes: usize,
    /// Its place in the ledger.
    pub(super) call: OpenCall,
    /// The right to be made.
    pub(super) permitted: Permitted,
}

impl DirectCall {
    /// The call in the ledger.
    pub(super) fn tag(&self) -> CallTag {
        self.call.tag()
    }

    /// Name of the tool.
    pub(super) fn tool(&self) -> &Arc<str> {
        &self.tool.listing().name
    }

    /// Calls the function and waits for its result. A panic in the function is a failure of this call only.
    pub(super) async fn send(self) -> Result<CallResponse, CallError> {
        let DirectCall { broker, account, tool, arguments, limit, deadline, max_bytes, call, permitted } =
            self;
        let work = contained(Box::pin(async move {
            let answer = tool.function(&permitted)(arguments.as_str());
            // The arguments are off the account of their program from here on.
            drop(arguments);
            answer.await
        }));
        let failed = |message| Ok(CallResult::Failed { message, body: RawAnswer::from_bytes(Vec::new()) });
        let result = match timeout_at(deadline, work).await {
            Err(_) => Err(UpstreamFault::Timeout(limit.whole)),
            Ok(Err(_)) => failed("it panicked".to_owned()),
            Ok(Ok(Err(message))) => failed(message),
            Ok(Ok(Ok(json))) if json.len() > max_bytes => {
                Err(UpstreamFault::TooLarge { bytes: json.len() as u64, cap: max_bytes as u64 })
            }
            Ok(Ok(Ok(json))) => Ok(CallResult::Json(RawAnswer::from_bytes(json))),
        };
        match result {
            Ok(result) => answered(&account, call, CallPayload::of(result, None)),
            Err(fault) => Err(unanswered(&broker, call, &fault, limit, None)),
        }
    }
}
