//! Stores preludes (versioned Lisp libraries) in memory, for processes that need no store file.

use super::{Head, HeadChange, StoreBackend, StoreError};
use ptc_base::sync::Locked;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Facts about an id, and its texts by version.
type Known = (Head, BTreeMap<u64, String>);

#[derive(Default)]
pub(super) struct MemoryBackend {
    ids: Mutex<BTreeMap<String, Known>>,
}

impl StoreBackend for MemoryBackend {
    fn heads(&self) -> Result<Vec<(String, Head)>, StoreError> {
        Ok(self.ids.locked().iter().map(|(id, (head, _))| (id.clone(), head.clone())).collect())
    }

    fn head(&self, id: &str) -> Result<Option<Head>, StoreError> {
        Ok(self.ids.locked().get(id).map(|(head, _)| head.clone()))
    }

    fn source(&self, id: &str, version: u64) -> Result<Option<String>, StoreError> {
        Ok(self.ids.locked().get(id).and_then(|(_, sources)| sources.get(&version)).cloned())
    }

    fn update(
        &self,
        id: &str,
        decide: &mut dyn FnMut(Option<Head>, usize) -> Result<HeadChange, StoreError>,
    ) -> Result<(), StoreError> {
        let mut ids = self.ids.locked();
        let HeadChange { head, added, dropped } =
            decide(ids.get(id).map(|(head, _)| head.clone()), ids.len())?;
        let (known, sources) = ids.entry(id.to_owned()).or_default();
        *known = head;
        sources.extend(added);
        sources.retain(|version, _| !dropped.contains(version));
        Ok(())
    }
}
