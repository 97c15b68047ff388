//! What a server says without being asked. Taken in as it arrives: nothing waits here and nothing is queued, so a
//! server that talks without end costs no memory, and one event cannot hold up an answer behind it.

use crate::upstream::jsonrpc::message;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::Notify;

/// Notifications after which the tool list may be another one. What changed before a subscription began is not told
/// again, so its beginning counts as a change.
const CHANGES: [&str; 2] = ["notifications/tools/list_changed", "notifications/subscriptions/acknowledged"];

/// The events of one link, from its transport to its supervisor.
pub struct PeerEvents {
    server: Arc<str>,
    heard: AtomicBool,
    signs_of_life: AtomicU64,
    tools_changed: Notify,
}

impl PeerEvents {
    pub(crate) fn new(server: Arc<str>) -> PeerEvents {
        PeerEvents {
            server,
            heard: AtomicBool::new(false),
            signs_of_life: AtomicU64::new(0),
            tools_changed: Notify::new(),
        }
    }

    /// Configured name of the server, for logs.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Some message has come, of whatever kind.
    pub fn heard(&self) {
        self.heard.store(true, Ordering::Relaxed);
    }

    /// A request of ours has been answered, with whatever, and even if nobody waits for it any more; or it is being
    /// worked at. To be told once for each answer: only these show that the server works. Whatever it says unasked
    /// may come from a part of it that hears nothing.
    pub fn answered(&self) {
        self.heard();
        self.signs_of_life.fetch_add(1, Ordering::Relaxed);
    }

    /// A notification of the server.
    pub fn notification(&self, method: &str) {
        self.heard();
        if CHANGES.contains(&method) {
            self.tools_changed.notify_one();
        } else {
            tracing::debug!(upstream = &*self.server, method, "notification ignored");
        }
    }

    /// A request of the server, with the JSON text of its id. Gives the message to answer it with.
    pub fn request(&self, id: &str, method: &str) -> String {
        self.heard();
        tracing::debug!(upstream = &*self.server, method, "request from the server");
        message::reply(id, method)
    }

    pub(crate) fn has_spoken(&self) -> bool {
        self.heard.load(Ordering::Relaxed)
    }

    pub(crate) fn signs_of_life(&self) -> u64 {
        self.signs_of_life.load(Ordering::Relaxed)
    }

    /// Waits for a change of the tool list; one that came before is not missed.
    pub(crate) async fn tools_changed(&self) {
        self.tools_changed.notified().await;
    }
}
