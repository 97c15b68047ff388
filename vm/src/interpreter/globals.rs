//! Stores the values of a program's global names, with what is needed to undo the definitions of a program that fails.
//! Values are in numbered slots. A slot also has the call information of a function, so that a call by name needs one lookup. Slots
//! without use are freed.

use crate::bytecode::entry::Entry;
use crate::context::Function;
use crate::memory::account;
use crate::value::Value;
use crate::value::code_ref::FunctionId;

/// The call information of a global function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Callee {
    /// The function.
    pub(crate) function: FunctionId,
    /// Its fast calls.
    pub(crate) entry: Entry,
}

struct Slot {
    value: Option<Value>,
    callee: Callee,
    /// The run that changed the slot last.
    changed: u32,
}

impl Slot {
    const EMPTY: Slot =
        Slot { value: None, callee: Callee { function: FunctionId(0), entry: Entry::NONE }, changed: 0 };
}

/// Logical bytes of a slot.
const SLOT_BYTES: usize = 48;

/// The values of names, by slot. The first change of a slot in a run is recorded, so that commit and rollback take
/// time proportional to the run's changes, not to the number of slots.
pub(crate) struct Globals {
    slots: Vec<Slot>,
    /// The current run.
    run: u32,
    /// Number of slots of earlier runs.
    kept: usize,
    /// Slots of earlier runs that this run has changed, with their former content.
    before: Vec<(u32, Slot)>,
    /// Slots without a name, the lowest last.
    free: Vec<u32>,
    /// Free slots that this run has assigned, in that order.
    reused: Vec<u32>,
}

impl Default for Globals {
    fn default() -> Globals {
        Globals {
            slots: Vec::new(),
            run: 1,
            kept: 0,
            before: Vec::new(),
            free: Vec::new(),
            reused: Vec::new(),
        }
    }
}

impl Globals {
    /// Adds a slot without a value.
    pub(crate) fn add(&mut self) -> u32 {
        account::charge(SLOT_BYTES);
        if let Some(slot) = self.free.pop() {
            self.reused.push(slot);
            return slot;
        }
        self.slots.push(Slot::EMPTY);
        self.slots.len() as u32 - 1
    }

    /// Whether the current run has changed the slot.
    pub(crate) fn is_changed(&self, slot: u32) -> bool {
        self.slots.get(slot as usize).is_some_and(|slot| slot.changed == self.run)
    }

    /// Keeps the run's changes.
    pub(crate) fn commit(&mut self) {
        self.kept = self.slots.len();
        self.before.clear();
        self.reused.clear();
        self.run = self.run.wrapping_add(1).max(1);
    }

    /// Undoes the run's changes. Calls `forget` with each slot that loses its name, the last one first.
    pub(crate) fn roll_back(&mut self, mut forget: impl FnMut(u32)) {
        while let Some((slot, before)) = self.before.pop() {
            if let Some(slot) = self.slots.get_mut(slot as usize) {
                *slot = before;
            }
        }
        while self.slots.len() > self.kept {
            account::release(SLOT_BYTES);
            self.slots.pop();
            forget(self.slots.len() as u32);
        }
        while let Some(slot) = self.reused.pop() {
            account::release(SLOT_BYTES);
            forget(slot);
            self.free.push(slot);
        }
        self.run = self.run.wrapping_add(1).max(1);
    }

    /// The number of slots, free ones included.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The slots that have a value, or had one when the run began, with those values.
    pub(crate) fn held(&self) -> impl Iterator<Item = (u32, &Value)> {
        let now = self.slots.iter().enumerate().map(|(slot, held)| (slot as u32, held));
        let before = self.before.iter().map(|(slot, held)| (*slot, held));
        now.chain(before).filter_map(|(slot, held)| Some((slot, held.value.as_ref()?)))
    }

    /// Logical bytes of the unreachable slots.
    pub(crate) fn unreached_bytes(&self, is_reached: impl Fn(u32) -> bool) -> u64 {
        let unreached = (0..self.slots.len() as u32).filter(|&slot| !is_reached(slot)).count();
        ((unreached - self.free.len()) * SLOT_BYTES) as u64
    }

    /// Frees unreachable slots between two runs, and calls `forget` with each.
    pub(crate) fn sweep(&mut self, is_reached: impl Fn(u32) -> bool, mut forget: impl FnMut(u32)) {
        let in_use = self.slots.len() - self.free.len();
        let unreached: Vec<u32> = (0..self.slots.len() as u32).filter(|&slot| !is_reached(slot)).collect();
        unreached.iter().for_each(|&slot| forget(slot));
        let last = (0..self.slots.len() as u32).rev().find(|&slot| is_reached(slot));
        self.slots.truncate(last.map_or(0, |slot| slot as usize + 1));
        self.free = unreached.into_iter().rev().filter(|&slot| (slot as usize) < self.slots.len()).collect();
        self.kept = self.slots.len();
        account::release((in_use - (self.slots.len() - self.free.len())) * SLOT_BYTES);
    }

    /// Removes a value.
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

    /// A view of the slots for many reads.
    #[inline]
    pub(crate) fn shared(&self) -> Shared<'_> {
        Shared(&self.slots)
    }

    /// Defines a slot.
    pub(crate) fn set(&mut self, slot: u32, value: Value, functions: &[Function]) {
        let callee = match &value {
            Value::Closure(closure) => {
                let entry = functions.get(closure.function.index()).map(|function| function.entry);
                Callee { function: closure.function, entry: entry.unwrap_or(Entry::NONE) }
            }
            _ => Slot::EMPTY.callee,
        };
        self.replace(slot, Slot { value: Some(value), callee, changed: 0 });
    }
}

impl Drop for Globals {
    fn drop(&mut self) {
        account::release((self.slots.len() - self.free.len()) * SLOT_BYTES);
    }
}

/// A read-only view of the slots.
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

    /// The call information of a slot.
    #[inline(always)]
    pub(crate) fn callee(self, slot: u32) -> Option<&'g Callee> {
        Some(&self.0.get(slot as usize)?.callee)
    }
}
