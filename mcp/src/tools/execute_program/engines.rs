//! Which engine runs the scripts of an owner. Scripts of one engine come from one warm process; those of different owners do not, as
//! long as there are few of them: what a script may find to do to that process, it does to its own owner.

use crate::tools::CallOwner;
use ptc_python::engine::Engine;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Engines: each has a process with the library in memory. More owners than that share them, in turn.
const MOST_ENGINES: usize = 8;

/// Owners of which the engine is remembered.
const MOST_OWNERS: usize = 4_096;

pub(super) struct OwnerEngines {
    first: Arc<dyn Engine>,
    state: Mutex<EngineState>,
}

#[derive(Default)]
struct EngineState {
    /// Behind the first; each begins with its first script.
    others: Vec<Arc<dyn Engine>>,
    numbers: HashMap<CallOwner, usize>,
    /// Owners so far.
    seen: usize,
}

impl OwnerEngines {
    pub(super) fn new(first: Arc<dyn Engine>) -> OwnerEngines {
        OwnerEngines { first, state: Mutex::default() }
    }

    /// One of them, to ask what all are.
    pub(super) fn any(&self) -> &dyn Engine {
        &*self.first
    }

    pub(super) fn of(&self, owner: CallOwner) -> Arc<dyn Engine> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
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
            state.others.push(self.first.clone().apart());
        }
        state.others[number].clone()
    }
}
