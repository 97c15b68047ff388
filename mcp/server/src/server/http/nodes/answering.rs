//! Answers requests that other nodes (server processes with the same database) relay to this one, and applies the
//! session changes that they announce.

use super::message::{
    Claim, Inability, NodeMessage, Reply, SentRequest, SessionUpdate, received_headers, sent_headers,
};
use super::{MessageLost, Nodes};
use crate::protocol::log_level::LogLevel;
use crate::protocol::{Frame, Message};
use crate::server::gate::Gate;
use crate::server::handler::Action;
use crate::server::http::HttpServer;
use crate::server::http::access::TokenHolder;
use crate::server::http::endpoint::{self, Relayed};
use crate::server::http::posted::ReplyBuffer;
use crate::server::http::sessions::WebSession;
use crate::tools::CallOwner;
use axum::body::Body;
use axum::http::{Method, Request};
use axum::response::Response;
use futures_util::StreamExt as _;
use http_body::Body as _;
use ptc_base::sync::Locked;
use ptc_base::tasks::{self, TaskOwner};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio::time::{Instant, Interval, interval, interval_at};

/// Most requests of other nodes that are answered at a time. Further ones are not taken.
const MOST: usize = 4_096;

/// Interval at which a node says that it still works on a request.
const ALIVE: Duration = Duration::from_secs(2);

/// When it says so for the first time. Most requests are answered sooner.
const SOON: Duration = Duration::from_millis(200);

/// Interval at which what is stored of sessions that are over is removed.
const SWEEP: Duration = Duration::from_secs(3_600);

/// Requests of other nodes that are being answered, by the node and its number.
type Relays = Arc<Mutex<HashMap<(String, u64), AbortHandle>>>;

/// Handles messages of other nodes, if there can be any. Never ends.
pub(in crate::server::http) async fn follow(server: &Arc<HttpServer>, gate: &Arc<Gate>) {
    let Some(nodes) = &server.nodes else { return std::future::pending().await };
    nodes.read_key().await;
    let sweeping = async {
        let mut times = interval(SWEEP);
        loop {
            times.tick().await;
            nodes.sweep_notes().await;
            nodes.sweep_rates().await;
        }
    };
    let relays = Relays::default();
    let handle = |received: Option<(String, NodeMessage)>| {
        let Some((from, message)) = received else {
            let (server, nodes) = (server.clone(), nodes.clone());
            return drop(tasks::spawn(TaskOwner::Process, async move { server.close_ended(&nodes).await }));
        };
        handle_message(server, gate, nodes, &relays, (from, message));
    };
    tokio::join!(nodes.receive(handle), sweeping, nodes.watch_database());
}

fn handle_message(
    server: &Arc<HttpServer>,
    gate: &Arc<Gate>,
    nodes: &Arc<Nodes>,
    relays: &Relays,
    (from, message): (String, NodeMessage),
) {
    match message {
        NodeMessage::Ask { id, request } => {
            let owner = CallOwner(request.owner);
            if !request.claim().is_some_and(|claim| server.has(owner, &claim)) {
                return;
            }
            let cannot = |from, why| {
                nodes.send_soon(NodeMessage::Reply { to: from, id, number: 0, reply: Reply::Cannot(why) });
            };
            let Some(holder) = server.access.holder_of(owner) else {
                return cannot(from, Inability::NoToken);
            };
            let mut running = relays.locked();
            if running.len() >= MOST {
                return cannot(from, Inability::Busy);
            }
            let key = (from, id);
            let (nodes, relays, sent) = (nodes.clone(), relays.clone(), 0);
            let relay = RelayedRequest { nodes, key: key.clone(), relays, sent };
            let answering = relay.answer(server.clone(), gate.clone(), holder, request);
            running.insert(key, tasks::spawn(TaskOwner::Connection, answering).abort_handle());
        }
        NodeMessage::Find { id, owner, claim } => {
            if server.has(CallOwner(owner), &claim) {
                nodes.send_soon(NodeMessage::Reply { to: from, id, number: 0, reply: Reply::Alive });
            }
        }
        NodeMessage::Left { id } => {
            let left = relays.locked().remove(&(from, id));
            left.inspect(AbortHandle::abort);
        }
        NodeMessage::Session { owner, session, update } => {
            if let Some(session) = server.sessions.named(CallOwner(owner), &session) {
                server.update(&session, update);
            }
        }
        // It is for the node that has asked.
        NodeMessage::Reply { .. } => {}
    }
}

/// A request of another node that is being answered.
struct RelayedRequest {
    nodes: Arc<Nodes>,
    key: (String, u64),
    relays: Relays,
    /// Parts of the answer that were sent.
    sent: u64,
}

impl Drop for RelayedRequest {
    fn drop(&mut self) {
        self.relays.locked().remove(&self.key);
    }
}

impl RelayedRequest {
    async fn answer(
        mut self,
        server: Arc<HttpServer>,
        gate: Arc<Gate>,
        holder: Arc<TokenHolder>,
        asked: SentRequest,
    ) {
        let _in_flight = server.enter();
        let mut request = Request::new(Body::from(asked.body));
        *request.method_mut() = Method::POST;
        *request.headers_mut() = received_headers(asked.headers);
        request.extensions_mut().insert(Relayed);
        let mut alive = interval_at(Instant::now() + SOON, ALIVE);
        let mut answering = std::pin::pin!(endpoint::answer(&server, &gate, &holder, request));
        let response = loop {
            tokio::select! {
                response = &mut answering => break response,
                _ = alive.tick() => self.say_alive().await,
            }
        };
        // The other node finds out that a part is missing, or hears nothing more.
        let _ = self.pass_on(response, alive).await;
    }

    /// Sends the answer, until a part of it is lost: the rest is of no use then.
    async fn pass_on(&mut self, response: Response, mut alive: Interval) -> Result<(), MessageLost> {
        let (head, body) = response.into_parts();
        let (status, headers) = (head.status.as_u16(), sent_headers(&head.headers));
        if body.size_hint().exact().is_some() {
            // It is there already.
            let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes).into_owned();
            return self.reply(Reply::Whole { status, headers, text }).await;
        }
        self.reply(Reply::Head { status, headers }).await?;
        let mut pieces = body.into_data_stream();
        loop {
            tokio::select! {
                piece = pieces.next() => match piece {
                    Some(Ok(piece)) => {
                        self.reply(Reply::Text(String::from_utf8_lossy(&piece).into_owned())).await?;
                    }
                    // Without its end the body breaks at the other node, too.
                    Some(Err(_)) => return Ok(()),
                    None => break,
                },
                _ = alive.tick() => self.say_alive().await,
            }
        }
        self.reply(Reply::Over).await
    }

    /// Says that this node works on the request. It may be lost: the next one comes soon.
    async fn say_alive(&self) {
        let (to, id) = self.key.clone();
        self.nodes.send(NodeMessage::Reply { to, id, number: self.sent, reply: Reply::Alive }).await;
    }

    async fn reply(&mut self, reply: Reply) -> Result<(), MessageLost> {
        let ((to, id), number) = (self.key.clone(), self.sent);
        self.sent += 1;
        self.nodes.try_send(NodeMessage::Reply { to, id, number, reply }).await
    }
}

impl HttpServer {
    /// True if this node has what a request needs.
    pub(in crate::server::http) fn has(&self, owner: CallOwner, claim: &Claim) -> bool {
        match claim {
            Claim::Task(id) => self.handlers.unrestricted.detached.find(owner, id).is_some(),
            // Also one that is over: this node says so.
            Claim::State(state) => self.parked.is_of_this_node(state),
        }
    }

    /// Ends the sessions that clients have closed at other nodes, which have said so while this one did not hear it.
    async fn close_ended(&self, nodes: &Nodes) {
        // Without an answer, the next connection is followed by another look.
        let Ok(closed) = nodes.closed_sessions().await else { return };
        for session in self.sessions.every() {
            if nodes.read_id(&session.name).is_some_and(|signed| closed.contains(&signed.name())) {
                self.sessions.close(&session);
            }
        }
    }

    /// Handles what another node says about a session of this one.
    fn update(&self, session: &Arc<WebSession>, update: SessionUpdate) {
        match update {
            SessionUpdate::Closed => self.sessions.close(session),
            SessionUpdate::Log(level) => {
                let level = LogLevel::from_name(&level);
                session.change(|state| *state = state.clone().logging(level));
            }
            SessionUpdate::Message(text) => {
                let mut frame = Frame::default();
                let Ok(message) = frame.read(text.as_bytes()) else { return };
                let handler = &self.handlers.unrestricted;
                if let Message::Response { id, answer } = &message {
                    if !handler.detached.answer(session.owner, *id, *answer) {
                        session.answered(*id, *answer);
                    }
                    return;
                }
                let mut nothing = ReplyBuffer::default();
                let action = session.change(|state| handler.handle(message, state, &mut nothing));
                if let Action::Cancel(id) = action {
                    session.cancel(&id);
                }
            }
        }
    }
}
