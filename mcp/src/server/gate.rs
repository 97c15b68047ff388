//! How much may be in the server at once, over all its connections.
//!
//! A bounded number of jobs is running, or started and about to begin; the others wait in a queue that is bounded by
//! requests and bytes. When that is full connections are read no further, so nothing has to be refused: a client
//! that writes on is held back by its pipe. A party that has nothing in the queue may always put one request there, so
//! none is shut out by the others, and the parties take turns when places become free. A connection over standard input
//! is a party; over HTTP it is whoever has one token, however many connections they open.
//!
//! Within a party its *flows* take turns, which over HTTP are connections: a request is put behind as many others as its
//! flow has had in the last while (start-time fair queueing), so that who asks seldom is next, however many others of the
//! same party are asking all the time. Where the party's queue is full it takes the place of the last one there.
//!
//! The gate starts nothing itself: it tells the connection whose turn it is, which starts its job on its own thread.

use super::mailbox::{Event, Mailbox, Slot};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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
    /// Started jobs that wait for their clients to call again.
    pub parking: Parking,
}

/// How many jobs may wait for their clients to call again, and how long.
#[derive(Clone, Copy, Debug)]
pub struct Parking {
    /// So many of one connection, or of all clients over HTTP.
    pub most: usize,
    /// So long; then it ends.
    pub patience: Duration,
}

impl Default for Parking {
    fn default() -> Parking {
        Parking { most: 256, patience: Duration::from_secs(600) }
    }
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
    queue: BTreeMap<Rank, Queued>,
    /// How long that is, for who has no lock.
    queued: Arc<AtomicUsize>,
    /// The round of the request that was started last.
    round: u64,
    /// Requests so far.
    requests: u64,
    held: bool,
    started: usize,
    share: Share,
}

/// The place of a request in its party's queue: in a round each flow has one, and they are in the order they came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    round: u64,
    number: u64,
}

/// Requests of one source among those of a party, as one connection over HTTP.
#[derive(Debug)]
pub struct Flow {
    /// The party that it asked last, and the round of that request; written under the lock of the gate.
    last: Mutex<(u64, u64)>,
}

impl Default for Flow {
    fn default() -> Flow {
        // No party has this number.
        Flow { last: Mutex::new((u64::MAX, 0)) }
    }
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

impl Full {
    /// What somebody is told whose request is not taken.
    pub(super) fn message(self) -> &'static str {
        match self {
            Full::Party => {
                "server busy: as many requests of this token wait as may (http-max-queued-per-owner); retry the same call"
            }
            Full::Server => {
                "server busy: as many requests wait as may, of all clients together; retry the same call"
            }
        }
    }
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
    rank: Rank,
    memory_bytes: u64,
    begun: bool,
}

/// A connection at the gate. Dropping it takes back what it has in the queue.
#[derive(Debug)]
pub(super) struct Membership {
    party: Arc<Party>,
    flow: Arc<Flow>,
    mailbox: Arc<Mailbox>,
    /// Where its requests are in the queue.
    asked: HashMap<Slot, Rank>,
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
        let (queue, shown) = (BTreeMap::new(), queued.clone());
        state.members.push(Member {
            number,
            queue,
            queued: shown,
            round: 0,
            requests: 0,
            held: false,
            started: 0,
            share,
        });
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

    /// How many jobs may wait for their clients to call again.
    pub(super) fn parking(&self) -> Parking {
        self.load.parking
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
        while let Some((member, rank, Queued { request, mailbox })) = self.next(state) {
            self.went(&request);
            state.started += 1;
            state.ahead += 1;
            state.memory_bytes = state.memory_bytes.saturating_add(request.memory_bytes);
            let memory_bytes = request.memory_bytes;
            let permit = JobPlace { gate: self.clone(), member, rank, memory_bytes, begun: false };
            mailbox.push((request.slot, Event::Admitted(permit)));
        }
    }

    /// The request that is next, taken from its queue.
    fn next(&self, state: &mut GateState) -> Option<(u64, Rank, Queued)> {
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
            let Some((_, Queued { request: first, .. })) =
                member.queue.first_key_value().filter(|_| may_start)
            else {
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
            let (rank, first) = member.queue.pop_first()?;
            member.round = member.round.max(rank.round);
            member.queued.store(member.queue.len(), Ordering::Relaxed);
            return Some((member.number, rank, first));
        }
        None
    }
}

impl Party {
    /// Lets a connection of this party in; its mailbox is told when one of its jobs may start.
    pub(super) fn join(self: &Arc<Party>, flow: Arc<Flow>, mailbox: Arc<Mailbox>) -> Membership {
        Membership { party: self.clone(), flow, mailbox, asked: HashMap::new(), held: false }
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

    fn look<T>(&self, look: impl FnOnce(&Member) -> Option<T>) -> Option<T> {
        let state = self.gate.lock();
        state.members.iter().find(|member| member.number == self.number).and_then(look)
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

impl Flow {
    /// The round of the next request to a party that is in this round.
    fn next(&self, party: u64, now: u64) -> u64 {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let round = if last.0 == party { now.max(last.1 + 1) } else { now };
        *last = (party, round);
        round
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
    /// Jobs of the party that may be started at once.
    pub(super) fn most_jobs(&self) -> usize {
        self.party.share.jobs
    }

    /// What has no room for another request.
    pub(super) fn full(&self) -> Option<Full> {
        self.party.full()
    }

    /// Asks for a place; [`Event::Admitted`] says when there is one.
    pub(super) fn ask(&mut self, request: PlaceRequest) {
        let Membership { party, flow, mailbox, asked, .. } = self;
        party.change(|gate, member| {
            gate.came(&request);
            member.requests += 1;
            let rank = Rank { round: flow.next(party.number, member.round), number: member.requests };
            asked.insert(request.slot, rank);
            member.queue.insert(rank, Queued { request, mailbox: mailbox.clone() });
        });
    }

    /// [`Membership::ask`] where the queue of the party is full: takes the place of the last request there, which is told
    /// so, if this one is before it.
    ///
    /// # Errors
    /// It is not.
    pub(super) fn ask_before_last(&mut self, request: PlaceRequest) -> Result<(), Full> {
        let rank = self.party.look(|member| {
            let (last, _) = member.queue.last_key_value()?;
            // The round that it would have, which is not taken for it yet.
            let flow = self.flow.last.lock().unwrap_or_else(PoisonError::into_inner);
            let own = if flow.0 == member.number { member.round.max(flow.1 + 1) } else { member.round };
            (own < last.round).then_some(*last)
        });
        let Some(last) = rank else { return Err(Full::Party) };
        self.party.change(|gate, member| {
            if let Some(Queued { request, mailbox }) = member.queue.remove(&last) {
                gate.went(&request);
                mailbox.push((request.slot, Event::Displaced));
            }
        });
        self.ask(request);
        Ok(())
    }

    /// Asks again for a place that could not be used, where it was before.
    pub(super) fn ask_again(&mut self, request: PlaceRequest, unused: JobPlace) {
        let Membership { party, mailbox, asked, .. } = self;
        party.change(|gate, member| {
            gate.came(&request);
            asked.insert(request.slot, unused.rank);
            member.queue.insert(unused.rank, Queued { request, mailbox: mailbox.clone() });
        });
        drop(unused);
    }

    /// A request is in the queue no more: it was admitted, or displaced.
    pub(super) fn left(&mut self, slot: Slot) {
        self.asked.remove(&slot);
    }

    /// Takes a request back. One that was admitted is not in the queue any more: its permit is dropped by whoever
    /// finds it in the mailbox.
    pub(super) fn withdraw(&mut self, slot: Slot) {
        let rank = self.asked.remove(&slot);
        self.remove(rank);
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

    /// Takes requests out of the queue.
    fn remove(&self, ranks: impl IntoIterator<Item = Rank>) {
        self.party.change(|gate, member| {
            for rank in ranks {
                // Ranks are of one request each, but it may have left.
                if let Some(Queued { request, .. }) = member.queue.remove(&rank) {
                    gate.went(&request);
                }
            }
        });
    }
}

impl Drop for Membership {
    // Permits may lie unread in the mailbox; they need the lock when they are dropped, which is after this.
    fn drop(&mut self) {
        let asked = std::mem::take(&mut self.asked);
        if !asked.is_empty() {
            self.remove(asked.into_values());
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn one_job() -> Arc<Gate> {
        Gate::new(Load {
            jobs: 1,
            memory_bytes: 0,
            queued: 100,
            queued_bytes: 100,
            parking: Parking::default(),
        })
    }

    fn place(slot: u64) -> PlaceRequest {
        PlaceRequest { slot: Slot(slot), queued_bytes: 0, memory_bytes: 0 }
    }

    /// What was told since: who was admitted, and who has lost a place. Those who were admitted are over at once.
    fn told(mailbox: &Mailbox) -> (Vec<u64>, Vec<u64>) {
        let (mut admitted, mut displaced) = (Vec::new(), Vec::new());
        for (Slot(slot), event) in mailbox.take() {
            match event {
                Event::Admitted(_) => admitted.push(slot),
                _ => displaced.push(slot),
            }
        }
        (admitted, displaced)
    }

    #[test]
    fn who_asks_seldom_is_next_and_is_not_shut_out() {
        let gate = one_job();
        let party = gate.party(Share { jobs: 1, queued: 3 });
        let (loud, quiet) = (Arc::<Mailbox>::default(), Arc::<Mailbox>::default());
        let mut flood = party.join(Arc::default(), loud.clone());
        (0..4).for_each(|slot| flood.ask(place(slot)));
        let mut other = party.join(Arc::default(), quiet.clone());
        assert_eq!(other.full(), Some(Full::Party));
        assert_eq!(flood.ask_before_last(place(4)), Err(Full::Party), "it has had its rounds");
        assert_eq!(other.ask_before_last(place(5)), Ok(()));
        assert_eq!(told(&loud), (vec![0], vec![3]), "the last one makes room");
        assert_eq!((told(&quiet), told(&loud)), ((vec![5], vec![]), (vec![1], vec![])));
        assert_eq!(told(&loud), (vec![2], vec![]));
        assert_eq!(gate.queued(), 0);
    }

    #[test]
    fn what_is_withdrawn_is_not_admitted() {
        let gate = one_job();
        let party = gate.party(Share::ALL);
        let mailbox = Arc::<Mailbox>::default();
        let mut one = party.join(Arc::default(), mailbox.clone());
        (0..3).for_each(|slot| one.ask(place(slot)));
        one.withdraw(Slot(1));
        assert_eq!(told(&mailbox), (vec![0], vec![]));
        assert_eq!(told(&mailbox), (vec![2], vec![]));
        one.ask(place(3));
        drop(one);
        assert_eq!(gate.queued(), 0);
    }
}
