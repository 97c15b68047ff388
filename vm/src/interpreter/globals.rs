//! The user namespace: a value per slot, and for a function what a call needs to know of it, so that a
//! call by name looks in one place.

use crate::bytecode::ProtoIndex;
use crate::bytecode::entry::Entry;
use crate::context::Unit;
use crate::fault::UnitId;
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
}

/// The values of the user namespace, by slot.
#[derive(Default)]
pub(crate) struct Globals {
    slots: Vec<Slot>,
}

impl Globals {
    const NO_CALLEE: Callee = Callee { unit: UnitId(0), proto: ProtoIndex(0), entry: Entry::NONE };

    /// Adds a slot without a value.
    pub(crate) fn add(&mut self) -> u32 {
        self.slots.push(Slot { value: None, callee: Globals::NO_CALLEE });
        self.slots.len() as u32 - 1
    }

    /// Takes all values away; the slots stay.
    pub(crate) fn undefine(&mut self) {
        for slot in &mut self.slots {
            *slot = Slot { value: None, callee: Globals::NO_CALLEE };
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
        if let Some(slot) = self.slots.get_mut(slot as usize) {
            slot.callee = match &value {
                Value::Closure(closure) => Callee {
                    unit: closure.unit,
                    proto: closure.proto,
                    entry: units[closure.unit.0 as usize].entries[usize::from(closure.proto.0)],
                },
                _ => Globals::NO_CALLEE,
            };
            slot.value = Some(value);
        }
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
