//! One connection without its transport: frames in, bytes to send out.

use super::admission::{Admission, Load};
use super::mailbox::Mailbox;
use crate::engine::Engine;
use crate::protocol::handler::{Action, Handler, Session, Subscription};
use crate::protocol::plain::PlainCall;
use crate::protocol::{FrameError, Id, Message, Reply, frame, notify, reply::RpcError};
use ptc_runtime::Now;
use std::sync::Arc;
use tokio::time::Instant;

/// State of one connection. A single task owns it, so nothing is locked.
pub struct Connection<'e, E: Engine> {
    engine: &'e E,
    handler: Arc<Handler>,
    max_frame_bytes: usize,
    session: Session,
    admission: Admission<'e, E>,
    subscriptions: Vec<Subscription>,
    mailbox: Arc<Mailbox>,
    warm: E::Warm,
    out: Vec<u8>,
    open: bool,
}

/// Most room that a fresh buffer for answers begins with.
const MOST_ROOM: usize = 64 << 10;

impl<'e, E: Engine> Connection<'e, E> {
    /// A connection on which nothing has been said.
    pub fn new(
        engine: &'e E,
        handler: Arc<Handler>,
        max_frame_bytes: usize,
        load: Load,
    ) -> Connection<'e, E> {
        let admission = Admission::new(engine, handler.clone(), load);
        Connection {
            engine,
            handler,
            max_frame_bytes,
            session: Session::default(),
            mailbox: admission.mailbox(),
            admission,
            subscriptions: Vec::new(),
            warm: E::Warm::default(),
            out: Vec::new(),
            open: true,
        }
    }

    /// Where running programs report; [`Connection::take_events`] reads it.
    pub fn mailbox(&self) -> Arc<Mailbox> {
        self.mailbox.clone()
    }

    /// True until `exit`, or until [`Connection::close`].
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// True when no answer is owed, subscriptions aside.
    pub fn is_idle(&self) -> bool {
        self.admission.is_idle()
    }

    /// What has to be sent; nothing of it is kept.
    pub fn take_output(&mut self) -> Vec<u8> {
        // As much will probably be written next.
        let room = self.out.len().min(MOST_ROOM);
        std::mem::replace(&mut self.out, Vec::with_capacity(room))
    }

    /// How much has to be sent.
    pub fn pending_output(&self) -> usize {
        self.out.len()
    }

    /// Reads no more; ends the subscriptions, whose answers tell that this is the orderly end.
    pub fn close(&mut self) {
        self.open = false;
        for subscription in std::mem::take(&mut self.subscriptions) {
            self.send(&notify::subscription_ended(&subscription.id));
        }
    }

    /// False when there is no room for another request: a transport that can hold its client back leaves it
    /// unread.
    pub fn has_room(&self) -> bool {
        self.admission.has_room()
    }

    /// Whether the client is behind with reading its answers: as long as it is, no further program begins.
    pub fn hold(&mut self, held: bool) {
        self.admission.hold(held);
    }

    /// Takes one line, without its newline. Without room a program is answered with `busy`.
    pub fn line(&mut self, line: &[u8]) {
        if line.len() > self.max_frame_bytes {
            return self.reject(FrameError::Parse);
        }
        if let Some(call) = PlainCall::read(line)
            && self.run_plain(&call)
        {
            return;
        }
        let message = match frame::parse(line) {
            Ok(message) => message,
            Err(error) => return self.reject(error),
        };
        if let Message::Request { id, .. } = &message
            && self.is_in_flight(id)
        {
            return self.send(&Reply::error(Some(id), &RpcError::duplicate_id(id)));
        }
        match self.handler.handle(message, &mut self.session) {
            Action::None => {}
            Action::Reply(reply) => self.send(&reply),
            Action::Cancel(id) => {
                self.subscriptions.retain(|subscription| subscription.id != id);
                self.admission.cancel(&id);
            }
            Action::Exit => self.close(),
            Action::Listen(subscription) => {
                let Subscription { id, tools_list_changed } = &subscription;
                self.send(&notify::subscription_acknowledged(id, *tools_list_changed));
                self.subscriptions.push(subscription);
            }
            Action::Run(call) => {
                if let Some(outcome) = self.engine.run_now(&mut self.warm, &call.program, &call.options) {
                    let reply = self.handler.finish(&call.ticket, outcome);
                    self.send(&reply);
                } else if let Err((ticket, in_flight)) = self.admission.admit(*call, line.len()) {
                    let reply = self.handler.busy(&ticket, in_flight);
                    self.send(&reply);
                }
            }
        }
    }

    /// Runs a plain call if it is over at once; false when it has to take the usual way.
    fn run_plain(&mut self, call: &PlainCall<'_>) -> bool {
        let Some(options) = self.handler.plain_options(call, &self.session) else { return false };
        let nothing_in_flight = self.admission.is_idle() && self.subscriptions.is_empty();
        if !nothing_in_flight && self.is_in_flight(&call.to_id()) {
            return false;
        }
        let (engine, warm, program) = (self.engine, &mut self.warm, &call.program);
        let ended = if self.handler.shows_text_alone() {
            engine.run_brief(warm, program, options)
        } else {
            engine.run_now(warm, program, options).map(|outcome| Now::Outcome(Box::new(outcome)))
        };
        let Some(ended) = ended else { return false };
        self.handler.finish_plain(call, ended, &mut self.out);
        true
    }

    /// Answers a line that could not be read.
    pub fn reject(&mut self, error: FrameError) {
        tracing::debug!(?error, "malformed frame");
        self.send(&Reply::error(None, &error.into()));
    }

    /// Takes what running programs have told.
    pub fn take_events(&mut self) {
        let events = self.mailbox.take();
        if events.is_empty() {
            return;
        }
        let now = Instant::now();
        for (slot, event) in events {
            if let Some(reply) = self.admission.handle(slot, event, now) {
                self.send(&reply);
            }
        }
    }

    /// Tells clients that the tool list is another one.
    pub fn tools_changed(&mut self) {
        if self.session.is_initialized() {
            self.send(&notify::tools_list_changed(None));
        }
        let told: Vec<Reply> = self
            .subscriptions
            .iter()
            .filter(|subscription| subscription.tools_list_changed)
            .map(|subscription| notify::tools_list_changed(Some(&subscription.id)))
            .collect();
        for reply in told {
            self.send(&reply);
        }
    }

    /// When [`Connection::report_progress`] has something to say.
    pub fn next_report(&self) -> Option<Instant> {
        self.admission.next_report()
    }

    /// Tells of progress that was held back.
    pub fn report_progress(&mut self) {
        for reply in self.admission.report(Instant::now()) {
            self.send(&reply);
        }
    }

    fn is_in_flight(&self, id: &Id) -> bool {
        self.admission.contains(id) || self.subscriptions.iter().any(|subscription| subscription.id == *id)
    }

    fn send(&mut self, reply: &Reply) {
        self.out.extend_from_slice(reply.as_bytes());
    }
}
