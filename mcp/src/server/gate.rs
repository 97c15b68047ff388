//! How much may be in the server at once, over all its connections.
//!
//! A bounded number of jobs is running, or started and about to begin; the others wait in a queue that is bounded by
//! requests and bytes. When that is full connections are read no further, so nothing has to be refused: a client
//! that writes on is held back by its pipe. A connection that has nothing in the queue may always put one request
//! there, so none is shut out by the others, and the connections take turns when places become free.
//!
//! The gate starts nothing itself: it tells the connection whose turn it is, which starts its job on its own thread.

use super::mailbox::{Event, Mailbox, Slot};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Jobs that were started and have not begun: enough to keep workers busy until the next look.
const MOST_AHEAD: usize = 64;

/// How much may be in the server at once.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Jobs that were started: running, and waiting for upstream servers.
    pub jobs: usize,
    /// What they may hold together by their own word ([`crate::tools::Job::memory_bytes`]); one may ask for more.
    pub memory_bytes: u64,
    /// Requests that wait for that.
    pub queued: usize,
    /// Bytes of their messages; one may be longer.
    pub queued_bytes: usize,
}

/// Admits jobs. One a process.
#[derive(Debug)]
pub struct Gate {
    load: Load,
    state: Mutex<GateState>,
    /// Written under the lock, and read without it.
    queued: AtomicUsize,
    queued_bytes: AtomicUsize,
}

#[derive(Debug, Default)]
struct GateState {
    started: usize,
    /// Those of them that have not begun.
    ahead: usize,
    memory_bytes: u64,
    members: Vec<Member>,
    /// The place of the member whose turn is next.
    turn: usize,
    next_member: u64,
}

#[derive(Debug)]
struct Member {
    number: u64,
    mailbox: Arc<Mailbox>,
    queue: VecDeque<PlaceRequest>,
    held: bool,
}

/// A request for a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlaceRequest {
    /// Its number in its connection.
    pub(super) slot: Slot,
    /// Bytes that wait with it.
    pub(super) queued_bytes: usize,
    /// Bytes that its job may hold.
    pub(super) memory_bytes: u64,
}

/// The place of a started job. Dropping it leaves it to the next.
#[derive(Debug)]
pub struct JobPlace {
    gate: Arc<Gate>,
    memory_bytes: u64,
    begun: bool,
}

/// A connection at the gate. Dropping it takes back what it has in the queue.
#[derive(Debug)]
pub(super) struct Membership {
    gate: Arc<Gate>,
    number: u64,
    held: bool,
}

impl Gate {
    /// A gate that nobody has passed.
    pub fn new(load: Load) -> Arc<Gate> {
        Arc::new(Gate {
            load,
            state: Mutex::default(),
            queued: AtomicUsize::new(0),
            queued_bytes: AtomicUsize::new(0),
        })
    }

    /// Lets a connection in; its mailbox is told when one of its jobs may start.
    pub(super) fn join(self: &Arc<Gate>, mailbox: Arc<Mailbox>) -> Membership {
        let mut state = self.lock();
        let number = state.next_member;
        state.next_member += 1;
        state.members.push(Member { number, mailbox, queue: VecDeque::new(), held: false });
        Membership { gate: self.clone(), number, held: false }
    }

    /// True while another request may wait.
    pub(super) fn has_room(&self) -> bool {
        self.queued.load(Ordering::Relaxed) < self.load.queued
            && self.queued_bytes.load(Ordering::Relaxed) < self.load.queued_bytes
    }

    fn lock(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn came(&self, request: &PlaceRequest) {
        self.queued.fetch_add(1, Ordering::Relaxed);
        self.queued_bytes.fetch_add(request.queued_bytes, Ordering::Relaxed);
    }

    fn went(&self, request: &PlaceRequest) {
        self.queued.fetch_sub(1, Ordering::Relaxed);
        self.queued_bytes.fetch_sub(request.queued_bytes, Ordering::Relaxed);
    }

    /// Gives away what places there are.
    fn fill(self: &Arc<Gate>, state: &mut GateState) {
        while let Some((request, mailbox)) = self.next(state) {
            self.went(&request);
            state.started += 1;
            state.ahead += 1;
            state.memory_bytes = state.memory_bytes.saturating_add(request.memory_bytes);
            let permit = JobPlace { gate: self.clone(), memory_bytes: request.memory_bytes, begun: false };
            mailbox.push((request.slot, Event::Admitted(permit)));
        }
    }

    /// The request that is next, taken from its queue.
    fn next(&self, state: &mut GateState) -> Option<(PlaceRequest, Arc<Mailbox>)> {
        if state.started >= self.load.jobs
            || state.ahead >= MOST_AHEAD
            || self.queued.load(Ordering::Relaxed) == 0
        {
            return None;
        }
        let left = self.load.memory_bytes.saturating_sub(state.memory_bytes);
        let mut memory_is_awaited = false;
        let count = state.members.len();
        for step in 0..count {
            let place = (state.turn + step) % count;
            let member = &mut state.members[place];
            let Some(first) = member.queue.front().filter(|_| !member.held) else { continue };
            let weighs = first.memory_bytes > 0;
            // One may always run, and nothing that weighs passes what waits for memory: else a large one never would.
            if weighs && (memory_is_awaited || (first.memory_bytes > left && state.memory_bytes > 0)) {
                if !memory_is_awaited {
                    state.turn = place;
                }
                memory_is_awaited = true;
                continue;
            }
            if !memory_is_awaited {
                state.turn = (place + 1) % count;
            }
            return Some((member.queue.pop_front()?, member.mailbox.clone()));
        }
        None
    }
}

impl Membership {
    /// True when another request may wait, of a connection for which so many wait.
    pub(super) fn has_room(&self, waiting: usize) -> bool {
        waiting == 0 || self.gate.has_room()
    }

    /// Asks for a place; [`Event::Admitted`] says when there is one.
    pub(super) fn ask(&self, request: PlaceRequest) {
        self.change(|gate, member| {
            gate.came(&request);
            member.queue.push_back(request);
        });
    }

    /// Asks again for a place that could not be used, before all others of this connection.
    pub(super) fn ask_again(&self, request: PlaceRequest, unused: JobPlace) {
        self.change(|gate, member| {
            gate.came(&request);
            member.queue.push_front(request);
        });
        drop(unused);
    }

    /// Takes a request back. One that was admitted is not in the queue any more: its permit is dropped by whoever
    /// finds it in the mailbox.
    pub(super) fn withdraw(&self, slot: Slot) {
        self.change(|gate, member| {
            if let Some(place) = member.queue.iter().position(|request| request.slot == slot)
                && let Some(request) = member.queue.remove(place)
            {
                gate.went(&request);
            }
        });
    }

    /// Whether nothing of this connection may start.
    pub(super) fn hold(&mut self, held: bool) {
        if std::mem::replace(&mut self.held, held) != held {
            self.change(|_, member| member.held = held);
        }
    }

    /// See [`Membership::hold`].
    pub(super) fn is_held(&self) -> bool {
        self.held
    }

    fn change(&self, change: impl FnOnce(&Gate, &mut Member)) {
        let mut state = self.gate.lock();
        if let Some(member) = state.members.iter_mut().find(|member| member.number == self.number) {
            change(&self.gate, member);
        }
        self.gate.fill(&mut state);
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        let mut state = self.gate.lock();
        let place = state.members.iter().position(|member| member.number == self.number);
        let member = place.map(|place| state.members.remove(place));
        for request in member.iter().flat_map(|member| &member.queue) {
            self.gate.went(request);
        }
        state.turn = 0;
        self.gate.fill(&mut state);
        // Permits may lie unread in the mailbox, and need the lock when they are dropped.
        drop(state);
        drop(member);
    }
}

impl JobPlace {
    /// The job has begun, so another one may be started ahead.
    pub(super) fn begun(&mut self) {
        if !std::mem::replace(&mut self.begun, true) {
            let mut state = self.gate.lock();
            state.ahead -= 1;
            self.gate.fill(&mut state);
        }
    }
}

impl Drop for JobPlace {
    fn drop(&mut self) {
        let mut state = self.gate.lock();
        state.started -= 1;
        state.ahead -= usize::from(!self.begun);
        state.memory_bytes = state.memory_bytes.saturating_sub(self.memory_bytes);
        self.gate.fill(&mut state);
    }
}
