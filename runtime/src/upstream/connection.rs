//! One JSON-RPC connection: many requests in flight, matched by id, each with its own cap and deadline.
//!
//! The connection works over any [`FrameSource`] and [`FrameSink`]; stdio pipes are one pair. What is on its way
//! out stands in the [`Outbox`].

use super::UpstreamFault;
use super::frames::{FrameSource, Frames, Received};
use super::outbox::{Batch, Frame, Outbox};
use super::pace::Pace;
use super::rpc_error::RpcError;
use super::throttle::Throttle;
use super::wire::{self, Incoming, OversizeKind, RawAnswer};
use crate::run::outgoing::Arguments;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, timeout_at};

/// Lines up to this size are read even when no call is in flight.
const LINE_FLOOR: usize = 1 << 20;

/// Requests without an answer that are remembered after their callers have gone.
const ABANDONED: usize = 1_024;

/// Notifications after which the tool list may be another one.
const CHANGES: [&str; 2] = ["notifications/tools/list_changed", "notifications/subscriptions/acknowledged"];

/// Where frames go to.
#[async_trait::async_trait]
pub(super) trait FrameSink: Send {
    /// Sends whole frames, given in parts.
    async fn send(&mut self, parts: &[&[u8]]) -> std::io::Result<()>;
}

/// Frames into a byte stream.
pub(super) struct StreamSink<W>(pub(super) W);

#[async_trait::async_trait]
impl<W: AsyncWrite + Unpin + Send> FrameSink for StreamSink<W> {
    async fn send(&mut self, parts: &[&[u8]]) -> std::io::Result<()> {
        for part in parts {
            self.0.write_all(part).await?;
        }
        self.0.flush().await
    }
}

/// A handle on the connection. Clones share it.
#[derive(Clone)]
pub(super) struct Connection {
    shared: Arc<Shared>,
}

struct Shared {
    name: Arc<str>,
    outbox: Outbox,
    pending: Mutex<Pending>,
    /// Most bytes of an incoming line: the largest cap in flight, at least the floor.
    line_cap: AtomicUsize,
    next_id: AtomicU64,
    /// A `tools/call` got an answer on this connection.
    answered: AtomicBool,
    tools_changed: Notify,
    /// Some frame has come.
    heard: AtomicBool,
    /// Answers to requests of ours, each counted once: only these show that the server works. Whatever it says
    /// unasked may come from a part of it that hears nothing.
    signs_of_life: AtomicU64,
    /// A `tools/call` was given up without an answer.
    call_lost: Notify,
}

struct Pending {
    calls: HashMap<u64, Waiting>,
    /// How many calls in flight have which cap.
    caps: BTreeMap<usize, usize>,
    /// Requests that were sent and given up; the latest of them.
    abandoned: BTreeSet<u64>,
    closed: Option<String>,
}

struct Waiting {
    cap: usize,
    reply: oneshot::Sender<Result<RawAnswer, RequestFault>>,
}

/// One outgoing request.
pub(super) struct Request<'a> {
    pub(super) method: &'static str,
    pub(super) params: Params<'a>,
    pub(super) cap: usize,
    pub(super) timeout: Duration,
}

/// The parameters of a request: JSON text.
pub(super) enum Params<'a> {
    /// Of a question of our own: a few bytes, which need no room.
    Own(&'a str),
    /// Of a call of a program, in three parts.
    Call { head: String, arguments: Arguments, tail: String },
}

/// Why a request has no result.
#[derive(Debug)]
pub(super) enum RequestFault {
    /// The server answered with an error.
    Rpc(RpcError),
    /// There is no answer.
    Upstream(UpstreamFault),
}

impl From<RequestFault> for UpstreamFault {
    fn from(fault: RequestFault) -> UpstreamFault {
        match fault {
            RequestFault::Rpc(error) => UpstreamFault::Protocol(error.message),
            RequestFault::Upstream(fault) => fault,
        }
    }
}

impl Connection {
    /// A connection whose caller runs [`Connection::read`] and [`Connection::write`].
    pub(super) fn new(name: Arc<str>) -> Connection {
        let pending = Pending {
            calls: HashMap::new(),
            caps: BTreeMap::new(),
            abandoned: BTreeSet::new(),
            closed: None,
        };
        Connection {
            shared: Arc::new(Shared {
                name,
                outbox: Outbox::new(),
                pending: Mutex::new(pending),
                line_cap: AtomicUsize::new(LINE_FLOOR),
                next_id: AtomicU64::new(1),
                answered: AtomicBool::new(false),
                tools_changed: Notify::new(),
                heard: AtomicBool::new(false),
                signs_of_life: AtomicU64::new(0),
                call_lost: Notify::new(),
            }),
        }
    }

    /// Writes what is in the outbox until the connection is closed or the peer has gone; the sink is dropped
    /// then, which closes the server's stdin.
    pub(super) async fn write(&self, mut sink: impl FrameSink) {
        while let Some(batch) = self.shared.outbox.next().await {
            let sent = match &batch {
                Batch::Small(frames) => sink.send(&[frames]).await,
                Batch::Large { frame, .. } => sink.send(&frame.parts()).await,
            };
            if sent.is_err() {
                return;
            }
        }
    }

    /// Reads frames until the stream ends.
    pub(super) async fn read(&self, source: impl FrameSource) {
        let mut frames = Frames::new(source);
        let (mut log, mut pace) = (Throttle::default(), Pace::new());
        loop {
            let (asked, bytes) = match frames.next(&self.shared.line_cap).await {
                Ok(Some(Received::Frame(incoming, bytes))) => {
                    (self.dispatch(incoming, bytes, &mut log), bytes as u64)
                }
                Ok(Some(Received::Oversize(kind, bytes))) => (self.refuse(&kind, bytes, &mut log), bytes),
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(upstream = %self.shared.name, %error, "reading failed");
                    return;
                }
            };
            if !asked {
                pace.unasked(bytes).await;
            }
        }
    }

    /// Deals with a frame; false when nobody has asked for it.
    fn dispatch(&self, incoming: Incoming, bytes: usize, log: &mut Throttle) -> bool {
        let upstream = &*self.shared.name;
        if !matches!(incoming, Incoming::Noise) {
            self.shared.heard.store(true, Ordering::Relaxed);
        }
        match incoming {
            Incoming::Response { id, body } => {
                return self.shared.answer(id, |waiting| match bytes > waiting.cap {
                    true => Err(too_large(bytes as u64, waiting.cap)),
                    false => body.map_err(RequestFault::Rpc),
                });
            }
            Incoming::Broken { ids, why } => {
                log.warn(upstream, bytes, &why);
                let ids = if ids.is_empty() { self.shared.only_call().into_iter().collect() } else { ids };
                let fault = || Err(RequestFault::Rpc(RpcError::about(why.clone())));
                let asked = ids.into_iter().filter(|id| self.shared.answer(*id, |_| fault()));
                return asked.count() > 0;
            }
            Incoming::Batch(frames) => {
                let asked =
                    frames.into_iter().filter_map(|frame| self.dispatch(frame, bytes, log).then_some(()));
                return asked.count() > 0;
            }
            Incoming::Request { id, method } => {
                tracing::debug!(upstream, method, "request from the server");
                if !self.shared.outbox.reply(wire::reply(&id, &method)) {
                    log.warn(upstream, bytes, "no answer: the server does not read those it has got");
                }
            }
            // What changed before a subscription began is not told again, so its beginning counts as a change.
            Incoming::Notification { method } if CHANGES.contains(&method.as_str()) => {
                self.shared.tools_changed.notify_one();
            }
            Incoming::Notification { method } => tracing::debug!(upstream, method, "notification ignored"),
            Incoming::Noise | Incoming::Open(_) => {
                log.warn(upstream, bytes, "ignored a stdout line that is not JSON-RPC");
            }
        }
        false
    }

    /// Fails the call an over-long line belongs to; false when there is none.
    fn refuse(&self, kind: &OversizeKind, bytes: u64, log: &mut Throttle) -> bool {
        let id = match kind {
            OversizeKind::Response(id) => Some(*id),
            OversizeKind::Other => None,
            OversizeKind::Unknown => self.shared.only_call(),
        };
        let found = id.is_some_and(|id| self.shared.answer(id, |waiting| Err(too_large(bytes, waiting.cap))));
        if !found {
            log.warn(
                &self.shared.name,
                usize::try_from(bytes).unwrap_or(usize::MAX),
                "dropped an over-long line",
            );
        }
        found
    }

    /// Sends a request and waits. Dropping the future, or running into the deadline, cancels upstream, or takes
    /// the request back if it was not written yet.
    pub(super) async fn request(&self, request: Request<'_>) -> Result<RawAnswer, RequestFault> {
        let Request { method, params, cap, timeout } = request;
        let deadline = Instant::now() + timeout;
        let mut guard = CallGuard {
            shared: &self.shared,
            id: None,
            is_call: matches!(params, Params::Call { .. }),
            announce: method != "initialize",
            reason: "cancelled",
        };
        let answered = timeout_at(deadline, self.exchange(method, params, cap, &mut guard)).await;
        match answered {
            Ok(answer) => {
                if guard.is_call
                    && !matches!(answer, Err(RequestFault::Upstream(UpstreamFault::Unavailable(_))))
                {
                    self.shared.answered.store(true, Ordering::Relaxed);
                }
                guard.is_call = false;
                guard.id = None;
                answer
            }
            Err(_) => {
                guard.reason = "timeout";
                Err(RequestFault::Upstream(UpstreamFault::Timeout(timeout)))
            }
        }
    }

    async fn exchange(
        &self,
        method: &'static str,
        params: Params<'_>,
        cap: usize,
        guard: &mut CallGuard<'_>,
    ) -> Result<RawAnswer, RequestFault> {
        let shared = &self.shared;
        let id = shared.next_id.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        let waiting = Waiting { cap, reply };
        match params {
            Params::Own(params) => {
                shared.enter(id, waiting)?;
                guard.id = Some(id);
                shared.outbox.own(wire::request(id, method, params));
            }
            Params::Call { head, arguments, tail } => {
                let (head, tail) = wire::around(id, method, &head, &tail);
                let frame = Frame { head, arguments, tail };
                let Some(room) = shared.outbox.room(frame.len()).await else {
                    return Err(shared.close_fault());
                };
                shared.enter(id, waiting)?;
                guard.id = Some(id);
                shared.outbox.call(id, frame, room);
            }
        }
        answer.await.unwrap_or_else(|_| Err(shared.close_fault()))
    }

    /// Configured name of the server.
    pub(super) fn name(&self) -> &str {
        &self.shared.name
    }

    /// Sends a notification.
    pub(super) fn notify(&self, method: &str) {
        self.shared.outbox.own(wire::notification(method, None));
    }

    /// Waits for `notifications/tools/list_changed`.
    pub(super) async fn tools_changed(&self) {
        self.shared.tools_changed.notified().await;
    }

    /// Waits until a `tools/call` runs into its deadline or is dropped.
    pub(super) async fn call_lost(&self) {
        self.shared.call_lost.notified().await;
    }

    /// True when some frame has come from the server.
    pub(super) fn has_spoken(&self) -> bool {
        self.shared.heard.load(Ordering::Relaxed)
    }

    /// How many requests of ours the server has answered.
    pub(super) fn signs_of_life(&self) -> u64 {
        self.shared.signs_of_life.load(Ordering::Relaxed)
    }

    /// True when some `tools/call` was answered.
    pub(super) fn answered(&self) -> bool {
        self.shared.answered.load(Ordering::Relaxed)
    }

    /// Fails everything in flight and every later request. The writer ends once small frames are written, which
    /// closes the server's stdin.
    pub(super) fn close(&self, reason: &str) {
        let calls = {
            let mut pending = self.shared.lock();
            pending.closed.get_or_insert_with(|| reason.to_owned());
            pending.caps.clear();
            std::mem::take(&mut pending.calls)
        };
        self.shared.outbox.close();
        for (_, waiting) in calls {
            let _ = waiting.reply.send(Err(self.shared.close_fault()));
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close_fault(&self) -> RequestFault {
        let reason = self.lock().closed.clone().unwrap_or_else(|| "connection closed".to_owned());
        RequestFault::Upstream(UpstreamFault::Unavailable(reason))
    }

    /// Gives an answer to whoever waits for it; false when nobody ever did.
    fn answer(&self, id: u64, answer: impl FnOnce(&Waiting) -> Result<RawAnswer, RequestFault>) -> bool {
        let waiting = self.forget(id);
        if waiting.is_none() && !self.lock().abandoned.remove(&id) {
            return false;
        }
        self.signs_of_life.fetch_add(1, Ordering::Relaxed);
        match waiting {
            Some(waiting) => {
                let answer = answer(&waiting);
                // The caller may have given up in this instant.
                let _ = waiting.reply.send(answer);
            }
            None => tracing::debug!(upstream = %self.name, id, "late answer ignored"),
        }
        true
    }

    /// Remembers a request that was sent and given up.
    fn abandon(&self, id: u64) {
        let mut pending = self.lock();
        pending.abandoned.insert(id);
        if pending.abandoned.len() > ABANDONED {
            pending.abandoned.pop_first();
        }
    }

    fn enter(&self, id: u64, waiting: Waiting) -> Result<(), RequestFault> {
        let mut pending = self.lock();
        if pending.closed.is_some() {
            drop(pending);
            return Err(self.close_fault());
        }
        *pending.caps.entry(waiting.cap).or_default() += 1;
        pending.calls.insert(id, waiting);
        self.update_cap(&pending);
        Ok(())
    }

    fn forget(&self, id: u64) -> Option<Waiting> {
        let mut pending = self.lock();
        let waiting = pending.calls.remove(&id)?;
        if let Some(count) = pending.caps.get_mut(&waiting.cap) {
            *count -= 1;
            if *count == 0 {
                pending.caps.remove(&waiting.cap);
            }
        }
        self.update_cap(&pending);
        Some(waiting)
    }

    /// The request in flight, if there is exactly one.
    fn only_call(&self) -> Option<u64> {
        let pending = self.lock();
        let mut ids = pending.calls.keys();
        ids.next().copied().filter(|_| ids.next().is_none())
    }

    fn update_cap(&self, pending: &Pending) {
        let largest = pending.caps.last_key_value().map_or(0, |(&cap, _)| cap);
        self.line_cap.store(largest.max(LINE_FLOOR), Ordering::Relaxed);
    }
}

/// Takes a request out of flight whatever happens to its future.
struct CallGuard<'a> {
    shared: &'a Shared,
    /// Once it is in flight.
    id: Option<u64>,
    is_call: bool,
    announce: bool,
    reason: &'static str,
}

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        if self.is_call {
            self.shared.call_lost.notify_one();
        }
        let Some(id) = self.id else { return };
        if self.shared.forget(id).is_none() || self.shared.outbox.revoke(id) {
            return;
        }
        self.shared.abandon(id);
        if self.announce {
            let params = format!("{{\"requestId\":{id},\"reason\":\"{}\"}}", self.reason);
            // A server that reads nothing needs no notice.
            self.shared.outbox.reply(wire::notification("notifications/cancelled", Some(&params)));
        }
    }
}

fn too_large(bytes: u64, cap: usize) -> RequestFault {
    RequestFault::Upstream(UpstreamFault::TooLarge { bytes, cap: cap as u64 })
}
