//! Serves one client connection over any transport: reads the client's messages, starts the tool calls, and sends back
//! answers, notifications, and requests that upstream MCP servers make to the client.

use super::calls::Calls;
use super::connection_state::{ConnectionState, offered};
use super::detached::{self, DetachedRun, Watcher};
use super::gate::{Gate, TenantLimits};
use super::handler::{Action, Handler, Subscription};
use super::input_required::{ClientRequests, ParkedCalls};
use super::mailbox::Mailbox;
use super::outbox::{Outbox, Route};
use crate::protocol::{Era, Frame, FrameError, Id, Message, Raw, RpcError, ServerMessage, notify};
use crate::tools::CallOwner;
use ptc_calls::asker::ClientIdentity;
use ptc_upstream::{ClientFeatures, ClientTag, Offered};
use std::sync::Arc;
use tokio::time::Instant;

/// State of one connection. A single task owns it, so nothing is locked. It may move between threads.
pub struct ClientConnection<O> {
    handler: Arc<Handler>,
    max_message_bytes: usize,
    state: ConnectionState,
    calls: Calls,
    subscriptions: Vec<Subscription>,
    mailbox: Arc<Mailbox>,
    outbox: O,
    /// True until `exit`, or until [`ClientConnection::close`].
    pub(super) open: bool,
    /// Receives the client's declared features; upstream requests are forwarded to it. `None` once it is clear
    /// that the client takes none.
    client: Option<ClientFeatures>,
    /// Open upstream requests, once the client has declared that it takes some.
    forwarded: Option<ForwardedRequests>,
    /// The client has sent a request without a handshake, so it is asked in responses.
    is_stateless: bool,
    /// Runs that wait for the client's answers.
    parked: Arc<ParkedCalls>,
    /// The client is notified of changes of these tasks.
    followed: Vec<FollowedTask>,
}

/// A task that a client follows.
struct FollowedTask {
    run: Arc<DetachedRun>,
    /// The change that it knows.
    seen: u64,
    /// For a subscription; otherwise since it has asked for the task (2025-11-25).
    subscription: Option<Id<'static>>,
}

/// A client that upstream requests are forwarded to.
struct ForwardedRequests {
    requests: Arc<ClientRequests>,
    client: ClientFeatures,
}

impl Drop for ForwardedRequests {
    fn drop(&mut self) {
        self.client.clear();
        self.requests.close();
    }
}

impl<O: Outbox> ClientConnection<O> {
    /// A fresh connection, before its handshake.
    pub fn new(
        handler: Arc<Handler>,
        gate: &Arc<Gate>,
        max_message_bytes: usize,
        outbox: O,
    ) -> ClientConnection<O> {
        let parked = ParkedCalls::new(gate.limits.parking, None);
        let (owner, tenant) = (CallOwner::default(), gate.tenant(TenantLimits::ALL));
        let mut calls = Calls::new(handler.clone(), owner, &tenant, Arc::default(), parked.clone());
        calls.follows_tasks = true;
        ClientConnection {
            handler,
            max_message_bytes,
            state: ConnectionState::default(),
            mailbox: calls.mailbox.clone(),
            calls,
            subscriptions: Vec::new(),
            outbox,
            open: true,
            client: None,
            forwarded: None,
            is_stateless: false,
            parked,
            followed: Vec::new(),
        }
    }

    /// Marks this as the one client of the process: upstream requests are forwarded to it.
    #[must_use]
    pub fn single_client(self) -> ClientConnection<O> {
        ClientConnection { client: Some(self.handler.client.clone()), ..self }
    }

    /// Where jobs report; [`ClientConnection::take_events`] reads it.
    pub fn mailbox(&self) -> Arc<Mailbox> {
        self.mailbox.clone()
    }

    /// The sending side.
    pub fn outbox(&mut self) -> &mut O {
        &mut self.outbox
    }

    /// True when no answer is owed, subscriptions aside.
    pub fn is_idle(&self) -> bool {
        self.calls.in_flight() == 0
    }

    /// Reads no more, and ends the subscriptions: their answers announce an orderly end.
    pub fn close(&mut self) {
        self.open = false;
        self.forwarded = None;
        self.parked.close();
        for Subscription { id, .. } in std::mem::take(&mut self.subscriptions) {
            self.outbox.send(Route::Request(&id), notify::subscription_ended(&id));
        }
    }

    /// False when there is no room for another request. A transport that can hold its client back then leaves
    /// the next one unread.
    pub fn has_room(&self) -> bool {
        self.calls.full().is_none()
    }

    /// Starts no further job while the client is behind with reading its answers.
    pub fn hold(&mut self, held: bool) {
        self.calls.hold(held);
    }

    /// True when this message has to wait until the server is ready. A transport leaves it and all later ones
    /// unread.
    pub fn must_wait(&self, text: &str) -> bool {
        if self.handler.is_ready() {
            return false;
        }
        let mut frame = Frame::default();
        let message = frame.read_text(text).ok().filter(|message| self.handler.must_wait(message));
        if let (Some(message), Some(client)) = (&message, &self.client) {
            // Upstream servers can start with what the client declares here; they need not wait for it.
            match declared_features(message) {
                Some(declared) if self.forwarded.is_none() => declare_features(client, declared),
                _ => client.declare_none(),
            }
        }
        message.is_some()
    }

    /// [`ClientConnection::text`] for bytes that may not be UTF-8.
    pub fn message(&mut self, message: &[u8]) {
        match std::str::from_utf8(message) {
            Ok(text) => self.text(text),
            Err(_) => self.reject(FrameError::Parse),
        }
    }

    /// Handles one message. A job is answered with `busy` when there is no room.
    pub fn text(&mut self, text: &str) {
        if text.len() > self.max_message_bytes {
            return self.reject(FrameError::Parse);
        }
        let mut frame = Frame::default();
        let message = match frame.read_text(text) {
            Ok(message) => message,
            Err(error) => return self.reject(error),
        };
        if let Message::Request { id, .. } = &message
            && self.is_in_flight(id)
        {
            let error = ServerMessage::error(Some(id), &RpcError::duplicate_id(id));
            return self.outbox.send(Route::Request(id), error);
        }
        if let Message::Response { id, answer } = &message {
            let is_of_task = self.handler.detached.answer(self.state.owner, *id, *answer);
            if let Some(forwarded) = self.forwarded.as_ref().filter(|_| !is_of_task) {
                forwarded.requests.answer(*id, *answer);
            }
            return;
        }
        if !self.is_stateless && self.client.is_some() && self.forwarded.is_none() {
            self.detect_stateless_client(&message);
        }
        let action = self.handler.handle(message, &mut self.state, &mut self.outbox);
        if self.client.is_some() {
            self.attach_client();
        }
        match action {
            Action::None => {}
            Action::Cancel(id) => {
                self.subscriptions.retain(|subscription| subscription.id != id);
                self.followed.retain(|followed| followed.subscription.as_ref() != Some(&id));
                self.calls.cancel_for_client(&id);
            }
            Action::Exit => self.close(),
            Action::Listen(subscription) => {
                self.outbox.send(Route::Request(&subscription.id), subscription.acknowledged());
                for run in subscription.tasks.iter().flatten() {
                    self.follow(run.clone(), 0, Some(subscription.id.clone()));
                }
                self.subscriptions.push(subscription);
                self.report_tasks();
            }
            Action::Await(awaited) => {
                self.calls.await_task(*awaited);
                self.take_events();
            }
            Action::Resume(call) => {
                self.calls.resume(*call, &mut self.outbox);
                self.take_events();
            }
            Action::Run(call) => match self.calls.admit(call, text.len(), &mut self.outbox) {
                Ok(()) => self.take_events(),
                Err((ticket, _)) => {
                    self.handler.refuse_busy(ticket, self.calls.in_flight(), &mut self.outbox)
                }
            },
        }
    }

    /// Detects a client that speaks without a handshake, and declares the features of its first request.
    fn detect_stateless_client(&mut self, message: &Message<'_, '_>) {
        if let (Some(client), Some(declared)) = (&self.client, declared_features(message)) {
            self.is_stateless = true;
            self.calls.set_caller(ClientTag::unique(), ClientIdentity::default(), None);
            declare_features(client, declared);
        }
    }

    /// Forwards upstream requests to the client, once it has declared that it takes them.
    fn attach_client(&mut self) {
        if let (None, Some(client), Some(offered)) = (&self.forwarded, &self.client, self.state.offered) {
            if offered == Offered::default() {
                client.clear();
                self.client = None;
                return;
            }
            let requests = Arc::new(ClientRequests::for_connection("ptc".into(), self.mailbox.clone()));
            client.serve(offered, requests.clone());
            self.forwarded = Some(ForwardedRequests { requests, client: client.clone() });
        }
        self.send_requests();
    }

    /// Sends upstream requests to the client, once its handshake is complete.
    fn send_requests(&mut self) {
        if let Some(forwarded) = self.forwarded.as_ref().filter(|_| self.state.initialized) {
            for message in forwarded.requests.take() {
                self.outbox.send(Route::Connection, message);
            }
        }
    }

    /// Answers a message that could not be read.
    pub fn reject(&mut self, error: FrameError) {
        tracing::debug!(?error, "malformed frame");
        self.outbox.send(Route::Connection, ServerMessage::error(None, &error.into()));
    }

    /// Handles the events of jobs and of the gate.
    pub fn take_events(&mut self) {
        self.send_requests();
        let events = self.mailbox.take();
        if !events.is_empty() {
            let now = Instant::now();
            for (slot, event) in events {
                self.calls.handle(slot, event, now, &mut self.outbox);
            }
        }
        // Also without events: a call that need not wait becomes a task when it is admitted.
        self.report_tasks();
    }

    /// Notifies the client of changes of a task that are later than `seen`.
    fn follow(&mut self, run: Arc<DetachedRun>, seen: u64, subscription: Option<Id<'static>>) {
        run.watch(Watcher { mailbox: Arc::downgrade(&self.mailbox), slot: None });
        self.followed.push(FollowedTask { run, seen, subscription });
    }

    /// Notifies the client of tasks that have changed.
    fn report_tasks(&mut self) {
        for run in std::mem::take(&mut self.calls.begun) {
            self.follow(run, 1, None);
        }
        let outbox = &mut self.outbox;
        self.followed.retain_mut(|followed| {
            // Read first: a change in between is reported again.
            let (now, is_over) = (followed.run.version(), followed.run.is_over());
            if now != followed.seen {
                followed.seen = now;
                let to = followed.subscription.as_ref().map_or(Route::Connection, Route::Request);
                outbox.send(to, detached::notification(&followed.run, followed.subscription.as_ref()));
            }
            !is_over
        });
    }

    /// Notifies the client that the tool list has changed.
    pub fn tools_changed(&mut self) {
        if self.state.initialized {
            self.outbox.send(Route::Connection, notify::tools_list_changed(None));
        }
        for Subscription { id, .. } in self.subscriptions.iter().filter(|wish| wish.tools_list_changed) {
            self.outbox.send(Route::Request(id), notify::tools_list_changed(Some(id)));
        }
    }

    /// When [`ClientConnection::report_progress`] has something to send.
    pub fn next_report(&self) -> Option<Instant> {
        self.calls.next_report()
    }

    /// Sends progress that was held back.
    pub fn report_progress(&mut self) {
        self.calls.report(Instant::now(), &mut self.outbox);
        self.report_tasks();
    }

    fn is_in_flight(&self, id: &Id<'_>) -> bool {
        self.calls.contains(id) || self.subscriptions.iter().any(|subscription| subscription.id == *id)
    }
}

/// The features that a request without a handshake declares; `None` for any other message.
fn declared_features(message: &Message<'_, '_>) -> Option<Offered> {
    let Message::Request { params: Ok(params), .. } = message else { return None };
    if !matches!(Era::from_params(params), Ok(Era::Stateless)) {
        return None;
    }
    Some(offered(params.declared_capabilities().map(Raw::get).unwrap_or_default()))
}

/// Declares the features of a client that repeats them in every call.
fn declare_features(client: &ClientFeatures, declared: Offered) {
    if declared == Offered::default() {
        client.clear();
    } else {
        client.serve_callers(declared);
    }
}
