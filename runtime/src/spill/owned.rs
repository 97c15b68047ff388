//! The kept results of one program or session. They go with it.

use super::place::SpillPlace;
use super::store::Spilled;
use std::sync::Arc;

/// Results by name.
#[derive(Default)]
pub(crate) struct OwnedSpills {
    kept: Vec<(String, OwnedSpill)>,
    made: usize,
}

/// A result that is removed with this value.
struct OwnedSpill {
    place: SpillPlace,
    spilled: Arc<Spilled>,
}

impl Drop for OwnedSpill {
    fn drop(&mut self) {
        if let Some(store) = self.place.existing() {
            store.release(&self.spilled);
        }
    }
}

impl OwnedSpills {
    /// None, whose names go on behind so many others.
    pub(crate) fn after(made: usize) -> OwnedSpills {
        OwnedSpills { kept: Vec::new(), made }
    }

    /// Names that were given.
    pub(crate) fn made(&self) -> usize {
        self.made
    }

    /// Takes a result; gives its name.
    pub(crate) fn keep(&mut self, place: &SpillPlace, spilled: Arc<Spilled>) -> String {
        self.made += 1;
        let name = format!("r{}", self.made);
        self.kept.push((name.clone(), OwnedSpill { place: place.clone(), spilled }));
        name
    }

    /// The result of this name.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<Spilled>> {
        self.kept.iter().find(|(known, _)| known == name).map(|(_, owned)| owned.spilled.clone())
    }

    /// Takes over what another has kept.
    pub(crate) fn take_over(&mut self, other: OwnedSpills) {
        self.made = self.made.max(other.made);
        self.kept.extend(other.kept);
    }
}
