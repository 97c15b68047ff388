//! Handles POST, GET and DELETE of the MCP path: checks headers, finds the session, dispatches the message, or relays
//! it to another node (server process with the same database).

use super::access::TokenHolder;
use super::body::{self, BodyFault};
use super::guard::single_header;
use super::nodes::{Asked, AskedRequest, Claim, NodeMessage, SessionNote, SessionUpdate, SignedSession};
use super::posted::{AcceptedTypes, PostedCall, REVOKED, ReplyBuffer};
use super::reply::{self, SESSION};
use super::sessions::{NoSession, SessionRefusal, WebSession};
use super::socket::RequestOrigin;
use super::{HttpServer, ServerStage, events, revision};
use crate::answer::RefusalReason;
use crate::protocol::borrowed::Raw;
use crate::protocol::log_level::LogLevel;
use crate::protocol::params::{Meta, Params};
use crate::protocol::{Era, Frame, Id, Message, RpcError, ServerMessage};
use crate::server::calls::Calls;
use crate::server::connection_state::ConnectionState;
use crate::server::detached::Elsewhere;
use crate::server::gate::{Flow, Gate};
use crate::server::handler::{Action, Handler, Ticket};
use crate::server::input_required::ParkedCalls;
use crate::server::outbox::{Outbox, Route};
use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use axum::response::Response;
use ptc_calls::trace::{self, TraceContext};
use std::sync::Arc;
use std::time::Duration;

/// Largest answer to a question that is sent to other nodes, in bytes.
const MOST_PASSED_ON: usize = 256 << 10;

/// Marks a request that another node has passed on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Relayed;

const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const TRACEPARENT: HeaderName = HeaderName::from_static(trace::TRACEPARENT);
const TRACESTATE: HeaderName = HeaderName::from_static(trace::TRACESTATE);

/// Answers an authenticated request.
pub(super) async fn answer(
    server: &Arc<HttpServer>,
    gate: &Arc<Gate>,
    holder: &Arc<TokenHolder>,
    request: Request<Body>,
) -> Response {
    // While it is held, it is not dropped for others.
    let _session = match take_in_session(server, holder, request.headers()).await {
        Ok(session) => session,
        Err(refused) => return *refused,
    };
    match *request.method() {
        Method::POST => post(server, gate, holder, request).await,
        Method::GET => get(server, holder, request.headers()),
        Method::DELETE => match find_session(server, holder, request.headers()) {
            Ok(session) => match server.close_at_all_nodes(&session).await {
                Ok(()) => reply::empty(StatusCode::NO_CONTENT),
                Err(_) => {
                    reply::ask_again("the database does not answer, so the session goes on; close it again")
                }
            },
            Err(response) => *response,
        },
        _ => {
            const ALLOWED: HeaderValue = HeaderValue::from_static("POST, GET, DELETE");
            let response = reply::text(StatusCode::METHOD_NOT_ALLOWED, "method not allowed");
            reply::with(response, header::ALLOW, ALLOWED)
        }
    }
}

/// Opens the session's stream of server notifications.
fn get(server: &Arc<HttpServer>, holder: &Arc<TokenHolder>, headers: &HeaderMap) -> Response {
    if server.is_draining() {
        return reply::unavailable(StatusCode::SERVICE_UNAVAILABLE, None, "server draining");
    }
    if !accepts(headers).events {
        return reply::text(StatusCode::NOT_ACCEPTABLE, "text/event-stream must be acceptable");
    }
    match find_session(server, holder, headers) {
        Ok(session) => {
            let last = headers.get(LAST_EVENT).and_then(|last| last.to_str().ok());
            events::listen(server, holder, session, last)
        }
        Err(response) => *response,
    }
}

async fn post(
    server: &Arc<HttpServer>,
    gate: &Arc<Gate>,
    holder: &Arc<TokenHolder>,
    request: Request<Body>,
) -> Response {
    let (head, body) = request.into_parts();
    if !is_json(&head.headers) {
        return reply::text(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported media type");
    }
    let accepted = accepts(&head.headers);
    if !accepted.json && !accepted.events {
        return reply::text(
            StatusCode::NOT_ACCEPTABLE,
            "application/json or text/event-stream must be acceptable",
        );
    }
    let settings = &server.settings;
    let body = tokio::select! {
        biased;
        () = server.reached(ServerStage::Ending) => return draining(),
        body = body::read(&head.headers, body, settings.body_bytes(), settings.request_timeout(), &server.bodies) => body,
    };
    let body = match body {
        Ok(body) if body.bytes.is_empty() => return reply::text(StatusCode::BAD_REQUEST, "empty body"),
        Ok(body) => body,
        Err(BodyFault::TooLarge) => return reply::text(StatusCode::PAYLOAD_TOO_LARGE, "payload too large"),
        Err(BodyFault::NoRoom) => {
            let busy =
                reply::unavailable(StatusCode::SERVICE_UNAVAILABLE, None, "busy: http-max-bodies-bytes");
            return reply::retry_after(busy, 1);
        }
        Err(BodyFault::Slow) => return reply::text(StatusCode::REQUEST_TIMEOUT, "request timeout"),
        Err(BodyFault::Broken) => return reply::text(StatusCode::BAD_REQUEST, "broken body"),
    };
    let Some(handler) = server.handlers.for_holder(holder) else {
        return reply::text(StatusCode::INTERNAL_SERVER_ERROR, "no tool list");
    };
    if !handler.is_ready() && !server.is_draining() {
        let must_wait = Frame::default().read(&body.bytes).is_ok_and(|message| handler.must_wait(&message));
        if must_wait {
            tokio::select! {
                () = server.ready() => {}
                () = server.reached(ServerStage::Ending) => return draining(),
            }
        }
    }
    if let Some(response) = relay(server, (holder, &handler), &head, &body.bytes).await {
        return response;
    }
    let refused = match holder.has_rate() && is_call(&body.bytes) {
        true => holder.take_call(server.nodes.as_deref()).await.err(),
        false => None,
    };
    let flow = head.extensions.get::<RequestOrigin>().map(|origin| origin.flow.clone()).unwrap_or_default();
    let mut trace = None;
    let call = {
        let mut frame = Frame::default();
        match frame.read(&body.bytes) {
            // Running calls are still answered, so answers to their questions are accepted, too.
            Ok(message) if server.is_draining() && !matches!(message, Message::Response { .. }) => {
                Answer::Done(draining())
            }
            Ok(message) => {
                trace = read_trace(&message, &head.headers);
                let (headers, bytes, trace) = (&head.headers, body.bytes.len(), trace.clone());
                let handler = &handler;
                let text = &body.bytes;
                Post { server, handler, gate, holder, flow, headers, accepted, bytes, text, trace, refused }
                    .message(message)
            }
            Err(error) => Answer::Done(reply::error(StatusCode::BAD_REQUEST, None, &error.into())),
        }
    };
    let mut response = match call {
        Answer::Done(response) => response,
        Answer::Stored { response, session, log } => {
            if let Some(nodes) = &server.nodes {
                // It has said so if other nodes do not know.
                let _ = nodes.set_note(&session.name, SessionNote::logging(log), server.sessions.age).await;
                nodes.send(NodeMessage::log(session.owner.0, &session.name, log)).await;
            }
            response
        }
        Answer::Later(call, accepted) => {
            // The call has what it needs of them, and may take long.
            drop((head, body));
            call.answer(accepted).await
        }
    };
    // For the access log.
    if let Some(trace) = trace {
        response.extensions_mut().insert(trace);
    }
    response
}

fn draining() -> Response {
    reply::unavailable(StatusCode::SERVICE_UNAVAILABLE, None, "server draining")
}

/// How a POST is answered.
enum Answer {
    Done(Response),
    /// After other nodes know of the level of log messages of a session.
    Stored {
        response: Response,
        session: Arc<WebSession>,
        log: LogLevel,
    },
    Later(Box<PostedCall>, AcceptedTypes),
}

/// A POST with a parsed message.
struct Post<'p> {
    server: &'p Arc<HttpServer>,
    handler: &'p Arc<Handler>,
    gate: &'p Arc<Gate>,
    holder: &'p Arc<TokenHolder>,
    flow: Arc<Flow>,
    headers: &'p HeaderMap,
    accepted: AcceptedTypes,
    bytes: usize,
    /// The message.
    text: &'p [u8],
    trace: Option<TraceContext>,
    /// The limit of calls that is reached, and the time until the next one.
    refused: Option<(u32, Duration)>,
}

impl Post<'_> {
    fn message(&self, message: Message<'_, '_>) -> Answer {
        let refuse = |id: Option<&Id<'_>>, error: &RpcError| {
            Answer::Done(reply::error(reply::status(Some(error.code)), id, error))
        };
        if let Message::Response { id, answer } = &message {
            return self.response(*id, *answer);
        }
        let no_params = Params::default();
        let (id, method, params) = match &message {
            Message::Request { id, method, params } => (Some(id.clone()), *method, params.as_ref().ok()),
            Message::Notification { method, params } => (None, *method, params.as_ref().ok()),
            Message::Response { .. } => (None, "", None),
        };
        let params = params.copied().unwrap_or(&no_params);
        let era = match revision::era(self.headers, method, params) {
            Ok(era) => era,
            Err(error) => return refuse(id.as_ref(), &error),
        };
        match (era, id) {
            (Era::Stateless, Some(id)) => self.request(&id, message, None, era),
            (Era::Stateless, None) => Answer::Done(reply::empty(StatusCode::ACCEPTED)),
            (Era::Handshake, Some(id)) if method == "initialize" => self.initialize(&id, message),
            (Era::Handshake, id) => {
                let session = match find_session(self.server, self.holder, self.headers) {
                    Ok(session) => session,
                    Err(response) => return Answer::Done(*response),
                };
                match id {
                    Some(id) => self.request(&id, message, Some(session), era),
                    None => {
                        let mut buffer = ReplyBuffer::default();
                        let action = session.change(|state| self.handler.handle(message, state, &mut buffer));
                        if let Action::Cancel(id) = action
                            && !session.cancel(&id)
                        {
                            self.pass_on(&session);
                        }
                        Answer::Done(reply::empty(StatusCode::ACCEPTED))
                    }
                }
            }
        }
    }

    /// Passes on the client's answer to a question of a running call.
    fn response(&self, id: Option<Raw<'_>>, answer: Result<Raw<'_>, Raw<'_>>) -> Answer {
        Answer::Done(match find_session(self.server, self.holder, self.headers) {
            Ok(session) => {
                let is_ours = self.handler.detached.answer(self.holder.owner, id, answer)
                    || session.answered(id, answer);
                if !is_ours {
                    self.pass_on(&session);
                }
                reply::empty(StatusCode::ACCEPTED)
            }
            Err(response) => *response,
        })
    }

    /// Passes on a message that may be for a call of another node.
    fn pass_on(&self, session: &WebSession) {
        if self.text.len() > MOST_PASSED_ON {
            return tracing::warn!(
                bytes = self.text.len(),
                "an answer is too large to be sent to other nodes"
            );
        }
        let text = String::from_utf8_lossy(self.text);
        if let Some(nodes) = &self.server.nodes {
            let (owner, name) = (session.owner.0, session.name.to_owned());
            let update = SessionUpdate::Message(text.into_owned());
            nodes.send_soon(NodeMessage::Session { owner, session: name, update });
        }
    }

    fn initialize(&self, id: &Id<'_>, message: Message<'_, '_>) -> Answer {
        if self.headers.contains_key(SESSION) {
            let message = "initialize must not include MCP-Session-Id";
            return Answer::Done(reply::text(StatusCode::BAD_REQUEST, message));
        }
        let mut state = ConnectionState::for_owner(self.holder.owner);
        let mut buffer = ReplyBuffer::default();
        self.handler.handle(message, &mut state, &mut buffer);
        if buffer.is_error() {
            return Answer::Done(buffer.answer(self.accepted));
        }
        let Some(seen) = self.server.handlers.list_for(self.holder) else {
            return Answer::Done(reply::text(StatusCode::INTERNAL_SERVER_ERROR, "no tool list"));
        };
        let owner = self.holder.owner;
        let name = match &self.server.nodes {
            Some(nodes) => SignedSession::new(owner, &state).and_then(|session| nodes.sign(&session)),
            None => None,
        };
        let begun = self.server.sessions.begin(owner, name, state, seen);
        match begun {
            Ok((name, _)) => {
                let response = buffer.answer(self.accepted);
                // A name is base64, so this cannot fail.
                Answer::Done(match HeaderValue::from_str(&name) {
                    Ok(name) => reply::with(response, SESSION, name),
                    Err(_) => response,
                })
            }
            Err(refusal) => Answer::Done(no_room(Some(id), refusal)),
        }
    }

    fn request(
        &self,
        id: &Id<'_>,
        message: Message<'_, '_>,
        session: Option<Arc<WebSession>>,
        era: Era,
    ) -> Answer {
        let server = self.server;
        let accepted = AcceptedTypes { sets_status: era == Era::Stateless, ..self.accepted };
        let mut buffer = ReplyBuffer::default();
        let entered = match &session {
            None => None,
            Some(session) => match session.enter(id) {
                Some(entered) => Some(entered),
                None => {
                    let error = ServerMessage::error(Some(id), &RpcError::duplicate_id(id));
                    buffer.send(Route::Request(id), error);
                    return Answer::Done(buffer.answer(accepted));
                }
            },
        };
        let is_call = matches!(&message, Message::Request { method: "tools/call", .. });
        // Its token may have been revoked while its request was read.
        if is_call && self.holder.is_revoked() {
            let ticket = Ticket::without_record(id, era);
            self.handler.refuse(ticket, RefusalReason::Cancelled, REVOKED, &mut buffer);
            return Answer::Done(buffer.answer(accepted));
        }
        if is_call && let Some((most, wait)) = self.refused {
            let seconds = reply::seconds(wait);
            let message = format!(
                "server busy: this token may make {most} calls a minute (evals_per_minute); retry the same call in \
                 {seconds} s"
            );
            self.handler.refuse(Ticket::without_record(id, era), RefusalReason::Busy, message, &mut buffer);
            return Answer::Done(reply::retry_after(buffer.answer(accepted), seconds));
        }
        let action = match &session {
            None => {
                let mut state = ConnectionState::for_owner(self.holder.owner).traced(self.trace.clone());
                self.handler.handle(message, &mut state, &mut buffer)
            }
            // A call changes no session state, so other requests need not wait for it.
            Some(session) if is_call => {
                let mut state = session.connection_state().traced(self.trace.clone());
                self.handler.handle(message, &mut state, &mut buffer)
            }
            Some(session) => {
                let (before, action, log) = session.change(|state| {
                    let before = state.log;
                    let action = self.handler.handle(message, state, &mut buffer);
                    (before, action, state.log)
                });
                if let Some(log) = log.filter(|log| before != Some(*log)) {
                    let (response, session) = (buffer.answer(accepted), session.clone());
                    return Answer::Stored { response, session, log };
                }
                action
            }
        };
        match action {
            Action::Run(call) => {
                let place = (server, self.holder);
                let begun =
                    PostedCall::begin(place, self.calls(), call, self.bytes, buffer, entered, accepted);
                match begun {
                    Ok(call) => Answer::Later(Box::new(call), accepted),
                    Err(buffer) => Answer::Done(reply::retry_after(buffer.answer(accepted), reply::SOON)),
                }
            }
            Action::Resume(call) => {
                match PostedCall::resume((server, self.holder), self.calls(), *call, buffer) {
                    Ok(call) => Answer::Later(Box::new(call), accepted),
                    Err(buffer) => Answer::Done(buffer.answer(accepted)),
                }
            }
            Action::Await(awaited) => {
                let place = (server, self.holder);
                let call = PostedCall::await_task(place, self.calls(), *awaited, era, buffer, entered);
                Answer::Later(Box::new(call), accepted)
            }
            Action::Listen(subscription) if accepted.events => {
                Answer::Done(events::subscription(server, self.holder, subscription))
            }
            Action::Listen(_) => {
                let text = "text/event-stream must be acceptable";
                Answer::Done(reply::text(StatusCode::NOT_ACCEPTABLE, text))
            }
            Action::None | Action::Cancel(_) | Action::Exit => Answer::Done(buffer.answer(accepted)),
        }
    }
}

impl Post<'_> {
    /// Creates the table for the call of this request.
    fn calls(&self) -> Calls {
        let Post { server, handler, gate, holder, flow, .. } = self;
        let (tenant, parked) = (holder.tenant(gate), server.parked.clone());
        Calls::new(Arc::clone(handler), holder.owner, &tenant, flow.clone(), parked)
    }
}

/// The session that a request names, which is taken in if another node has begun it.
async fn take_in_session(
    server: &HttpServer,
    holder: &TokenHolder,
    headers: &HeaderMap,
) -> Result<Option<Arc<WebSession>>, Box<Response>> {
    let Some(nodes) = &server.nodes else { return Ok(None) };
    nodes.read_key().await;
    let Some(name) = headers.get(SESSION).and_then(|name| name.to_str().ok()) else { return Ok(None) };
    if let Some(known) = server.sessions.named(holder.owner, name) {
        return Ok(Some(known));
    }
    let signed = nodes.read_id(name).filter(|signed| signed.owner == holder.owner);
    let Some((signed, age)) = signed.and_then(|signed| Some((signed, signed.left_of(server.sessions.age)?)))
    else {
        return Ok(None);
    };
    let note = nodes.note(&signed).await;
    if note.is_closed {
        return Ok(None);
    }
    let state = signed.state().logging(note.log());
    let taken = server.sessions.take_in((holder.owner, name), age, state);
    taken.map(Some).map_err(|refusal| no_room(None, refusal).into())
}

/// The answer when no session can be created.
fn no_room(id: Option<&Id<'_>>, refusal: SessionRefusal) -> Response {
    let (status, message) = match refusal {
        SessionRefusal::Owner => (StatusCode::TOO_MANY_REQUESTS, "session owner limit exceeded"),
        SessionRefusal::Server => (StatusCode::SERVICE_UNAVAILABLE, "server saturated"),
        SessionRefusal::NoRandomness => (StatusCode::SERVICE_UNAVAILABLE, "no random numbers"),
    };
    reply::retry_after(reply::unavailable(status, id, message), reply::SOON)
}

/// Lets another node answer a request for something that it has in memory.
async fn relay(
    server: &HttpServer,
    (holder, handler): (&TokenHolder, &Arc<Handler>),
    head: &axum::http::request::Parts,
    body: &[u8],
) -> Option<Response> {
    let nodes = server.nodes.as_ref().filter(|_| head.extensions.get::<Relayed>().is_none())?;
    let claim = {
        let mut frame = Frame::default();
        Claim::of(&frame.read(body).ok()?)?
    };
    let is_of_no_node = matches!(&claim, Claim::State(state) if !ParkedCalls::is_of_a_node(state));
    if is_of_no_node || server.has(holder.owner, &claim) {
        return None;
    }
    let request = AskedRequest::new(holder.owner, claim, &head.headers, body)?;
    let refused = match nodes.ask(&request).await {
        Asked::Answered(response) => return Some(response),
        Asked::Cannot(refused) => Some(refused),
        Asked::Silence => None,
    };
    match &request.claim {
        // Its program may go on.
        Claim::State(_) => Some(refused.unwrap_or_else(|| {
            no_word("; if its node has ended, a call without requestState begins another one")
        })),
        Claim::Task(id) => {
            let held = take_over(handler, id, holder).await;
            if server.has(holder.owner, &request.claim) { None } else { refused.or(held) }
        }
    }
}

/// Takes over a call of a node that has died. `None`: it is here now, or there is none.
async fn take_over(handler: &Arc<Handler>, id: &str, holder: &TokenHolder) -> Option<Response> {
    match handler.detached.take_over((holder.owner, holder.servers()), id).await {
        Elsewhere::Unknown | Elsewhere::TakenIn(None) => None,
        Elsewhere::TakenIn(Some(unfinished)) => {
            handler.detached.go_on(vec![*unfinished], handler);
            None
        }
        Elsewhere::Held => Some(no_word("")),
        Elsewhere::NoRoom => {
            Some(reply::ask_again("this node has no room for the call (--max-tasks); ask again"))
        }
    }
}

/// The answer when the node that has a call says nothing.
fn no_word(more: &str) -> Response {
    let why = format!("the node that has the call does not answer; ask again{more}");
    reply::ask_again(&why)
}

/// The session that a request names, if its version is the negotiated one; otherwise the error response.
fn find_session(
    server: &HttpServer,
    holder: &TokenHolder,
    headers: &HeaderMap,
) -> Result<Arc<WebSession>, Box<Response>> {
    let session = server.sessions.find(holder.owner, headers).map_err(no_session)?;
    match headers.get(reply::REVISION) {
        Some(said) if said != session.version.name() => {
            Err(reply::text(StatusCode::BAD_REQUEST, "bad MCP-Protocol-Version").into())
        }
        _ => Ok(session),
    }
}

fn no_session(none: NoSession) -> Box<Response> {
    Box::new(match none {
        NoSession::Unnamed => reply::text(StatusCode::BAD_REQUEST, "missing MCP-Session-Id"),
        NoSession::Unknown => reply::empty(StatusCode::NOT_FOUND),
    })
}

/// The trace of a request. `_meta` comes from the client and wins; a header may come from any proxy in between.
fn read_trace(message: &Message<'_, '_>, headers: &HeaderMap) -> Option<TraceContext> {
    let own = match message {
        Message::Request { params: Ok(params), .. } => params.meta.as_ref().and_then(Meta::trace),
        _ => None,
    };
    if own.is_some() {
        return own;
    }
    let parent = single_header(headers, &TRACEPARENT)??;
    // Several headers of this name are one list.
    let states = headers.get_all(&TRACESTATE).iter().map(|state| state.to_str().ok());
    let states: Option<Vec<&str>> = states.collect();
    TraceContext::read(parent, states.map(|states| states.join(",")).as_deref())
}

/// True for a call of a tool.
fn is_call(body: &[u8]) -> bool {
    let mut frame = Frame::default();
    matches!(frame.read(body), Ok(Message::Request { method: "tools/call", .. }))
}

/// True if the body is declared as JSON, exactly once. A web page of another origin cannot send that type
/// without a preflight request; without any type it can.
fn is_json(headers: &HeaderMap) -> bool {
    let Some(Some(kind)) = single_header(headers, &header::CONTENT_TYPE) else { return false };
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}

/// The types that a client accepts. Without an `Accept` header it gets JSON.
fn accepts(headers: &HeaderMap) -> AcceptedTypes {
    let mut accepted = AcceptedTypes { events: false, json: false, sets_status: false };
    let mut says = false;
    for part in headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()) {
        for kind in part.split(',') {
            says = true;
            match kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
                "application/json" | "application/*" | "*/*" => accepted.json = true,
                "text/event-stream" | "text/*" => accepted.events = true,
                _ => {}
            }
        }
    }
    accepted.json |= !says;
    accepted
}
