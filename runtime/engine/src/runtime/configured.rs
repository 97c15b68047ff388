//! Keeps the list of servers that a running runtime is configured with, and updates it from a reloaded configuration,
//! which may add, change and remove servers.

use ptc_base::secrets::SecretRegistry;
use ptc_base::tasks::{self, TaskOwner};
use ptc_upstream::Guardian;
use ptc_upstream::config::{ServerEntry, Startup};
use std::collections::{BTreeMap, HashMap};
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

    /// The servers, each with a hash of what it is.
    pub(super) fn fingerprints(&self) -> HashMap<Arc<str>, u64> {
        self.entries.iter().map(|(name, entry)| (name.clone(), entry.fingerprint())).collect()
    }

    /// Puts these servers in the place of those in effect. Gives the changes, and the new and changed entries.
    pub(super) fn replace(&mut self, servers: Vec<ServerEntry>) -> (Reconfigured, Vec<ServerEntry>) {
        let mut changes = Reconfigured::default();
        let is_gone = |name: &&Arc<str>| !servers.iter().any(|entry| entry.name == **name);
        changes.removed = self.entries.keys().filter(is_gone).cloned().collect();
        for name in &changes.removed {
            self.entries.remove(name);
        }
        let is_new = |entry: &ServerEntry| match self.entries.get(&entry.name) {
            Some(old) => !old.is_as_written(entry),
            None => true,
        };
        let mut new: Vec<ServerEntry> = servers.into_iter().filter(is_new).collect();
        for entry in &mut new {
            // The start of the runtime is over; a server that is added later may start late.
            (entry.startup, entry.startup_is_explicit) = (Startup::Lenient, true);
            let name = &entry.name;
            match self.entries.insert(name.clone(), entry.clone()) {
                Some(old) => {
                    let (before, now) = (old.transport.describe(), entry.transport.describe());
                    if before.starts_with("https://") && now.starts_with("http://") {
                        tracing::warn!(
                            "the edited configuration reaches {name} over http:// in place of https://"
                        );
                    }
                    changes.changed.push(name.clone());
                }
                None => changes.added.push(name.clone()),
            }
        }
        (changes, new)
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
