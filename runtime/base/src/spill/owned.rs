//! Keeps the spilled results (results that are too large to return, stored in files) of one program or session under
//! names such as `r1`, until the program or session ends.

use super::store::Spilled;
use std::sync::Arc;

/// Results by name.
#[derive(Default)]
pub struct OwnedSpills {
    kept: Vec<(String, Arc<Spilled>)>,
    made: usize,
}

impl OwnedSpills {
    /// An empty collection that numbers its names from `made`.
    pub fn after(made: usize) -> OwnedSpills {
        OwnedSpills { kept: Vec::new(), made }
    }

    /// How many names were given.
    pub fn made(&self) -> usize {
        self.made
    }

    /// Adds a result; returns its name.
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

    /// Takes over the results of another collection.
    pub fn take_over(&mut self, other: OwnedSpills) {
        self.made = self.made.max(other.made);
        self.kept.extend(other.kept);
    }
}
