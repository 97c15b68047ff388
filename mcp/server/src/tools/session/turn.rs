//! Gives one request at a time the turn in a stored session: it reads what other processes have added, runs a program or
//! removes something, and stores the change.
//!
//! What a process has in memory is therefore always the state behind a known number of the log, and a change goes there
//! under the next number, or nowhere. A request beneath a program under way does not catch up: the program would go on
//! with another state than that in which it began.

use super::fault::SessionFault;
use super::table::OpenSession;
use ptc_base::sync::Locked;
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// The turns in a session.
#[derive(Default)]
pub(super) struct LogLocks {
    state: Mutex<LogLockState>,
    /// Notifies that the turn was given back, or that a program has begun.
    changed: Notify,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LogLockState {
    #[default]
    Free,
    /// The store is read or written, which ends soon: further requests wait.
    Brief,
    /// A program is under way: further ones are refused.
    Program,
}

/// The turn in a session. It ends when this is dropped.
pub(super) struct LogLock(Arc<LogLocks>);

impl LogLock {
    /// A program begins: those that wait wait no longer.
    pub(super) fn begin_program(&self) {
        *self.0.state.locked() = LogLockState::Program;
        self.0.changed.notify_waiters();
    }

    /// The program has ended. What it has changed is still to be stored.
    pub(super) fn end_program(&self) {
        *self.0.state.locked() = LogLockState::Brief;
    }
}

impl Drop for LogLock {
    fn drop(&mut self) {
        *self.0.state.locked() = LogLockState::Free;
        self.0.changed.notify_waiters();
    }
}

impl LogLocks {
    /// The turn, or why it is not free.
    fn take(self: &Arc<LogLocks>) -> Result<LogLock, LogLockState> {
        let mut state = self.state.locked();
        match *state {
            LogLockState::Free => {
                *state = LogLockState::Brief;
                Ok(LogLock(self.clone()))
            }
            taken => Err(taken),
        }
    }

    /// True while a program is under way.
    pub(super) fn has_program(&self) -> bool {
        *self.state.locked() == LogLockState::Program
    }
}

impl OpenSession {
    /// The turn, if it is free now and the session is stored.
    pub(super) fn try_turn(&self) -> Option<LogLock> {
        self.log()?.turns.take().ok()
    }

    /// The turn; `None` if the session is not stored. It waits for what ends soon, and for a program that was cancelled,
    /// since a client may send the next program right after it cancels one.
    ///
    /// # Errors
    /// A program is under way.
    pub(super) async fn turn(&self) -> Result<Option<LogLock>, SessionFault> {
        let Some(log) = self.log() else { return Ok(None) };
        loop {
            // Registered before the check, so that no notification is missed.
            let changed = log.turns.changed.notified();
            match log.turns.take() {
                Ok(turn) => return Ok(Some(turn)),
                Err(LogLockState::Program) if self.session.acquire_after_cancel().is_none() => {
                    return Err(SessionFault::busy(&self.id));
                }
                Err(_) => {}
            }
            changed.await;
        }
    }
}
