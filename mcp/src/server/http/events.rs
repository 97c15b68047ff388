//! Server-sent events: how a message becomes one, and streams that tell of changes.
//!
//! All that a stream can tell unasked is that the tool list is another one, which is the same said once or ten times. So
//! the number of the list is the id of an event, and nothing has to be kept for a client that comes back: it is told when
//! the number it saw last is not that of now. Whose list that is, the token says that is good now, so a stream also tells
//! of a token that is given other servers, and ends with it.

use super::clients::{Listening, WebSession};
use super::handlers::ListNumber;
use super::{HttpServer, ServerStage, ToolsSeen, reply};
use crate::edge::{self, CleanBytes, Form, shapes};
use crate::protocol::{ServerMessage, Version, notify};
use crate::server::handler::Subscription;
use crate::tools::CallOwner;
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

/// A stream has nothing more to tell: the server drains, the session is closed, or the token is good no longer.
struct Ended;

/// What a stream of changes waits for.
struct Changes {
    server: Arc<HttpServer>,
    owner: CallOwner,
    tools: watch::Receiver<ToolsSeen>,
    stage: watch::Receiver<ServerStage>,
    session: Option<Arc<WebSession>>,
    /// The list that the client knows; `None`: none of ours.
    known: Option<ListNumber>,
}

impl Changes {
    fn new(
        server: &Arc<HttpServer>,
        owner: CallOwner,
        session: Option<Arc<WebSession>>,
        known: Option<ListNumber>,
    ) -> Changes {
        let (tools, stage) = (server.tools.subscribe(), server.stage.subscribe());
        Changes { server: server.clone(), owner, tools, stage, session, known }
    }

    /// Waits for the next change. May be dropped while it waits.
    async fn next(&mut self) -> Result<(), Ended> {
        let closed = async {
            match &self.session {
                Some(session) => session.closed().await,
                None => std::future::pending().await,
            }
        };
        let changed = async {
            loop {
                let Some(now) = self.server.list_of(self.owner) else { return Err(Ended) };
                if self.known.replace(now) != Some(now) {
                    return Ok(());
                }
                // The sender lives as long as the server, which is held.
                let _ = self.tools.changed().await;
            }
        };
        tokio::select! {
            biased;
            _ = self.stage.wait_for(|stage| *stage >= ServerStage::Draining) => Err(Ended),
            () = closed => Err(Ended),
            changed = changed => changed,
        }
    }

    fn id(&self, listening: &Listening) -> String {
        // No list has the last number.
        let known = self.known.map_or(u64::MAX, |known| known.0);
        format!("id: {:x}-{known}-{}\n", self.server.boot, listening.number())
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
            .map(ListNumber),
        None => Some(session.tools_seen),
    };
    let version = session.version;
    let listening = session.listen();
    let changes = Changes::new(server, session.owner, Some(session), known);
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
                Ok(Ok(())) if !listening.is_newest() => {}
                Ok(Ok(())) => {
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
pub(super) fn subscription(
    server: &Arc<HttpServer>,
    owner: CallOwner,
    subscription: Subscription,
) -> Response {
    let changes = Changes::new(server, owner, None, server.list_of(owner));
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
                Ok(Ok(())) if !subscription.tools_list_changed => {}
                Ok(Ok(())) => {
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
