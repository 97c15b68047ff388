//! Keeps the message handlers of the HTTP server, one for each set of servers to which tokens are restricted, so that a
//! client can use only the servers that its token allows.
//!
//! One more handler has all servers. A restricted handler has a runtime without the other servers, so nothing that
//! answers a token can see more than the token allows.

use super::access::TokenHolder;
use crate::server::handler::Handler;
use crate::tools::{Facts, SessionTag};
use ptc_base::sync::Locked;
use ptc_calls::tools::ServerNames;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Makes the handler that is restricted to these servers, from the facts about all of them.
pub type MakeRestricted = dyn Fn(ServerNames, Facts) -> serde_json::Result<Handler> + Send + Sync;

/// Identifies a tool list and its version: it changes whenever the list does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListVersion(pub(super) u64);

impl ListVersion {
    /// The version of no list.
    pub(super) const UNKNOWN: ListVersion = ListVersion(u64::MAX);
}

/// Bits of a number that count changes; those above identify the list.
const CHANGES: u32 = 32;

/// The handlers of a server.
pub struct Handlers {
    /// The handler for all servers.
    pub(super) unrestricted: Arc<Handler>,
    make: Option<Box<MakeRestricted>>,
    restricted: Mutex<RestrictedHandlers>,
}

struct RestrictedHandlers {
    facts: Arc<Facts>,
    by_servers: HashMap<ServerNames, RestrictedHandler>,
    /// The list of all servers.
    unrestricted: ListVersion,
    /// Number of restricted handlers made so far.
    made: u64,
}

#[derive(Clone)]
struct RestrictedHandler {
    handler: Arc<Handler>,
    list: ListVersion,
}

impl Handlers {
    /// A handler for all servers, with their facts. Restricted ones are made on demand.
    pub fn new(unrestricted: Arc<Handler>, facts: Arc<Facts>, make: Box<MakeRestricted>) -> Handlers {
        Handlers { make: Some(make), ..Handlers::with_facts(unrestricted, facts) }
    }

    /// One handler for all clients. Tokens that are restricted to some servers get none.
    pub fn single(unrestricted: Arc<Handler>) -> Handlers {
        Handlers::with_facts(unrestricted, Arc::default())
    }

    fn with_facts(unrestricted: Arc<Handler>, facts: Arc<Facts>) -> Handlers {
        let restricted =
            RestrictedHandlers { facts, by_servers: HashMap::new(), unrestricted: ListVersion(0), made: 0 };
        Handlers { unrestricted, make: None, restricted: Mutex::new(restricted) }
    }

    /// The handler for a token; `None` when its restricted one cannot be made.
    pub(super) fn for_holder(&self, holder: &TokenHolder) -> Option<Arc<Handler>> {
        match holder.servers() {
            None => Some(self.unrestricted.clone()),
            Some(servers) => Some(self.find_or_make(servers)?.handler),
        }
    }

    /// The tool list of a token.
    pub(super) fn list_for(&self, holder: &TokenHolder) -> Option<ListVersion> {
        match holder.servers() {
            None => Some(self.restricted.locked().unrestricted),
            Some(servers) => Some(self.find_or_make(servers)?.list),
        }
    }

    fn find_or_make(&self, servers: &ServerNames) -> Option<RestrictedHandler> {
        let mut table = self.restricted.locked();
        if let Some(known) = table.by_servers.get(servers) {
            return Some(known.clone());
        }
        let made = self.make.as_ref()?(servers.clone(), Facts::clone(&table.facts));
        match made {
            Ok(made) => {
                table.made += 1;
                let restricted =
                    RestrictedHandler { handler: Arc::new(made), list: ListVersion(table.made << CHANGES) };
                table.by_servers.insert(servers.clone(), restricted.clone());
                Some(restricted)
            }
            Err(error) => {
                tracing::error!(%error, "the tool list of a token could not be written");
                None
            }
        }
    }

    /// Rebuilds all tool lists.
    pub(super) fn describe(&self, facts: &Arc<Facts>) {
        let describe =
            |handler: &Handler, facts: &Facts, list: &mut ListVersion| match handler.describe(facts) {
                Ok(is_new) => list.0 += u64::from(is_new),
                Err(error) => tracing::error!(%error, "the tool list could not be written"),
            };
        let mut table = self.restricted.locked();
        table.facts = facts.clone();
        describe(&self.unrestricted, facts, &mut table.unrestricted);
        for (servers, restricted) in &mut table.by_servers {
            describe(&restricted.handler, &Facts::clone(facts).only(servers), &mut restricted.list);
        }
    }

    /// Forgets restricted handlers that no token uses any more, with the state that they hold for clients.
    /// Running calls go on.
    pub(super) fn retain(&self, is_granted: impl Fn(&ServerNames) -> bool) {
        let gone: Vec<_> =
            self.restricted.locked().by_servers.extract_if(|servers, _| !is_granted(servers)).collect();
        // Drop them after the table's lock is released.
        drop(gone);
    }

    /// Ends a session in all handlers.
    pub(super) fn session_ended(&self, session: SessionTag) {
        self.unrestricted.session_ended(session);
        let handlers: Vec<RestrictedHandler> =
            self.restricted.locked().by_servers.values().cloned().collect();
        handlers.iter().for_each(|restricted| restricted.handler.session_ended(session));
    }
}
