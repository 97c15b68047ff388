//! Results that are kept for clients, each for the one whose call it was: nobody else can name it.

use crate::tools::{CallContext, CallOwner, SessionTag};
use ptc_runtime::spill::{Spilled, names_in};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The results of all clients. They go with the session that they were made in, when nobody has looked at them for too
/// long, and when newer ones need their room.
pub(super) struct ClientResults {
    kept: Mutex<Vec<ClientResult>>,
    /// None: there is no time after which they go.
    most_age: Option<Duration>,
}

/// Who calls.
#[derive(Clone, Copy)]
pub(super) struct Caller {
    owner: CallOwner,
    session: SessionTag,
}

impl Caller {
    pub(super) fn of(call: &CallContext) -> Caller {
        Caller { owner: call.owner, session: call.session }
    }
}

struct ClientResult {
    caller: Caller,
    spilled: Arc<Spilled>,
    used: Instant,
}

impl ClientResults {
    /// None yet; they go after this time without a look.
    pub(super) fn new(most_age: Option<Duration>) -> ClientResults {
        ClientResults { kept: Mutex::default(), most_age }
    }

    /// Keeps a result for a client.
    pub(super) fn keep(&self, caller: Caller, spilled: Arc<Spilled>) {
        self.lock().push(ClientResult { caller, spilled, used: Instant::now() });
        self.sweep();
    }

    /// The client's result of this name: its path as it was told, or the last part of it. Nothing is opened.
    pub(super) fn find(&self, caller: Caller, name: &str) -> Option<Arc<Spilled>> {
        self.sweep();
        let mut kept = self.lock();
        let found =
            kept.iter_mut().find(|kept| kept.caller.owner == caller.owner && kept.spilled.is_named(name))?;
        found.used = Instant::now();
        Some(found.spilled.clone())
    }

    /// The client's first result that is named in a text.
    pub(super) fn named_in(&self, caller: Caller, text: &str) -> Option<Arc<Spilled>> {
        names_in(text).find_map(|name| self.find(caller, name))
    }

    /// Removes those of a session.
    pub(super) fn end(&self, session: SessionTag) {
        self.lock().retain(|kept| kept.caller.session != session);
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
