//! How much may be in the server at once, over all its connections.
//!
//! A bounded number of jobs is running, or started and about to begin; the others wait in a queue that is bounded by
//! requests and bytes. When that is full connections are read no further, so nothing has to be refused: a client
//! that writes on is held back by its pipe. A party that has nothing in the queue may always put one request there, so
//! none is shut out by the others, and the parties take turns when places become free. A connection over standard input
//! is a party; over HTTP it is whoever has one token, however many connections they open.
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
    queue: VecDeque<Queued>,
    /// How long that is, for who has no lock.
    queued: Arc<AtomicUsize>,
    held: bool,
    started: usize,
    share: Share,
}

/// A request in the queue, and who is told of its turn.
#[derive(Debug)]
struct Queued {
    request: PlaceRequest,
    mailbox: Arc<Mailbox>,
}

/// How much one party may have in the server at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Jobs that were started.
    pub jobs: usize,
    /// Requests that wait.
    pub queued: usize,
}

impl Share {
    /// As much as there is.
    pub const ALL: Share = Share { jobs: usize::MAX, queued: usize::MAX };
}

/// Somebody who shares the server with others. Its connections have one queue.
#[derive(Debug)]
pub struct Party {
    gate: Arc<Gate>,
    number: u64,
    share: Share,
    queued: Arc<AtomicUsize>,
}

/// What there is no room for another request in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// The queue of the server.
    Server,
    /// That of the party.
    Party,
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
    member: u64,
    memory_bytes: u64,
    begun: bool,
}

/// A connection at the gate. Dropping it takes back what it has in the queue.
#[derive(Debug)]
pub(super) struct Membership {
    party: Arc<Party>,
    mailbox: Arc<Mailbox>,
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

    /// Lets a party in.
    pub fn party(self: &Arc<Gate>, share: Share) -> Arc<Party> {
        let mut state = self.lock();
        let number = state.next_member;
        state.next_member += 1;
        let queued = Arc::<AtomicUsize>::default();
        let (queue, shown) = (VecDeque::new(), queued.clone());
        state.members.push(Member { number, queue, queued: shown, held: false, started: 0, share });
        Arc::new(Party { gate: self.clone(), number, share, queued })
    }

    /// True while another request may wait.
    pub(super) fn has_room(&self) -> bool {
        self.queued.load(Ordering::Relaxed) < self.load.queued
            && self.queued_bytes.load(Ordering::Relaxed) < self.load.queued_bytes
    }

    fn lock(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many requests wait.
    pub fn queued(&self) -> usize {
        self.queued.load(Ordering::Relaxed)
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
        while let Some((member, Queued { request, mailbox })) = self.next(state) {
            self.went(&request);
            state.started += 1;
            state.ahead += 1;
            state.memory_bytes = state.memory_bytes.saturating_add(request.memory_bytes);
            let permit =
                JobPlace { gate: self.clone(), member, memory_bytes: request.memory_bytes, begun: false };
            mailbox.push((request.slot, Event::Admitted(permit)));
        }
    }

    /// The request that is next, taken from its queue.
    fn next(&self, state: &mut GateState) -> Option<(u64, Queued)> {
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
            let may_start = !member.held && member.started < member.share.jobs;
            let Some(Queued { request: first, .. }) = member.queue.front().filter(|_| may_start) else {
                continue;
            };
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
            member.started += 1;
            let first = member.queue.pop_front()?;
            member.queued.store(member.queue.len(), Ordering::Relaxed);
            return Some((member.number, first));
        }
        None
    }
}

impl Party {
    /// Lets a connection of this party in; its mailbox is told when one of its jobs may start.
    pub(super) fn join(self: &Arc<Party>, mailbox: Arc<Mailbox>) -> Membership {
        Membership { party: self.clone(), mailbox, held: false }
    }

    /// What has no room for another request.
    pub(super) fn full(&self) -> Option<Full> {
        match self.queued.load(Ordering::Relaxed) {
            // Nobody is shut out by others.
            0 => None,
            queued if queued >= self.share.queued => Some(Full::Party),
            _ if !self.gate.has_room() => Some(Full::Server),
            _ => None,
        }
    }

    fn change(&self, change: impl FnOnce(&Gate, &mut Member)) {
        let mut state = self.gate.lock();
        if let Some(member) = state.members.iter_mut().find(|member| member.number == self.number) {
            change(&self.gate, member);
            member.queued.store(member.queue.len(), Ordering::Relaxed);
        }
        self.gate.fill(&mut state);
    }
}

impl Drop for Party {
    // Its connections hold it, so nothing of it waits any more.
    fn drop(&mut self) {
        let mut state = self.gate.lock();
        state.members.retain(|member| member.number != self.number);
        state.turn = 0;
    }
}

impl Membership {
    /// What has no room for another request.
    pub(super) fn full(&self) -> Option<Full> {
        self.party.full()
    }

    /// Asks for a place; [`Event::Admitted`] says when there is one.
    pub(super) fn ask(&self, request: PlaceRequest) {
        self.party.change(|gate, member| {
            gate.came(&request);
            member.queue.push_back(Queued { request, mailbox: self.mailbox.clone() });
        });
    }

    /// Asks again for a place that could not be used, before all others of this party.
    pub(super) fn ask_again(&self, request: PlaceRequest, unused: JobPlace) {
        self.party.change(|gate, member| {
            gate.came(&request);
            member.queue.push_front(Queued { request, mailbox: self.mailbox.clone() });
        });
        drop(unused);
    }

    /// Takes a request back. One that was admitted is not in the queue any more: its permit is dropped by whoever
    /// finds it in the mailbox.
    pub(super) fn withdraw(&self, slot: Slot) {
        self.remove(|request| request.slot == slot);
    }

    /// Whether nothing of this party may start.
    pub(super) fn hold(&mut self, held: bool) {
        if std::mem::replace(&mut self.held, held) != held {
            self.party.change(|_, member| member.held = held);
        }
    }

    /// See [`Membership::hold`].
    pub(super) fn is_held(&self) -> bool {
        self.held
    }

    /// Takes those requests of this connection out of the queue.
    fn remove(&self, goes: impl Fn(&PlaceRequest) -> bool) {
        self.party.change(|gate, member| {
            member.queue.retain(|Queued { request, mailbox }| {
                let gone = Arc::ptr_eq(mailbox, &self.mailbox) && goes(request);
                if gone {
                    gate.went(request);
                }
                !gone
            });
        });
    }
}

impl Drop for Membership {
    // Permits may lie unread in the mailbox; they need the lock when they are dropped, which is after this.
    fn drop(&mut self) {
        self.remove(|_| true);
        self.hold(false);
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
        if let Some(member) = state.members.iter_mut().find(|member| member.number == self.member) {
            member.started -= 1;
        }
        self.gate.fill(&mut state);
    }
}
