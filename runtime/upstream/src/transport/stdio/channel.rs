//! Sends JSON-RPC requests to a server over two pipes, and matches answers by id, with many requests in flight and a
//! size limit for each answer. What waits to be written is in the [`FrameQueue`].

use super::frames::{Frames, Intake, Received};
use super::outbox::{Batch, FrameQueue, frame_bytes};
use crate::jsonrpc::message::{self, Incoming, OversizeKind};
use crate::jsonrpc::{ErrorObject, RawAnswer};
use crate::transport::ServerEvents;
use crate::transport::pace::Pace;
use crate::transport::throttle::Throttle;
use crate::{CallResult, ResultSink, ServerRequest, UpstreamFault, overflow};
use ptc_base::spill::RawSpill;
use ptc_base::sync::Locked;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// Lines up to this size are read even when no call is in flight.
const LINE_FLOOR: usize = 1 << 20;

/// How long to wait for the end of a server that has cut an answer short.
const END: Duration = Duration::from_millis(500);

/// Unanswered requests that are remembered after their callers have gone.
const ABANDONED: usize = 1_024;

/// The requests and answers of one child process.
pub(super) struct StdioChannel {
    events: Arc<ServerEvents>,
    outbox: Arc<FrameQueue>,
    pending: Mutex<PendingCalls>,
    /// How much of an incoming line is read: the largest cap in flight, at least the floor.
    intake: Intake,
    next_id: AtomicU64,
}

struct PendingCalls {
    calls: HashMap<u64, WaitingCall>,
    /// How many calls in flight have which cap.
    caps: BTreeMap<usize, usize>,
    /// Requests that were sent and given up; the latest of them.
    abandoned: BTreeSet<u64>,
    closed: Option<String>,
}

struct WaitingCall {
    sink: ResultSink,
    reply: oneshot::Sender<Result<RawAnswer, UpstreamFault>>,
    /// Its answer arrived incomplete.
    is_cut: bool,
}

/// Answers that are cut short, and how long to wait for the end of their server.
struct CutAnswers {
    ids: Vec<u64>,
    why: String,
    until: Instant,
}

type CutSender = mpsc::UnboundedSender<CutAnswers>;

impl StdioChannel {
    /// A channel; the caller has to run [`StdioChannel::read`] and [`StdioChannel::write`].
    pub(super) fn new(events: Arc<ServerEvents>) -> StdioChannel {
        let pending = PendingCalls {
            calls: HashMap::new(),
            caps: BTreeMap::new(),
            abandoned: BTreeSet::new(),
            closed: None,
        };
        StdioChannel {
            events,
            outbox: Arc::new(FrameQueue::new()),
            pending: Mutex::new(pending),
            intake: Intake::new(LINE_FLOOR),
            next_id: AtomicU64::new(1),
        }
    }

    /// Writes what is in the outbox until the channel is closed or the server has gone. Then the sink is dropped, which
    /// closes the server's stdin.
    pub(super) async fn write(&self, mut sink: impl AsyncWrite + Unpin) {
        while let Some(batch) = self.outbox.next().await {
            let sent = match &batch {
                Batch::Small(frames) => send(&mut sink, &[frames]).await,
                Batch::Large { frame, .. } => send(&mut sink, frame).await,
            };
            if sent.is_err() {
                return;
            }
        }
    }

    /// Reads frames until the stream ends. Lines that are no part of JSON go to `on_noise`.
    pub(super) async fn read(&self, source: impl AsyncRead + Unpin, on_noise: impl Fn(&[u8])) {
        let (cuts, mut cut_short) = mpsc::unbounded_channel::<CutAnswers>();
        let end_calls = async {
            while let Some(CutAnswers { ids, why, until }) = cut_short.recv().await {
                tokio::time::sleep_until(until).await;
                for id in ids {
                    self.answer(id, |_| Err(UpstreamFault::Rpc(ErrorObject::about(&why))));
                }
            }
        };
        tokio::select! {
            () = self.read_frames(source, cuts, on_noise) => {}
            () = end_calls => {}
        }
    }

    async fn read_frames(&self, source: impl AsyncRead + Unpin, cuts: CutSender, on_noise: impl Fn(&[u8])) {
        let mut frames = Frames::new(source, on_noise);
        let (mut log, mut pace) = (Throttle::default(), Pace::new());
        loop {
            let (asked, bytes) = match frames.next(&self.intake).await {
                Ok(Some(Received::Frame(incoming, bytes))) => {
                    (self.dispatch(incoming, bytes, &mut log, &cuts), bytes as u64)
                }
                Ok(Some(Received::Oversize(kind, bytes, file))) => {
                    (self.oversize(&kind, bytes, file, &mut log), bytes)
                }
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(upstream = self.events.server(), %error, "reading failed");
                    return;
                }
            };
            if !asked {
                pace.unasked(bytes).await;
            }
        }
    }

    /// Handles a frame; false when it was not requested.
    fn dispatch(&self, incoming: Incoming, bytes: usize, log: &mut Throttle, cuts: &CutSender) -> bool {
        let events = &*self.events;
        let upstream = events.server();
        if !matches!(incoming, Incoming::Noise) {
            events.heard();
        }
        match incoming {
            Incoming::Response { id, body } => {
                return self.answer(id, |waiting| overflow::of_message(body, bytes, &waiting.sink));
            }
            Incoming::Broken { ids, why, is_cut } => {
                log.warn(upstream, bytes, &why);
                let ids: Vec<u64> = if ids.is_empty() { self.only_call().into_iter().collect() } else { ids };
                if is_cut {
                    return self.cut(ids, &why, cuts);
                }
                let fault = || Err(UpstreamFault::Rpc(ErrorObject::about(why.clone())));
                let asked = ids.into_iter().filter(|id| self.answer(*id, |_| fault()));
                return asked.count() > 0;
            }
            Incoming::Batch(frames) => {
                let asked = frames
                    .into_iter()
                    .filter_map(|frame| self.dispatch(frame, bytes, log, cuts).then_some(()));
                return asked.count() > 0;
            }
            Incoming::Request { id, method, params } => {
                let (outbox, upstream) = (self.outbox.clone(), upstream.to_owned());
                events.request(&id, &method, &params, move |answer| {
                    if !outbox.reply(line(answer)) {
                        tracing::debug!(upstream, "no answer: the server does not read those it has got");
                    }
                });
            }
            Incoming::Withdrawal { id } => events.withdrawal(&id),
            Incoming::Progress(note) => events.progress(&note),
            Incoming::Notification { method } => events.notification(&method),
            Incoming::Noise | Incoming::Open(_) => {
                log.warn(upstream, bytes, "ignored a stdout line that is not JSON-RPC");
            }
        }
        false
    }

    /// Ends calls whose answers are cut short, after a pause: if the server dies in it, they fail with its end instead.
    /// False when no call is concerned.
    fn cut(&self, ids: Vec<u64>, why: &str, cuts: &CutSender) -> bool {
        let mut asked = false;
        let mut waiting = Vec::new();
        for id in ids {
            match self
                .pending
                .locked()
                .calls
                .get_mut(&id)
                .map(|call| std::mem::replace(&mut call.is_cut, true))
            {
                Some(was_cut) => {
                    asked = true;
                    waiting.extend((!was_cut).then_some(id));
                }
                None => asked |= self.answer(id, |_| Err(UpstreamFault::Rpc(ErrorObject::about(why)))),
            }
        }
        if !waiting.is_empty() {
            let cut = CutAnswers { ids: waiting, why: why.to_owned(), until: Instant::now() + END };
            // The other end lives as long as the reader.
            let _ = cuts.send(cut);
        }
        asked
    }

    /// Ends the call that an over-long line belongs to; false when there is none.
    fn oversize(&self, kind: &OversizeKind, bytes: u64, file: Option<RawSpill>, log: &mut Throttle) -> bool {
        let id = match kind {
            OversizeKind::Response(id) => Some(*id),
            OversizeKind::Other => None,
            OversizeKind::Unknown => self.only_call(),
        };
        let answer = |waiting: &WaitingCall| match file.filter(|_| waiting.sink.store.is_some()) {
            Some(file) => Ok(RawAnswer::in_file(file)),
            None => Err(waiting.sink.too_large(bytes)),
        };
        let found = id.is_some_and(|id| self.answer(id, answer));
        if !found {
            log.warn(
                self.events.server(),
                usize::try_from(bytes).unwrap_or(usize::MAX),
                "dropped an over-long line",
            );
        }
        found
    }

    /// Fails every request in flight and every later one. The writer ends once small frames are written, which closes
    /// the server's stdin.
    pub(super) fn close(&self, reason: &str) {
        let calls = {
            let mut pending = self.pending.locked();
            pending.closed.get_or_insert_with(|| reason.to_owned());
            pending.caps.clear();
            std::mem::take(&mut pending.calls)
        };
        self.outbox.close();
        for (_, waiting) in calls {
            let _ = waiting.reply.send(Err(self.close_fault()));
        }
    }
}

impl StdioChannel {
    /// Sends a request and waits for its answer. Dropping the future takes it back or cancels it.
    pub(super) async fn call(&self, mut request: ServerRequest) -> Result<CallResult, UpstreamFault> {
        let (deadline, is_cancellable) = (request.deadline, request.is_cancellable());
        let mut guard = CallGuard { channel: self, id: None, deadline, is_cancellable };
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let frame = request.take_text(id, "\n");
        // Questions of the protocol are few and small, and wait behind no call.
        let room = match request.is_protocol() {
            true => None,
            false => Some(self.outbox.room(frame_bytes(&frame)).await.ok_or_else(|| self.close_fault())?),
        };
        let (reply, answer) = oneshot::channel();
        self.enter(id, WaitingCall { sink: request.sink, reply, is_cut: false })?;
        guard.id = Some(id);
        match room {
            None => self.outbox.own(frame.concat()),
            Some(room) => self.outbox.call(id, frame, room),
        }
        let answer = answer.await.unwrap_or_else(|_| Err(self.close_fault()));
        guard.id = None;
        answer.map(CallResult::Mcp)
    }

    /// Sends a notification without parameters.
    pub(super) fn notify(&self, method: &'static str) {
        self.outbox.own(line(message::notification(method, None)));
    }
}

/// A frame of one message.
fn line(mut message: String) -> Vec<u8> {
    message.push('\n');
    message.into_bytes()
}

/// Sends whole frames, given in parts.
async fn send(sink: &mut (impl AsyncWrite + Unpin), parts: &[impl AsRef<[u8]>]) -> std::io::Result<()> {
    for part in parts {
        sink.write_all(part.as_ref()).await?;
    }
    sink.flush().await
}

impl StdioChannel {
    fn close_fault(&self) -> UpstreamFault {
        let reason = self.pending.locked().closed.clone().unwrap_or_else(|| "connection closed".to_owned());
        UpstreamFault::Unavailable(reason)
    }

    /// Delivers an answer to the call that waits for it; false when no such request was sent.
    fn answer(&self, id: u64, answer: impl FnOnce(&WaitingCall) -> Result<RawAnswer, UpstreamFault>) -> bool {
        let waiting = self.forget(id);
        if waiting.is_none() && !self.pending.locked().abandoned.remove(&id) {
            return false;
        }
        self.events.answered();
        match waiting {
            Some(waiting) => {
                let answer = answer(&waiting);
                // The caller may just have given up.
                let _ = waiting.reply.send(answer);
            }
            None => tracing::debug!(upstream = self.events.server(), id, "late answer ignored"),
        }
        true
    }

    /// Remembers a sent request whose caller has given up.
    fn abandon(&self, id: u64) {
        let mut pending = self.pending.locked();
        pending.abandoned.insert(id);
        if pending.abandoned.len() > ABANDONED {
            pending.abandoned.pop_first();
        }
    }

    fn enter(&self, id: u64, waiting: WaitingCall) -> Result<(), UpstreamFault> {
        let mut pending = self.pending.locked();
        if pending.closed.is_some() {
            drop(pending);
            return Err(self.close_fault());
        }
        *pending.caps.entry(waiting.sink.max_bytes).or_default() += 1;
        pending.calls.insert(id, waiting);
        self.update_cap(&pending);
        Ok(())
    }

    fn forget(&self, id: u64) -> Option<WaitingCall> {
        let mut pending = self.pending.locked();
        let waiting = pending.calls.remove(&id)?;
        if let Some(count) = pending.caps.get_mut(&waiting.sink.max_bytes) {
            *count -= 1;
            if *count == 0 {
                pending.caps.remove(&waiting.sink.max_bytes);
            }
        }
        self.update_cap(&pending);
        Some(waiting)
    }

    /// The request in flight, if there is exactly one.
    fn only_call(&self) -> Option<u64> {
        let pending = self.pending.locked();
        let mut ids = pending.calls.keys();
        ids.next().copied().filter(|_| ids.next().is_none())
    }

    fn update_cap(&self, pending: &PendingCalls) {
        let largest = pending.caps.last_key_value().map_or(0, |(&cap, _)| cap);
        let overflow = pending.calls.values().find_map(|waiting| waiting.sink.store.clone());
        self.intake.set(largest.max(LINE_FLOOR), overflow);
    }
}

/// Takes a request out of flight when its future ends or is dropped.
struct CallGuard<'a> {
    channel: &'a StdioChannel,
    /// While it is in flight.
    id: Option<u64>,
    deadline: Instant,
    is_cancellable: bool,
}

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id else { return };
        if self.channel.forget(id).is_none() || self.channel.outbox.revoke(id) {
            return;
        }
        self.channel.abandon(id);
        if self.is_cancellable {
            // A server that reads nothing needs no notice.
            self.channel.outbox.reply(line(message::cancelled(id, self.deadline)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ClientFeatures;
    use ptc_base::tasks::{self, TaskOwner};

    /// How a call ends whose answer is cut short by another frame, depending on whether the server dies then.
    async fn ends_with(dies: bool) -> Result<RawAnswer, UpstreamFault> {
        let peer =
            Arc::new(StdioChannel::new(Arc::new(ServerEvents::new("s".into(), ClientFeatures::default()))));
        let (mut server, ours) = tokio::io::duplex(1 << 10);
        let (reply, answer) = oneshot::channel();
        peer.enter(7, WaitingCall { sink: ResultSink { max_bytes: 100, store: None }, reply, is_cut: false })
            .expect("open");
        let text = b"{\"id\":7,\"result\":{\"a\":\n{\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n";
        server.write_all(text).await.expect("written");
        let reader = peer.clone();
        let read = tasks::spawn(TaskOwner::Connection, async move { reader.read(ours, |_| ()).await });
        if dies {
            drop(server);
            read.await.expect("read");
            peer.close("it has ended");
        }
        answer.await.expect("an answer")
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_cut_short_by_the_end_of_its_server_is_not_its_mistake() {
        let Err(UpstreamFault::Unavailable(why)) = ends_with(true).await else { panic!() };
        assert_eq!(why, "it has ended");
        let Err(UpstreamFault::Rpc(error)) = ends_with(false).await else { panic!() };
        assert_eq!(error.message, "the answer is cut short");
    }
}
