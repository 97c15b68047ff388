//! Reduces memory use in idle times: returns freed memory of idle threads to the system, and evicts unused cache
//! entries while the process is idle.
//!
//! An allocator keeps the pages that a thread has freed, and only that thread can return them. The runtime
//! knows when a worker is idle, and the binary knows its allocator.

use crate::sync::Locked;
use crate::tasks::{self, TaskOwner};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};
use tokio::time::{MissedTickBehavior, interval};

static COLLECTOR: OnceLock<fn()> = OnceLock::new();

/// Sets the function that returns the free memory of the calling thread to the system. It runs on workers
/// that have been idle for a while. Only the first call has an effect.
pub fn set_collector(collector: fn()) {
    // A second collector would be for the same allocator.
    let _ = COLLECTOR.set(collector);
}

/// Returns the free memory of this thread to the system, if a collector is set.
pub fn collect() {
    if let Some(collector) = COLLECTOR.get() {
        collector();
    }
}

/// A cache that gives up entries while the process is idle. Its entries are small blocks that lie between those of
/// large programs: each of them holds a whole page in memory.
pub trait IdleCache: Send + Sync {
    /// Evicts the entries that have not been used since the last call.
    fn evict_unused(&self);
}

static CACHES: Mutex<Vec<Weak<dyn IdleCache>>> = Mutex::new(Vec::new());

/// Evicts unused entries of this cache while the process is idle, as long as the cache lives.
pub fn evict_when_idle(cache: Weak<dyn IdleCache>) {
    let mut caches = CACHES.locked();
    caches.retain(|cache| cache.strong_count() > 0);
    caches.push(cache);
}

fn evict_unused() {
    let caches: Vec<_> = CACHES.locked().iter().filter_map(Weak::upgrade).collect();
    caches.iter().for_each(|cache| cache.evict_unused());
}

/// Interval at which activity is measured.
const TICK: Duration = Duration::from_secs(1);

/// Idle ticks after which unused entries of caches are evicted: the first time marks all, the second evicts.
const EVICT_AT: [u32; 2] = [5, 10];

/// When an idle worker returns its memory, since its last program: soon, and after each eviction from the caches.
pub const COLLECT_AT: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(13)];

/// Most parks of one thread within a tick that count as idle: those of timers.
const IDLE_PARKS: u64 = 20;

/// How long a task waits for the others, so that each runs on a thread of its own. No longer, because a request
/// may have arrived.
const MEET: Duration = Duration::from_millis(5);

static PARKS: AtomicU64 = AtomicU64::new(0);

/// Counts activity. Threads of tokio call it before they park.
pub fn parked() {
    PARKS.fetch_add(1, Ordering::Relaxed);
}

/// Collects on each of tokio's threads after each busy time, and evicts from caches what nothing uses. Only a thread
/// itself can return its pages, so a task has to reach each of them. Never ends.
pub async fn watch_idle(threads: usize) {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut before, mut idle_ticks) = (0, u32::MAX);
    loop {
        ticks.tick().await;
        let parks = PARKS.load(Ordering::Relaxed);
        let is_idle = parks - before <= IDLE_PARKS * threads as u64;
        before = parks;
        idle_ticks = if is_idle { idle_ticks.saturating_add(1) } else { 0 };
        let evicts = EVICT_AT.contains(&idle_ticks);
        if evicts {
            evict_unused();
        }
        if evicts || idle_ticks == 1 {
            let arrived = Arc::new(AtomicUsize::new(0));
            for _ in 0..threads {
                tasks::spawn(TaskOwner::Process, collect_together(arrived.clone(), threads));
            }
        }
    }
}

/// Collects on its thread, once each of these tasks has one.
async fn collect_together(arrived: Arc<AtomicUsize>, tasks: usize) {
    let begun = Instant::now();
    arrived.fetch_add(1, Ordering::Relaxed);
    while arrived.load(Ordering::Relaxed) < tasks && begun.elapsed() < MEET {
        std::thread::sleep(MEET / 20);
    }
    collect();
}
