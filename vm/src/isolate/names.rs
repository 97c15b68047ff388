//! Maps the global names of programs to numbered slots, in which the interpreter stores their values.

use crate::interpreter::globals::Globals;
use crate::value::symbol::Symbol;
use std::collections::HashMap;

/// A name in an isolate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct GlobalKey {
    /// `None` for the user namespace.
    pub(crate) namespace: Option<Symbol>,
    /// The name within it.
    pub(crate) name: Symbol,
}

/// The slots of names.
#[derive(Default)]
pub(crate) struct GlobalSlots {
    slots: HashMap<GlobalKey, u32, foldhash::fast::RandomState>,
    /// The names, by slot; `None` for slots that are free.
    names: Vec<Option<GlobalKey>>,
}

impl GlobalSlots {
    /// The slot of a name, added if necessary.
    pub(crate) fn slot(&mut self, globals: &mut Globals, name: GlobalKey) -> u32 {
        *self.slots.entry(name).or_insert_with(|| {
            let slot = globals.add();
            let place = slot as usize;
            self.names.resize(self.names.len().max(place + 1), None);
            self.names[place] = Some(name);
            slot
        })
    }

    /// The slot of a name that has one.
    pub(crate) fn find(&self, name: GlobalKey) -> Option<u32> {
        self.slots.get(&name).copied()
    }

    /// The names and their slots, by slot.
    pub(crate) fn names(&self) -> impl Iterator<Item = (u32, GlobalKey)> {
        self.names.iter().enumerate().filter_map(|(slot, name)| Some((slot as u32, (*name)?)))
    }

    /// Forgets the name of a slot.
    pub(crate) fn forget(&mut self, slot: u32) {
        if let Some(name) = self.names.get_mut(slot as usize).and_then(Option::take) {
            self.slots.remove(&name);
        }
        while self.names.last().is_some_and(Option::is_none) {
            self.names.pop();
        }
    }
}
