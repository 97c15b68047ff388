//! A POST with a call that runs: waits for its events, writes its response, and cancels it when the client has
//! gone.

use super::access::TokenHolder;
use super::clients::SessionRequest;
use super::events::{QUIET, comment, event};
use super::{HttpServer, ServerStage, reply};
use crate::answer::EdgeReason;
use crate::edge::CleanBytes;
use crate::protocol::{ErrorCode, Id, RpcError, ServerMessage};
use crate::server::asking::{ClientRequests, ResumedCall};
use crate::server::calls::Calls;
use crate::server::handler::{AcceptedCall, Ticket};
use crate::server::mailbox::Mailbox;
use crate::server::outbox::{Outbox, Route};
use axum::http::StatusCode;
use axum::response::Response;
use futures_util::stream::unfold;
use ptc_runtime::upstream::ClientTag;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};

/// Time after which the response becomes a stream, so that the connection is not silent.
const LONG: Duration = Duration::from_secs(5);

/// Messages for one request, in order.
#[derive(Default)]
pub(super) struct ReplyBox {
    messages: VecDeque<Vec<u8>>,
    /// Error code, if the answer is a protocol error.
    code: Option<ErrorCode>,
}

impl ReplyBox {
    /// True when the answer is a protocol error.
    pub(super) fn is_error(&self) -> bool {
        self.code.is_some()
    }
}

impl Outbox for ReplyBox {
    fn write(&mut self, _: Route<'_>, write: impl FnOnce(&mut Vec<u8>)) {
        let mut message = Vec::with_capacity(256);
        write(&mut message);
        self.messages.push_back(message);
    }

    fn refuse(&mut self, id: &Id<'_>, error: &RpcError) {
        self.code = Some(error.code);
        self.send(Route::Request(id), ServerMessage::error(Some(id), error));
    }
}

/// The response types that a request accepts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    /// An event stream is accepted.
    pub(super) events: bool,
    /// A single JSON text is accepted.
    pub(super) json: bool,
    /// A protocol error also sets the HTTP status.
    pub(super) tells_status: bool,
}

impl ReplyBox {
    /// The whole response to a finished request.
    pub(super) fn answer(mut self, wish: Wish) -> Response {
        if wish.events && (self.messages.len() > 1 || !wish.json) {
            let pieces = self.messages.into_iter().map(|message| event(&message));
            return reply::events(futures_util::stream::iter(pieces));
        }
        let tells_status = wish.tells_status || self.code == Some(ErrorCode::Unavailable);
        let status = if tells_status { reply::status_of(self.code) } else { StatusCode::OK };
        // A single JSON text has no room for the notifications before the answer.
        reply::json(status, self.messages.pop_back().unwrap_or_default())
    }
}

/// A call that runs or waits. Dropping it cancels it.
pub(super) struct PostedCall {
    server: Arc<HttpServer>,
    holder: Arc<TokenHolder>,
    calls: Calls,
    mailbox: Arc<Mailbox>,
    ticket: Ticket,
    request: Option<SessionRequest>,
    /// Questions to the client, sent over the stream of this request.
    asked: Option<Arc<ClientRequests>>,
    told: ReplyBox,
}

impl Drop for PostedCall {
    fn drop(&mut self) {
        if let Some(asked) = &self.asked {
            asked.close();
        }
    }
}

impl PostedCall {
    /// Queues a call; returns the answer at once when it is refused.
    pub(super) fn begin(
        (server, holder): (&Arc<HttpServer>, &Arc<TokenHolder>),
        mut calls: Calls,
        call: AcceptedCall,
        bytes: usize,
        mut told: ReplyBox,
        request: Option<SessionRequest>,
        wish: Wish,
    ) -> Result<PostedCall, ReplyBox> {
        let asked = request.as_ref().filter(|_| wish.events).map(|request| request.asking(calls.mailbox()));
        let client = request.as_ref().map_or_else(ClientTag::unique, SessionRequest::client);
        calls.are_of(client, asked.clone());
        let ticket = call.ticket.unrecorded();
        if let Err((ticket, full)) = calls.admit(call, bytes) {
            calls.handler().refuse(ticket, EdgeReason::Busy, full.message(), &mut told);
            return Err(told);
        }
        let mailbox = calls.mailbox();
        let (server, holder) = (server.clone(), holder.clone());
        Ok(PostedCall { server, holder, calls, mailbox, ticket, request, asked, told })
    }

    /// Goes on with a run after its client was asked; returns the answer at once when there is no such run.
    pub(super) fn resume(
        (server, holder): (&Arc<HttpServer>, &Arc<TokenHolder>),
        mut calls: Calls,
        call: ResumedCall,
        mut told: ReplyBox,
    ) -> Result<PostedCall, ReplyBox> {
        let ticket = call.ticket.unrecorded();
        if !calls.resume(call, &mut told) {
            return Err(told);
        }
        let mailbox = calls.mailbox();
        let (server, holder) = (server.clone(), holder.clone());
        Ok(PostedCall { server, holder, calls, mailbox, ticket, request: None, asked: None, told })
    }

    /// Responds with one JSON text if the call ends soon and sends nothing before; otherwise with a stream.
    pub(super) async fn answer(mut self, wish: Wish) -> Response {
        if wish.json {
            let limit = if wish.events { LONG } else { Duration::MAX };
            let over = timeout(limit, async {
                while !(self.is_over() || wish.events && self.has_told()) {
                    self.more().await;
                }
            })
            .await;
            if over.is_ok() && self.is_over() {
                return std::mem::take(&mut self.told).answer(wish);
            }
        }
        reply::events(unfold(self, |mut call| async move {
            let piece = call.piece().await?;
            Some((piece, call))
        }))
    }

    /// The next event; `None` after the last.
    async fn piece(&mut self) -> Option<CleanBytes> {
        loop {
            if let Some(message) = self.told.messages.pop_front() {
                return Some(event(&message));
            }
            if self.is_over() {
                return None;
            }
            if timeout(QUIET, self.more()).await.is_err() {
                return Some(comment());
            }
        }
    }

    fn is_over(&self) -> bool {
        self.calls.in_flight() == 0
    }

    fn has_told(&self) -> bool {
        !self.told.messages.is_empty()
    }

    fn cancel(&mut self, why: &str) {
        self.calls.cancel(&self.ticket.id);
        let ticket = self.ticket.unrecorded();
        self.calls.handler().clone().refuse(ticket, EdgeReason::Cancelled, why, &mut self.told);
    }

    /// Waits for the next event and handles it. It is cancel-safe.
    async fn more(&mut self) {
        let report = self.calls.next_report();
        let report_at = report.unwrap_or_else(Instant::now);
        let cancelled = async {
            match &self.request {
                Some(request) => request.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.mailbox.arrival() => {
                let now = Instant::now();
                for message in self.asked.iter().flat_map(|asked| asked.take()) {
                    self.told.send(Route::Connection, message);
                }
                for (slot, event) in self.mailbox.take() {
                    self.calls.handle(slot, event, now, &mut self.told);
                }
                // The call may have been parked after the work of its token was ended.
                if self.holder.is_over() {
                    self.server.parked.end_of(self.holder.owner);
                }
            }
            () = sleep_until(report_at), if report.is_some() => self.calls.report(Instant::now(), &mut self.told),
            () = cancelled => self.cancel("the request was cancelled"),
            () = self.holder.over() => self.cancel("the token of the call is good no longer, so it was cancelled"),
            () = self.server.reached(ServerStage::Ending) => {
                self.calls.cancel(&self.ticket.id);
                self.told.refuse(&self.ticket.id, &RpcError::new(ErrorCode::Unavailable, "server draining"));
            }
        }
    }
}
