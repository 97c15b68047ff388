//! Admission control over all connections: bounds how many requests are started and how many wait, and lets tenants
//! (clients) take turns.
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
//! The gate starts nothing itself. Where no request waits it grants a permit at once; otherwise it notifies the
//! connection that is next. The connection starts the job on its own thread.

#[cfg(test)]
mod tests;

use super::mailbox::{Event, Mailbox, Slot};
use ptc_base::sync::Locked;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Most jobs that were started and have not begun. It keeps workers busy until the connections run again.
const MOST_AHEAD: usize = 64;

/// Limits on what may be in the server at once.
#[derive(Clone, Copy, Debug)]
pub struct GateLimits {
    /// Started jobs: those that run, and those that wait for upstream servers.
    pub jobs: usize,
    /// Bytes that started jobs may hold together, by their own estimates (`Job::memory_bytes`).
    /// A single job may exceed it.
    pub memory_bytes: u64,
    /// Requests that wait for a permit.
    pub queued: usize,
    /// Bytes of the messages of waiting requests. A single message may exceed it.
    pub queued_bytes: usize,
    /// Limits on started jobs that wait for their clients to call again.
    pub parking: ParkingLimits,
}

/// How many jobs may wait for their clients to call again, and how long.
#[derive(Clone, Copy, Debug)]
pub struct ParkingLimits {
    /// Most parked jobs of one connection, or of all clients over HTTP.
    pub most: usize,
    /// How long a job may be parked before it is ended.
    pub timeout: Duration,
}

impl Default for ParkingLimits {
    fn default() -> ParkingLimits {
        ParkingLimits { most: 256, timeout: Duration::from_secs(600) }
    }
}

/// Grants permits to jobs. There is one a process.
#[derive(Debug)]
pub struct Gate {
    pub(super) limits: GateLimits,
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
    tenants: Vec<TenantQueue>,
    /// Index of the tenant that is next.
    next: usize,
    next_tenant: u64,
}

#[derive(Debug)]
struct TenantQueue {
    number: u64,
    /// Requests, each with the mailbox that is notified when it is admitted.
    queue: BTreeMap<Rank, (PermitRequest, Arc<Mailbox>)>,
    /// Length of `queue`, readable without the lock.
    queued: Arc<AtomicUsize>,
    /// The round of the request that was started last.
    round: u64,
    /// Requests so far.
    requests: u64,
    held: bool,
    started: usize,
    limits: TenantLimits,
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

/// How much one tenant may have in the server at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TenantLimits {
    /// Started jobs.
    pub jobs: usize,
    /// Waiting requests.
    pub queued: usize,
}

impl TenantLimits {
    /// No limit but those of the server.
    pub const ALL: TenantLimits = TenantLimits { jobs: usize::MAX, queued: usize::MAX };
}

/// A client or token that shares the server with others. Its connections have one queue.
#[derive(Debug)]
pub struct Tenant {
    gate: Arc<Gate>,
    number: u64,
    limits: TenantLimits,
    queued: Arc<AtomicUsize>,
}

/// Which queue has no room for another request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueFull {
    /// The queue of the server.
    Server,
    /// The queue of the tenant.
    Tenant,
}

impl QueueFull {
    /// Error text for a request that is refused.
    pub(super) fn message(self) -> &'static str {
        match self {
            QueueFull::Tenant => {
                "server busy: as many requests of this token wait as may (http-max-queued-per-owner); retry the same call"
            }
            QueueFull::Server => {
                "server busy: as many requests wait as may, of all clients together; retry the same call"
            }
        }
    }
}

/// A request for a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PermitRequest {
    /// Its number within its connection.
    pub(super) slot: Slot,
    /// Bytes of its message.
    pub(super) queued_bytes: usize,
    /// Bytes that its job may hold.
    pub(super) memory_bytes: u64,
}

/// The right of a started job to run. Dropping it frees its slot for the next job.
#[derive(Debug)]
pub struct JobPermit {
    gate: Arc<Gate>,
    tenant: u64,
    rank: Rank,
    memory_bytes: u64,
    begun: bool,
}

/// A connection's handle on its tenant's queue. Dropping it withdraws the connection's requests.
#[derive(Debug)]
pub(super) struct QueueHandle {
    tenant: Arc<Tenant>,
    flow: Arc<Flow>,
    mailbox: Arc<Mailbox>,
    /// Positions of its requests in the queue.
    queued_slots: HashMap<Slot, Rank>,
    /// See [`QueueHandle::hold`].
    pub(super) held: bool,
}

impl Gate {
    /// A gate with nothing admitted or queued.
    pub fn new(limits: GateLimits) -> Arc<Gate> {
        Arc::new(Gate {
            limits,
            state: Mutex::default(),
            queued: AtomicUsize::new(0),
            queued_bytes: AtomicUsize::new(0),
        })
    }

    /// Registers a tenant.
    pub fn tenant(self: &Arc<Gate>, limits: TenantLimits) -> Arc<Tenant> {
        let mut state = self.state.locked();
        let number = state.next_tenant;
        state.next_tenant += 1;
        let queued = Arc::<AtomicUsize>::default();
        let (queue, shown) = (BTreeMap::new(), queued.clone());
        state.tenants.push(TenantQueue {
            number,
            queue,
            queued: shown,
            round: 0,
            requests: 0,
            held: false,
            started: 0,
            limits,
        });
        Arc::new(Tenant { gate: self.clone(), number, limits, queued })
    }

    /// True while another request may wait.
    pub(super) fn has_room(&self) -> bool {
        self.queued.load(Ordering::Relaxed) < self.limits.queued
            && self.queued_bytes.load(Ordering::Relaxed) < self.limits.queued_bytes
    }

    /// How many requests wait.
    pub fn queued(&self) -> usize {
        self.queued.load(Ordering::Relaxed)
    }

    fn note_queued(&self, request: &PermitRequest) {
        self.queued.fetch_add(1, Ordering::Relaxed);
        self.queued_bytes.fetch_add(request.queued_bytes, Ordering::Relaxed);
    }

    fn note_dequeued(&self, request: &PermitRequest) {
        self.queued.fetch_sub(1, Ordering::Relaxed);
        self.queued_bytes.fetch_sub(request.queued_bytes, Ordering::Relaxed);
    }

    /// Grants the permits that are free.
    fn fill(self: &Arc<Gate>, state: &mut GateState) {
        while let Some((tenant, rank, (request, mailbox))) = self.next(state) {
            self.note_dequeued(&request);
            let permit = self.grant(state, tenant, rank, request.memory_bytes);
            mailbox.push((request.slot, Event::Admitted(permit)));
        }
    }

    /// A permit for a request of the tenant at this index, which is counted as started.
    fn grant(
        self: &Arc<Gate>,
        state: &mut GateState,
        tenant: usize,
        rank: Rank,
        memory_bytes: u64,
    ) -> JobPermit {
        state.started += 1;
        state.ahead += 1;
        state.memory_bytes = state.memory_bytes.saturating_add(memory_bytes);
        let entry = &mut state.tenants[tenant];
        entry.started += 1;
        entry.round = entry.round.max(rank.round);
        JobPermit { gate: self.clone(), tenant: entry.number, rank, memory_bytes, begun: false }
    }

    /// True when as many jobs as may be are started, or wait to begin.
    fn is_full(&self, state: &GateState) -> bool {
        state.started >= self.limits.jobs || state.ahead >= MOST_AHEAD
    }

    /// True when a job that may hold this many bytes has to wait for memory. A single job never has to.
    fn lacks_memory(&self, state: &GateState, memory_bytes: u64) -> bool {
        let left = self.limits.memory_bytes.saturating_sub(state.memory_bytes);
        memory_bytes > left && state.memory_bytes > 0
    }

    /// Takes the next request from its queue, if a job may start. Returns it with the index of its tenant.
    fn next(&self, state: &mut GateState) -> Option<(usize, Rank, (PermitRequest, Arc<Mailbox>))> {
        if self.is_full(state) || self.queued() == 0 {
            return None;
        }
        let mut memory_is_awaited = false;
        let count = state.tenants.len();
        for step in 0..count {
            let index = (state.next + step) % count;
            let entry = &state.tenants[index];
            let Some((_, (first, _))) = entry.queue.first_key_value().filter(|_| entry.may_start()) else {
                continue;
            };
            let memory_bytes = first.memory_bytes;
            // A job with a memory estimate never passes another one that waits for memory: otherwise a large one
            // would starve.
            if memory_bytes > 0 && (memory_is_awaited || self.lacks_memory(state, memory_bytes)) {
                if !memory_is_awaited {
                    state.next = index;
                }
                memory_is_awaited = true;
                continue;
            }
            if !memory_is_awaited {
                state.next = (index + 1) % count;
            }
            let entry = &mut state.tenants[index];
            let (rank, first) = entry.queue.pop_first()?;
            entry.queued.store(entry.queue.len(), Ordering::Relaxed);
            return Some((index, rank, first));
        }
        None
    }
}

impl TenantQueue {
    /// False while all its jobs are held back, or as many are started as may be.
    fn may_start(&self) -> bool {
        !self.held && self.started < self.limits.jobs
    }

    /// Position of the next request of this flow.
    fn next_rank(&mut self, flow: &Flow) -> Rank {
        self.requests += 1;
        Rank { round: flow.next(self.number, self.round), number: self.requests }
    }
}

impl Tenant {
    /// Adds a connection of this tenant. Its mailbox is notified when one of its jobs may start.
    pub(super) fn join(self: &Arc<Tenant>, flow: Arc<Flow>, mailbox: Arc<Mailbox>) -> QueueHandle {
        QueueHandle { tenant: self.clone(), flow, mailbox, queued_slots: HashMap::new(), held: false }
    }

    /// Which queue has no room for another request, if one is full.
    pub(super) fn full(&self) -> Option<QueueFull> {
        match self.queued.load(Ordering::Relaxed) {
            // One request always fits, so other tenants cannot shut this one out.
            0 => None,
            queued if queued >= self.limits.queued => Some(QueueFull::Tenant),
            _ if !self.gate.has_room() => Some(QueueFull::Server),
            _ => None,
        }
    }

    fn look<T>(&self, look: impl FnOnce(&TenantQueue) -> Option<T>) -> Option<T> {
        let state = self.gate.state.locked();
        state.tenants.iter().find(|entry| entry.number == self.number).and_then(look)
    }

    fn change(&self, change: impl FnOnce(&Gate, &mut TenantQueue)) {
        let mut state = self.gate.state.locked();
        if let Some(entry) = state.tenants.iter_mut().find(|entry| entry.number == self.number) {
            change(&self.gate, entry);
            entry.queued.store(entry.queue.len(), Ordering::Relaxed);
        }
        self.gate.fill(&mut state);
    }
}

impl Flow {
    /// The round of the next request to this tenant, which is in round `now`.
    fn next(&self, tenant: u64, now: u64) -> u64 {
        let mut last = self.last.locked();
        let round = if last.0 == tenant { now.max(last.1 + 1) } else { now };
        *last = (tenant, round);
        round
    }
}

impl Drop for Tenant {
    // Its connections hold an `Arc` of it, so none of its requests can be waiting.
    fn drop(&mut self) {
        let mut state = self.gate.state.locked();
        state.tenants.retain(|entry| entry.number != self.number);
        state.next = 0;
    }
}

impl QueueHandle {
    /// Most jobs of the tenant that may be started at once.
    pub(super) fn most_jobs(&self) -> usize {
        self.tenant.limits.jobs
    }

    /// Which queue has no room for another request, if one is full.
    pub(super) fn full(&self) -> Option<QueueFull> {
        self.tenant.full()
    }

    /// A permit at once, if a job that may hold this many bytes may start. It is refused while any request waits, or an
    /// earlier one of this connection has been admitted and not started, so no request is passed.
    pub(super) fn try_permit(&mut self, memory_bytes: u64) -> Option<JobPermit> {
        let gate = &self.tenant.gate;
        if gate.queued() > 0 || !self.queued_slots.is_empty() {
            return None;
        }
        let state = &mut *gate.state.locked();
        let index = state.tenants.iter().position(|entry| entry.number == self.tenant.number)?;
        // Another connection may have queued one before the lock was taken.
        if gate.queued() > 0
            || gate.is_full(state)
            || gate.lacks_memory(state, memory_bytes)
            || !state.tenants[index].may_start()
        {
            return None;
        }
        let rank = state.tenants[index].next_rank(&self.flow);
        state.next = (index + 1) % state.tenants.len();
        Some(gate.grant(state, index, rank, memory_bytes))
    }

    /// Queues a request; [`Event::Admitted`] follows.
    pub(super) fn request_permit(&mut self, request: PermitRequest) {
        let QueueHandle { tenant, flow, mailbox, queued_slots, .. } = self;
        tenant.change(|gate, entry| {
            gate.note_queued(&request);
            let rank = entry.next_rank(flow);
            queued_slots.insert(request.slot, rank);
            entry.queue.insert(rank, (request, mailbox.clone()));
        });
    }

    /// [`QueueHandle::request_permit`] while the tenant's queue is full. If this request ranks before the last one there,
    /// it displaces that one, which gets [`Event::Displaced`].
    ///
    /// # Errors
    /// It does not rank before the last one.
    pub(super) fn displace_last(&mut self, request: PermitRequest) -> Result<(), QueueFull> {
        let rank = self.tenant.look(|entry| {
            let (last, _) = entry.queue.last_key_value()?;
            // The round that the request would get. It is not reserved yet.
            let flow = self.flow.last.locked();
            let own = if flow.0 == entry.number { entry.round.max(flow.1 + 1) } else { entry.round };
            (own < last.round).then_some(*last)
        });
        let Some(last) = rank else { return Err(QueueFull::Tenant) };
        self.tenant.change(|gate, entry| {
            if let Some((request, mailbox)) = entry.queue.remove(&last) {
                gate.note_dequeued(&request);
                mailbox.push((request.slot, Event::Displaced));
            }
        });
        self.request_permit(request);
        Ok(())
    }

    /// Returns an unused permit, and queues the request again at its old position.
    pub(super) fn requeue(&mut self, request: PermitRequest, unused: JobPermit) {
        let QueueHandle { tenant, mailbox, queued_slots, .. } = self;
        tenant.change(|gate, entry| {
            gate.note_queued(&request);
            queued_slots.insert(request.slot, unused.rank);
            entry.queue.insert(unused.rank, (request, mailbox.clone()));
        });
        drop(unused);
    }

    /// Forgets a request that has left the queue: it was admitted, or displaced.
    pub(super) fn forget(&mut self, slot: Slot) {
        self.queued_slots.remove(&slot);
    }

    /// Withdraws a request. One that was admitted is not in the queue any more: the reader of the mailbox drops
    /// its permit.
    pub(super) fn withdraw(&mut self, slot: Slot) {
        let rank = self.queued_slots.remove(&slot);
        self.remove(rank);
    }

    /// Holds back all jobs of this tenant, or lets them start again.
    pub(super) fn hold(&mut self, held: bool) {
        if std::mem::replace(&mut self.held, held) != held {
            self.tenant.change(|_, entry| entry.held = held);
        }
    }

    /// Removes requests from the queue.
    fn remove(&self, ranks: impl IntoIterator<Item = Rank>) {
        self.tenant.change(|gate, entry| {
            for rank in ranks {
                // A rank belongs to one request only, but that request may have left the queue.
                if let Some((request, _)) = entry.queue.remove(&rank) {
                    gate.note_dequeued(&request);
                }
            }
        });
    }
}

impl Drop for QueueHandle {
    // Permits may lie unread in the mailbox. Dropping them takes the gate's lock, and happens after this.
    fn drop(&mut self) {
        let queued_slots = std::mem::take(&mut self.queued_slots);
        if !queued_slots.is_empty() {
            self.remove(queued_slots.into_values());
        }
        self.hold(false);
    }
}

impl JobPermit {
    /// Notes that the job has begun, so another one may be started ahead.
    pub(super) fn begun(&mut self) {
        if !std::mem::replace(&mut self.begun, true) {
            let mut state = self.gate.state.locked();
            state.ahead -= 1;
            self.gate.fill(&mut state);
        }
    }
}

impl Drop for JobPermit {
    fn drop(&mut self) {
        let mut state = self.gate.state.locked();
        state.started -= 1;
        state.ahead -= usize::from(!self.begun);
        state.memory_bytes = state.memory_bytes.saturating_sub(self.memory_bytes);
        if let Some(entry) = state.tenants.iter_mut().find(|entry| entry.number == self.tenant) {
            entry.started -= 1;
        }
        self.gate.fill(&mut state);
    }
}
