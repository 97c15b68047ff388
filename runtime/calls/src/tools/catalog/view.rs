//! Restricts the tool catalog for callers that may use only some of the servers.

use super::Catalog;
use ptc_base::sync::Locked;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Names of servers, configured or not. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ServerNames(Arc<BTreeSet<String>>);

impl ServerNames {
    /// True if the server is one of them.
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    /// The names, sorted.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// True if all of them are in `others`.
    pub fn is_subset(&self, others: &ServerNames) -> bool {
        self.0.is_subset(&others.0)
    }

    /// The union with `others`.
    #[must_use]
    pub fn union(&self, others: &ServerNames) -> ServerNames {
        self.0.union(&others.0).cloned().collect()
    }

    /// The intersection with `others`.
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

/// Bits of a version that count changes; the upper bits are the number of the restricted view.
const CHANGES: u32 = 40;

/// A view of catalogs that shows only some servers.
pub(super) struct RestrictedCatalog {
    pub(super) servers: ServerNames,
    /// Unique in this process; 0 stands for all servers.
    pub(super) number: u64,
    /// The last filtered catalog, and the version of the whole catalog that it was made from.
    last: Mutex<Option<(u64, Arc<Catalog>)>>,
}

impl RestrictedCatalog {
    pub(super) fn new(servers: ServerNames) -> RestrictedCatalog {
        static PARTS: AtomicU64 = AtomicU64::new(1);
        RestrictedCatalog { servers, number: PARTS.fetch_add(1, Ordering::Relaxed), last: Mutex::default() }
    }

    /// The filtered catalog. Its version differs from those of all other views and of the whole catalog,
    /// because caches use versions as keys.
    pub(super) fn filter(&self, whole: &Catalog) -> Arc<Catalog> {
        let mut last = self.last.locked();
        match &*last {
            Some((version, part)) if *version == whole.version() => part.clone(),
            _ => {
                let version = self.number << CHANGES | whole.version();
                let part = Arc::new(whole.restricted_to(version, |name| self.servers.contains(name)));
                *last = Some((whole.version(), part.clone()));
                part
            }
        }
    }
}
