//! Sends requests to one server, each with a deadline.

use super::dialect::Dialect;
use crate::upstream::jsonrpc::RawAnswer;
use crate::upstream::transport::{
    Mirrored, Peer, PeerEvents, PeerRequest, RequestEra, RequestFault, RequestParams,
};
use crate::upstream::{CallRequest, UpstreamFault};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Replaces deadlines beyond the range of the clock.
const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// Sends requests to one server.
pub(super) struct RpcClient {
    peer: Arc<dyn Peer>,
    events: Arc<PeerEvents>,
}

impl RpcClient {
    pub(super) fn new(peer: Arc<dyn Peer>, events: Arc<PeerEvents>) -> RpcClient {
        RpcClient { peer, events }
    }

    /// Sends a request of the client itself, with this timeout.
    pub(super) async fn ask(
        &self,
        method: &'static str,
        params: &str,
        era: RequestEra<'_>,
        max_bytes: usize,
        patience: Duration,
    ) -> Result<RawAnswer, RequestFault> {
        let deadline = deadline(Instant::now(), patience);
        let is_cancellable = era != RequestEra::Opening;
        let params = RequestParams::Own(params);
        let request =
            PeerRequest { method, params, era, max_bytes, overflow: None, deadline, is_cancellable };
        let answer = timeout_at(deadline, self.peer.request(request)).await;
        answer.unwrap_or(Err(RequestFault::Upstream(UpstreamFault::Timeout(patience))))
    }

    /// Sends a call of a tool, a resource or a prompt; the time of the call began at `begun`.
    pub(super) async fn call(
        &self,
        dialect: &Dialect,
        request: CallRequest,
        mirrored: Vec<Mirrored>,
        begun: Instant,
    ) -> Result<RawAnswer, RequestFault> {
        let CallRequest { target, arguments, timeout, sink, trace, client: _ } = request;
        let (max_bytes, overflow) = sink.parts();
        let (head, tail) = dialect.call(&target, trace.as_ref());
        let deadline = deadline(begun, timeout);
        let request = PeerRequest {
            method: target.method(),
            params: RequestParams::Call { subject: target.subject(), head, arguments, tail, mirrored, trace },
            era: dialect.era(),
            max_bytes,
            overflow,
            deadline,
            is_cancellable: true,
        };
        let answer = timeout_at(deadline, self.peer.request(request)).await;
        answer.unwrap_or(Err(RequestFault::Upstream(UpstreamFault::Timeout(timeout))))
    }

    /// Sends a notification.
    pub(super) fn notify(&self, method: &'static str, era: RequestEra<'_>) {
        self.peer.notify(method, era);
    }

    /// Whether the transport also sends some arguments outside the text of a call.
    pub(super) fn mirrors_arguments(&self) -> bool {
        self.peer.mirrors_arguments()
    }

    /// Notifications of the server.
    pub(super) fn events(&self) -> &PeerEvents {
        &self.events
    }
}

fn deadline(begun: Instant, after: Duration) -> Instant {
    begun.checked_add(after).unwrap_or_else(|| begun + FAR)
}
