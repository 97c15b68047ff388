//! A part of the servers: what somebody has who may use some of them only.

use super::Catalog;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Names of servers, whether or not servers of these names are configured. Cheap to copy.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ServerNames(Arc<BTreeSet<String>>);

impl ServerNames {
    /// True for one of them.
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    /// True when all of them are among others.
    pub fn is_subset(&self, others: &ServerNames) -> bool {
        self.0.is_subset(&others.0)
    }

    /// Those that are also among others.
    pub(super) fn and(&self, others: &ServerNames) -> ServerNames {
        self.0.intersection(&others.0).cloned().collect()
    }
}

impl FromIterator<String> for ServerNames {
    fn from_iter<I: IntoIterator<Item = String>>(names: I) -> ServerNames {
        ServerNames(Arc::new(names.into_iter().collect()))
    }
}

impl fmt::Debug for ServerNames {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// Bits of a version that count changes; those above say of which part it is.
const CHANGES: u32 = 40;

/// A view of catalogs in which there are some servers only.
pub(super) struct CatalogPart {
    pub(super) servers: ServerNames,
    /// No other part of this process has it, and all servers together have 0.
    pub(super) number: u64,
    /// The last one that was asked for, and the version of the whole that it was made of.
    last: Mutex<Option<(u64, Arc<Catalog>)>>,
}

impl CatalogPart {
    pub(super) fn new(servers: ServerNames) -> CatalogPart {
        static PARTS: AtomicU64 = AtomicU64::new(1);
        CatalogPart { servers, number: PARTS.fetch_add(1, Ordering::Relaxed), last: Mutex::default() }
    }

    /// What there is of a catalog. Its version is of no other part and of no whole, since whoever works something out from a
    /// catalog may keep it by that.
    pub(super) fn of(&self, whole: &Catalog) -> Arc<Catalog> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((version, part)) if *version == whole.version() => part.clone(),
            _ => {
                let version = self.number << CHANGES | whole.version();
                let part = Arc::new(whole.only(version, |name| self.servers.contains(name)));
                *last = Some((whole.version(), part.clone()));
                part
            }
        }
    }
}
