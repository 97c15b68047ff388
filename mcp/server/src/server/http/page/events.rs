//! Pushes changes of the server's web page (`--ui`: calls, servers, approvals) to an open browser as server-sent
//! events, until the user's login to the page ends or the server shuts down.

use super::{Inside, Visit};
use crate::redact::RedactedBytes;
use crate::server::http::access::TokenHolder;
use crate::server::http::events::{QUIET, comment, event};
use crate::server::http::page::visits::StreamPermit;
use crate::server::http::{HttpServer, ServerStage, reply};
use crate::tools::session::SessionTable;
use crate::ui::View;
use crate::ui::feed::{Feed, PAUSE};
use axum::http::StatusCode;
use axum::response::Response;
use futures_util::stream::unfold;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::watch;
use tokio::time::sleep;

/// A reader.
struct Reader {
    server: Arc<HttpServer>,
    stage: watch::Receiver<ServerStage>,
    feed: Feed,
    visit: Arc<Visit>,
    holder: Arc<TokenHolder>,
    sessions: Option<Arc<SessionTable>>,
    /// When something was last sent; `None`: nothing yet.
    sent: Option<Instant>,
    _permit: StreamPermit,
}

/// The events of a view. The stream ends with the visit, and when the server drains.
pub(super) fn stream(server: &Arc<HttpServer>, inside: Inside<'_>, view: View) -> Response {
    let Inside { served, visit, holder, viewer, sessions } = inside;
    if server.is_draining() {
        return reply::text(StatusCode::SERVICE_UNAVAILABLE, "server draining");
    }
    let Some(permit) = served.door.visits.stream(&visit) else {
        return reply::retry_after(reply::text(StatusCode::TOO_MANY_REQUESTS, "too many views are open"), 5);
    };
    let reader = Reader {
        server: server.clone(),
        stage: server.stage.subscribe(),
        feed: Feed::new(view, viewer),
        visit,
        holder,
        sessions,
        sent: None,
        _permit: permit,
    };
    reply::events(unfold(reader, async |mut reader| {
        let event = reader.next().await?;
        Some((event, reader))
    }))
}

impl Reader {
    /// What is sent next; `None`: the stream ends.
    async fn next(&mut self) -> Option<RedactedBytes> {
        loop {
            if self.sent.is_some() {
                tokio::select! {
                    _ = self.stage.wait_for(|stage| *stage >= ServerStage::Draining) => return None,
                    () = sleep(PAUSE) => {}
                }
            }
            // A token that was edited may see other things: the reader comes again.
            let holder = self.visit.holder(&self.server.access)?;
            if !Arc::ptr_eq(&holder, &self.holder) {
                return None;
            }
            let served = self.server.page.as_ref()?;
            let news = self.feed.next(&served.page, self.sessions.as_ref()).await;
            let is_quiet = self.sent.is_none_or(|sent| sent.elapsed() >= QUIET);
            match news {
                Some(text) => {
                    self.sent = Some(Instant::now());
                    return Some(event(&text));
                }
                None if is_quiet => {
                    self.sent = Some(Instant::now());
                    return Some(comment());
                }
                None => {}
            }
        }
    }
}
