//! Holds HTTP requests back until the server has received the MCP notification `initialized`, which they could
//! otherwise overtake.

use tokio::sync::watch;

/// Holds requests back until the server has received `initialized`: each message is a request of HTTP, and the next may
/// overtake it.
pub(super) struct ListenGate(watch::Sender<bool>);

impl ListenGate {
    pub(super) fn new() -> ListenGate {
        ListenGate(watch::Sender::new(true))
    }

    pub(super) fn close(&self) {
        self.0.send_replace(false);
    }

    pub(super) fn open(&self) {
        self.0.send_replace(true);
    }

    pub(super) async fn pass(&self) {
        if !*self.0.borrow() {
            // The sender is this very value.
            let _ = self.0.subscribe().wait_for(|is_open| *is_open).await;
        }
    }
}
