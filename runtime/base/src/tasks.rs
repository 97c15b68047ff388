//! Spawns async tasks and blocking work, each with a named owner (a run, a connection, the process) that ends it. No
//! other code spawns any.
//!
//! Each piece of work names its [`TaskOwner`]. Blocking work belongs to the future that waits for it: when
//! that is dropped, as happens at the end of a run, [`StopFlag`] is raised, and the work ends at its next
//! check. Clippy refuses `tokio::spawn` and `spawn_blocking` anywhere else. [`alive`] counts the tasks that
//! have not ended.

use ptc_vm::{Interrupt, InterruptKind};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// The owner of a task: the task ends with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskOwner {
    /// One run, or one request of a client.
    Run,
    /// A connection to a server or a client, a session, or a retained process.
    Connection,
    /// This process.
    Process,
}

static ALIVE: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];

/// Number of tasks and pieces of blocking work of this owner that have not ended.
pub fn alive(owner: TaskOwner) -> usize {
    ALIVE[owner as usize].load(Ordering::Acquire)
}

/// Counts one task while this value exists.
struct Counted(TaskOwner);

impl Counted {
    fn new(owner: TaskOwner) -> Counted {
        ALIVE[owner as usize].fetch_add(1, Ordering::AcqRel);
        Counted(owner)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        ALIVE[self.0 as usize].fetch_sub(1, Ordering::AcqRel);
    }
}

/// Starts a task that its owner ends: by closing a channel, or by [`JoinHandle::abort`].
///
/// # Panics
/// Outside a tokio runtime.
#[expect(clippy::disallowed_methods, reason = "the one place")]
pub fn spawn<F>(owner: TaskOwner, task: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let counted = Counted::new(owner);
    tokio::spawn(async move {
        let _counted = counted;
        task.await
    })
}

/// Raised when blocking work should end, because its result is no longer needed.
#[derive(Clone, Debug, Default)]
pub struct StopFlag(Interrupt);

impl StopFlag {
    /// True when the work should end.
    pub fn is_raised(&self) -> bool {
        self.0.get().is_some()
    }

    /// [`StopFlag::is_raised`] as the error of a reader.
    ///
    /// # Errors
    /// The work should end.
    pub fn check(&self) -> io::Result<()> {
        if self.is_raised() { Err(io::Error::other("the work was stopped")) } else { Ok(()) }
    }

    /// The flag for a compilation or an isolate, which checks it by itself.
    pub fn interrupt(&self) -> &Interrupt {
        &self.0
    }
}

/// Raises a flag when it is dropped.
struct RaisedOnDrop(StopFlag);

impl Drop for RaisedOnDrop {
    fn drop(&mut self) {
        self.0.0.set(InterruptKind::Cancelled);
    }
}

/// Runs work on a blocking thread, and raises its flag when the future is dropped. `None` when the work
/// panicked.
///
/// Work that takes more than some milliseconds must check the flag.
///
/// # Panics
/// Outside a tokio runtime.
#[expect(clippy::disallowed_methods, reason = "the one place")]
pub async fn blocking<T: Send + 'static>(
    owner: TaskOwner,
    work: impl FnOnce(&StopFlag) -> T + Send + 'static,
) -> Option<T> {
    let stop = StopFlag::default();
    let _raised = RaisedOnDrop(stop.clone());
    let counted = Counted::new(owner);
    let done = tokio::task::spawn_blocking(move || {
        let _counted = counted;
        // Work that was queued until its future was dropped is not begun.
        (!stop.is_raised()).then(|| work(&stop))
    });
    done.await.ok().flatten()
}

/// [`blocking`] work that takes memory outside all programs: it begins when it has got one of these permits.
pub async fn blocking_in_turn<T: Send + 'static>(
    owner: TaskOwner,
    permits: &'static Semaphore,
    work: impl FnOnce(&StopFlag) -> T + Send + 'static,
) -> Option<T> {
    // The semaphore is never closed.
    let permit = permits.acquire().await.ok()?;
    blocking(owner, move |stop| {
        let _permit = permit;
        work(stop)
    })
    .await
}

/// Limit of concurrent searches of files: each may hold a line and an automaton outside all programs' memory.
const LOOKS_AT_ONCE: usize = 4;

/// Reads a part of a file for a run.
pub async fn read_blocking<T: Send + 'static>(
    look: impl FnOnce(&StopFlag) -> T + Send + 'static,
) -> Option<T> {
    static PERMITS: Semaphore = Semaphore::const_new(LOOKS_AT_ONCE);
    blocking_in_turn(TaskOwner::Run, &PERMITS, look).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn work_is_stopped_with_its_owner_and_counted_until_then() {
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let (ended, has_ended) = mpsc::channel();
        let waiting = Box::pin(blocking(TaskOwner::Process, move |stop| {
            let _ = begun.send(());
            while !stop.is_raised() {
                std::thread::yield_now();
            }
            ended.send(()).unwrap();
        }));
        let waiting = tokio::select! {
            _ = waiting => unreachable!("it ends only when it is stopped"),
            seen = has_begun => seen,
        };
        assert!(waiting.is_ok());
        // The future was dropped by `select`.
        has_ended.recv().unwrap();
    }
}
