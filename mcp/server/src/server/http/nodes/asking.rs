//! Relays a client's request to the node (server process) that holds the task or waiting run it is about, and streams
//! the answer of that node to the client.

use super::message::{AskedRequest, Claim, Inability, NodeMessage, Reply, received_headers};
use super::{MessageLost, Nodes};
use crate::server::http::reply;
use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use futures_util::stream::unfold;
use ptc_base::sync::Locked;
use std::collections::HashMap;
use std::io;
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
    asks: Mutex<HashMap<u64, OpenAsk>>,
}

/// Where the answer to a request goes.
struct OpenAsk {
    /// The node that answers: the first that has said something. Several nodes can have a call that is over.
    node: Option<String>,
    parts: mpsc::Sender<NumberedPart>,
}

/// A part of an answer, and how many went before it.
type NumberedPart = (u64, Reply);

impl OpenAsks {
    /// Passes on a part of an answer of a node. Parts of other nodes are dropped.
    pub(super) fn pass_on(&self, from: String, id: u64, part: NumberedPart) {
        let mut open = self.asks.locked();
        let Some(ask) = open.get_mut(&id) else { return };
        if *ask.node.get_or_insert_with(|| from.clone()) == from && ask.parts.try_send(part).is_err() {
            open.remove(&id);
        }
    }
}

/// The parts of an answer, in order.
struct Parts {
    received: mpsc::Receiver<NumberedPart>,
    /// Number of the next one.
    next: u64,
}

impl Parts {
    /// The next part. `None`: nothing came within this time, or a part is missing, or this node was too slow for it.
    async fn next(&mut self, within: Duration) -> Option<Reply> {
        let (number, reply) = timeout(within, self.received.recv()).await.ok()??;
        if number != self.next {
            return None;
        }
        match reply {
            Reply::Alive => {}
            _ => self.next += 1,
        }
        Some(reply)
    }

    /// The text of a body, after its head. Ends after the last part; an error breaks the connection of the client, so that
    /// it does not take a part of a body for the whole.
    async fn text(&mut self) -> Option<io::Result<String>> {
        loop {
            match self.next(SILENCE).await {
                Some(Reply::Text(text)) => return Some(Ok(text)),
                Some(Reply::Alive) => {}
                Some(Reply::Over) => return None,
                _ => return Some(Err(io::Error::other("a part of the answer of another node is lost"))),
            }
        }
    }
}

/// A request that another node answers. Dropping it says that its client has gone.
struct Ask {
    nodes: Arc<Nodes>,
    id: u64,
    parts: Parts,
    is_over: bool,
}

impl Drop for Ask {
    fn drop(&mut self) {
        self.nodes.open.asks.locked().remove(&self.id);
        if !self.is_over {
            self.nodes.send_soon(NodeMessage::Left { id: self.id });
        }
    }
}

impl Nodes {
    fn begin_ask(self: &Arc<Nodes>) -> Option<Ask> {
        let id = self.open.next.fetch_add(1, Ordering::Relaxed);
        let (sender, received) = mpsc::channel(MOST_PARTS);
        let mut open = self.open.asks.locked();
        if open.len() >= MOST {
            return None;
        }
        open.insert(id, OpenAsk { node: None, parts: sender });
        Some(Ask { nodes: self.clone(), id, parts: Parts { received, next: 0 }, is_over: false })
    }

    /// Lets the node that has what a request needs answer it.
    pub(in crate::server::http) async fn ask(self: &Arc<Nodes>, request: &AskedRequest) -> Asked {
        let Some(mut ask) = self.begin_ask() else {
            return Asked::Cannot(reply::ask_again("too many requests wait for other nodes; ask again"));
        };
        match ask.begin(request).await {
            Ok(Some(Reply::Cannot(why))) => {
                ask.is_over = true;
                Asked::Cannot(reply::ask_again(match why {
                    Inability::NoToken => {
                        "the node that has the call does not know this token yet; ask again"
                    }
                    Inability::Busy => "the node that has the call answers too many others; ask again",
                }))
            }
            Ok(Some(first)) => Asked::Answered(ask.response(first).await),
            Ok(None) => Asked::Silence,
            Err(MessageLost) => Asked::Cannot(reply::ask_again("other nodes cannot be asked; ask again")),
        }
    }
}

/// What has become of a request to other nodes.
pub(in crate::server::http) enum Asked {
    /// The node that has what it needs has answered, or has begun to.
    Answered(Response),
    /// A node has what it needs and cannot answer, or none can be asked: the answer if the store has nothing better.
    Cannot(Response),
    /// All were asked, and none has said that it has what the request needs.
    Silence,
}

/// The answer when it is not known what another node would say.
impl Ask {
    /// What the node says first that has what the request needs.
    async fn begin(&mut self, request: &AskedRequest) -> Result<Option<Reply>, MessageLost> {
        let (nodes, id) = (self.nodes.clone(), self.id);
        // A request that a silent node reads late would use up its state.
        if request.sent.body.len() > SMALL || matches!(request.claim, Claim::State(_)) {
            let (owner, claim) = (request.sent.owner, request.claim.clone());
            nodes.try_send(NodeMessage::Find { id, owner, claim }).await?;
            if self.parts.next(TAKEN_WITHIN).await.is_none() {
                return Ok(None);
            }
        }
        nodes.try_send(NodeMessage::Ask { id, request: request.sent.clone() }).await?;
        Ok(self.parts.next(TAKEN_WITHIN).await)
    }

    async fn response(mut self, first: Reply) -> Response {
        let mut reply = Some(first);
        let (status, headers, whole) = loop {
            match reply {
                Some(Reply::Alive) => reply = self.parts.next(SILENCE).await,
                Some(Reply::Head { status, headers }) => break (status, headers, None),
                Some(Reply::Whole { status, headers, text }) => break (status, headers, Some(text)),
                Some(Reply::Text(_) | Reply::Over | Reply::Cannot(_)) | None => {
                    let why = "the node that has the call does not answer any more";
                    return reply::unavailable(StatusCode::SERVICE_UNAVAILABLE, None, why);
                }
            }
        };
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
        let headers = received_headers(headers);
        if let Some(text) = whole {
            self.is_over = true;
            return reply::relayed(status, headers, Body::from(text));
        }
        // Dropped with the body, and after an error.
        let pieces = unfold(Some(self), |ask| async move {
            let mut ask = ask?;
            match ask.parts.text().await {
                Some(Ok(text)) => Some((Ok(text), Some(ask))),
                Some(Err(error)) => Some((Err(error), None)),
                None => {
                    ask.is_over = true;
                    None
                }
            }
        });
        reply::relayed(status, headers, Body::from_stream(pieces))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts of a body of which these parts come, and whether it ends well.
    async fn body(parts: Vec<NumberedPart>) -> (String, bool) {
        let (sender, received) = mpsc::channel(MOST_PARTS);
        for part in parts {
            sender.try_send(part).unwrap();
        }
        // As when this node was too slow.
        drop(sender);
        let (mut parts, mut whole) = (Parts { received, next: 1 }, String::new());
        loop {
            match parts.text().await {
                Some(Ok(text)) => whole.push_str(&text),
                Some(Err(_)) => return (whole, false),
                None => return (whole, true),
            }
        }
    }

    fn text(text: &str) -> Reply {
        Reply::Text(text.to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_with_a_part_that_is_lost_breaks() {
        let good = vec![(1, text("a")), (2, Reply::Alive), (2, text("b")), (3, Reply::Over)];
        assert_eq!(body(good).await, ("ab".to_owned(), true));
        let lost: [Vec<NumberedPart>; 5] = [
            vec![(1, text("a")), (3, Reply::Over)],
            vec![(1, text("a")), (3, text("c")), (4, Reply::Over)],
            vec![(1, text("a")), (3, Reply::Alive), (2, text("b")), (3, Reply::Over)],
            vec![(1, text("a")), (2, Reply::Whole { status: 200, headers: Vec::new(), text: String::new() })],
            vec![(1, text("a"))],
        ];
        for parts in lost {
            assert_eq!(body(parts).await, ("a".to_owned(), false));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_of_a_node_that_says_nothing_more_breaks() {
        let (_sender, received) = mpsc::channel(1);
        assert!(Parts { received, next: 1 }.text().await.unwrap().is_err());
    }
}
