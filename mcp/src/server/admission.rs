//! Which programs run, wait or are refused.
//!
//! Owned by one connection loop, so nothing here is shared or locked.

use crate::engine::Engine;
use crate::protocol::Id;
use crate::protocol::handler::{Call, Ticket};
use futures_util::future::{AbortHandle, Abortable, BoxFuture, FutureExt};
use futures_util::stream::{FuturesUnordered, StreamExt};
use ptc_runtime::outcome::Outcome;
use std::collections::{HashMap, VecDeque};

/// How many programs may be in the server at once.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Running.
    pub running: usize,
    /// Waiting for their turn; beyond that a call is answered with `busy`.
    pub waiting: usize,
}

type Run<'e> = Abortable<BoxFuture<'e, (Ticket, Outcome)>>;

/// The programs of one connection.
pub struct Admission<'e, E> {
    engine: &'e E,
    load: Load,
    running: FuturesUnordered<Run<'e>>,
    waiting: VecDeque<Call>,
    // Every id that is running or waiting; `None` while it waits.
    in_flight: HashMap<Id, Option<AbortHandle>>,
}

impl<'e, E: Engine> Admission<'e, E> {
    /// An empty set of programs.
    pub fn new(engine: &'e E, load: Load) -> Admission<'e, E> {
        Admission {
            engine,
            load,
            running: FuturesUnordered::new(),
            waiting: VecDeque::new(),
            in_flight: HashMap::new(),
        }
    }

    /// True when this id is running or waiting.
    pub fn contains(&self, id: &Id) -> bool {
        self.in_flight.contains_key(id)
    }

    /// True when nothing runs or waits.
    pub fn is_idle(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Runs or queues a call; hands its ticket back when the server is full, with the number in flight.
    pub fn admit(&mut self, call: Call) -> Result<(), (Ticket, usize)> {
        if self.running.len() < self.load.running {
            self.start(call);
        } else if self.waiting.len() < self.load.waiting {
            self.in_flight.insert(call.ticket.id.clone(), None);
            self.waiting.push_back(call);
        } else {
            return Err((call.ticket, self.in_flight.len()));
        }
        Ok(())
    }

    /// Forgets a request; a running program stops. An unknown id is ignored.
    pub fn cancel(&mut self, id: &Id) {
        match self.in_flight.remove(id) {
            Some(Some(handle)) => handle.abort(),
            Some(None) => self.waiting.retain(|call| call.ticket.id != *id),
            None => {}
        }
    }

    /// The next finished program. Never resolves while nothing runs.
    ///
    /// Cancel safe: an outcome is taken out only when it is returned.
    pub async fn next(&mut self) -> (Ticket, Outcome) {
        loop {
            match self.running.next().await {
                Some(done) => {
                    if let Some(finished) = self.settle(done.ok()) {
                        return finished;
                    }
                }
                None => std::future::pending().await,
            }
        }
    }

    /// A program that has finished already.
    pub fn try_next(&mut self) -> Option<(Ticket, Outcome)> {
        self.next().now_or_never()
    }

    // A cancelled run comes out empty; either way its place is free.
    fn settle(&mut self, done: Option<(Ticket, Outcome)>) -> Option<(Ticket, Outcome)> {
        if let Some((ticket, _)) = &done {
            self.in_flight.remove(&ticket.id);
        }
        while self.running.len() < self.load.running
            && let Some(call) = self.waiting.pop_front()
        {
            self.start(call);
        }
        done
    }

    fn start(&mut self, call: Call) {
        let Call { ticket, program, options } = call;
        let (handle, registration) = AbortHandle::new_pair();
        self.in_flight.insert(ticket.id.clone(), Some(handle));
        let run = self.engine.run(program, options);
        let run = run.map(move |outcome| (ticket, outcome)).boxed();
        self.running.push(Abortable::new(run, registration));
    }
}
