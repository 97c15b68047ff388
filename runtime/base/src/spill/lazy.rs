//! Opens the on-disk store for results that are too large for memory only when it is first needed.

use super::store::{SpillOptions, SpillStore};
use crate::secrets::SecretRegistry;
use crate::sync::Locked;
use std::io;
use std::sync::{Arc, Mutex};

/// The store of a process, opened on first use. Clones share it.
#[derive(Clone)]
pub struct LazySpillStore(Arc<SharedLazyStore>);

struct SharedLazyStore {
    secrets: SecretRegistry,
    state: Mutex<LazyState>,
}

#[derive(Default)]
struct LazyState {
    options: SpillOptions,
    store: Option<SpillStore>,
}

impl LazySpillStore {
    /// No store is open yet.
    pub fn new(secrets: SecretRegistry) -> LazySpillStore {
        LazySpillStore(Arc::new(SharedLazyStore { secrets, state: Mutex::default() }))
    }

    /// Sets the size limit of all results, for a store that is not open yet.
    pub fn set_most_bytes(&self, most: u64) {
        self.0.state.locked().options.most_bytes = most;
    }

    /// The store, opened if necessary.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn store(&self) -> io::Result<SpillStore> {
        let mut state = self.0.state.locked();
        if let Some(store) = &state.store {
            return Ok(store.clone());
        }
        let store = SpillStore::open(&state.options, self.0.secrets.clone())?;
        Ok(state.store.insert(store).clone())
    }

    /// Removes all spilled results.
    pub fn close(&self) {
        if let Some(store) = self.0.state.locked().store.take() {
            store.close();
        }
    }
}
