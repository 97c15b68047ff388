//! Keeps a busy tenant (client token) from slowing down the others over HTTP: its requests are delayed while several
//! tenants are active.
//!
//! A tenant that has just sent more than a few requests waits for a permit, and yields once to whatever else
//! has arrived. So a request of a quiet client waits for a few requests of a busy one, and not for all of them.

use super::access::TokenHolder;
use crate::tools::CallOwner;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tokio::sync::Semaphore;

/// Length of the counting window in milliseconds, and the number of requests that are still few.
const WINDOW: u64 = 16;
const FEW: u64 = 8;

/// For this long after two tenants alternate, several count as active. In milliseconds.
const RECENT: u64 = 1_000;

/// Delays the requests of busy tenants.
#[derive(Debug)]
pub(super) struct BusyThrottle {
    permits: Semaphore,
    since: Instant,
    /// Owner of the last request.
    last: AtomicU64,
    /// Until when several tenants count as active, in milliseconds after `since`.
    several: AtomicU64,
}

/// Counts the recent requests of a tenant.
#[derive(Debug, Default)]
pub(super) struct RecentRequests {
    window: AtomicU64,
    count: AtomicU64,
}

impl RecentRequests {
    /// Counts one more request; true when there are more than a few. Threads that open a window at the same
    /// time may lose counts, which does no harm.
    fn is_busy(&self, millis: u64) -> bool {
        let window = millis / WINDOW;
        if self.window.swap(window, Ordering::Relaxed) != window {
            self.count.store(0, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed) >= FEW
    }
}

impl BusyThrottle {
    /// As many permits as there are threads.
    pub(super) fn new() -> BusyThrottle {
        BusyThrottle {
            permits: Semaphore::new(std::thread::available_parallelism().map_or(1, usize::from)),
            since: Instant::now(),
            last: AtomicU64::new(CallOwner::default().0),
            several: AtomicU64::new(0),
        }
    }

    /// Delays a request if its tenant is busy and others are active.
    pub(super) async fn wait(&self, holder: &TokenHolder, now: Instant) {
        let millis = u64::try_from((now - self.since).as_millis()).unwrap_or(u64::MAX);
        let owner = holder.owner.0;
        if self.last.swap(owner, Ordering::Relaxed) != owner {
            self.several.store(millis.saturating_add(RECENT), Ordering::Relaxed);
        }
        if holder.recent().is_busy(millis) && millis < self.several.load(Ordering::Relaxed) {
            // The semaphore is never closed.
            let _permit = self.permits.acquire().await;
            // Whatever else has arrived goes first, on sockets too.
            tokio::task::yield_now().await;
        }
    }
}
