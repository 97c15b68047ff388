//! Selects the handler for a token: one for all servers, and one for each set of servers that tokens are
//! restricted to.
//!
//! A restricted handler has a runtime without the other servers, so nothing that answers a token can see more
//! than the token allows.

use super::access::TokenHolder;
use crate::server::handler::Handler;
use crate::tools::{Facts, SessionTag};
use ptc_runtime::tools::ServerNames;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Makes the handler that is restricted to these servers, from the facts about all of them.
pub type MakePart = dyn Fn(ServerNames, Facts) -> serde_json::Result<Handler> + Send + Sync;

/// Identifies a tool list and its version: it changes whenever the list does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListNumber(pub(super) u64);

/// Bits of a number that count changes; those above identify the list.
const CHANGES: u32 = 32;

/// The handlers of a server.
pub struct Handlers {
    whole: Arc<Handler>,
    make: Option<Box<MakePart>>,
    parts: Mutex<PartHandlers>,
}

struct PartHandlers {
    facts: Arc<Facts>,
    by_servers: HashMap<ServerNames, PartHandler>,
    /// The list of all servers.
    whole: ListNumber,
    /// Number of restricted handlers made so far.
    made: u64,
}

#[derive(Clone)]
struct PartHandler {
    handler: Arc<Handler>,
    list: ListNumber,
}

impl Handlers {
    /// A handler for all servers, with their facts. Restricted ones are made on demand.
    pub fn new(whole: Arc<Handler>, facts: Arc<Facts>, make: Box<MakePart>) -> Handlers {
        Handlers { make: Some(make), ..Handlers::of_facts(whole, facts) }
    }

    /// One handler for all clients. Tokens that are restricted to some servers get none.
    pub fn single(whole: Arc<Handler>) -> Handlers {
        Handlers::of_facts(whole, Arc::default())
    }

    fn of_facts(whole: Arc<Handler>, facts: Arc<Facts>) -> Handlers {
        let parts = PartHandlers { facts, by_servers: HashMap::new(), whole: ListNumber(0), made: 0 };
        Handlers { whole, make: None, parts: Mutex::new(parts) }
    }

    fn parts(&self) -> MutexGuard<'_, PartHandlers> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The handler for all servers.
    pub(super) fn whole(&self) -> &Arc<Handler> {
        &self.whole
    }

    /// The handler for a token; `None` when its restricted one cannot be made.
    pub(super) fn of(&self, holder: &TokenHolder) -> Option<Arc<Handler>> {
        match holder.servers() {
            None => Some(self.whole.clone()),
            Some(servers) => Some(self.part(servers)?.handler),
        }
    }

    /// The tool list of a token.
    pub(super) fn list_of(&self, holder: &TokenHolder) -> Option<ListNumber> {
        match holder.servers() {
            None => Some(self.parts().whole),
            Some(servers) => Some(self.part(servers)?.list),
        }
    }

    fn part(&self, servers: &ServerNames) -> Option<PartHandler> {
        let mut parts = self.parts();
        if let Some(known) = parts.by_servers.get(servers) {
            return Some(known.clone());
        }
        let made = self.make.as_ref()?(servers.clone(), Facts::clone(&parts.facts));
        match made {
            Ok(made) => {
                parts.made += 1;
                let part = PartHandler { handler: Arc::new(made), list: ListNumber(parts.made << CHANGES) };
                parts.by_servers.insert(servers.clone(), part.clone());
                Some(part)
            }
            Err(error) => {
                tracing::error!(%error, "the tool list of a token could not be written");
                None
            }
        }
    }

    /// Rebuilds all tool lists.
    pub(super) fn describe(&self, facts: &Arc<Facts>) {
        let describe = |handler: &Handler, facts: &Facts, list: &mut ListNumber| match handler.describe(facts)
        {
            Ok(is_new) => list.0 += u64::from(is_new),
            Err(error) => tracing::error!(%error, "the tool list could not be written"),
        };
        let mut parts = self.parts();
        parts.facts = facts.clone();
        describe(&self.whole, facts, &mut parts.whole);
        for (servers, part) in &mut parts.by_servers {
            describe(&part.handler, &Facts::clone(facts).only(servers), &mut part.list);
        }
    }

    /// Forgets restricted handlers that no token uses any more, with the state that they hold for clients.
    /// Running calls go on.
    pub(super) fn retain(&self, is_granted: impl Fn(&ServerNames) -> bool) {
        let gone: Vec<_> = self.parts().by_servers.extract_if(|servers, _| !is_granted(servers)).collect();
        // Drop them after the table's lock is released.
        drop(gone);
    }

    /// Ends a session in all handlers.
    pub(super) fn session_ended(&self, session: SessionTag) {
        self.whole.session_ended(session);
        let parts: Vec<PartHandler> = self.parts().by_servers.values().cloned().collect();
        parts.iter().for_each(|part| part.handler.session_ended(session));
    }
}

impl fmt::Debug for Handlers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Handlers").field("whole", &self.whole).finish_non_exhaustive()
    }
}
