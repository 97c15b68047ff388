//! Tracks the tool calls that are under way, for web pages that show them.
//!
//! A reader looks at the table when it likes; no call waits for a reader. The gate bounds the number of calls.

use super::entry::CallArguments;
use ptc_base::sync::Locked;
use ptc_calls::watcher::RunView;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Instant, SystemTime};

/// A call under way.
pub struct LiveCall {
    /// Its number among the calls of the process; its record has the same.
    pub number: u64,
    /// Id of the request, bounded.
    pub request_id: Box<str>,
    /// Name of the tool.
    pub tool: Box<str>,
    /// Owner of the call.
    pub owner: u64,
    /// Its arguments.
    pub arguments: Option<CallArguments>,
    /// When it came.
    pub begun: (SystemTime, Instant),
    /// Its run; `None` while the call waits to begin, and for a tool that runs nothing.
    pub(crate) run: OnceLock<RunView>,
}

/// The calls under way, by their numbers.
#[derive(Default)]
pub struct LiveCalls {
    calls: Mutex<BTreeMap<u64, Arc<LiveCall>>>,
    begun: AtomicU64,
}

impl LiveCalls {
    /// Enters a call that begins now.
    pub(super) fn begin(
        self: &Arc<LiveCalls>,
        request_id: &str,
        tool: &str,
        owner: u64,
        arguments: Option<&CallArguments>,
    ) -> LiveEntry {
        let call = Arc::new(LiveCall {
            number: self.begun.fetch_add(1, Ordering::Relaxed) + 1,
            request_id: request_id.into(),
            tool: tool.into(),
            owner,
            arguments: arguments.cloned(),
            begun: (SystemTime::now(), Instant::now()),
            run: OnceLock::new(),
        });
        self.calls.locked().insert(call.number, call.clone());
        LiveEntry { table: self.clone(), call }
    }

    /// A call of this owner.
    pub fn find(&self, owner: u64, number: u64) -> Option<Arc<LiveCall>> {
        self.calls.locked().get(&number).filter(|call| call.owner == owner).cloned()
    }

    /// At most `most` calls of an owner, the newest first, and how many there are.
    pub fn newest(&self, owner: u64, most: usize) -> (Vec<Arc<LiveCall>>, usize) {
        let calls = self.calls.locked();
        let own = || calls.values().rev().filter(|call| call.owner == owner);
        (own().take(most).cloned().collect(), own().count())
    }
}

/// A call in the table; dropping it removes the call.
pub(super) struct LiveEntry {
    table: Arc<LiveCalls>,
    pub(super) call: Arc<LiveCall>,
}

impl LiveEntry {
    /// Sets its run. The first one counts.
    pub(super) fn watch(&self, run: RunView) {
        let _ = self.call.run.set(run);
    }
}

impl Drop for LiveEntry {
    fn drop(&mut self) {
        let removed = self.table.calls.locked().remove(&self.call.number);
        // Freed outside of the lock.
        drop(removed);
    }
}
