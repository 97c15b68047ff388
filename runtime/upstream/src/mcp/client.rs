//! Sends a request to an MCP server, such as the handshake, a list of tools or the state of a task, and waits for the
//! answer until a deadline. Tool calls are sent elsewhere.

use crate::request::{Envelope, Era};
use crate::transport::{Connection, ServerEvents};
use crate::{RawAnswer, ResultSink, ServerRequest, UpstreamFault};
use ptc_calls::policy::Permitted;
use ptc_calls::run::trace::TraceContext;
use ptc_calls::tools::CallTarget;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout_at;

/// Asks one connection. Clones share it.
#[derive(Clone)]
pub(super) struct RpcClient {
    pub(super) connection: Arc<dyn Connection>,
    /// Notifications of the server.
    pub(super) events: Arc<ServerEvents>,
}

/// A question, as its dialect speaks it.
pub(super) struct Question<'a> {
    pub(super) target: CallTarget,
    /// JSON text.
    pub(super) params: String,
    pub(super) era: Era,
    pub(super) max_bytes: usize,
    pub(super) trace: Option<&'a TraceContext>,
}

impl RpcClient {
    /// Asks, and waits for at most `patience`.
    pub(super) async fn ask(
        &self,
        question: Question<'_>,
        patience: Duration,
    ) -> Result<RawAnswer, UpstreamFault> {
        let Question { target, params, era, max_bytes, trace } = question;
        let sink = ResultSink { max_bytes, store: None };
        let mut request =
            ServerRequest::new(Permitted::by_caller(), target, String::new().into(), patience, sink);
        request.envelope = Envelope { head: params, era, ..Envelope::default() };
        request.trace = trace.cloned();
        match timeout_at(request.deadline, self.connection.call(request)).await {
            Ok(answered) => answered.map(|result| result.into_answer()),
            Err(_) => Err(UpstreamFault::Timeout(patience)),
        }
    }
}
