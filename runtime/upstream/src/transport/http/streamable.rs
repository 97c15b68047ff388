//! Implements the Streamable HTTP transport: posts each message, reads its answer from JSON or a stream of events,
//! resumes broken streams, and renews lost sessions.

use super::events::{EventStream, ServerSentEvent};
use super::gate::ListenGate;
use super::incoming;
use super::listener;
use super::metadata::{MessageHeaders, session_of};
use super::refusal::HttpRefusal;
use super::session::{HttpSession, SessionKeeper};
use super::wire::{self, HttpWire, SendFault};
use crate::jsonrpc::error::shorten;
use crate::jsonrpc::message::{self, Incoming};
use crate::jsonrpc::{ErrorObject, RawAnswer};
use crate::overflow::{self, OverflowFault};
use crate::request::Era;
use crate::transport::ServerEvents;
use crate::transport::life::Life;
use crate::{CallResult, ResultSink, ServerRequest, UpstreamFault};
use futures_util::FutureExt;
use ptc_base::net::{Method, NetError, NetFault, Payload, Response};
use ptc_base::oauth::LoginId;
use ptc_base::tasks::{self, TaskOwner};
use ptc_calls::tools::{CallTarget, ServerText, UpstreamTool};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};

/// Limit of messages under way that need no answer. Further ones are dropped.
const NOTICES: usize = 64;

/// Time limit of such a message, and of a new session.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a call that has its answer waits for the new session of the next ones.
const GRACE: Duration = Duration::from_secs(1);

/// How long a server may take to end a stream after the answer.
const DRAIN: Duration = Duration::from_secs(1);

/// Limit of the sessions in which one request is tried: a login may change meanwhile.
const MOST_SESSIONS: usize = 5;

/// The pause before a broken stream is resumed, unless the server sets one.
pub(super) const RESUME_PAUSE: Duration = Duration::from_secs(1);

/// Size limit of an answer that is only inspected.
const SMALL_ANSWER: usize = 1 << 20;

/// Why there is no answer.
pub(super) enum PostFailure {
    /// The server has answered with a status.
    Refused(HttpRefusal),
    /// A stream that held no answer yet has ended.
    Broken(UpstreamFault),
    /// Anything else.
    Fault(UpstreamFault),
}

impl PostFailure {
    pub(super) fn fault(self, method: &str) -> UpstreamFault {
        match self {
            PostFailure::Refused(refusal) => refusal.fault(method),
            PostFailure::Broken(fault) | PostFailure::Fault(fault) => fault,
        }
    }
}

/// The requests and answers of one server.
pub(super) struct Streamable {
    pub(super) wire: HttpWire,
    pub(super) events: Arc<ServerEvents>,
    pub(super) life: Arc<Life>,
    pub(super) sessions: SessionKeeper,
    gate: ListenGate,
    next_id: AtomicU64,
    notices: Arc<Semaphore>,
}

impl Streamable {
    pub(super) fn new(wire: HttpWire, events: Arc<ServerEvents>, life: Arc<Life>) -> Arc<Streamable> {
        Arc::new(Streamable {
            wire,
            events,
            life,
            sessions: SessionKeeper::default(),
            gate: ListenGate::new(),
            next_id: AtomicU64::new(1),
            notices: Arc::new(Semaphore::new(NOTICES)),
        })
    }

    /// Sends a request and waits for its answer: once more in another session if the server has lost ours. Dropping the
    /// future cancels it.
    pub(super) async fn call(
        self: &Arc<Self>,
        mut request: ServerRequest,
    ) -> Result<CallResult, PostFailure> {
        let greeting = (request.method() == "initialize").then(|| request.params());
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let body = Payload::new(request.take_text(id, ""));
        if request.envelope.era != Era::Opening {
            self.gate.pass().await;
        }
        // In the stateless era, the end of the connection tells the server.
        let notifies = matches!(request.envelope.era, Era::Handshake(_));
        let mut guard = StreamCancel { channel: notifies.then_some(self), id, deadline: request.deadline };
        let answer = async {
            let (response, login, mut session) = self.accepted(&request, id, body).await?;
            if let Some(greeting) = greeting {
                self.sessions.begin(&greeting, session_of(&response), login);
                session = self.sessions.current();
            }
            let can_resume = !matches!(request.envelope.era, Era::Stateless(_));
            self.answer(response, id, &request.sink, can_resume.then_some(session)).await
        };
        let answer = answer.await;
        guard.channel = None;
        answer.map(CallResult::Mcp)
    }

    /// Posts the request `id` until the server accepts it, and returns the session of the accepted one: another one where
    /// the server has lost ours (once), or where it belongs to an earlier login. A refusal that is the answer to the request
    /// ends it, even if there is a new session.
    async fn accepted(
        self: &Arc<Self>,
        request: &ServerRequest,
        id: u64,
        body: Payload,
    ) -> Result<(Response, Option<LoginId>, HttpSession), PostFailure> {
        let (mut was_lost, mut tries) = (false, 0);
        // Only sessions can be lost.
        let called = match (&request.target, &request.envelope.era) {
            (CallTarget::Tool(name), Era::Handshake(_)) => self.events.tools.tool(name),
            _ => None,
        };
        loop {
            let session = match request.envelope.era {
                Era::Handshake(_) => self.session_for(called.as_ref(), tries > 0, request.deadline).await?,
                Era::Opening | Era::Stateless(_) => HttpSession::default(),
            };
            tries += 1;
            let metadata = MessageHeaders::post(&self.wire.headers).session(&session).request(request);
            // Where the loop goes on, nothing was executed.
            match self.wire.send(Method::POST, metadata, Some(body.clone())).await {
                Ok((response, login)) if response.status.is_success() => {
                    if request.method() == "tools/list" {
                        self.events.tools.part_from(session.generation);
                    }
                    return Ok((response, login, session));
                }
                Ok((response, _)) => {
                    let refusal = self.wire.refusal(response).await;
                    let is_lost = session.id.is_some() && !was_lost && refusal.is_lost_session();
                    if !is_lost || refusal.answers(id) {
                        if is_lost {
                            // The next call needs it. A failure ends the connection, and this call has its answer.
                            let left = request.deadline.saturating_duration_since(Instant::now());
                            let _ = timeout((left / 2).min(GRACE), self.renew(session.generation)).await;
                        }
                        return Err(self.refused(refusal));
                    }
                    was_lost = true;
                }
                Err(SendFault::Net(error)) => return Err(self.failed(&error)),
                Err(fault @ SendFault::OtherLogin) if tries >= MOST_SESSIONS => {
                    return Err(PostFailure::Fault(fault.into()));
                }
                Err(SendFault::OtherLogin) => {}
            }
            self.renew(session.generation).await?;
        }
    }

    /// The session to send a call in, which has the tool as it was found before. `is_again`: the call was sent before, in
    /// another session.
    async fn session_for(
        &self,
        called: Option<&Arc<UpstreamTool>>,
        is_again: bool,
        deadline: Instant,
    ) -> Result<HttpSession, PostFailure> {
        let mut is_compared = !is_again;
        loop {
            let session = self.sessions.current();
            let Some(called) = called.filter(|_| !is_compared || self.events.tools.are_stale()) else {
                return Ok(session);
            };
            self.find_again(called, deadline).await?;
            is_compared = true;
        }
    }

    /// Waits for the tool list of a new session: the server may have started again with another tool of this name, which is
    /// neither reviewed nor approved.
    async fn find_again(&self, called: &Arc<UpstreamTool>, deadline: Instant) -> Result<(), PostFailure> {
        let left = deadline.saturating_duration_since(Instant::now());
        let listed = timeout(left / 2, self.events.tools.refreshed()).await;
        let name = &called.name;
        let why = match listed.unwrap_or_else(|_| Err("no answer".to_owned())) {
            Ok(()) if self.events.tools.tool(name).is_some_and(|tool| tool.is_same_to_callers(called)) => {
                return Ok(());
            }
            Ok(()) => format!("{name} is not there any more as it was"),
            Err(why) => format!("its tools cannot be listed ({why})"),
        };
        let why = format!("the server has lost its session, and {why}: {name} was not called");
        Err(PostFailure::Fault(UpstreamFault::transient(why)))
    }

    /// The failure of a call that the server has refused: of this call only. A 401 says nothing of the requests that are under
    /// way with the same token, and a missing login is the supervisor's business.
    fn refused(&self, refusal: HttpRefusal) -> PostFailure {
        if refusal.is_answer() {
            self.events.answered();
        }
        PostFailure::Refused(refusal)
    }

    /// Reads the answer to the request `id`. A stream that breaks is resumed in `session`, if there is one.
    async fn answer(
        self: &Arc<Self>,
        mut response: Response,
        id: u64,
        sink: &ResultSink,
        session: Option<HttpSession>,
    ) -> Result<RawAnswer, PostFailure> {
        let media_type = response.media_type();
        if media_type == "text/event-stream" {
            let stream = EventStream::new(response.body);
            return self.stream(stream, id, sink, session).await;
        }
        let is_json =
            media_type == "application/json" || media_type.ends_with("+json") || media_type.is_empty();
        if !is_json {
            let text = format!(
                "http {} with {media_type}, which is neither JSON nor a stream of events",
                response.status
            );
            return Err(protocol(text));
        }
        let text = match &sink.store {
            None => response.body.read(sink.max_bytes).await.map_err(|error| self.failed(&error))?,
            Some(_) => {
                let read = overflow::read(&mut response.body, sink).await;
                let answer = read.map_err(|fault| match fault {
                    OverflowFault::Net(error) => self.failed(&error),
                    OverflowFault::Spill(error) => PostFailure::Fault(error.into()),
                })?;
                if answer.spilled().is_some() {
                    self.events.answered();
                    return Ok(answer);
                }
                answer.into_bytes()
            }
        };
        match self.take(text, id, session.as_ref()) {
            Some(answer) => answer,
            None => Err(protocol(unanswered(&response))),
        }
    }

    async fn stream(
        self: &Arc<Self>,
        mut stream: EventStream,
        id: u64,
        sink: &ResultSink,
        session: Option<HttpSession>,
    ) -> Result<RawAnswer, PostFailure> {
        loop {
            let why = match stream.next(|| sink.max_bytes, || sink.store.clone()).await {
                Ok(Some(ServerSentEvent::Event { data, .. })) => {
                    let bytes = data.len();
                    if let Some(answer) = self.take(data, id, session.as_ref()) {
                        finish(stream);
                        return answer;
                    }
                    stream.unasked(bytes).await;
                    continue;
                }
                Ok(Some(ServerSentEvent::Spilled(raw))) => {
                    if !incoming::may_answer(&raw, id) {
                        continue;
                    }
                    finish(stream);
                    self.events.answered();
                    return Ok(RawAnswer::in_file(raw));
                }
                Ok(Some(ServerSentEvent::TooLarge { bytes, .. })) => {
                    return Err(PostFailure::Fault(sink.too_large(bytes)));
                }
                Ok(None) => {
                    let why = UpstreamFault::transient("the stream of events ended before the answer");
                    if session.is_none() || stream.last_id().is_none() {
                        let answer = stream.rest().and_then(|data| self.take(data, id, session.as_ref()));
                        return answer.unwrap_or(Err(PostFailure::Broken(why)));
                    }
                    why
                }
                Err(error) if error.fault == NetFault::Reset => error.into(),
                Err(error) => return Err(self.failed(&error)),
            };
            let (Some(session), Some(_)) = (&session, stream.last_id()) else {
                return Err(PostFailure::Broken(why));
            };
            stream = match self.resume(&stream, session, why).await {
                Ok(response) => EventStream::resumed(response.body, stream),
                // A server that does not go on may have sent the whole answer, without its last blank line.
                Err(failure) => {
                    let rest = stream.rest();
                    return rest.and_then(|data| self.take(data, id, Some(session))).unwrap_or(Err(failure));
                }
            };
        }
    }

    /// Requests the rest of a stream, again and again until the server answers: the caller has a deadline.
    async fn resume(
        &self,
        stream: &EventStream,
        session: &HttpSession,
        why: UpstreamFault,
    ) -> Result<Response, PostFailure> {
        loop {
            sleep(stream.retry().unwrap_or(RESUME_PAUSE)).await;
            let metadata = MessageHeaders::events(&self.wire.headers, stream.last_id()).session(session);
            match self.wire.send(Method::GET, metadata, None).await {
                Ok((response, _)) if is_events(&response) => return Ok(response),
                Ok(_) | Err(SendFault::OtherLogin) => return Err(PostFailure::Broken(why)),
                Err(SendFault::Net(error)) if wire::is_gone(&error) => return Err(self.failed(&error)),
                Err(SendFault::Net(_)) => {}
            }
        }
    }

    /// Handles a text of the server. Returns the answer to the request `id`, if the text has it.
    fn take(
        self: &Arc<Self>,
        text: Vec<u8>,
        id: u64,
        session: Option<&HttpSession>,
    ) -> Option<Result<RawAnswer, PostFailure>> {
        let answer: Result<RawAnswer, ErrorObject> = match message::parse(text) {
            Incoming::Response { id: theirs, body } if theirs == id => body,
            other => {
                let mut found = None;
                let mut answers = |theirs: Option<u64>, body| {
                    if theirs.is_none_or(|theirs| theirs == id) {
                        found.get_or_insert(body);
                    }
                };
                incoming::handle(other, &self.events, &mut answers, &|| self.reply(session));
                found?
            }
        };
        self.events.answered();
        Some(answer.map_err(|error| PostFailure::Fault(UpstreamFault::Rpc(error))))
    }

    /// Sends the answer to a request of the server, in the session in which it has asked.
    pub(super) fn reply(self: &Arc<Self>, session: Option<&HttpSession>) -> incoming::Reply {
        let (channel, session) = (self.clone(), session.cloned().unwrap_or_default());
        Box::new(move |text| channel.notice(text, session))
    }

    /// The failure of a call; ends the connection if the server is gone.
    fn failed(&self, error: &NetError) -> PostFailure {
        if wire::is_gone(error) {
            self.life.end(error.to_string(), false);
        }
        PostFailure::Fault(error.into())
    }

    /// Replaces a lost session, once for all requests that lost it.
    async fn renew(self: &Arc<Self>, lost: u64) -> Result<(), PostFailure> {
        let renewal = self.sessions.renewal(lost, || {
            let channel = self.clone();
            async move {
                let opened = timeout(PATIENCE, channel.open_session()).await;
                let opened = opened.unwrap_or_else(|_| Err("no answer".to_owned()));
                opened.map_err(|why| {
                    let why = format!("session lost, and no new one: {why}");
                    channel.life.end(why.clone(), false);
                    Arc::from(why)
                })
            }
            .boxed()
        });
        let Some(renewal) = renewal else { return Ok(()) };
        // It goes on when the calls that wait for it end.
        let (channel, driven) = (self.clone(), renewal.clone());
        tasks::spawn(TaskOwner::Connection, async move {
            let _ = channel.life.unless_closed(driven).await;
        });
        renewal.await.map_err(|why| PostFailure::Fault(UpstreamFault::Unavailable(why.to_string())))
    }

    /// Repeats `initialize` as it was sent the first time.
    async fn open_session(self: &Arc<Self>) -> Result<(), String> {
        let Some(greeting) = self.sessions.greeting() else { return Err("there was none".to_owned()) };
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let body: Payload = message::request(id, "initialize", &greeting).into();
        let metadata = MessageHeaders::post(&self.wire.headers);
        let sent = self.wire.send(Method::POST, metadata, Some(body)).await;
        let (response, login) = sent.map_err(|fault| fault.to_string())?;
        if !response.status.is_success() {
            return Err(self.wire.refusal(response).await.words());
        }
        let session: Option<Arc<str>> = session_of(&response).map(Arc::from);
        let agreed = self.sessions.current().revision;
        let next = HttpSession { id: session, login, revision: agreed.clone(), generation: 0 };
        let sink = ResultSink { max_bytes: SMALL_ANSWER, store: None };
        let answer = self.answer(response, id, &sink, Some(next.clone())).await;
        let answer = answer.map_err(|failure| failure.fault("initialize").to_string())?;
        let result: serde_json::Value =
            serde_json::from_slice(answer.bytes()).map_err(|why| format!("initialize: {why}"))?;
        if agreed.as_deref().is_some_and(|agreed| result["protocolVersion"] != agreed) {
            return Err("the server speaks another revision now".to_owned());
        }
        self.post(message::notification("notifications/initialized", None), &next).await;
        // Before it can be found: a call that finds it waits for its list.
        self.events.tools.session_begins(self.sessions.current().generation + 1);
        self.sessions.renewed(next.id, next.login);
        self.events.tools.change();
        Ok(())
    }

    /// Sends a notification.
    pub(super) fn notify(self: &Arc<Self>, method: &'static str, revision: &str) {
        let text = message::notification(method, None);
        if method != "notifications/initialized" {
            return self.notice(text, self.sessions.current());
        }
        self.sessions.agree(revision);
        self.gate.close();
        let channel = self.clone();
        tasks::spawn(TaskOwner::Connection, async move {
            let session = channel.sessions.current();
            let taken = channel.life.unless_closed(channel.begin_post(text, &session)).await;
            // The head of the response is enough: its body may be a stream that never ends.
            channel.gate.open();
            if let Ok(Some(taken)) = taken {
                tasks::spawn(TaskOwner::Connection, drain(taken));
            }
            let _ = channel.life.unless_closed(listener::listen(&channel)).await;
        });
    }

    /// Sends a message that needs no answer, unless too many are under way.
    fn notice(self: &Arc<Self>, text: String, session: HttpSession) {
        let Ok(permit) = self.notices.clone().try_acquire_owned() else {
            tracing::debug!(upstream = self.events.server(), "message dropped: the server takes none");
            return;
        };
        let channel = self.clone();
        tasks::spawn(TaskOwner::Connection, async move {
            let _ = channel.life.unless_closed(channel.post(text, &session)).await;
            drop(permit);
        });
    }

    /// Posts a message without answer, and reads the response, so that its connection is used again.
    async fn post(&self, text: String, session: &HttpSession) {
        if let Some(taken) = self.begin_post(text, session).await {
            drain(taken).await;
        }
    }

    /// Posts a message without answer. Returns the response if the server accepted it.
    async fn begin_post(&self, text: String, session: &HttpSession) -> Option<Response> {
        let metadata = MessageHeaders::post(&self.wire.headers).session(session);
        let sent = timeout(PATIENCE, async {
            let sent = self.wire.send(Method::POST, metadata, Some(text.into())).await;
            let (response, _) = sent.map_err(|fault| fault.to_string())?;
            if response.status.is_success() {
                return Ok(response);
            }
            Err(self.wire.refusal(response).await.words())
        });
        match sent.await {
            Ok(Ok(response)) => Some(response),
            Ok(Err(why)) => {
                let why = ServerText::new(&why);
                tracing::debug!(upstream = self.events.server(), %why, "message not taken");
                None
            }
            Err(_) => None,
        }
    }

    /// Ends the session at the server.
    pub(super) async fn delete_session(&self) {
        let session = self.sessions.current();
        if session.id.is_none() {
            return;
        }
        let metadata = MessageHeaders::plain(&self.wire.headers).session(&session);
        // Servers may refuse this.
        let _ = self.wire.send(Method::DELETE, metadata, None).await;
    }
}

/// Describes a response without an answer, as far as its headers explain it.
fn unanswered(response: &Response) -> String {
    let charset = || {
        let parameters = response.header("content-type")?.split(';').skip(1);
        let mut pairs = parameters.filter_map(|parameter| parameter.split_once('='));
        let (_, charset) = pairs.find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))?;
        let charset = charset.trim().trim_matches('"');
        let is_utf8 = ["utf-8", "utf8", "us-ascii"].iter().any(|known| charset.eq_ignore_ascii_case(known));
        (!is_utf8).then(|| format!("; its text is said to be {charset}, JSON is UTF-8"))
    };
    // For requested encodings the client has removed this header.
    let encoding = response.header("content-encoding");
    let encoding =
        encoding.map(|encoding| format!("; its body is encoded as {encoding}, which was not asked for"));
    let why = encoding.or_else(charset).map(shorten).unwrap_or_default();
    format!("http {} without an answer to the request{why}", response.status)
}

/// Reads a short body to its end, so that its connection is used again. A stream is not read.
async fn drain(mut response: Response) {
    if !is_events(&response) {
        let _ = timeout(PATIENCE, response.body.beginning(SMALL_ANSWER)).await;
    }
}

pub(super) fn is_events(response: &Response) -> bool {
    response.status.is_success() && response.media_type() == "text/event-stream"
}

/// Ends a stream after its answer.
fn finish(stream: EventStream) {
    let mut drain = Box::pin(timeout(DRAIN, stream.drain()));
    // Mostly the end has arrived with the answer.
    if drain.as_mut().now_or_never().is_none() {
        tasks::spawn(TaskOwner::Connection, drain);
    }
}

fn protocol(text: String) -> PostFailure {
    PostFailure::Fault(UpstreamFault::Protocol(text))
}

/// Cancels a request at the server when its future is dropped.
struct StreamCancel<'a> {
    channel: Option<&'a Arc<Streamable>>,
    id: u64,
    deadline: Instant,
}

impl Drop for StreamCancel<'_> {
    fn drop(&mut self) {
        let Some(channel) = self.channel.filter(|channel| !channel.life.is_closed()) else { return };
        channel.notice(message::cancelled(self.id, self.deadline), channel.sessions.current());
    }
}
