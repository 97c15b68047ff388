//! Relays a client's request to the node (server process) that holds the task or waiting run it is about, and streams
//! the answer of that node to the client.

use super::Nodes;
use super::message::{AskedRequest, Claim, NodeMessage, Reply, received_headers};
use crate::server::http::reply;
use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use futures_util::stream::unfold;
use ptc_base::sync::Locked;
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// How long the other nodes have to say that they have what a request needs.
const TAKEN_WITHIN: Duration = Duration::from_secs(2);

/// Time without a message after which a node counts as dead. A node that works says so more often.
const SILENCE: Duration = Duration::from_secs(7);

/// Most requests that wait for other nodes.
const MOST: usize = 4_096;

/// Most parts of an answer that wait for a slow client. Its answer ends there.
const MOST_PARTS: usize = 1_024;

/// Largest body that is sent to nodes of which none has said that it has what the request needs.
const SMALL: usize = 64 << 10;

/// Requests of this node that others answer, by number.
#[derive(Default)]
pub(super) struct OpenAsks {
    next: AtomicU64,
    replies: Mutex<HashMap<u64, OpenAsk>>,
}

/// Where the answer to a request goes.
struct OpenAsk {
    /// The node that answers: the first that has said something. Several nodes can have a call that is over.
    node: Option<String>,
    replies: mpsc::Sender<Reply>,
}

impl OpenAsks {
    /// Passes on a part of an answer of a node. Parts of other nodes are dropped.
    pub(super) fn pass_on(&self, from: String, id: u64, reply: Reply) {
        let mut open = self.replies.locked();
        let Some(ask) = open.get_mut(&id) else { return };
        if *ask.node.get_or_insert_with(|| from.clone()) == from && ask.replies.try_send(reply).is_err() {
            open.remove(&id);
        }
    }
}

/// A request that another node answers. Dropping it says that its client has gone.
struct Ask {
    nodes: Arc<Nodes>,
    id: u64,
    replies: mpsc::Receiver<Reply>,
    is_over: bool,
}

impl Drop for Ask {
    fn drop(&mut self) {
        self.nodes.open.replies.locked().remove(&self.id);
        if !self.is_over {
            self.nodes.send_soon(NodeMessage::Left { id: self.id });
        }
    }
}

impl Nodes {
    fn begin_ask(self: &Arc<Nodes>) -> Option<Ask> {
        let id = self.open.next.fetch_add(1, Ordering::Relaxed);
        let (sender, replies) = mpsc::channel(MOST_PARTS);
        let mut open = self.open.replies.locked();
        if open.len() >= MOST {
            return None;
        }
        open.insert(id, OpenAsk { node: None, replies: sender });
        Some(Ask { nodes: self.clone(), id, replies, is_over: false })
    }

    /// Lets the node that has what a request needs answer it. `None`: no node has said that it has it.
    pub(in crate::server::http) async fn ask(self: &Arc<Nodes>, request: &AskedRequest) -> Option<Response> {
        let mut ask = self.begin_ask()?;
        // A request that a silent node reads late would use up its state.
        if request.body.len() > SMALL || matches!(request.claim, Claim::State(_)) {
            let AskedRequest { owner, claim, .. } = request.clone();
            self.send(NodeMessage::Find { id: ask.id, owner, claim }).await;
            ask.first().await?;
        }
        self.send(NodeMessage::Ask { id: ask.id, request: request.clone() }).await;
        let first = ask.first().await?;
        Some(ask.response(first).await)
    }
}

impl Ask {
    /// What the node says first that has what the request needs.
    async fn first(&mut self) -> Option<Reply> {
        timeout(TAKEN_WITHIN, self.replies.recv()).await.ok().flatten()
    }

    /// Nothing is to be cancelled any more.
    fn end(mut self) {
        self.is_over = true;
    }

    async fn response(mut self, first: Reply) -> Response {
        let mut reply = Some(first);
        let (status, headers, whole) = loop {
            match reply {
                Some(Reply::Alive) => reply = timeout(SILENCE, self.replies.recv()).await.ok().flatten(),
                Some(Reply::Head { status, headers }) => break (status, headers, None),
                Some(Reply::Whole { status, headers, text }) => break (status, headers, Some(text)),
                _ => {
                    let why = "the node that has the call does not answer any more";
                    return reply::unavailable(StatusCode::SERVICE_UNAVAILABLE, None, why);
                }
            }
        };
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
        let headers = received_headers(headers);
        if let Some(text) = whole {
            self.end();
            return reply::relayed(status, headers, Body::from(text));
        }
        let pieces = unfold(self, |mut ask| async move {
            loop {
                match timeout(SILENCE, ask.replies.recv()).await {
                    Ok(Some(Reply::Text(text))) => return Some((Ok::<_, Infallible>(text), ask)),
                    Ok(Some(Reply::Alive)) => {}
                    Ok(Some(Reply::Over)) => {
                        ask.end();
                        return None;
                    }
                    _ => return None,
                }
            }
        });
        reply::relayed(status, headers, Body::from_stream(pieces))
    }
}
