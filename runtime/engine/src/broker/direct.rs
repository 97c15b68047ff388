//! Calls tools that the embedding application implements as functions in its own process, without a server.

use super::load::Loaded;
use super::reserve::CallPlan;
use super::send::{answered, unanswered};
use super::{CallError, CallPayload, CallResponse};
use ptc_base::panics::contained;
use ptc_calls::host::GrantedTool;
use ptc_calls::policy::Permitted;
use ptc_upstream::{CallResult, RawAnswer, UpstreamFault};
use std::sync::Arc;
use tokio::time::timeout_at;

impl Loaded {
    /// Calls the function of a tool of the host and waits for its result. A panic in the function is a failure of this call
    /// only.
    pub(super) async fn run(
        self,
        tool: Arc<GrantedTool>,
        permitted: Permitted,
    ) -> Result<CallResponse, CallError> {
        let max_bytes = self.max_bytes();
        let Loaded { plan, arguments, deadline, call, .. } = self;
        let CallPlan { broker, account, limit, .. } = plan;
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
