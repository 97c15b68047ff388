//! Scopes: which name means which slot, capture or closure.

use crate::ir::{MAX_SLOTS, Slots};
use crate::names::Name;

/// What a name means in the current function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Local(u8),
    Capture(u16),
    SelfRef,
}

/// Where `recur` goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecurTarget {
    /// First variable; they are consecutive.
    pub(crate) first: u8,
    pub(crate) count: u8,
    pub(crate) used: bool,
}

/// The locals of one function while its body is resolved.
#[derive(Debug, Default)]
pub(crate) struct FunctionScope {
    names: Vec<(Name, u8)>,
    depth: usize,
    /// Enclosing loops: the first slot of each, and the outer slots its body reads.
    loops: Vec<(usize, Slots)>,
    pub(crate) captures: Vec<Place>,
    pub(crate) self_name: Option<Name>,
    pub(crate) recur: Option<RecurTarget>,
}

/// A point to go back to when a scope ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    names: usize,
    depth: usize,
}

impl FunctionScope {
    /// Forgets the locals of one arity; captures stay.
    pub(crate) fn next_arity(&mut self) {
        self.names.clear();
        self.loops.clear();
        self.depth = 0;
        self.recur = None;
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark { names: self.names.len(), depth: self.depth }
    }

    pub(crate) fn release(&mut self, mark: Mark) {
        self.names.truncate(mark.names);
        self.depth = mark.depth;
    }

    /// Hides the names bound since the mark, but keeps their slots taken.
    pub(crate) fn hide(&mut self, mark: Mark) {
        self.names.truncate(mark.names);
    }

    /// A new slot, or `None` when the function has too many locals in scope.
    pub(crate) fn slot(&mut self) -> Option<u8> {
        if self.depth >= MAX_SLOTS {
            return None;
        }
        self.depth += 1;
        Some((self.depth - 1) as u8)
    }

    pub(crate) fn bind(&mut self, name: Name, slot: u8) {
        self.names.push((name, slot));
    }

    /// Enters a loop whose variables are the last `variables` slots.
    pub(crate) fn enter_loop(&mut self, variables: usize) {
        self.loops.push((self.depth - variables.min(self.depth), Slots::EMPTY));
    }

    /// The outer slots that the loop body read.
    pub(crate) fn leave_loop(&mut self) -> Slots {
        self.loops.pop().map_or(Slots::EMPTY, |(_, used)| used)
    }

    /// Notes a read of a slot for every loop it comes from outside of.
    pub(crate) fn note_use(&mut self, slot: u8) {
        for (first, used) in self.loops.iter_mut().rev() {
            if usize::from(slot) >= *first {
                break;
            }
            used.insert(slot);
        }
    }

    fn find(&self, name: Name) -> Option<Place> {
        match self.names.iter().rev().find(|(bound, _)| *bound == name) {
            Some(&(_, slot)) => Some(Place::Local(slot)),
            None if self.self_name == Some(name) => Some(Place::SelfRef),
            None => None,
        }
    }

    fn capture(&mut self, place: Place) -> Place {
        let index = self.captures.iter().position(|known| *known == place).unwrap_or_else(|| {
            self.captures.push(place);
            self.captures.len() - 1
        });
        Place::Capture(index as u16)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = Name> {
        self.names.iter().map(|(name, _)| *name)
    }
}

/// Finds a name in the innermost function or captures it through all functions between.
pub(crate) fn lookup(functions: &mut [FunctionScope], name: Name) -> Option<Place> {
    let level = functions.iter().rposition(|function| function.find(name).is_some())?;
    let mut place = functions[level].find(name)?;
    if let Place::Local(slot) = place {
        functions[level].note_use(slot);
    }
    for function in &mut functions[level + 1..] {
        place = function.capture(place);
    }
    Some(place)
}
