//! Returns free memory of idle threads to the system.
//!
//! An allocator keeps the pages that a thread has freed, and only that thread can return them. The runtime
//! knows when a worker is idle, and the binary knows its allocator.

use crate::tasks::{self, TaskOwner};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
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
pub(crate) fn collect() {
    if let Some(collector) = COLLECTOR.get() {
        collector();
    }
}

/// Interval at which activity is measured.
const TICK: Duration = Duration::from_secs(1);

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

/// Collects on each of tokio's threads once after each busy time. Only a thread itself can return its pages, so a task
/// has to reach each of them. Never ends.
pub async fn watch_idle(threads: usize) {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut before, mut has_worked) = (0, false);
    loop {
        ticks.tick().await;
        let parks = PARKS.load(Ordering::Relaxed);
        let is_idle = parks - before <= IDLE_PARKS * threads as u64;
        before = parks;
        if !is_idle {
            has_worked = true;
        } else if std::mem::take(&mut has_worked) {
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
