//! Which programs run, wait or are refused (decision 33).
//!
//! A program that waits for upstream servers needs no core: it gives its place among the running ones back
//! and counts, like those that have not begun, among the waiting ones. Memory is counted with what each
//! program may reach while it runs, and with what it holds while it waits.
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

/// How many programs may be in the server at once.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Running; a program that waits for upstream servers is not.
    pub running: usize,
    /// Waiting for upstream servers or for their turn; beyond that a call is answered with `busy`.
    pub waiting: usize,
    /// Memory that one program may reach.
    pub program_bytes: u64,
    /// Memory that all of them may reach together. One program always may run.
    pub total_bytes: u64,
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
    running: usize,
    suspended: usize,
    suspended_bytes: u64,
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
    Queued(Box<Call>),
    // The handle is gone once it was used.
    Running(Option<Cancel>),
    Suspended(Option<Cancel>, u64),
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
            running: 0,
            suspended: 0,
            suspended_bytes: 0,
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

    /// How many programs may wait.
    pub fn most_waiting(&self) -> usize {
        self.load.waiting
    }

    /// True when no answer is owed.
    pub fn is_idle(&self) -> bool {
        self.ids.is_empty()
    }

    /// Runs or queues a call; hands its ticket back when the server is full, with the number in flight.
    pub fn admit(&mut self, call: Call) -> Result<(), (Ticket, usize)> {
        let starts = self.queue.is_empty() && self.has_place();
        if !starts && self.queue.len() + self.suspended >= self.load.waiting {
            return Err((call.ticket, self.ids.len()));
        }
        let slot = Slot(self.next);
        self.next += 1;
        let id = call.ticket.id.clone();
        self.ids.insert(id.clone(), slot);
        let progress = call.progress.clone().map(Progress::new);
        let state = State::Queued(Box::new(call));
        self.programs.insert(slot, Program { id: Some(id), state, progress });
        self.queue.push_back(slot);
        if starts {
            self.start_next();
        }
        Ok(())
    }

    /// Forgets a request; a running program stops. An unknown id is ignored.
    pub fn cancel(&mut self, id: &Id) {
        let Some(slot) = self.ids.remove(id) else { return };
        let Some(program) = self.programs.get_mut(&slot) else { return };
        program.id = None;
        program.progress = None;
        match &mut program.state {
            State::Queued(_) => {
                self.programs.remove(&slot);
                self.queue.retain(|queued| *queued != slot);
            }
            // Its place is free when it has really ended.
            State::Running(cancel) | State::Suspended(cancel, _) => {
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
            Event::Suspended(bytes) => {
                if let State::Running(cancel) = &mut program.state {
                    program.state = State::Suspended(cancel.take(), bytes);
                    self.running -= 1;
                    self.suspended += 1;
                    self.suspended_bytes += bytes;
                }
                self.fill();
                None
            }
            Event::Resumed => {
                if let State::Suspended(cancel, bytes) = &mut program.state {
                    self.suspended_bytes -= *bytes;
                    program.state = State::Running(cancel.take());
                    self.suspended -= 1;
                    self.running += 1;
                }
                None
            }
            Event::CallEnded(ended) => {
                let progress = program.progress.as_mut()?;
                let report = progress.advance(ended, now);
                if report.is_none() && !self.unreported.contains(&slot) {
                    self.unreported.push(slot);
                }
                report
            }
            Event::Ended(reply) => {
                let program = self.programs.remove(&slot)?;
                match program.state {
                    State::Queued(_) => {}
                    State::Running(_) => self.running -= 1,
                    State::Suspended(_, bytes) => {
                        self.suspended -= 1;
                        self.suspended_bytes -= bytes;
                    }
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

    fn has_place(&self) -> bool {
        let started = self.running + self.suspended;
        let reach = (self.running as u64 + 1).saturating_mul(self.load.program_bytes);
        let fits = reach.saturating_add(self.suspended_bytes) <= self.load.total_bytes;
        self.running < self.load.running && self.suspended <= self.load.waiting && (fits || started == 0)
    }

    fn fill(&mut self) {
        while !self.queue.is_empty() && self.has_place() {
            self.start_next();
        }
    }

    fn start_next(&mut self) {
        let Some(slot) = self.queue.pop_front() else { return };
        let Some(program) = self.programs.get_mut(&slot) else { return };
        let State::Queued(call) = std::mem::replace(&mut program.state, State::Running(None)) else { return };
        let Call { ticket, program: source, options, .. } = *call;
        let watcher = Watcher {
            slot,
            ticket,
            handler: self.handler.clone(),
            mailbox: self.mailbox.clone(),
            tells_calls: program.progress.is_some(),
            answered: false,
        };
        self.running += 1;
        program.state = State::Running(Some(self.engine.submit(source, options, Box::new(watcher))));
    }
}
