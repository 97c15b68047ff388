//! Runs the tool call that an HTTP POST asks for: starts, resumes or awaits it, writes the response (JSON or an event
//! stream), and cancels the call when the client has gone.

use super::access::TokenHolder;
use super::events::{QUIET, comment, event};
use super::sessions::SessionRequest;
use super::{HttpServer, ServerStage, reply};
use crate::answer::RefusalReason;
use crate::protocol::{Era, ErrorCode, Id, RpcError, ServerMessage};
use crate::redact::RedactedBytes;
use crate::server::calls::Calls;
use crate::server::detached::AwaitedTask;
use crate::server::handler::{AcceptedCall, Ticket};
use crate::server::input_required::{ClientRequests, ResumedCall};
use crate::server::mailbox::Mailbox;
use crate::server::outbox::{Outbox, Route};
use axum::http::StatusCode;
use axum::response::Response;
use futures_util::stream::unfold;
use ptc_upstream::ClientTag;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};

/// Time after which the response becomes a stream, so that the connection is not silent.
const LONG: Duration = Duration::from_secs(5);

/// The answer to a call with a token that was revoked meanwhile.
pub(super) const REVOKED: &str = "the token of the call is good no longer, so it was cancelled";

/// Messages for one request, in order.
#[derive(Default)]
pub(super) struct ReplyBuffer {
    messages: VecDeque<Vec<u8>>,
    /// Error code, if the answer is a protocol error.
    code: Option<ErrorCode>,
}

impl ReplyBuffer {
    /// True when the answer is a protocol error.
    pub(super) fn is_error(&self) -> bool {
        self.code.is_some()
    }
}

impl Outbox for ReplyBuffer {
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
pub(super) struct AcceptedTypes {
    /// An event stream is accepted.
    pub(super) events: bool,
    /// A single JSON text is accepted.
    pub(super) json: bool,
    /// A protocol error also sets the HTTP status.
    pub(super) sets_status: bool,
}

impl ReplyBuffer {
    /// The whole response to a finished request.
    pub(super) fn answer(mut self, accepted: AcceptedTypes) -> Response {
        if accepted.events && (self.messages.len() > 1 || !accepted.json) {
            let pieces = self.messages.into_iter().map(|message| event(&message));
            return reply::events(futures_util::stream::iter(pieces));
        }
        let sets_status = accepted.sets_status || self.code == Some(ErrorCode::Unavailable);
        let status = if sets_status { reply::status(self.code) } else { StatusCode::OK };
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
    buffer: ReplyBuffer,
}

impl Drop for PostedCall {
    fn drop(&mut self) {
        if let Some(asked) = &self.asked {
            asked.close();
        }
    }
}

impl PostedCall {
    /// Starts or queues a call; returns the answer at once when it is refused.
    pub(super) fn begin(
        (server, holder): (&Arc<HttpServer>, &Arc<TokenHolder>),
        mut calls: Calls,
        call: Box<AcceptedCall>,
        bytes: usize,
        mut buffer: ReplyBuffer,
        request: Option<SessionRequest>,
        accepted: AcceptedTypes,
    ) -> Result<PostedCall, ReplyBuffer> {
        let asked = request
            .as_ref()
            .filter(|_| accepted.events)
            .map(|request| request.questions(calls.mailbox.clone()));
        let client = request.as_ref().map_or_else(ClientTag::unique, SessionRequest::client);
        calls.set_caller(client, holder.identity(), asked.clone());
        let ticket = call.ticket.unrecorded();
        if let Err((ticket, full)) = calls.admit(call, bytes, &mut buffer) {
            calls.handler.refuse(ticket, RefusalReason::Busy, full.message(), &mut buffer);
            return Err(buffer);
        }
        let mailbox = calls.mailbox.clone();
        let (server, holder) = (server.clone(), holder.clone());
        let posted = PostedCall { server, holder, calls, mailbox, ticket, request, asked, buffer };
        posted.end_if_revoked();
        Ok(posted)
    }

    /// Goes on with a run after its client was asked; returns the answer at once when there is no such run.
    pub(super) fn resume(
        (server, holder): (&Arc<HttpServer>, &Arc<TokenHolder>),
        mut calls: Calls,
        call: ResumedCall,
        mut buffer: ReplyBuffer,
    ) -> Result<PostedCall, ReplyBuffer> {
        let ticket = call.ticket.unrecorded();
        if !calls.resume(call, &mut buffer) {
            return Err(buffer);
        }
        let mailbox = calls.mailbox.clone();
        let (server, holder) = (server.clone(), holder.clone());
        Ok(PostedCall { server, holder, calls, mailbox, ticket, request: None, asked: None, buffer })
    }

    /// Waits for the end of a task.
    pub(super) fn await_task(
        (server, holder): (&Arc<HttpServer>, &Arc<TokenHolder>),
        mut calls: Calls,
        awaited: AwaitedTask,
        era: Era,
        buffer: ReplyBuffer,
        request: Option<SessionRequest>,
    ) -> PostedCall {
        let ticket = Ticket::without_record(&awaited.id, era);
        calls.await_task(awaited);
        let mailbox = calls.mailbox.clone();
        let (server, holder) = (server.clone(), holder.clone());
        PostedCall { server, holder, calls, mailbox, ticket, request, asked: None, buffer }
    }

    /// Responds with one JSON text if the call ends soon and sends nothing before; otherwise with a stream.
    pub(super) async fn answer(mut self, accepted: AcceptedTypes) -> Response {
        if accepted.json {
            let limit = if accepted.events { LONG } else { Duration::MAX };
            let over = timeout(limit, async {
                while !(self.is_over() || accepted.events && self.has_messages()) {
                    self.handle_next().await;
                }
            })
            .await;
            if over.is_ok() && self.is_over() {
                return std::mem::take(&mut self.buffer).answer(accepted);
            }
        }
        reply::events(unfold(self, |mut call| async move {
            let next_event = call.next_event().await?;
            Some((next_event, call))
        }))
    }

    /// The next event; `None` after the last.
    async fn next_event(&mut self) -> Option<RedactedBytes> {
        loop {
            if let Some(message) = self.buffer.messages.pop_front() {
                return Some(event(&message));
            }
            if self.is_over() {
                return None;
            }
            if timeout(QUIET, self.handle_next()).await.is_err() {
                return Some(comment());
            }
        }
    }

    fn is_over(&self) -> bool {
        self.calls.in_flight() == 0
    }

    fn has_messages(&self) -> bool {
        !self.buffer.messages.is_empty()
    }

    fn cancel(&mut self, why: &str) {
        self.calls.cancel(&self.ticket.id);
        self.refuse_cancelled(why);
    }

    fn refuse_cancelled(&mut self, why: &str) {
        let ticket = self.ticket.unrecorded();
        self.calls.handler.clone().refuse(ticket, RefusalReason::Cancelled, why, &mut self.buffer);
    }

    /// The call may have been parked, or gone on without its request, after the work of its token was ended.
    fn end_if_revoked(&self) {
        if self.holder.is_revoked() {
            self.server.parked.end_all(self.holder.owner);
            if !self.holder.is_of_issuer() {
                self.calls.handler.detached.end_all(self.holder.owner);
            }
        }
    }

    /// Handles the events so far.
    fn take_events(&mut self) {
        let now = Instant::now();
        for message in self.asked.iter().flat_map(|asked| asked.take()) {
            self.buffer.send(Route::Connection, message);
        }
        for (slot, event) in self.mailbox.take() {
            self.calls.handle(slot, event, now, &mut self.buffer);
        }
        self.end_if_revoked();
    }

    /// Waits for the next event and handles it. It is cancel-safe.
    async fn handle_next(&mut self) {
        let report = self.calls.next_report();
        let report_at = report.unwrap_or_else(Instant::now);
        let cancelled = async {
            match &self.request {
                Some(request) => request.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.mailbox.arrival() => self.take_events(),
            () = sleep_until(report_at), if report.is_some() => self.calls.report(Instant::now(), &mut self.buffer),
            () = cancelled => {
                // What was reported before counts.
                self.take_events();
                if self.calls.cancel_for_client(&self.ticket.id) {
                    self.refuse_cancelled("the request was cancelled");
                }
            }
            () = self.holder.revoked() => self.cancel(REVOKED),
            () = self.server.reached(ServerStage::Ending) => {
                self.calls.cancel(&self.ticket.id);
                self.buffer.refuse(&self.ticket.id, &RpcError::new(ErrorCode::Unavailable, "server draining"));
            }
        }
    }
}
