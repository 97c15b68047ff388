//! How the allocator of a process is asked to give memory back to the system when a worker has nothing to do.
//!
//! An allocator keeps the pages of a thread that has freed them, and only that thread can return them. The runtime knows when a
//! worker is idle, and the binary knows its allocator.

use std::sync::OnceLock;

static COLLECTOR: OnceLock<fn()> = OnceLock::new();

/// Sets what returns the free memory of the calling thread to the system; the first call counts. It runs on a worker that has
/// been idle for a while.
pub fn set_collector(collector: fn()) {
    // A second collector would be that of the same allocator.
    let _ = COLLECTOR.set(collector);
}

/// Returns the free memory of this thread, if there is a collector.
pub(crate) fn collect() {
    if let Some(collector) = COLLECTOR.get() {
        collector();
    }
}
