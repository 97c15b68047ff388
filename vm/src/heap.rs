//! Logical memory accounting and incremental freeing.
//!
//! Memory means *logical bytes*: a fixed size per node kind plus its capacity, charged when a node is
//! built or grows and released when it is dropped. It is the same in every build and on every
//! platform, which makes the memory limit part of the language's contract.
//!
//! The counters are thread-local because `Drop` of a node has no argument to reach its isolate by. An
//! isolate lives on one thread, and every touch of its values happens inside `Heap::enter`, which swaps
//! its counters in. Architecture invariant: no value outlives or leaves the scope of its heap.
//!
//! Freeing never recurses: a dropped collection hands its children to a work list, and the list is
//! worked off in bounded steps, the rest at the next safepoint.

use crate::value::Value;
use std::cell::{Cell, RefCell};
use std::mem;

/// Values freed in one go while the program runs on; what is left waits for the next safepoint.
const DRAIN_STEP: usize = 4_096;

/// Copied elements after which whoever copies looks at deadline and cancellation.
const COPY_STEP: u64 = 1 << 14;

struct Counters {
    live: Cell<u64>,
    peak: Cell<u64>,
    limit: Cell<u64>,
    copied: Cell<u64>,
    copy_mark: Cell<u64>,
    attention: Cell<bool>,
    draining: Cell<bool>,
}

/// Children of a dropped collection, and the logical bytes to release when they are gone.
struct Garbage {
    values: Vec<Value>,
    bytes: u64,
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
        }
    };

    // Apart from the counters: a thread-local without a destructor is reached without a check.
    static GARBAGE: RefCell<Vec<Garbage>> = const { RefCell::new(Vec::new()) };
}

/// The memory account of one isolate while it is not running.
#[derive(Default)]
pub struct Heap {
    live: u64,
    peak: u64,
    limit: u64,
    copied: u64,
    garbage: Vec<Garbage>,
}

impl Heap {
    /// An empty account with a limit in logical bytes.
    pub fn new(limit: u64) -> Heap {
        Heap { limit, ..Heap::default() }
    }

    /// Logical bytes alive.
    pub fn live(&self) -> u64 {
        self.live
    }

    /// Most logical bytes alive at once.
    pub fn peak(&self) -> u64 {
        self.peak
    }

    /// Elements copied because a collection was shared.
    pub fn copied(&self) -> u64 {
        self.copied
    }

    /// Makes this the account of the current thread until [`Heap::leave`]; scopes do not nest.
    pub(crate) fn enter(&mut self) {
        COUNTERS.with(|counters| {
            counters.live.set(self.live);
            counters.peak.set(self.peak);
            counters.limit.set(self.limit);
            counters.copied.set(self.copied);
            counters.copy_mark.set(self.copied + COPY_STEP);
            counters.attention.set(self.live > self.limit || !self.garbage.is_empty());
            counters.draining.set(false);
        });
        // Between scopes the thread has no garbage, only room for it.
        if !self.garbage.is_empty() {
            GARBAGE.with(|garbage| mem::swap(&mut self.garbage, &mut garbage.borrow_mut()));
        }
    }

    /// Ends [`Heap::enter`].
    pub(crate) fn leave(&mut self) {
        COUNTERS.with(|counters| {
            self.live = counters.live.replace(0);
            self.peak = counters.peak.replace(0);
            self.copied = counters.copied.replace(0);
            counters.limit.set(u64::MAX);
            counters.attention.set(false);
        });
        GARBAGE.with(|garbage| {
            let mut garbage = garbage.borrow_mut();
            if !garbage.is_empty() {
                mem::swap(&mut self.garbage, &mut garbage);
            }
        });
    }
}

/// Takes the account that is on this thread off it while `work` runs, which is told how much is alive and may
/// enter other accounts. Not for use while garbage is drained.
pub(crate) fn parked(work: impl FnOnce(u64)) {
    let (limit, copy_mark, attention) = COUNTERS.with(|counters| {
        debug_assert!(!counters.draining.get(), "dropping a value does not poll");
        (counters.limit.get(), counters.copy_mark.get(), counters.attention.get())
    });
    let mut account = Heap::new(limit);
    account.leave();
    work(account.live);
    account.enter();
    COUNTERS.with(|counters| {
        counters.copy_mark.set(copy_mark);
        counters.attention.set(attention);
    });
}

/// What an account said at some moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeapMark {
    live: u64,
    peak: u64,
    copied: u64,
}

impl Heap {
    /// What the account says now.
    pub(crate) fn mark(&self) -> HeapMark {
        HeapMark { live: self.live, peak: self.peak, copied: self.copied }
    }

    /// Takes the account back to a mark, if as much is alive as then.
    pub(crate) fn restore(&mut self, mark: &HeapMark) -> bool {
        let same = self.live == mark.live && self.garbage.is_empty();
        if same {
            self.peak = mark.peak;
            self.copied = mark.copied;
        }
        same
    }
}

/// Most logical bytes alive at once.
pub(crate) fn peak() -> u64 {
    COUNTERS.with(|counters| counters.peak.get())
}

/// The memory limit.
pub(crate) fn limit() -> u64 {
    COUNTERS.with(|counters| counters.limit.get())
}

/// Adds logical bytes to the account. Never fails: the limit is looked at by [`over_limit`].
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

/// Adds bytes to the account that do not count as the program's peak, until they are released.
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

/// Notes that elements of a shared collection were copied: work that fuel, which counts semantic
/// events only, does not see. True when it is time for a poll.
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

/// True when the next safepoint has something to do: memory over the limit, or garbage left.
#[inline]
pub(crate) fn attention() -> bool {
    COUNTERS.with(|counters| counters.attention.get())
}

/// What a safepoint finds after [`attention`].
pub(crate) enum Finding {
    /// Nothing left to do.
    Fine,
    /// Time to look at deadline and cancellation.
    Poll,
    /// Over the memory limit: live bytes and limit.
    OverLimit(u64, u64),
}

/// Works off some garbage and says what else needs attention.
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

/// True when `bytes` more would pass the limit, given all garbage is freed first.
pub(crate) fn would_exceed(bytes: u64) -> Option<(u64, u64)> {
    COUNTERS.with(|counters| {
        let needed = |counters: &Counters| counters.live.get().saturating_add(bytes);
        if needed(counters) > counters.limit.get() {
            while drain(usize::MAX) {}
        }
        (needed(counters) > counters.limit.get()).then(|| (needed(counters), counters.limit.get()))
    })
}

/// Hands the children of a dropped collection over. `bytes` are released when they are gone.
pub(crate) fn discard(values: Vec<Value>, bytes: usize) {
    // While a thread ends there is no list any more, and nothing to account to.
    let listed = GARBAGE
        .try_with(|garbage| garbage.borrow_mut().push(Garbage { values, bytes: bytes as u64 }))
        .is_ok();
    if listed && !COUNTERS.with(|counters| counters.draining.get()) {
        drain(DRAIN_STEP);
    }
}

/// Frees up to `budget` values; true when some are left.
pub(crate) fn drain(budget: usize) -> bool {
    if COUNTERS.with(|counters| counters.draining.replace(true)) {
        return false;
    }
    let left = drain_list(budget);
    COUNTERS.with(|counters| {
        counters.draining.set(false);
        if left {
            counters.attention.set(true);
        }
    });
    left
}

fn drain_list(mut budget: usize) -> bool {
    loop {
        let Ok(Some(mut batch)) = GARBAGE.try_with(|garbage| garbage.borrow_mut().pop()) else {
            return false;
        };
        while let Some(value) = batch.values.pop() {
            if budget == 0 {
                batch.values.push(value);
                GARBAGE.with(|garbage| garbage.borrow_mut().push(batch));
                return true;
            }
            budget -= 1;
            // Collections dropped here push their children instead of recursing.
            drop(value);
        }
        release(batch.bytes as usize);
    }
}
