//! Implements the older HTTP transport of MCP with server-sent events (SSE): the client posts messages to an address
//! that the server names, and the server sends everything in one stream of events. The stream is the session: its end
//! is the end of the connection.

use super::events::{EventStream, ServerSentEvent};
use super::gate::ListenGate;
use super::incoming;
use super::metadata::MessageHeaders;
use super::refusal::HttpRefusal;
use super::streamable::is_events;
use super::wire::{HttpWire, SendFault};
use crate::jsonrpc::error::METHOD_NOT_FOUND;
use crate::jsonrpc::message::{self, OversizeKind};
use crate::jsonrpc::{ErrorObject, RawAnswer};
use crate::request::Era;
use crate::transport::ServerEvents;
use crate::transport::life::Life;
use crate::{CallResult, ResultSink, ServerRequest, UpstreamFault, overflow};
use ptc_base::net::{Method, Payload};
use ptc_base::oauth::LoginId;
use ptc_base::spill::SpillStore;
use ptc_base::sync::Locked;
use ptc_base::tasks::{self, TaskOwner};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::Instant;

/// Messages up to this size are read even when no call is in flight.
const LARGEST_UNASKED: usize = 1 << 20;

/// Limit of messages under way that need no answer. Further ones are dropped.
const NOTICES: usize = 64;

/// Most bytes that are read of the answer to a message.
const RECEIPT: usize = 4_096;

/// The requests and answers of one server.
pub(super) struct SseChannel {
    /// Where messages are posted to.
    wire: HttpWire,
    /// The login of the stream: the first one whose token was sent.
    login: Arc<OnceLock<LoginId>>,
    events: Arc<ServerEvents>,
    life: Arc<Life>,
    calls: Mutex<HashMap<u64, CallInFlight>>,
    gate: ListenGate,
    next_id: AtomicU64,
    notices: Arc<Semaphore>,
}

struct CallInFlight {
    sink: ResultSink,
    reply: oneshot::Sender<Result<RawAnswer, UpstreamFault>>,
}

impl SseChannel {
    /// Opens the stream and waits for the address.
    ///
    /// # Errors
    /// Why there is none, in words for people.
    pub(super) async fn open(
        mut wire: HttpWire,
        events: Arc<ServerEvents>,
        life: Arc<Life>,
    ) -> Result<Arc<SseChannel>, UpstreamFault> {
        let metadata = MessageHeaders::events(&wire.headers, None);
        let (response, login) = wire.send(Method::GET, metadata, None).await?;
        if !response.status.is_success() {
            return Err(wire.refusal(response).await.fault(""));
        }
        if !is_events(&response) {
            return Err(format!(
                "http {} with {}, which is no stream of events",
                response.status,
                response.media_type()
            )
            .into());
        }
        // After a redirect the address is that of the stream.
        let here = response.url.clone();
        let mut stream = EventStream::new(response.body);
        let address = loop {
            match stream.next(|| RECEIPT, || None).await {
                Ok(Some(ServerSentEvent::Event { name, data })) if name == "endpoint" => break data,
                Ok(Some(_)) => {}
                Ok(None) => {
                    let why = "the stream of events ended before it named its endpoint";
                    return Err(why.to_owned().into());
                }
                Err(error) => return Err(error.into()),
            }
        };
        let address = String::from_utf8_lossy(&address);
        let url = here.join(address.trim()).map_err(|why| format!("the endpoint is no address: {why}"))?;
        if url.origin() != wire.url.origin() {
            return Err(format!(
                "the endpoint is at another origin ({}), which is sent nothing",
                url.origin().ascii_serialization()
            )
            .into());
        }
        wire.url = url;
        let channel = Arc::new(SseChannel {
            wire,
            login: Arc::new(login.map_or_else(OnceLock::new, OnceLock::from)),
            events,
            life,
            calls: Mutex::default(),
            gate: ListenGate::new(),
            next_id: AtomicU64::new(1),
            notices: Arc::new(Semaphore::new(NOTICES)),
        });
        let reader = channel.clone();
        tasks::spawn(TaskOwner::Connection, async move {
            let _ = reader.life.unless_closed(reader.read(stream)).await;
        });
        Ok(channel)
    }

    /// Handles events until the stream ends.
    async fn read(self: &Arc<Self>, mut stream: EventStream) {
        let why = loop {
            match stream.next(|| self.cap(), || self.overflow()).await {
                Ok(Some(ServerSentEvent::Event { data, .. })) => {
                    let bytes = data.len();
                    if !self.take(data) {
                        stream.unasked(bytes).await;
                    }
                }
                Ok(Some(ServerSentEvent::TooLarge { head, bytes })) => {
                    self.answer_large(message::identify(&head, b""), |sink| Err(sink.too_large(bytes)));
                }
                Ok(Some(ServerSentEvent::Spilled(raw))) => {
                    self.answer_large(incoming::identify(&raw), |sink| match &sink.store {
                        Some(_) => Ok(RawAnswer::in_file(raw)),
                        None => Err(sink.too_large(raw.bytes())),
                    });
                }
                Ok(None) => break "the stream of events has ended".to_owned(),
                Err(error) => break error.to_string(),
            }
        };
        let is_idle = self.calls.locked().is_empty();
        self.life.end(why, is_idle);
    }

    /// Handles a text of the server; false when it was not requested.
    fn take(self: &Arc<Self>, text: Vec<u8>) -> bool {
        let bytes = text.len();
        let mut asked = false;
        let mut answers = |id: Option<u64>, body: Result<RawAnswer, ErrorObject>| {
            let Some(id) = id.or_else(|| self.only_call()) else { return };
            let Some(CallInFlight { sink, reply }) = self.calls.locked().remove(&id) else { return };
            asked = true;
            self.events.answered();
            // The caller may just have given up.
            let _ = reply.send(overflow::of_message(body, bytes, &sink));
        };
        let reply = || -> incoming::Reply {
            let channel = self.clone();
            Box::new(move |text| channel.notice(text))
        };
        incoming::handle(message::parse(text), &self.events, &mut answers, &reply);
        asked
    }

    /// Answers the call whose answer is too large for memory.
    fn answer_large(
        &self,
        kind: OversizeKind,
        answer: impl FnOnce(&ResultSink) -> Result<RawAnswer, UpstreamFault>,
    ) {
        let id = match kind {
            OversizeKind::Response(id) => Some(id),
            OversizeKind::Other => None,
            OversizeKind::Unknown => self.only_call(),
        };
        if let Some(CallInFlight { sink, reply }) = id.and_then(|id| self.calls.locked().remove(&id)) {
            self.events.answered();
            let _ = reply.send(answer(&sink));
        }
    }

    /// Sends a request and waits for its answer. Dropping the future cancels it.
    pub(super) async fn call(
        self: &Arc<Self>,
        mut request: ServerRequest,
    ) -> Result<CallResult, UpstreamFault> {
        if matches!(request.envelope.era, Era::Stateless(_)) {
            // Never spoken over this transport.
            let message = "this transport has only eras with a handshake".to_owned();
            return Err(UpstreamFault::Rpc(ErrorObject { code: METHOD_NOT_FOUND, message, data: None }));
        }
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let body = Payload::new(request.take_text(id, ""));
        if request.envelope.era != Era::Opening {
            self.gate.pass().await;
        }
        let metadata = MessageHeaders::post(&self.wire.headers).trace(request.trace.as_ref());
        let (reply, answer) = oneshot::channel();
        let (deadline, is_cancellable) = (request.deadline, request.is_cancellable());
        self.calls.locked().insert(id, CallInFlight { sink: request.sink, reply });
        let _guard = PostedCancel { channel: self, id, deadline, is_cancellable };
        let posted = self.post(body, metadata, Some(id));
        tokio::pin!(answer, posted);
        let lost = || UpstreamFault::Unavailable("the answer was lost".to_owned());
        let answer = tokio::select! {
            biased;
            answer = &mut answer => answer,
            posted = &mut posted => match posted {
                Ok(None) => answer.await,
                Ok(Some(refusal)) => {
                    self.calls.locked().remove(&id);
                    return Err(refusal.fault(""));
                }
                Err(fault) => {
                    self.calls.locked().remove(&id);
                    if let SendFault::OtherLogin = fault {
                        // The next call opens a stream of the new login.
                        self.life.end(fault.to_string(), true);
                    }
                    return Err(fault.into());
                }
            },
        };
        answer.unwrap_or_else(|_| Err(lost())).map(CallResult::Mcp)
    }

    /// Posts a message: the request `id`, or one that needs no answer. Returns why the server does not accept it, if it
    /// does not.
    async fn post(
        &self,
        body: Payload,
        metadata: MessageHeaders,
        id: Option<u64>,
    ) -> Result<Option<HttpRefusal>, SendFault> {
        let metadata = metadata.in_stream_of(&self.login);
        let (mut response, _) = self.wire.send(Method::POST, metadata, Some(body)).await?;
        if response.status.is_success() {
            response.body.beginning(RECEIPT).await;
            return Ok(None);
        }
        let refusal = self.wire.refusal(response).await;
        // A server that answers the request knows its session, which is the stream.
        let is_answer = id.is_some_and(|id| refusal.answers(id));
        if refusal.is_lost_session() && !is_answer {
            self.life.end(refusal.words(), false);
        }
        Ok(Some(refusal))
    }

    /// Sends a notification.
    pub(super) fn notify(self: &Arc<Self>, method: &'static str) {
        let text = message::notification(method, None);
        if method != "notifications/initialized" {
            return self.notice(text);
        }
        self.gate.close();
        let channel = self.clone();
        tasks::spawn(TaskOwner::Connection, async move {
            channel.post_alone(text).await;
            channel.gate.open();
        });
    }

    /// Posts a message that needs no answer, unless the connection is closed before.
    async fn post_alone(&self, text: String) {
        let metadata = MessageHeaders::post(&self.wire.headers);
        let _ = self.life.unless_closed(self.post(text.into(), metadata, None)).await;
    }

    /// Sends a message that needs no answer, unless too many are under way.
    fn notice(self: &Arc<Self>, text: String) {
        let Ok(permit) = self.notices.clone().try_acquire_owned() else { return };
        let channel = self.clone();
        tasks::spawn(TaskOwner::Connection, async move {
            channel.post_alone(text).await;
            drop(permit);
        });
    }

    fn cap(&self) -> usize {
        let calls = self.calls.locked();
        calls.values().map(|call| call.sink.max_bytes).max().unwrap_or(0).max(LARGEST_UNASKED)
    }

    /// Where a large answer goes, while a request waits whose answer may go there.
    fn overflow(&self) -> Option<SpillStore> {
        self.calls.locked().values().find_map(|call| call.sink.store.clone())
    }

    /// The request in flight, if there is exactly one.
    fn only_call(&self) -> Option<u64> {
        let calls = self.calls.locked();
        let mut ids = calls.keys();
        ids.next().copied().filter(|_| ids.next().is_none())
    }
}

/// Takes a request out of flight when its future ends or is dropped.
struct PostedCancel<'a> {
    channel: &'a Arc<SseChannel>,
    id: u64,
    deadline: Instant,
    is_cancellable: bool,
}

impl Drop for PostedCancel<'_> {
    fn drop(&mut self) {
        let was_in_flight = self.channel.calls.locked().remove(&self.id).is_some();
        if was_in_flight && self.is_cancellable && !self.channel.life.is_closed() {
            self.channel.notice(message::cancelled(self.id, self.deadline));
        }
    }
}
