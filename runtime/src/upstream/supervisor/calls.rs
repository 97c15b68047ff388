//! What has become of the calls to one server since it was reached.

use crate::upstream::UpstreamFault;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

/// The calls to a server, from those who make them to its owner.
#[derive(Default)]
pub(super) struct CallTracker {
    answered: AtomicBool,
    lost: Notify,
}

impl CallTracker {
    /// Follows a call until it has ended, or its future is dropped.
    pub(super) async fn follow<T>(
        &self,
        call: impl Future<Output = Result<T, UpstreamFault>>,
    ) -> Result<T, UpstreamFault> {
        let mut lost = Lost(Some(self));
        let result = call.await;
        match &result {
            Err(UpstreamFault::Timeout(_)) => {}
            Err(UpstreamFault::Unavailable(_)) => lost.0 = None,
            Ok(_) | Err(UpstreamFault::Protocol(_) | UpstreamFault::TooLarge { .. }) => {
                lost.0 = None;
                self.answered.store(true, Ordering::Relaxed);
            }
        }
        result
    }

    /// True when some call was answered, with whatever.
    pub(super) fn any_answered(&self) -> bool {
        self.answered.load(Ordering::Relaxed)
    }

    /// Waits until a call runs into its deadline or is dropped.
    pub(super) async fn lost(&self) {
        self.lost.notified().await;
    }
}

/// Says that a call was lost, unless it was answered before.
struct Lost<'a>(Option<&'a CallTracker>);

impl Drop for Lost<'_> {
    fn drop(&mut self) {
        if let Some(calls) = self.0 {
            calls.lost.notify_one();
        }
    }
}
