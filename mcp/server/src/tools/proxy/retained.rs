//! Keeps track of results of `proxy-dispatch` that were too large to return (spilled to files), so that only the client
//! that made a call can read its result.

use crate::tools::{CallContext, CallOwner, SessionTag};
use ptc_base::spill::{Spilled, names_in};
use ptc_base::sync::Locked;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The retained results of all clients. A result is removed with its client session, after `most_age`
/// without use, and when newer results need its room.
pub(super) struct ClientResults {
    results: Mutex<Vec<ClientResult>>,
    /// How long an unused result is retained; `None` for no limit.
    most_age: Option<Duration>,
}

/// The client session that makes a call.
#[derive(Clone, Copy)]
pub(super) struct Caller {
    owner: CallOwner,
    session: SessionTag,
}

impl Caller {
    pub(super) fn from_call(call: &CallContext) -> Caller {
        Caller { owner: call.owner, session: call.session }
    }
}

/// The answers that may be in a text: server and target of each.
pub(super) type Answers = BTreeSet<(Arc<str>, Arc<str>)>;

struct ClientResult {
    caller: Caller,
    spilled: Arc<Spilled>,
    answers: Answers,
    used: Instant,
}

impl ClientResults {
    /// Makes an empty set with this limit of age.
    pub(super) fn new(most_age: Option<Duration>) -> ClientResults {
        ClientResults { results: Mutex::default(), most_age }
    }

    /// Retains a result for a client, in which these answers may be.
    pub(super) fn retain(&self, caller: Caller, spilled: Arc<Spilled>, answers: Answers) {
        self.results.locked().push(ClientResult { caller, spilled, answers, used: Instant::now() });
        self.sweep();
    }

    /// Finds the client's result by its path or file name. Opens no file.
    pub(super) fn find(&self, caller: Caller, name: &str) -> Option<Arc<Spilled>> {
        self.sweep();
        let mut retained = self.results.locked();
        let found = retained
            .iter_mut()
            .find(|result| result.caller.owner == caller.owner && result.spilled.is_named(name))?;
        found.used = Instant::now();
        Some(found.spilled.clone())
    }

    /// Finds the client's first result that the text names.
    pub(super) fn named_in(&self, caller: Caller, text: &str) -> Option<Arc<Spilled>> {
        names_in(text).find_map(|name| self.find(caller, name))
    }

    /// The answers that may be in the client's result of this path or file name; `None`: it has none.
    pub(super) fn answers_in(&self, caller: Caller, name: &str) -> Option<Answers> {
        let retained = self.results.locked();
        let mut named = retained
            .iter()
            .filter(|result| result.caller.owner == caller.owner && result.spilled.is_named(name));
        named.next().map(|result| result.answers.clone())
    }

    /// The answers that may be in all of the client's results that the text names.
    pub(super) fn answers_named_in(&self, caller: Caller, text: &str) -> Answers {
        names_in(text).filter_map(|name| self.answers_in(caller, name)).flatten().collect()
    }

    /// Removes the results of a client session.
    pub(super) fn end(&self, session: SessionTag) {
        self.results.locked().retain(|result| result.caller.session != session);
    }

    /// Removes expired results, and those that the store has removed.
    pub(super) fn sweep(&self) {
        let is_over = |result: &ClientResult| self.most_age.is_some_and(|most| result.used.elapsed() >= most);
        self.results.locked().retain(|result| !result.spilled.is_gone() && !is_over(result));
    }
}
