//! Results that are kept for clients, each for the one whose call it was: nobody else can name it.

use crate::tools::CallOwner;
use ptc_runtime::spill::{Spilled, names_in};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The results of all clients. They go when nobody has looked at them for too long, and when newer ones need their room.
pub(super) struct ClientResults {
    kept: Mutex<Vec<ClientResult>>,
    /// None: there is no time after which they go.
    most_age: Option<Duration>,
}

struct ClientResult {
    owner: CallOwner,
    spilled: Arc<Spilled>,
    used: Instant,
}

impl ClientResults {
    /// None yet; they go after this time without a look.
    pub(super) fn new(most_age: Option<Duration>) -> ClientResults {
        ClientResults { kept: Mutex::default(), most_age }
    }

    /// Keeps a result for a client.
    pub(super) fn keep(&self, owner: CallOwner, spilled: Arc<Spilled>) {
        self.lock().push(ClientResult { owner, spilled, used: Instant::now() });
        self.sweep();
    }

    /// The client's result of this name: its path as it was told, or the last part of it. Nothing is opened.
    pub(super) fn find(&self, owner: CallOwner, name: &str) -> Option<Arc<Spilled>> {
        self.sweep();
        let mut kept = self.lock();
        let found = kept.iter_mut().find(|kept| kept.owner == owner && kept.spilled.is_named(name))?;
        found.used = Instant::now();
        Some(found.spilled.clone())
    }

    /// The client's first result that is named in a text.
    pub(super) fn named_in(&self, owner: CallOwner, text: &str) -> Option<Arc<Spilled>> {
        names_in(text).find_map(|name| self.find(owner, name))
    }

    /// Removes those whose time is over, or that had to go.
    pub(super) fn sweep(&self) {
        let is_over = |kept: &ClientResult| self.most_age.is_some_and(|most| kept.used.elapsed() >= most);
        self.lock().retain(|kept| !kept.spilled.is_gone() && !is_over(kept));
    }

    fn lock(&self) -> MutexGuard<'_, Vec<ClientResult>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
