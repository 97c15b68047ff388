//! Gives each client (owner) a Python engine of its own, up to a limit, so that scripts of different clients are
//! isolated from each other.
//!
//! Scripts of one engine come from one warm process. Up to `MOST_ENGINES` owners have an engine each, so a
//! script that attacks its process only reaches its own owner.

use crate::tools::CallOwner;
use ptc_base::sync::Locked;
use ptc_python::engine::Engine;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Most engines: each has a process with the library in memory. Further owners share them in rotation.
const MOST_ENGINES: usize = 8;

/// Most owners with a remembered engine.
const MOST_OWNERS: usize = 4_096;

pub(super) struct OwnerEngines {
    /// Any of the engines, for properties that all share.
    pub(super) first: Arc<dyn Engine>,
    state: Mutex<EngineState>,
}

#[derive(Default)]
struct EngineState {
    /// The engines after the first; each starts with its first script.
    others: Vec<Arc<dyn Engine>>,
    numbers: HashMap<CallOwner, usize>,
    /// Number of owners seen so far.
    seen: usize,
}

impl OwnerEngines {
    pub(super) fn new(first: Arc<dyn Engine>) -> OwnerEngines {
        OwnerEngines { first, state: Mutex::default() }
    }

    pub(super) fn for_owner(&self, owner: CallOwner) -> Arc<dyn Engine> {
        let mut state = self.state.locked();
        let number = match state.numbers.get(&owner) {
            Some(number) => *number,
            None => {
                if state.numbers.len() >= MOST_OWNERS {
                    state.numbers.clear();
                }
                let number = state.seen % MOST_ENGINES;
                state.seen += 1;
                state.numbers.insert(owner, number);
                number
            }
        };
        let Some(number) = number.checked_sub(1) else { return self.first.clone() };
        while state.others.len() <= number {
            state.others.push(self.first.clone().for_other_owners());
        }
        state.others[number].clone()
    }
}
