//! What the product costs under load: memory, latency and descriptors of its process are measured, so one test runs at a time.

mod http_load;
mod upstream_floods;
mod upstream_matrix;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Waits until no other test measures.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
