//! Server-sent events: how a message becomes one, and streams that tell of changes.
//!
//! All that a stream can tell unasked is that the tool list is another one, which is the same said once or ten times. So
//! the number of changes so far is the id of an event, and nothing has to be kept for a client that comes back: it is
//! told when the number it saw last is not that of now.

use super::clients::{Listening, WebSession};
use super::{HttpServer, ServerStage, ToolsSeen, reply};
use crate::edge::{self, CleanBytes, Form, shapes};
use crate::protocol::{ServerMessage, Version, notify};
use crate::server::handler::Subscription;
use axum::response::Response;
use futures_util::stream::unfold;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// How long nothing is sent before a comment is, for who stands between and closes what is quiet.
pub(super) const QUIET: Duration = Duration::from_secs(15);

/// A comment, which nobody reads.
pub(super) fn comment() -> CleanBytes {
    CleanBytes::constant(": \n\n")
}

/// A message as an event. Messages of ours have no newline in them.
pub(super) fn event(message: &[u8]) -> CleanBytes {
    numbered("", message)
}

fn numbered(id: &str, message: &[u8]) -> CleanBytes {
    edge::clean(message.to_vec(), Form::Json(&shapes::MCP))
        .framed(&format!("{id}event: message\ndata: "), "\n\n")
}

/// A stream has nothing more to tell: the server drains, or the session is closed.
struct Ended;

/// What a stream of changes waits for.
struct Changes {
    server: Arc<HttpServer>,
    tools: watch::Receiver<ToolsSeen>,
    stage: watch::Receiver<ServerStage>,
    session: Option<Arc<WebSession>>,
    /// The number of changes that the client knows of.
    known: u64,
}

impl Changes {
    fn new(server: &Arc<HttpServer>, session: Option<Arc<WebSession>>, known: Option<u64>) -> Changes {
        let tools = server.tools.subscribe();
        let known = known.unwrap_or(tools.borrow().changes);
        Changes { server: server.clone(), tools, stage: server.stage.subscribe(), session, known }
    }

    /// Waits for the next change.
    async fn next(&mut self) -> Result<u64, Ended> {
        let known = self.known;
        let closed = async {
            match &self.session {
                Some(session) => session.closed().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            _ = self.stage.wait_for(|stage| *stage >= ServerStage::Draining) => Err(Ended),
            () = closed => Err(Ended),
            seen = self.tools.wait_for(|seen| seen.changes != known) => {
                // The sender lives as long as the server, which is held.
                self.known = seen.map_or(known, |seen| seen.changes);
                Ok(self.known)
            }
        }
    }

    fn id(&self, listening: &Listening) -> String {
        format!("id: {:x}-{}-{}\n", self.server.boot, self.known, listening.number())
    }
}

/// The stream that a client of the handshake era opens with GET. Of several of one session the newest one tells of changes,
/// since each is told once; when it ends the one before it does again. `last` is the id of the last event it has seen.
pub(super) fn listen(server: &Arc<HttpServer>, session: Arc<WebSession>, last: Option<&str>) -> Response {
    let known = match last {
        // An id of another life of the server is no number of ours: the client has missed what there is now.
        Some(last) => last
            .split_once('-')
            .filter(|(boot, _)| u64::from_str_radix(boot, 16) == Ok(server.boot))
            .and_then(|(_, known)| known.split('-').next()?.parse().ok())
            .unwrap_or(u64::MAX),
        None => session.tools_seen,
    };
    let version = session.version;
    let listening = session.listen();
    let changes = Changes::new(server, Some(session), Some(known));
    let pieces = unfold(Some((changes, listening, true)), move |state| async move {
        let (mut changes, listening, is_first) = state?;
        if is_first {
            // Where to come back to. Clients before 2025-11-25 take an empty event for a broken message.
            let empty = if version == Version::V2025November { "data:\n\n" } else { "\n" };
            let first = CleanBytes::default().framed(&changes.id(&listening), empty);
            return Some((first, Some((changes, listening, false))));
        }
        loop {
            match timeout(QUIET, changes.next()).await {
                Err(_) => return Some((comment(), Some((changes, listening, false)))),
                Ok(Ok(_)) if !listening.is_newest() => {}
                Ok(Ok(_)) => {
                    let message = notify::tools_list_changed(None);
                    let event = numbered(&changes.id(&listening), message.as_bytes());
                    return Some((event, Some((changes, listening, false))));
                }
                Ok(Err(_)) => return None,
            }
        }
    });
    reply::events(pieces)
}

/// The stream of a subscription of the stateless era.
pub(super) fn subscription(server: &Arc<HttpServer>, subscription: Subscription) -> Response {
    let changes = Changes::new(server, None, None);
    let pieces = unfold(Some((changes, subscription, true)), |state| async move {
        let (mut changes, subscription, is_first) = state?;
        let id = &subscription.id;
        let send = |message: ServerMessage| event(message.as_bytes());
        if is_first {
            let message = notify::subscription_acknowledged(id, subscription.tools_list_changed);
            return Some((send(message), Some((changes, subscription, false))));
        }
        loop {
            match timeout(QUIET, changes.next()).await {
                Err(_) => return Some((comment(), Some((changes, subscription, false)))),
                Ok(Ok(_)) if !subscription.tools_list_changed => {}
                Ok(Ok(_)) => {
                    let message = notify::tools_list_changed(Some(id));
                    return Some((send(message), Some((changes, subscription, false))));
                }
                // The orderly end is an answer.
                Ok(Err(_)) => return Some((send(notify::subscription_ended(id)), None)),
            }
        }
    });
    reply::events(pieces)
}
