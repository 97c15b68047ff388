//! The programs of one connection: which the runtime has, which wait, and when there is no room for more.
//!
//! The runtime decides who runs when: it gives turns and counts memory, over all connections. What is decided here
//! is how much a client may pile up. A bounded number of programs is with the runtime; the others wait in a queue
//! that is bounded by requests and bytes. When that is full the connection is read no further, so nothing has to be
//! refused: a client that writes on is held back by its pipe. As long as there is room its cancellations and pings
//! are seen at once; beyond that they wait, with the requests before them, for programs to end, and each of those
//! has a deadline.
//!
//! Owned by one connection loop, so nothing here is shared or locked.

use super::mailbox::{Event, Mailbox, Slot, Watcher};
use super::progress::Progress;
use crate::engine::{Cancel, Engine};
use crate::protocol::handler::{Call, Handler, Ticket};
use crate::protocol::reply::RpcError;
use crate::protocol::{Id, Reply};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use tokio::time::Instant;

/// Programs that the runtime has and has not begun: enough to keep its workers busy until the next look.
const MOST_AHEAD: usize = 64;

/// How much of a connection may be in the server at once.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Programs with the runtime: running, and waiting for upstream servers.
    pub programs: usize,
    /// Requests that wait for that.
    pub queued: usize,
    /// Bytes of their lines; one may be longer.
    pub queued_bytes: usize,
}

/// The programs of one connection.
pub struct Admission<'e, E> {
    engine: &'e E,
    handler: Arc<Handler>,
    mailbox: Arc<Mailbox>,
    load: Load,
    programs: HashMap<Slot, Program>,
    /// Every id that has not been answered or cancelled.
    ids: HashMap<Id, Slot>,
    queue: VecDeque<Slot>,
    queued_bytes: usize,
    /// Programs with the runtime.
    handed_out: usize,
    /// Those of them that have not begun.
    ahead: usize,
    /// The client does not read its answers: nothing more is handed out or told.
    held: bool,
    next: u64,
    /// Programs whose clients have not been told of the latest progress.
    unreported: Vec<Slot>,
}

struct Program {
    /// `None` once it was cancelled: nothing more is sent for it.
    id: Option<Id>,
    state: State,
    progress: Option<Progress>,
}

enum State {
    /// Waits here; bytes of its line.
    Queued(Box<Call>, usize),
    /// With the runtime.
    HandedOut {
        /// Gone once it was used.
        cancel: Option<Cancel>,
        begun: bool,
    },
}

impl<'e, E: Engine> Admission<'e, E> {
    /// An empty set of programs.
    pub fn new(engine: &'e E, handler: Arc<Handler>, load: Load) -> Admission<'e, E> {
        Admission {
            engine,
            handler,
            mailbox: Arc::default(),
            load,
            programs: HashMap::new(),
            ids: HashMap::new(),
            queue: VecDeque::new(),
            queued_bytes: 0,
            handed_out: 0,
            ahead: 0,
            held: false,
            next: 0,
            unreported: Vec::new(),
        }
    }

    /// Where running programs report.
    pub fn mailbox(&self) -> Arc<Mailbox> {
        self.mailbox.clone()
    }

    /// True when this id is running or waiting.
    pub fn contains(&self, id: &Id) -> bool {
        self.ids.contains_key(id)
    }

    /// True when no answer is owed.
    pub fn is_idle(&self) -> bool {
        self.ids.is_empty()
    }

    /// False when whatever comes next has to be left unread.
    pub fn has_room(&self) -> bool {
        self.queue.len() < self.load.queued && self.queued_bytes < self.load.queued_bytes
    }

    /// Takes a call whose line had this many bytes; hands its ticket back when there is no room, with the number
    /// in flight.
    pub fn admit(&mut self, call: Call, bytes: usize) -> Result<(), (Ticket, usize)> {
        if !self.has_room() {
            return Err((call.ticket, self.ids.len()));
        }
        let slot = Slot(self.next);
        self.next += 1;
        let id = call.ticket.id.clone();
        self.ids.insert(id.clone(), slot);
        let progress = call.progress.clone().map(Progress::new);
        let state = State::Queued(Box::new(call), bytes);
        self.programs.insert(slot, Program { id: Some(id), state, progress });
        self.queue.push_back(slot);
        self.queued_bytes += bytes;
        self.fill();
        Ok(())
    }

    /// While the client does not read its answers no further program is handed out.
    pub fn hold(&mut self, held: bool) {
        if self.held != held {
            self.held = held;
            self.fill();
        }
    }

    /// Forgets a request; a running program stops. An unknown id is ignored.
    pub fn cancel(&mut self, id: &Id) {
        let Some(slot) = self.ids.remove(id) else { return };
        let Some(program) = self.programs.get_mut(&slot) else { return };
        program.id = None;
        program.progress = None;
        match &mut program.state {
            State::Queued(_, bytes) => {
                self.queued_bytes -= *bytes;
                self.programs.remove(&slot);
                self.queue.retain(|queued| *queued != slot);
            }
            // Its place is free when it has really ended.
            State::HandedOut { cancel, .. } => {
                if let Some(cancel) = cancel.take() {
                    cancel();
                }
            }
        }
    }

    /// Takes an event of a program; gives what is to be sent.
    pub fn handle(&mut self, slot: Slot, event: Event, now: Instant) -> Option<Reply> {
        let program = self.programs.get_mut(&slot)?;
        match event {
            Event::Begun => {
                if let State::HandedOut { begun, .. } = &mut program.state
                    && !std::mem::replace(begun, true)
                {
                    self.ahead -= 1;
                }
                self.fill();
                None
            }
            Event::CallEnded(ended) => {
                let progress = program.progress.as_mut()?;
                progress.advance(ended);
                let report = if self.held { None } else { progress.report(now) };
                if report.is_none() && !self.unreported.contains(&slot) {
                    self.unreported.push(slot);
                }
                report
            }
            Event::Ended(reply) => {
                let program = self.programs.remove(&slot)?;
                if let State::HandedOut { begun, .. } = program.state {
                    self.handed_out -= 1;
                    self.ahead -= usize::from(!begun);
                }
                self.fill();
                let id = program.id?;
                self.ids.remove(&id);
                Some(reply.unwrap_or_else(|| Reply::error(Some(&id), &RpcError::internal())))
            }
        }
    }

    /// When [`Admission::report`] has something to say.
    pub fn next_report(&self) -> Option<Instant> {
        if self.held {
            return None;
        }
        let due = |slot: &Slot| Some(self.programs.get(slot)?.progress.as_ref()?.due());
        self.unreported.iter().filter_map(due).min()
    }

    /// The progress that was held back and is due now.
    pub fn report(&mut self, now: Instant) -> Vec<Reply> {
        let mut replies = Vec::new();
        let programs = &mut self.programs;
        self.unreported.retain(|slot| {
            let Some(progress) = programs.get_mut(slot).and_then(|program| program.progress.as_mut()) else {
                return false;
            };
            let report = progress.report(now);
            let said = report.is_some();
            replies.extend(report);
            !said
        });
        replies
    }

    /// Hands out what may be handed out.
    fn fill(&mut self) {
        while !self.held && self.ahead < MOST_AHEAD && self.handed_out < self.load.programs {
            let Some(slot) = self.queue.pop_front() else { return };
            self.hand_out(slot);
        }
    }

    fn hand_out(&mut self, slot: Slot) {
        let Some(program) = self.programs.get_mut(&slot) else { return };
        let handed_out = State::HandedOut { cancel: None, begun: false };
        let State::Queued(call, bytes) = std::mem::replace(&mut program.state, handed_out) else { return };
        self.queued_bytes -= bytes;
        let Call { ticket, program: source, options, .. } = *call;
        let watcher = Watcher {
            slot,
            ticket,
            handler: self.handler.clone(),
            mailbox: self.mailbox.clone(),
            tells_calls: program.progress.is_some(),
            answered: false,
        };
        self.handed_out += 1;
        self.ahead += 1;
        let cancel = Some(self.engine.submit(source, options, Box::new(watcher)));
        program.state = State::HandedOut { cancel, begun: false };
    }
}
