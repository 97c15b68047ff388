//! Sends server-sent events over HTTP: encodes messages as events, and streams a notification when the tool list or a
//! task changes.
//!
//! Apart from tasks that a client follows, the only unsolicited notification is that the tool list has changed, and one
//! is as good as ten. So the
//! number of the list is the id of an event, and nothing has to be stored for a client that reconnects: it is
//! notified when the last number it saw is not the current one. Which list that is follows from the token that
//! is valid now. So a stream also notifies when the token gets other servers, and it ends with the token.

use super::access::TokenHolder;
use super::handlers::ListVersion;
use super::sessions::{Listening, WebSession};
use super::{HttpServer, ServerStage, ToolListState, reply};
use crate::protocol::{ServerMessage, Version, notify};
use crate::redact::{self, Form, RedactedBytes, shapes};
use crate::server::detached::{self, DetachedRun, Watcher};
use crate::server::handler::Subscription;
use crate::server::mailbox::Mailbox;
use axum::response::Response;
use futures_util::stream::unfold;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// Silence after which a comment is sent, because a proxy may close a silent connection.
pub(super) const QUIET: Duration = Duration::from_secs(15);

/// A comment; clients ignore it.
pub(super) fn comment() -> RedactedBytes {
    RedactedBytes::constant(": \n\n")
}

/// Encodes a message as an event. Our messages contain no newline.
pub(super) fn event(message: &[u8]) -> RedactedBytes {
    numbered("", message)
}

fn numbered(id: &str, message: &[u8]) -> RedactedBytes {
    redact::clean(message.to_vec(), Form::Json(&shapes::MCP))
        .framed(&format!("{id}event: message\ndata: "), "\n\n")
}

/// A stream ends: the server drains, the session is closed, or the token is no longer valid.
struct StreamEnded;

/// What a notification stream waits for.
struct Changes {
    server: Arc<HttpServer>,
    holder: Arc<TokenHolder>,
    tools: watch::Receiver<ToolListState>,
    stage: watch::Receiver<ServerStage>,
    session: Option<Arc<WebSession>>,
    /// The list that the client knows; `None`: none of this process.
    known: Option<ListVersion>,
}

impl Changes {
    fn new(
        server: &Arc<HttpServer>,
        holder: &Arc<TokenHolder>,
        session: Option<Arc<WebSession>>,
        known: Option<ListVersion>,
    ) -> Changes {
        let (tools, stage) = (server.tools.subscribe(), server.stage.subscribe());
        Changes { server: server.clone(), holder: holder.clone(), tools, stage, session, known }
    }

    /// Waits for the next change. It is cancel-safe.
    async fn next(&mut self) -> Result<(), StreamEnded> {
        let closed = async {
            match &self.session {
                Some(session) => session.closed().await,
                None => std::future::pending().await,
            }
        };
        let changed = async {
            loop {
                let Some(now) = self.server.list_for(&self.holder) else { return Err(StreamEnded) };
                if self.known.replace(now) != Some(now) {
                    return Ok(());
                }
                // We hold the server, and so the sender.
                let _ = self.tools.changed().await;
            }
        };
        tokio::select! {
            biased;
            _ = self.stage.wait_for(|stage| *stage >= ServerStage::Draining) => Err(StreamEnded),
            () = closed => Err(StreamEnded),
            () = self.holder.issued_token_ends() => Err(StreamEnded),
            changed = changed => changed,
        }
    }

    fn id(&self, listening: &Listening) -> String {
        let ListVersion(known) = self.known.unwrap_or(ListVersion::UNKNOWN);
        format!("id: {:x}-{known}-{}\n", self.server.boot, listening.number)
    }
}

/// The stream that a client of the handshake era opens with GET. Each change is sent on one stream of the
/// session only: the newest that is open. `last` is the id of the last event that the client has seen.
pub(super) fn listen(
    server: &Arc<HttpServer>,
    holder: &Arc<TokenHolder>,
    session: Arc<WebSession>,
    last: Option<&str>,
) -> Response {
    let known = match last {
        // An id of an earlier process is no number of ours: the client has missed the current list.
        Some(last) => last
            .split_once('-')
            .filter(|(boot, _)| u64::from_str_radix(boot, 16) == Ok(server.boot))
            .and_then(|(_, known)| known.split('-').next()?.parse().ok())
            .map(ListVersion),
        None => Some(session.initial_list),
    };
    let version = session.version;
    let listening = session.listen();
    let changes = Changes::new(server, holder, Some(session), known);
    let pieces = unfold(Some((changes, listening, true)), move |state| async move {
        let (mut changes, listening, is_first) = state?;
        if is_first {
            // The event id to reconnect with. Clients before 2025-11-25 take an empty event for a broken
            // message.
            let empty = if version == Version::V2025November { "data:\n\n" } else { "\n" };
            let first = RedactedBytes::default().framed(&changes.id(&listening), empty);
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
    holder: &Arc<TokenHolder>,
    subscription: Subscription,
) -> Response {
    let changes = Changes::new(server, holder, None, server.list_for(holder));
    let tasks = FollowedTasks::new(subscription.tasks.clone().unwrap_or_default());
    let pieces = unfold(Some((changes, tasks, subscription, true)), |state| async move {
        let (mut changes, mut tasks, subscription, is_first) = state?;
        let id = &subscription.id;
        let send = |message: ServerMessage| event(message.as_bytes());
        if is_first {
            let first = send(subscription.acknowledged());
            return Some((first, Some((changes, tasks, subscription, false))));
        }
        loop {
            let next = async {
                tokio::select! {
                    run = tasks.next() => Ok(Some(run)),
                    change = changes.next() => change.map(|()| None),
                }
            };
            match timeout(QUIET, next).await {
                Err(_) => return Some((comment(), Some((changes, tasks, subscription, false)))),
                Ok(Ok(Some(run))) => {
                    let message = detached::notification(&run, Some(id));
                    return Some((send(message), Some((changes, tasks, subscription, false))));
                }
                Ok(Ok(None)) if !subscription.tools_list_changed => {}
                Ok(Ok(None)) => {
                    let message = notify::tools_list_changed(Some(id));
                    return Some((send(message), Some((changes, tasks, subscription, false))));
                }
                // The orderly end is a response.
                Ok(Err(_)) => return Some((send(notify::subscription_ended(id)), None)),
            }
        }
    });
    reply::events(pieces)
}

/// The tasks that a stream follows.
struct FollowedTasks {
    /// Each with the change that the client knows.
    tasks: Vec<(Arc<DetachedRun>, u64)>,
    mailbox: Arc<Mailbox>,
}

impl FollowedTasks {
    fn new(runs: Vec<Arc<DetachedRun>>) -> FollowedTasks {
        let mailbox = Arc::<Mailbox>::default();
        for run in &runs {
            run.watch(Watcher { mailbox: Arc::downgrade(&mailbox), slot: None });
        }
        // A change before the subscription is reported, too.
        FollowedTasks { tasks: runs.into_iter().map(|run| (run, 0)).collect(), mailbox }
    }

    /// The next task that has changed. It is cancel-safe.
    async fn next(&mut self) -> Arc<DetachedRun> {
        loop {
            let changed = self.tasks.iter().position(|(run, seen)| run.version() != *seen);
            let Some(changed) = changed else {
                self.mailbox.arrival().await;
                continue;
            };
            let (run, seen) = &mut self.tasks[changed];
            *seen = run.version();
            let run = run.clone();
            if run.is_over() && run.version() == *seen {
                self.tasks.swap_remove(changed);
            }
            return run;
        }
    }
}
