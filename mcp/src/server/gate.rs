//! Admission control: how many requests may be in the server at once, over all its connections.
//!
//! A bounded number of jobs has been started. The others wait in a queue that is bounded by requests and bytes.
//! When the queue is full, connections are read no further, so nothing has to be refused: a client that writes
//! on is held back by its pipe. A tenant with nothing in the queue may always put one request there, so no
//! tenant shuts out another. Free slots go to the tenants in turn. A connection over standard input is a
//! tenant. Over HTTP a token is a tenant, however many connections use it.
//!
//! Within a tenant its *flows* take turns; over HTTP a flow is a connection. A request is queued behind as many
//! others as its flow has had lately (start-time fair queueing). So a flow that asks seldom is next, even while
//! other flows of its tenant ask all the time. Where the tenant's queue is full, such a request displaces the
//! last one there.
//!
//! The gate starts nothing itself. It notifies the connection that is next, and the connection starts the job
//! on its own thread.

use super::mailbox::{Event, Mailbox, Slot};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Most jobs that were started and have not begun. It keeps workers busy until the connections run again.
const MOST_AHEAD: usize = 64;

/// Limits on what may be in the server at once.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Started jobs: those that run, and those that wait for upstream servers.
    pub jobs: usize,
    /// Bytes that started jobs may hold together, by their own estimates ([`crate::tools::Job::memory_bytes`]).
    /// A single job may exceed it.
    pub memory_bytes: u64,
    /// Requests that wait for a permit.
    pub queued: usize,
    /// Bytes of the messages of waiting requests. A single message may exceed it.
    pub queued_bytes: usize,
    /// Limits on started jobs that wait for their clients to call again.
    pub parking: Parking,
}

/// How many jobs may wait for their clients to call again, and how long.
#[derive(Clone, Copy, Debug)]
pub struct Parking {
    /// Most parked jobs of one connection, or of all clients over HTTP.
    pub most: usize,
    /// How long a job may be parked before it is ended.
    pub patience: Duration,
}

impl Default for Parking {
    fn default() -> Parking {
        Parking { most: 256, patience: Duration::from_secs(600) }
    }
}

/// Grants permits to jobs. There is one a process.
#[derive(Debug)]
pub struct Gate {
    load: Load,
    state: Mutex<GateState>,
    /// Written under the lock and read without it; so is `queued_bytes`.
    queued: AtomicUsize,
    queued_bytes: AtomicUsize,
}

#[derive(Debug, Default)]
struct GateState {
    started: usize,
    /// Started jobs that have not begun.
    ahead: usize,
    memory_bytes: u64,
    members: Vec<Member>,
    /// Index of the member that is next.
    turn: usize,
    next_member: u64,
}

#[derive(Debug)]
struct Member {
    number: u64,
    queue: BTreeMap<Rank, Queued>,
    /// Length of `queue`, readable without the lock.
    queued: Arc<AtomicUsize>,
    /// The round of the request that was started last.
    round: u64,
    /// Requests so far.
    requests: u64,
    held: bool,
    started: usize,
    share: Share,
}

/// Position of a request in its tenant's queue. Each flow has one request a round; within a round the order is
/// that of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    round: u64,
    number: u64,
}

/// Requests of one source within a tenant, such as one HTTP connection.
#[derive(Debug)]
pub struct Flow {
    /// Number of the tenant that it asked last, and the round of that request. Written under the gate's lock.
    last: Mutex<(u64, u64)>,
}

impl Default for Flow {
    fn default() -> Flow {
        // No tenant has this number.
        Flow { last: Mutex::new((u64::MAX, 0)) }
    }
}

/// A queued request, and the mailbox that is notified when it is admitted.
#[derive(Debug)]
struct Queued {
    request: PlaceRequest,
    mailbox: Arc<Mailbox>,
}

/// How much one tenant may have in the server at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Started jobs.
    pub jobs: usize,
    /// Waiting requests.
    pub queued: usize,
}

impl Share {
    /// No limit but those of the server.
    pub const ALL: Share = Share { jobs: usize::MAX, queued: usize::MAX };
}

/// A client or token that shares the server with others. Its connections have one queue.
#[derive(Debug)]
pub struct Party {
    gate: Arc<Gate>,
    number: u64,
    share: Share,
    queued: Arc<AtomicUsize>,
}

/// Which queue has no room for another request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// The queue of the server.
    Server,
    /// The queue of the tenant.
    Party,
}

impl Full {
    /// Error text for a request that is refused.
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

/// A request for a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlaceRequest {
    /// Its number within its connection.
    pub(super) slot: Slot,
    /// Bytes of its message.
    pub(super) queued_bytes: usize,
    /// Bytes that its job may hold.
    pub(super) memory_bytes: u64,
}

/// The right of a started job to run. Dropping it frees its slot for the next job.
#[derive(Debug)]
pub struct JobPlace {
    gate: Arc<Gate>,
    member: u64,
    rank: Rank,
    memory_bytes: u64,
    begun: bool,
}

/// A connection's handle on its tenant's queue. Dropping it withdraws the connection's requests.
#[derive(Debug)]
pub(super) struct Membership {
    party: Arc<Party>,
    flow: Arc<Flow>,
    mailbox: Arc<Mailbox>,
    /// Positions of its requests in the queue.
    asked: HashMap<Slot, Rank>,
    held: bool,
}

impl Gate {
    /// A gate with nothing admitted or queued.
    pub fn new(load: Load) -> Arc<Gate> {
        Arc::new(Gate {
            load,
            state: Mutex::default(),
            queued: AtomicUsize::new(0),
            queued_bytes: AtomicUsize::new(0),
        })
    }

    /// Registers a tenant.
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

    /// Limits on parked jobs.
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

    /// Grants the permits that are free.
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

    /// Takes the next request from its queue, if a job may start.
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
            // A single job may always run. A job with a memory estimate never passes another one that waits for
            // memory: otherwise a large one would starve.
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
    /// Adds a connection of this tenant. Its mailbox is notified when one of its jobs may start.
    pub(super) fn join(self: &Arc<Party>, flow: Arc<Flow>, mailbox: Arc<Mailbox>) -> Membership {
        Membership { party: self.clone(), flow, mailbox, asked: HashMap::new(), held: false }
    }

    /// Which queue has no room for another request, if one is full.
    pub(super) fn full(&self) -> Option<Full> {
        match self.queued.load(Ordering::Relaxed) {
            // One request always fits, so other tenants cannot shut this one out.
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
    /// The round of the next request to this tenant, which is in round `now`.
    fn next(&self, party: u64, now: u64) -> u64 {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let round = if last.0 == party { now.max(last.1 + 1) } else { now };
        *last = (party, round);
        round
    }
}

impl Drop for Party {
    // Its connections hold an `Arc` of it, so none of its requests can be waiting.
    fn drop(&mut self) {
        let mut state = self.gate.lock();
        state.members.retain(|member| member.number != self.number);
        state.turn = 0;
    }
}

impl Membership {
    /// Most jobs of the tenant that may be started at once.
    pub(super) fn most_jobs(&self) -> usize {
        self.party.share.jobs
    }

    /// Which queue has no room for another request, if one is full.
    pub(super) fn full(&self) -> Option<Full> {
        self.party.full()
    }

    /// Queues a request; [`Event::Admitted`] follows.
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

    /// [`Membership::ask`] while the tenant's queue is full. If this request ranks before the last one there,
    /// it displaces that one, which gets [`Event::Displaced`].
    ///
    /// # Errors
    /// It does not rank before the last one.
    pub(super) fn ask_before_last(&mut self, request: PlaceRequest) -> Result<(), Full> {
        let rank = self.party.look(|member| {
            let (last, _) = member.queue.last_key_value()?;
            // The round that the request would get. It is not reserved yet.
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

    /// Returns an unused permit, and queues the request again at its old position.
    pub(super) fn ask_again(&mut self, request: PlaceRequest, unused: JobPlace) {
        let Membership { party, mailbox, asked, .. } = self;
        party.change(|gate, member| {
            gate.came(&request);
            asked.insert(request.slot, unused.rank);
            member.queue.insert(unused.rank, Queued { request, mailbox: mailbox.clone() });
        });
        drop(unused);
    }

    /// Forgets a request that has left the queue: it was admitted, or displaced.
    pub(super) fn left(&mut self, slot: Slot) {
        self.asked.remove(&slot);
    }

    /// Withdraws a request. One that was admitted is not in the queue any more: the reader of the mailbox drops
    /// its permit.
    pub(super) fn withdraw(&mut self, slot: Slot) {
        let rank = self.asked.remove(&slot);
        self.remove(rank);
    }

    /// Holds back all jobs of this tenant, or lets them start again.
    pub(super) fn hold(&mut self, held: bool) {
        if std::mem::replace(&mut self.held, held) != held {
            self.party.change(|_, member| member.held = held);
        }
    }

    /// See [`Membership::hold`].
    pub(super) fn is_held(&self) -> bool {
        self.held
    }

    /// Removes requests from the queue.
    fn remove(&self, ranks: impl IntoIterator<Item = Rank>) {
        self.party.change(|gate, member| {
            for rank in ranks {
                // A rank belongs to one request only, but that request may have left the queue.
                if let Some(Queued { request, .. }) = member.queue.remove(&rank) {
                    gate.went(&request);
                }
            }
        });
    }
}

impl Drop for Membership {
    // Permits may lie unread in the mailbox. Dropping them takes the gate's lock, and happens after this.
    fn drop(&mut self) {
        let asked = std::mem::take(&mut self.asked);
        if !asked.is_empty() {
            self.remove(asked.into_values());
        }
        self.hold(false);
    }
}

impl JobPlace {
    /// Notes that the job has begun, so another one may be started ahead.
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

    /// Slots that were admitted and slots that were displaced since the last call. It drops their permits at
    /// once.
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
