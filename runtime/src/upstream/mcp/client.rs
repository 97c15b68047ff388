//! Requests to one peer: each has its deadline, and what becomes of calls is remembered.

use super::dialect::Dialect;
use crate::upstream::jsonrpc::RawAnswer;
use crate::upstream::transport::{Era, Params, Peer, PeerEvents, PeerRequest, RequestFault};
use crate::upstream::{CallRequest, ResultSink, UpstreamFault};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// For deadlines beyond what the clock can tell.
const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// Asks one peer.
pub(in crate::upstream) struct RpcClient {
    peer: Arc<dyn Peer>,
    events: Arc<PeerEvents>,
    /// A `tools/call` got an answer.
    answered: AtomicBool,
    /// A `tools/call` was given up without an answer.
    call_lost: Notify,
}

impl RpcClient {
    pub(in crate::upstream) fn new(peer: Arc<dyn Peer>, events: Arc<PeerEvents>) -> RpcClient {
        RpcClient { peer, events, answered: AtomicBool::new(false), call_lost: Notify::new() }
    }

    /// Asks a question of our own, and waits so long.
    pub(super) async fn ask(
        &self,
        method: &'static str,
        params: &str,
        era: Era<'_>,
        max_bytes: usize,
        patience: Duration,
    ) -> Result<RawAnswer, RequestFault> {
        let deadline = deadline(Instant::now(), patience);
        let is_cancellable = era != Era::Opening;
        let params = Params::Own(params);
        let request = PeerRequest { method, params, era, max_bytes, deadline, is_cancellable };
        let answer = timeout_at(deadline, self.peer.request(request)).await;
        answer.unwrap_or(Err(RequestFault::Upstream(UpstreamFault::Timeout(patience))))
    }

    /// Calls a tool; the time of the call began at `begun`.
    pub(super) async fn call(
        &self,
        dialect: &Dialect,
        request: CallRequest,
        begun: Instant,
    ) -> Result<RawAnswer, RequestFault> {
        let CallRequest { tool, arguments, timeout, sink: ResultSink::Inline { max_bytes } } = request;
        let (head, tail) = dialect.call(&tool);
        let deadline = deadline(begun, timeout);
        let request = PeerRequest {
            method: "tools/call",
            params: Params::Call { tool: &tool, head, arguments, tail },
            era: dialect.era(),
            max_bytes,
            deadline,
            is_cancellable: true,
        };
        let mut lost = LostCall { client: Some(self) };
        let answer = timeout_at(deadline, self.peer.request(request)).await;
        let answer = answer.unwrap_or(Err(RequestFault::Upstream(UpstreamFault::Timeout(timeout))));
        match &answer {
            Err(RequestFault::Upstream(UpstreamFault::Timeout(_))) => {}
            Err(RequestFault::Upstream(UpstreamFault::Unavailable(_))) => lost.client = None,
            _ => {
                lost.client = None;
                self.answered.store(true, Ordering::Relaxed);
            }
        }
        answer
    }

    /// Sends a notification.
    pub(super) fn notify(&self, method: &'static str, era: Era<'_>) {
        self.peer.notify(method, era);
    }

    /// What the server says unasked.
    pub(in crate::upstream) fn events(&self) -> &PeerEvents {
        &self.events
    }

    /// Waits until a `tools/call` runs into its deadline or is dropped.
    pub(in crate::upstream) async fn call_lost(&self) {
        self.call_lost.notified().await;
    }

    /// True when some `tools/call` was answered.
    pub(in crate::upstream) fn has_answered(&self) -> bool {
        self.answered.load(Ordering::Relaxed)
    }
}

fn deadline(begun: Instant, after: Duration) -> Instant {
    begun.checked_add(after).unwrap_or_else(|| begun + FAR)
}

/// Says that a call was lost, unless it was answered before.
struct LostCall<'a> {
    client: Option<&'a RpcClient>,
}

impl Drop for LostCall<'_> {
    fn drop(&mut self) {
        if let Some(client) = self.client {
            client.call_lost.notify_one();
        }
    }
}
