//! Keeps the memory account of a program: counts the bytes of its values against its memory limit, until they are
//! freed. Dropped values are freed in steps at safepoints.
//!
//! Memory means *logical bytes*: a fixed size per node kind plus its capacity, charged when a node is built or grows
//! and released when it is dropped. It is the same in every build and on every platform, which makes the memory limit
//! part of the language's contract.
//!
//! The counters are thread-local, since `Drop` of a node has no argument for its isolate. An isolate lives on one
//! thread, and all work on its values happens between `enter` and `leave`, which swap its counters in and out.
//! Architecture invariant: no value outlives or leaves the scope of its account.

use std::cell::Cell;

/// Items freed at once while the program runs; the others wait for the next safepoint.
pub(crate) const DRAIN_STEP: usize = 4_096;

/// Number of copied elements after which the copying code checks deadline and cancellation.
const COPY_STEP: u64 = 1 << 14;

/// The thread's backlog of values to be freed, which count until they are gone. The account does not know what they
/// are.
pub(crate) trait Backlog: Sync {
    /// Frees up to `budget` items; true if some are left.
    fn drain(&self, budget: usize) -> bool;

    /// Takes the backlog off the thread while `work` runs.
    fn parked(&self, work: &mut dyn FnMut());
}

/// An empty backlog.
struct NoBacklog;

impl Backlog for NoBacklog {
    fn drain(&self, _: usize) -> bool {
        false
    }

    fn parked(&self, work: &mut dyn FnMut()) {
        work();
    }
}

struct Counters {
    live: Cell<u64>,
    peak: Cell<u64>,
    limit: Cell<u64>,
    copied: Cell<u64>,
    copy_mark: Cell<u64>,
    attention: Cell<bool>,
    draining: Cell<bool>,
    backlog: Cell<&'static dyn Backlog>,
}

thread_local! {
    static COUNTERS: Counters = const {
        Counters {
            live: Cell::new(0),
            peak: Cell::new(0),
            limit: Cell::new(u64::MAX),
            copied: Cell::new(0),
            copy_mark: Cell::new(COPY_STEP),
            attention: Cell::new(false),
            draining: Cell::new(false),
            backlog: Cell::new(&NoBacklog),
        }
    };
}

/// The account of one isolate while it is not running.
#[derive(Default)]
pub(crate) struct Account {
    /// Live logical bytes.
    pub(crate) live: u64,
    /// Peak of live logical bytes.
    pub(crate) peak: u64,
    /// The limit in logical bytes.
    pub(crate) limit: u64,
    /// Elements copied because a collection was shared.
    pub(crate) copied: u64,
}

impl Account {
    /// An empty account with a limit in logical bytes.
    pub(crate) fn new(limit: u64) -> Account {
        Account { limit, ..Account::default() }
    }

    /// Makes this the account of the current thread until [`Account::leave`]; scopes do not nest. `waiting` says that
    /// the backlog is not empty.
    pub(crate) fn enter(&mut self, backlog: &'static dyn Backlog, waiting: bool) {
        COUNTERS.with(|counters| {
            counters.live.set(self.live);
            counters.peak.set(self.peak);
            counters.limit.set(self.limit);
            counters.copied.set(self.copied);
            counters.copy_mark.set(self.copied + COPY_STEP);
            counters.attention.set(self.live > self.limit || waiting);
            counters.draining.set(false);
            counters.backlog.set(backlog);
        });
    }

    /// Ends [`Account::enter`].
    pub(crate) fn leave(&mut self) {
        COUNTERS.with(|counters| {
            self.live = counters.live.replace(0);
            self.peak = counters.peak.replace(0);
            self.copied = counters.copied.replace(0);
            counters.limit.set(u64::MAX);
            counters.attention.set(false);
        });
    }
}

/// Takes the current account off this thread while `work` runs. `work` gets the number of live bytes, and may enter
/// other accounts. Not for use while the backlog is drained.
pub(crate) fn parked(work: impl FnOnce(u64)) {
    let (limit, copy_mark, attention, backlog) = COUNTERS.with(|counters| {
        debug_assert!(!counters.draining.get(), "dropping a value does not poll");
        (counters.limit.get(), counters.copy_mark.get(), counters.attention.get(), counters.backlog.get())
    });
    let mut account = Account::new(limit);
    let mut work = Some(work);
    backlog.parked(&mut || {
        account.leave();
        if let Some(work) = work.take() {
            work(account.live);
        }
        account.enter(backlog, false);
    });
    COUNTERS.with(|counters| {
        counters.copy_mark.set(copy_mark);
        counters.attention.set(attention);
    });
}

impl Account {
    /// Resets the peak and the number of copies; live bytes stay.
    pub(crate) fn restart(&mut self) {
        self.peak = self.live;
        self.copied = 0;
    }
}

/// Live logical bytes.
pub(crate) fn live() -> u64 {
    COUNTERS.with(|counters| counters.live.get())
}

/// Peak of live logical bytes.
pub(crate) fn peak() -> u64 {
    COUNTERS.with(|counters| counters.peak.get())
}

/// Runs `work`, which was checked before, without a limit.
pub(crate) fn unlimited<T>(work: impl FnOnce() -> T) -> T {
    let limit = COUNTERS.with(|counters| counters.limit.replace(u64::MAX));
    let done = work();
    COUNTERS.with(|counters| counters.limit.set(limit));
    done
}

/// The memory limit.
pub(crate) fn limit() -> u64 {
    COUNTERS.with(|counters| counters.limit.get())
}

/// Adds logical bytes to the account. Never fails: [`over_limit`] checks the limit.
#[inline]
pub(crate) fn charge(bytes: usize) {
    COUNTERS.with(|counters| {
        let live = counters.live.get() + bytes as u64;
        counters.live.set(live);
        if live > counters.peak.get() {
            counters.peak.set(live);
        }
        if live > counters.limit.get() {
            counters.attention.set(true);
        }
    });
}

/// Adds bytes that do not count towards the program's peak until they are released.
pub(crate) fn hold(bytes: usize) {
    COUNTERS.with(|counters| counters.live.set(counters.live.get() + bytes as u64));
}

/// Takes logical bytes off the account.
#[inline]
pub(crate) fn release(bytes: usize) {
    COUNTERS.with(|counters| counters.live.set(counters.live.get().wrapping_sub(bytes as u64)));
}

/// Changes the account from one size of a node to another.
#[inline]
pub(crate) fn recharge(before: usize, after: usize) {
    if after > before {
        charge(after - before);
    } else {
        release(before - after);
    }
}

/// Notes that elements of a shared collection were copied. Fuel, which counts semantic events only, does not include
/// this work. True if a poll is due.
#[inline]
pub(crate) fn count_copy(elements: usize) -> bool {
    COUNTERS.with(|counters| {
        let copied = counters.copied.get() + elements as u64;
        counters.copied.set(copied);
        let is_much = copied >= counters.copy_mark.get();
        if is_much {
            counters.copy_mark.set(copied + COPY_STEP);
        }
        is_much
    })
}

/// True if the next safepoint has something to do: memory over the limit, or a backlog.
#[inline]
pub(crate) fn attention() -> bool {
    COUNTERS.with(|counters| counters.attention.get())
}

/// The result of a safepoint after [`attention`].
pub(crate) enum Finding {
    /// Nothing left to do.
    Fine,
    /// Deadline and cancellation must be checked.
    Poll,
    /// Over the memory limit: live bytes and limit.
    OverLimit(u64, u64),
}

/// Frees some of the backlog. Gives what else needs attention.
pub(crate) fn attend() -> Finding {
    let left = drain(DRAIN_STEP);
    COUNTERS.with(|counters| {
        if counters.live.get() > counters.limit.get() {
            while drain(usize::MAX) {}
            if counters.live.get() > counters.limit.get() {
                return Finding::OverLimit(counters.live.get(), counters.limit.get());
            }
        }
        counters.attention.set(left);
        if left { Finding::Poll } else { Finding::Fine }
    })
}

/// The live bytes and the limit if `bytes` more would exceed it even after the whole backlog is freed.
pub(crate) fn would_exceed(bytes: u64) -> Option<(u64, u64)> {
    COUNTERS.with(|counters| {
        let needed = |counters: &Counters| counters.live.get().saturating_add(bytes);
        if needed(counters) > counters.limit.get() {
            while drain(usize::MAX) {}
        }
        (needed(counters) > counters.limit.get()).then(|| (needed(counters), counters.limit.get()))
    })
}

/// Frees up to `budget` items of the backlog; true if some are left.
fn drain(budget: usize) -> bool {
    COUNTERS.with(|counters| counters.backlog.get()).drain(budget)
}

/// Marks the backlog as being drained; false if it already is, since draining must not nest.
pub(crate) fn begin_draining() -> bool {
    !COUNTERS.with(|counters| counters.draining.replace(true))
}

/// Ends [`begin_draining`]; `left` makes the next safepoint continue.
pub(crate) fn end_draining(left: bool) {
    COUNTERS.with(|counters| {
        counters.draining.set(false);
        if left {
            counters.attention.set(true);
        }
    });
}
