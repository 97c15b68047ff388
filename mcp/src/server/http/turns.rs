//! What a party that asks much leaves to others: while there are several parties, requests of one that has just asked more
//! than a few times take turns, each after whatever else has arrived. So a request of a quiet client is behind a few of a
//! busy one, and not behind all of them.

use super::access::TokenHolder;
use crate::tools::CallOwner;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tokio::sync::Semaphore;

/// Milliseconds in which requests are counted, and how many of one party are few.
const WINDOW: u64 = 16;
const FEW: u64 = 8;

/// How long there are several parties after another one has asked than the one before, in milliseconds.
const RECENT: u64 = 1_000;

/// BusyTurns of busy parties.
#[derive(Debug)]
pub(super) struct BusyTurns {
    turns: Semaphore,
    since: Instant,
    /// Who asked last.
    last: AtomicU64,
    /// Until when there are several, in milliseconds since then.
    several: AtomicU64,
}

/// How often a party has asked lately.
#[derive(Debug, Default)]
pub(super) struct Lately {
    window: AtomicU64,
    count: AtomicU64,
}

impl Lately {
    /// One more request; true when they are not few any more. Threads that begin a window at the same time may forget
    /// some, which does no harm.
    fn is_busy(&self, millis: u64) -> bool {
        let window = millis / WINDOW;
        if self.window.swap(window, Ordering::Relaxed) != window {
            self.count.store(0, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed) >= FEW
    }
}

impl BusyTurns {
    /// As many turns at once as there are threads.
    pub(super) fn new() -> BusyTurns {
        BusyTurns {
            turns: Semaphore::new(std::thread::available_parallelism().map_or(1, usize::from)),
            since: Instant::now(),
            last: AtomicU64::new(CallOwner::default().0),
            several: AtomicU64::new(0),
        }
    }

    /// Waits for the turn of a request, if its party has to take turns.
    pub(super) async fn wait(&self, holder: &TokenHolder, now: Instant) {
        let millis = u64::try_from((now - self.since).as_millis()).unwrap_or(u64::MAX);
        let owner = holder.owner.0;
        if self.last.swap(owner, Ordering::Relaxed) != owner {
            self.several.store(millis.saturating_add(RECENT), Ordering::Relaxed);
        }
        if holder.lately.is_busy(millis) && millis < self.several.load(Ordering::Relaxed) {
            // It is never closed.
            let _turn = self.turns.acquire().await;
            // Whoever holds a turn goes behind all that has arrived, on sockets too.
            tokio::task::yield_now().await;
        }
    }
}
