//! Holds the entries of the configured servers, starts the guardian that ends their processes, and defines the list of
//! changes after a reconfiguration.

use ptc_base::secrets::SecretRegistry;
use ptc_base::tasks::{self, TaskOwner};
use ptc_upstream::Guardian;
use ptc_upstream::config::ServerEntry;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The entries in effect.
pub(super) struct Configured {
    pub(super) entries: BTreeMap<Arc<str>, ServerEntry>,
    /// A guardian keeps processes of servers from outliving this one.
    pub(super) is_guarded: bool,
}

impl Configured {
    /// Starts the guardian once there are processes of servers.
    pub(super) fn guard(&mut self, guardian: &Arc<Guardian>, servers: &[ServerEntry]) {
        if !servers.is_empty() && !std::mem::replace(&mut self.is_guarded, true) {
            tasks::spawn(TaskOwner::Process, Guardian::keep(Arc::downgrade(guardian)));
        }
    }
}

/// The changes of a new configuration, by server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reconfigured {
    /// Servers that are new.
    pub added: Vec<Arc<str>>,
    /// Servers with a changed entry.
    pub changed: Vec<Arc<str>>,
    /// Servers that were removed.
    pub removed: Vec<Arc<str>>,
}

/// Names and descriptions for the catalog.
pub(super) fn described(
    servers: &[ServerEntry],
    secrets: &SecretRegistry,
) -> Vec<(Arc<str>, Option<Arc<str>>)> {
    let described = servers.iter().map(|entry| {
        let description = entry.description.as_deref().map(|text| secrets.scrub(text).into());
        (entry.name.clone(), description)
    });
    described.collect()
}
