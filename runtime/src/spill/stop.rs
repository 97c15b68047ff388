//! Looks into files, on threads of their own: few at once, and none goes on when nobody waits for it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// Looks of a process that are under way at once: each may hold a line and an automaton outside of every program's memory.
const AT_ONCE: usize = 4;

static TURNS: Semaphore = Semaphore::const_new(AT_ONCE);

/// Raised when nobody waits for the work any more.
#[derive(Clone, Debug, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// Nobody waits.
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Nobody waits, as the error of a reader.
    ///
    /// # Errors
    /// Nobody waits.
    pub fn check(&self) -> io::Result<()> {
        if self.is_raised() { Err(io::Error::other("nobody waits for it any more")) } else { Ok(()) }
    }
}

/// Raises a flag when it is dropped.
struct RaisedOnDrop(StopFlag);

impl Drop for RaisedOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// Does `look` on a thread where it may block, and tells it to stop when the future is dropped; `None` when it panicked.
pub async fn look_aside<T: Send + 'static>(look: impl FnOnce(&StopFlag) -> T + Send + 'static) -> Option<T> {
    let stop = StopFlag::default();
    let _raised = RaisedOnDrop(stop.clone());
    // Never closed.
    let turn = TURNS.acquire().await.ok()?;
    spawn_blocking(move || {
        let _turn = turn;
        look(&stop)
    })
    .await
    .ok()
}
