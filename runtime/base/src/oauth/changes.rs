//! Delays the end of the process while OAuth logins change, from the request for new tokens until these are stored, by
//! counting the changes under way. Otherwise the tokens would be lost, and a server with rotation would end the login.
//!
//! Each request for tokens needs a [`LoginChange`], so none can be forgotten.

use crate::oauth::{OAuthFault, Result};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// The number of changes under way.
static UNDER_WAY: OnceLock<watch::Sender<usize>> = OnceLock::new();

/// No further change begins: the process ends.
static ENDS: AtomicBool = AtomicBool::new(false);

static HOLD: OnceLock<ProcessHold> = OnceLock::new();

/// What a process does while logins change: it defers the signals that would end it.
#[derive(Clone, Copy, Debug)]
pub struct ProcessHold {
    /// The first change begins.
    pub begin: fn(),
    /// The last change has ended.
    pub end: fn(),
}

/// Calls `hold` around changes of logins from now on. The first call counts.
pub fn hold_process(hold: ProcessHold) {
    let _ = HOLD.set(hold);
}

fn under_way() -> &'static watch::Sender<usize> {
    UNDER_WAY.get_or_init(|| watch::Sender::new(0))
}

/// Waits until no login is being changed, at most this long.
pub async fn settled(limit: Duration) {
    let mut count = under_way().subscribe();
    // The sender is never dropped.
    let _ = timeout(limit, count.wait_for(|count| *count == 0)).await;
}

/// [`settled`] for the end of a process: no further change begins.
pub async fn settle_for_good(limit: Duration) {
    ENDS.store(true, Ordering::Release);
    settled(limit).await;
}

/// A change of a login, from before the request for tokens until they are on the disk.
pub(super) struct LoginChange(());

impl LoginChange {
    /// Begins a change.
    ///
    /// # Errors
    /// The process ends.
    pub(super) fn begin() -> Result<LoginChange> {
        under_way().send_modify(|count| {
            *count += 1;
            if let (1, Some(hold)) = (*count, HOLD.get()) {
                (hold.begin)();
            }
        });
        let change = LoginChange(());
        match ENDS.load(Ordering::Acquire) {
            true => Err(OAuthFault::unavailable("this process ends")),
            false => Ok(change),
        }
    }
}

impl Drop for LoginChange {
    fn drop(&mut self) {
        under_way().send_modify(|count| {
            *count -= 1;
            if let (0, Some(hold)) = (*count, HOLD.get()) {
                (hold.end)();
            }
        });
    }
}
