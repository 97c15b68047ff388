//! The user namespace: a value per slot, and for a function what a call needs to know of it, so that a
//! call by name looks in one place.

use crate::bytecode::ProtoIndex;
use crate::bytecode::entry::Entry;
use crate::context::Unit;
use crate::fault::UnitId;
use crate::memory::account;
use crate::value::Value;
use std::rc::Rc;

/// What a call of a global has to know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Callee {
    /// The program.
    pub(crate) unit: UnitId,
    /// The function.
    pub(crate) proto: ProtoIndex,
    /// The calls it takes without more ado.
    pub(crate) entry: Entry,
}

struct Slot {
    value: Option<Value>,
    callee: Callee,
    /// The run that changed it last.
    changed: u32,
}

impl Slot {
    const EMPTY: Slot = Slot {
        value: None,
        callee: Callee { unit: UnitId(0), proto: ProtoIndex(0), entry: Entry::NONE },
        changed: 0,
    };
}

/// Logical bytes of a slot.
const SLOT_BYTES: usize = 48;

/// The values of names, by slot. What a run changes is noted once a slot, so that committing and rolling back cost
/// what the run has changed and not what there is.
pub(crate) struct Globals {
    slots: Vec<Slot>,
    /// The run under way.
    run: u32,
    /// Slots that earlier runs have left.
    kept: usize,
    /// Those of them that this run has changed, as they were.
    before: Vec<(u32, Slot)>,
}

impl Default for Globals {
    fn default() -> Globals {
        Globals { slots: Vec::new(), run: 1, kept: 0, before: Vec::new() }
    }
}

impl Globals {
    /// Adds a slot without a value.
    pub(crate) fn add(&mut self) -> u32 {
        account::charge(SLOT_BYTES);
        self.slots.push(Slot::EMPTY);
        self.slots.len() as u32 - 1
    }

    /// The run has changed it.
    pub(crate) fn is_changed(&self, slot: u32) -> bool {
        self.slots.get(slot as usize).is_some_and(|slot| slot.changed == self.run)
    }

    /// Keeps what the run has changed.
    pub(crate) fn commit(&mut self) {
        self.kept = self.slots.len();
        self.before.clear();
        self.run = self.run.wrapping_add(1).max(1);
    }

    /// Takes everything back that the run has changed. Returns the number of slots that there are again.
    pub(crate) fn roll_back(&mut self) -> usize {
        while let Some((slot, before)) = self.before.pop() {
            if let Some(slot) = self.slots.get_mut(slot as usize) {
                *slot = before;
            }
        }
        if self.slots.len() > self.kept {
            account::release((self.slots.len() - self.kept) * SLOT_BYTES);
            self.slots.truncate(self.kept);
        }
        self.run = self.run.wrapping_add(1).max(1);
        self.kept
    }

    /// Takes a value away.
    pub(crate) fn clear(&mut self, slot: u32) {
        self.replace(slot, Slot::EMPTY);
    }

    fn replace(&mut self, slot: u32, with: Slot) {
        let Some(place) = self.slots.get_mut(slot as usize) else { return };
        let before = std::mem::replace(place, Slot { changed: self.run, ..with });
        if before.changed != self.run && (slot as usize) < self.kept {
            self.before.push((slot, before));
        }
    }

    /// The value of a slot.
    #[inline]
    pub(crate) fn get(&self, slot: u32) -> Option<&Value> {
        self.slots.get(slot as usize)?.value.as_ref()
    }

    /// The slots for who reads many.
    #[inline]
    pub(crate) fn shared(&self) -> Shared<'_> {
        Shared(&self.slots)
    }

    /// Defines a slot.
    pub(crate) fn set(&mut self, slot: u32, value: Value, units: &[Rc<Unit>]) {
        let callee = match &value {
            Value::Closure(closure) => Callee {
                unit: closure.unit,
                proto: closure.proto,
                entry: units[closure.unit.0 as usize].entries[usize::from(closure.proto.0)],
            },
            _ => Slot::EMPTY.callee,
        };
        self.replace(slot, Slot { value: Some(value), callee, changed: 0 });
    }
}

impl Drop for Globals {
    fn drop(&mut self) {
        account::release(self.slots.len() * SLOT_BYTES);
    }
}

/// Slots to be read.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'g>(&'g [Slot]);

impl<'g> Shared<'g> {
    /// No slots.
    pub(crate) const NONE: Shared<'g> = Shared(&[]);

    /// The value of a slot.
    #[inline(always)]
    pub(crate) fn get(self, slot: u32) -> Option<&'g Value> {
        self.0.get(slot as usize)?.value.as_ref()
    }

    /// How to call what is in a slot.
    #[inline(always)]
    pub(crate) fn callee(self, slot: u32) -> Option<&'g Callee> {
        Some(&self.0.get(slot as usize)?.callee)
    }
}
