//! Returns free memory of idle workers to the system.
//!
//! An allocator keeps the pages that a thread has freed, and only that thread can return them. The runtime
//! knows when a worker is idle, and the binary knows its allocator.

use std::sync::OnceLock;

static COLLECTOR: OnceLock<fn()> = OnceLock::new();

/// Sets the function that returns the free memory of the calling thread to the system. It runs on workers
/// that have been idle for a while. Only the first call has an effect.
pub fn set_collector(collector: fn()) {
    // A second collector would be for the same allocator.
    let _ = COLLECTOR.set(collector);
}

/// Returns the free memory of this thread, if a collector is set.
pub(crate) fn collect() {
    if let Some(collector) = COLLECTOR.get() {
        collector();
    }
}
