//! Tracks the outcome of calls to one server, so that the supervisor notices when the server no longer answers or
//! requires a login.

use crate::{LoginNeed, UpstreamFault};
use ptc_base::sync::Locked;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

/// The calls to a server; shared by its callers and its owner.
#[derive(Default)]
pub(super) struct CallTracker {
    answered: AtomicBool,
    lost: Notify,
    /// The login that a call has missed.
    need: Mutex<Option<LoginNeed>>,
    needed: Notify,
}

impl CallTracker {
    /// Tracks a call until it has ended, or its future is dropped.
    pub(super) async fn follow<T>(
        &self,
        call: impl Future<Output = Result<T, UpstreamFault>>,
    ) -> Result<T, UpstreamFault> {
        let mut lost = Lost(Some(self));
        let result = call.await;
        match &result {
            Err(UpstreamFault::Timeout(_)) => {}
            Err(UpstreamFault::LoginRequired(need)) => {
                lost.0 = None;
                if need.scopes().is_none() {
                    *self.need.locked() = Some(need.clone());
                    self.needed.notify_one();
                }
            }
            Err(
                UpstreamFault::Unavailable(_)
                | UpstreamFault::Transient { .. }
                | UpstreamFault::Starting { .. },
            ) => lost.0 = None,
            Ok(_)
            | Err(
                UpstreamFault::Rpc(_)
                | UpstreamFault::Protocol(_)
                | UpstreamFault::ScopeDenied(_)
                | UpstreamFault::TooLarge { .. },
            ) => {
                lost.0 = None;
                self.answered.store(true, Ordering::Relaxed);
            }
        }
        result
    }

    /// True when any call was answered, even with an error.
    pub(super) fn any_answered(&self) -> bool {
        self.answered.load(Ordering::Relaxed)
    }

    /// Waits until a call misses a login without which there are no calls.
    pub(super) async fn login_required(&self) -> LoginNeed {
        loop {
            self.needed.notified().await;
            if let Some(need) = self.need.locked().take() {
                return need;
            }
        }
    }

    /// Waits until a call reaches its deadline or is dropped.
    pub(super) async fn lost(&self) {
        self.lost.notified().await;
    }
}

/// Records a call as lost when dropped, unless it was answered before.
struct Lost<'a>(Option<&'a CallTracker>);

impl Drop for Lost<'_> {
    fn drop(&mut self) {
        if let Some(calls) = self.0 {
            calls.lost.notify_one();
        }
    }
}
