//! What a party that asks much leaves to others: while there are several parties, requests of one that has more than a few
//! in hand take turns, each after whatever else has arrived. So a request of a quiet client is behind a few of a busy one,
//! and not behind all of them.

use super::access::TokenHolder;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Requests of one party in hand that are not many.
const FEW: usize = 4;

/// How long a party counts as one that is there, after another one has asked.
const RECENT: Duration = Duration::from_secs(1);

/// Turns of busy parties.
#[derive(Debug)]
pub(super) struct Turns {
    turns: Semaphore,
    since: Instant,
    /// Who asked last, and when somebody else had; milliseconds since then.
    last: AtomicU64,
    changed: AtomicU64,
}

/// A request of a party in hand.
#[derive(Debug)]
pub(super) struct InHand(Arc<TokenHolder>);

impl Turns {
    /// As many turns at once as there are threads.
    pub(super) fn new() -> Turns {
        Turns {
            turns: Semaphore::new(std::thread::available_parallelism().map_or(1, usize::from)),
            since: Instant::now(),
            last: AtomicU64::new(0),
            changed: AtomicU64::new(u64::MAX),
        }
    }

    /// Waits for the turn of a request, if its party has to take turns.
    pub(super) async fn enter(&self, holder: &Arc<TokenHolder>, now: Instant) -> InHand {
        let in_hand = InHand(holder.clone());
        let busy = holder.in_hand.fetch_add(1, Ordering::Relaxed) >= FEW;
        let millis = u64::try_from((now - self.since).as_millis()).unwrap_or(u64::MAX);
        if self.last.swap(holder.owner.0, Ordering::Relaxed) != holder.owner.0 {
            self.changed.store(millis, Ordering::Relaxed);
        }
        let changed = self.changed.load(Ordering::Relaxed);
        let are_several =
            changed != u64::MAX && u128::from(millis.saturating_sub(changed)) < RECENT.as_millis();
        if busy && are_several {
            // It is never closed.
            let _turn = self.turns.acquire().await;
            // Whoever holds a turn goes behind all that has arrived, on sockets too.
            tokio::task::yield_now().await;
        }
        in_hand
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        self.0.in_hand.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Requests of a party in hand.
pub(super) type InHandCount = AtomicUsize;
