//! Bounds the memory that a program's encoded call arguments take until they are sent: further calls wait before they
//! encode theirs.
//!
//! Invariant: these take at most `ROOM` bytes per server and a share of the program's memory in total; only
//! a single call may exceed that. The time of a call runs while it waits.

use ptc_base::sync::Locked;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::{Notify, Semaphore};

/// Beyond this many encoded bytes for one server, nothing more is encoded for it.
const ROOM: usize = 1 << 20;

/// Beyond one part in this many of the program's memory, nothing more is encoded for any server.
const SHARE: usize = 4;

/// Encoded arguments of one program.
pub struct Outgoing {
    queues: Mutex<HashMap<Arc<str>, Arc<ServerQueue>, foldhash::fast::RandomState>>,
    bytes: AtomicUsize,
    most: usize,
    freed: Notify,
}

/// The queue of calls to one server.
struct ServerQueue {
    bytes: AtomicUsize,
    /// One permit: calls are encoded one at a time, in the order in which they asked.
    permits: Semaphore,
}

impl Outgoing {
    /// For a program with this memory limit.
    pub(crate) fn new(memory_bytes: u64) -> Arc<Outgoing> {
        let most = usize::try_from(memory_bytes).unwrap_or(usize::MAX) / SHARE;
        Arc::new(Outgoing {
            queues: Mutex::default(),
            bytes: AtomicUsize::new(0),
            most: most.max(1),
            freed: Notify::new(),
        })
    }

    /// Encoded bytes that are not sent yet.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// A permit to encode a call to `server` now; `None` when the call has to wait.
    pub fn try_permit(self: &Arc<Outgoing>, server: &Arc<str>) -> Option<EncodingPermit> {
        let queue = self.queue(server);
        if !self.has_room(&queue) {
            return None;
        }
        queue.permits.try_acquire().ok()?.forget();
        Some(EncodingPermit { account: self.clone(), queue })
    }

    /// Waits for a permit to encode a call to `server`. Cancel safe.
    pub async fn permit(self: Arc<Outgoing>, server: &Arc<str>) -> EncodingPermit {
        let queue = self.queue(server);
        match queue.permits.acquire().await {
            Ok(permit) => permit.forget(),
            // The semaphore is never closed.
            Err(_) => std::future::pending().await,
        }
        // From here on, dropping `permit` returns the permit.
        let permit = EncodingPermit { account: self, queue };
        loop {
            let freed = permit.account.freed.notified();
            tokio::pin!(freed);
            // From here on no notification is missed.
            freed.as_mut().enable();
            if permit.account.has_room(&permit.queue) {
                break;
            }
            freed.await;
        }
        permit
    }

    fn queue(&self, server: &Arc<str>) -> Arc<ServerQueue> {
        let mut queues = self.queues.locked();
        if let Some(queue) = queues.get(server) {
            return queue.clone();
        }
        let queue = Arc::new(ServerQueue { bytes: AtomicUsize::new(0), permits: Semaphore::new(1) });
        queues.insert(server.clone(), queue.clone());
        queue
    }

    fn has_room(&self, queue: &ServerQueue) -> bool {
        queue.bytes.load(Ordering::SeqCst) < ROOM && self.bytes.load(Ordering::SeqCst) < self.most
    }
}

/// The permit to encode one call; it holds the permit of its server. When it is dropped, the next call in the
/// queue gets it.
pub struct EncodingPermit {
    account: Arc<Outgoing>,
    queue: Arc<ServerQueue>,
}

impl Drop for EncodingPermit {
    fn drop(&mut self) {
        self.queue.permits.add_permits(1);
    }
}

/// Spare capacity that a text may keep without being reallocated.
const SLACK: usize = 64;

impl EncodingPermit {
    /// Charges the encoded arguments to the account.
    pub fn charge(self, mut text: String) -> Arguments {
        if text.capacity() - text.len() > SLACK {
            text.shrink_to_fit();
        }
        self.queue.bytes.fetch_add(text.capacity(), Ordering::SeqCst);
        self.account.bytes.fetch_add(text.capacity(), Ordering::SeqCst);
        let charged_to = Some((self.account.clone(), self.queue.clone()));
        Arguments(Arc::new(ChargedText { text, charged_to }))
    }
}

/// The arguments of a call: the text of a JSON object, charged to the account of its program until it is sent
/// or dropped. Clones share it.
#[derive(Clone)]
pub struct Arguments(Arc<ChargedText>);

struct ChargedText {
    text: String,
    charged_to: Option<(Arc<Outgoing>, Arc<ServerQueue>)>,
}

impl Arguments {
    /// The JSON text.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }
}

impl AsRef<[u8]> for Arguments {
    fn as_ref(&self) -> &[u8] {
        self.as_str().as_bytes()
    }
}

impl From<String> for Arguments {
    /// Arguments that are charged to no account.
    fn from(text: String) -> Arguments {
        Arguments(Arc::new(ChargedText { text, charged_to: None }))
    }
}

impl std::fmt::Debug for Arguments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Arguments({} bytes)", self.as_str().len())
    }
}

impl Drop for ChargedText {
    fn drop(&mut self) {
        if let Some((account, queue)) = &self.charged_to {
            queue.bytes.fetch_sub(self.text.capacity(), Ordering::SeqCst);
            account.bytes.fetch_sub(self.text.capacity(), Ordering::SeqCst);
            account.freed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::poll;
    use std::task::Poll;

    fn charge(permit: EncodingPermit, bytes: usize) -> Arguments {
        permit.charge("x".repeat(bytes))
    }

    #[tokio::test]
    async fn nothing_is_encoded_while_too_much_waits() {
        let account = Outgoing::new(100 << 20);
        let first = charge(account.try_permit(&"a".into()).unwrap(), 5 << 20);
        assert!(account.try_permit(&"a".into()).is_none() && account.bytes() == 5 << 20);
        assert!(account.try_permit(&"b".into()).is_some(), "another server is nobody's fault");
        let a = "a".into();
        let (one, two) = (account.clone().permit(&a), account.clone().permit(&a));
        tokio::pin!(one, two);
        assert!(poll!(&mut one).is_pending() && poll!(&mut two).is_pending());
        drop(first);
        let Poll::Ready(permit) = poll!(&mut one) else { panic!("there is room") };
        assert!(poll!(&mut two).is_pending(), "one permit at a time");
        let second = charge(permit, 10);
        let Poll::Ready(permit) = poll!(&mut two) else { panic!("there is room for both") };
        drop((second, permit));
        assert_eq!(account.bytes(), 0);
    }

    #[tokio::test]
    async fn all_servers_together_have_a_share_of_the_memory() {
        let account = Outgoing::new(1 << 20);
        let text = charge(account.try_permit(&"a".into()).unwrap(), 1 << 18);
        let b = "b".into();
        let waiting = account.clone().permit(&b);
        tokio::pin!(waiting);
        assert!(account.try_permit(&"b".into()).is_none() && poll!(&mut waiting).is_pending());
        drop(text);
        assert!(poll!(&mut waiting).is_ready());
    }
}
