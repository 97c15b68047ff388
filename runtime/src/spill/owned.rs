//! The kept results of one program or session. They go with it.

use super::store::Spilled;
use std::sync::Arc;

/// Results by name.
#[derive(Default)]
pub struct OwnedSpills {
    kept: Vec<(String, Arc<Spilled>)>,
    made: usize,
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
    pub fn keep(&mut self, spilled: Arc<Spilled>) -> String {
        self.made += 1;
        let name = format!("r{}", self.made);
        self.kept.push((name.clone(), spilled));
        name
    }

    /// The result of this name.
    pub fn find(&self, name: &str) -> Option<Arc<Spilled>> {
        self.kept.iter().find(|(known, _)| known == name).map(|(_, spilled)| spilled.clone())
    }

    /// Takes over what another has kept.
    pub(crate) fn take_over(&mut self, other: OwnedSpills) {
        self.made = self.made.max(other.made);
        self.kept.extend(other.kept);
    }
}
