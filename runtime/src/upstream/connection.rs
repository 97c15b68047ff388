//! One JSON-RPC connection: many requests in flight, matched by id, each with its own cap and deadline.
//!
//! The connection works over any [`FrameSource`] and [`FrameSink`]; stdio pipes are one pair.

use super::UpstreamFault;
use super::line::{Line, LineReader};
use super::throttle::{Throttle, Verdict};
use super::wire::{self, Incoming, OversizeKind, RawAnswer, RpcError};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, mpsc, oneshot};

/// Lines up to this size are read even when no call is in flight.
const LINE_FLOOR: usize = 1 << 20;

/// Frames above this size are parsed off the I/O threads.
const PARSE_INLINE: usize = 256 * 1024;

/// Frames written together.
const WRITE_BATCH: usize = 64 * 1024;

/// JSON-RPC code of a method the server does not have.
const METHOD_NOT_FOUND: i64 = -32601;

/// Notifications after which the tool list may be another one.
const CHANGES: [&str; 2] = ["notifications/tools/list_changed", "notifications/subscriptions/acknowledged"];

/// The one text for [`METHOD_NOT_FOUND`], whatever the server calls it.
pub(super) const NO_SUCH_METHOD: &str = "Method not found";

/// Where frames come from.
#[async_trait::async_trait]
pub(super) trait FrameSource: Send {
    /// The next frame, or `None` at the end; `cap` bounds its bytes.
    async fn next(&mut self, cap: &AtomicUsize) -> std::io::Result<Option<Line>>;
}

/// Where frames go to.
#[async_trait::async_trait]
pub(super) trait FrameSink: Send {
    /// Sends whole frames.
    async fn send(&mut self, frames: &[u8]) -> std::io::Result<()>;
}

#[async_trait::async_trait]
impl<R: AsyncRead + Unpin + Send> FrameSource for LineReader<R> {
    async fn next(&mut self, cap: &AtomicUsize) -> std::io::Result<Option<Line>> {
        LineReader::next(self, || cap.load(Ordering::Relaxed)).await
    }
}

/// Frames into a byte stream.
pub(super) struct StreamSink<W>(pub(super) W);

#[async_trait::async_trait]
impl<W: AsyncWrite + Unpin + Send> FrameSink for StreamSink<W> {
    async fn send(&mut self, frames: &[u8]) -> std::io::Result<()> {
        self.0.write_all(frames).await?;
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
    pending: Mutex<Pending>,
    /// Most bytes of an incoming line: the largest cap in flight, at least the floor.
    line_cap: AtomicUsize,
    next_id: AtomicU64,
    /// A `tools/call` got an answer on this connection.
    answered: AtomicBool,
    tools_changed: Notify,
    /// Frames received: a server that sends anything is alive.
    frames: AtomicU64,
    /// A `tools/call` ran into its deadline.
    call_timed_out: Notify,
}

struct Pending {
    calls: HashMap<u64, Waiting>,
    /// How many calls in flight have which cap.
    caps: BTreeMap<usize, usize>,
    /// `None` once the writer must end: dropping it closes the server's stdin.
    outbox: Option<mpsc::UnboundedSender<Vec<u8>>>,
    closed: Option<String>,
}

struct Waiting {
    cap: usize,
    reply: oneshot::Sender<Result<RawAnswer, RequestFault>>,
}

/// One outgoing request.
pub(super) struct Request<'a> {
    pub(super) method: &'static str,
    /// JSON text.
    pub(super) params: &'a str,
    pub(super) cap: usize,
    pub(super) timeout: Duration,
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
            RequestFault::Rpc(error) => protocol_fault(error),
            RequestFault::Upstream(fault) => fault,
        }
    }
}

impl Connection {
    /// Starts the writer task; the caller runs [`Connection::read`].
    pub(super) fn open(name: Arc<str>, sink: impl FrameSink + 'static) -> Connection {
        let (outbox, frames) = mpsc::unbounded_channel();
        tokio::spawn(write_frames(sink, frames));
        let pending =
            Pending { calls: HashMap::new(), caps: BTreeMap::new(), outbox: Some(outbox), closed: None };
        Connection {
            shared: Arc::new(Shared {
                name,
                pending: Mutex::new(pending),
                line_cap: AtomicUsize::new(LINE_FLOOR),
                next_id: AtomicU64::new(1),
                answered: AtomicBool::new(false),
                tools_changed: Notify::new(),
                frames: AtomicU64::new(0),
                call_timed_out: Notify::new(),
            }),
        }
    }

    /// Reads frames until the stream ends.
    pub(super) async fn read(&self, mut source: impl FrameSource) {
        let mut noise = Throttle::default();
        loop {
            match source.next(&self.shared.line_cap).await {
                Ok(Some(Line::Whole(line))) => {
                    let bytes = line.len();
                    let incoming = if bytes > PARSE_INLINE {
                        let parsed = tokio::task::spawn_blocking(move || wire::parse(line)).await;
                        parsed.unwrap_or(Incoming::Noise)
                    } else {
                        wire::parse(line)
                    };
                    self.dispatch(incoming, bytes, &mut noise);
                }
                Ok(Some(Line::Oversize(oversize))) => {
                    let kind = wire::identify(&oversize);
                    self.refuse(kind, oversize.bytes);
                }
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(upstream = %self.shared.name, %error, "reading failed");
                    return;
                }
            }
        }
    }

    fn dispatch(&self, incoming: Incoming, bytes: usize, noise: &mut Throttle) {
        if !matches!(incoming, Incoming::Noise) {
            self.shared.frames.fetch_add(1, Ordering::Relaxed);
        }
        match incoming {
            Incoming::Response { id, body } => {
                let Some(waiting) = self.shared.forget(id) else {
                    tracing::debug!(upstream = %self.shared.name, id, "late answer ignored");
                    return;
                };
                let answer = if bytes > waiting.cap {
                    Err(too_large(bytes as u64, waiting.cap))
                } else {
                    body.map_err(RequestFault::Rpc)
                };
                // The caller may have given up in this instant.
                let _ = waiting.reply.send(answer);
            }
            Incoming::Request { id, method } => {
                tracing::debug!(upstream = %self.shared.name, method, "request from the server");
                self.shared.send(wire::reply(&id, &method));
            }
            // What changed before a subscription began is not told again, so its beginning counts as a change.
            Incoming::Notification { method } if CHANGES.contains(&method.as_str()) => {
                self.shared.tools_changed.notify_one();
            }
            Incoming::Notification { method } => {
                tracing::debug!(upstream = %self.shared.name, method, "notification ignored");
            }
            Incoming::Noise => {
                if let Verdict::Pass { suppressed } = noise.admit(Instant::now()) {
                    let upstream = &*self.shared.name;
                    tracing::warn!(upstream, bytes, suppressed, "ignored a stdout line that is not JSON-RPC");
                }
            }
        }
    }

    /// Fails the call an over-long line belongs to.
    fn refuse(&self, kind: OversizeKind, bytes: u64) {
        let waiting = match kind {
            OversizeKind::Response(id) => self.shared.forget(id),
            OversizeKind::Other => None,
            OversizeKind::Unknown => self.shared.forget_only(),
        };
        match waiting {
            Some(waiting) => {
                let cap = waiting.cap;
                let _ = waiting.reply.send(Err(too_large(bytes, cap)));
            }
            None => tracing::warn!(upstream = %self.shared.name, bytes, "dropped an over-long line"),
        }
    }

    /// Sends a request and waits. Dropping the future, or running into the deadline, cancels upstream.
    pub(super) async fn request(&self, request: Request<'_>) -> Result<RawAnswer, RequestFault> {
        let id = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        self.shared.enter(id, Waiting { cap: request.cap, reply }).map_err(RequestFault::Upstream)?;
        let mut guard = CallGuard {
            shared: &self.shared,
            id,
            announce: request.method != "initialize",
            reason: "cancelled",
        };
        self.shared.send(wire::request(id, request.method, request.params));
        match tokio::time::timeout(request.timeout, answer).await {
            Ok(Ok(answer)) => {
                guard.announce = false;
                if request.method == "tools/call" {
                    self.shared.answered.store(true, Ordering::Relaxed);
                }
                answer
            }
            Ok(Err(_)) => Err(RequestFault::Upstream(UpstreamFault::Unavailable(self.close_reason()))),
            Err(_) => {
                guard.reason = "timeout";
                if request.method == "tools/call" {
                    self.shared.call_timed_out.notify_one();
                }
                Err(RequestFault::Upstream(UpstreamFault::Timeout(request.timeout)))
            }
        }
    }

    /// Configured name of the server.
    pub(super) fn name(&self) -> &str {
        &self.shared.name
    }

    /// Sends a notification.
    pub(super) fn notify(&self, method: &str) {
        self.shared.send(wire::notification(method, None));
    }

    /// Waits for `notifications/tools/list_changed`.
    pub(super) async fn tools_changed(&self) {
        self.shared.tools_changed.notified().await;
    }

    /// Waits until a `tools/call` runs into its deadline.
    pub(super) async fn call_timed_out(&self) {
        self.shared.call_timed_out.notified().await;
    }

    /// How many frames have come from the server.
    pub(super) fn frames(&self) -> u64 {
        self.shared.frames.load(Ordering::Relaxed)
    }

    /// True when some `tools/call` was answered.
    pub(super) fn answered(&self) -> bool {
        self.shared.answered.load(Ordering::Relaxed)
    }

    /// Fails everything in flight and every later request. The writer ends once everything is written,
    /// which closes the server's stdin.
    pub(super) fn close(&self, reason: &str) {
        let calls = {
            let mut pending = self.shared.lock();
            pending.closed.get_or_insert_with(|| reason.to_owned());
            pending.outbox = None;
            pending.caps.clear();
            std::mem::take(&mut pending.calls)
        };
        for (_, waiting) in calls {
            let fault = UpstreamFault::Unavailable(reason.to_owned());
            let _ = waiting.reply.send(Err(RequestFault::Upstream(fault)));
        }
    }

    fn close_reason(&self) -> String {
        self.shared.lock().closed.clone().unwrap_or_else(|| "connection closed".to_owned())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, id: u64, waiting: Waiting) -> Result<(), UpstreamFault> {
        let mut pending = self.lock();
        if let Some(reason) = &pending.closed {
            return Err(UpstreamFault::Unavailable(reason.clone()));
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

    /// The call in flight, if there is exactly one.
    fn forget_only(&self) -> Option<Waiting> {
        let only = {
            let pending = self.lock();
            let mut ids = pending.calls.keys();
            ids.next().copied().filter(|_| ids.next().is_none())
        };
        self.forget(only?)
    }

    fn update_cap(&self, pending: &Pending) {
        let largest = pending.caps.last_key_value().map_or(0, |(&cap, _)| cap);
        self.line_cap.store(largest.max(LINE_FLOOR), Ordering::Relaxed);
    }

    fn send(&self, frame: Vec<u8>) {
        if let Some(outbox) = &self.lock().outbox {
            // A dead writer means that the server is going away: the reader will notice.
            let _ = outbox.send(frame);
        }
    }
}

/// Takes a request out of flight whatever happens to its future.
struct CallGuard<'a> {
    shared: &'a Shared,
    id: u64,
    announce: bool,
    reason: &'static str,
}

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        if self.shared.forget(self.id).is_some() && self.announce {
            let params = format!("{{\"requestId\":{},\"reason\":\"{}\"}}", self.id, self.reason);
            self.shared.send(wire::notification("notifications/cancelled", Some(&params)));
        }
    }
}

fn too_large(bytes: u64, cap: usize) -> RequestFault {
    RequestFault::Upstream(UpstreamFault::TooLarge { bytes, cap: cap as u64 })
}

fn protocol_fault(error: RpcError) -> UpstreamFault {
    match error {
        RpcError { code: METHOD_NOT_FOUND, .. } => UpstreamFault::Protocol(NO_SUCH_METHOD.to_owned()),
        RpcError { code, message, .. } if message.is_empty() => {
            UpstreamFault::Protocol(format!("JSON-RPC error {code}"))
        }
        RpcError { message, .. } => UpstreamFault::Protocol(message),
    }
}

/// Writes frames in the order sent, many at a time.
async fn write_frames(mut sink: impl FrameSink, mut frames: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(mut batch) = frames.recv().await {
        while batch.len() < WRITE_BATCH {
            match frames.try_recv() {
                Ok(frame) => batch.extend_from_slice(&frame),
                Err(_) => break,
            }
        }
        if sink.send(&batch).await.is_err() {
            return;
        }
    }
}
