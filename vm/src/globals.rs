//! The user namespace: a value per slot, and for a function what a call needs to know of it, so that a
//! call by name looks in one place.

use crate::bytecode::ProtoIndex;
use crate::unit::Unit;
use crate::value::{UnitId, Value};
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

/// The calls a function takes without more ado: with exactly this many arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// Arguments; [`Entry::NONE`] where it takes more.
    pub(crate) arguments: u8,
    /// Whether it reads register 0 in the lowest bit; above it the number of its [`Leaf`], counted from one.
    ///
    /// [`Leaf`]: crate::interpreter::leaf::Leaf
    special: u8,
}

impl Entry {
    /// More arguments than a window has room for.
    const NO_COUNT: u8 = u8::MAX;
    /// No call is that simple.
    pub(crate) const NONE: Entry = Entry { arguments: Entry::NO_COUNT, special: 1 };

    /// Most functions of a program that have a leaf; further ones are called like others.
    pub(crate) const MOST_LEAVES: usize = 127;

    /// A function of fixed arguments. `leaf` is its number among those that have one, counted from one.
    pub(crate) fn new(arguments: u8, needs_closure: bool, leaf: Option<u8>) -> Entry {
        Entry { arguments, special: leaf.unwrap_or_default() << 1 | u8::from(needs_closure) }
    }

    /// A call needs the arguments in a window and nothing else.
    #[inline(always)]
    pub(crate) fn is_bare(self) -> bool {
        self.special == 0
    }

    /// The function reads register 0, so that a call must put the closure there.
    #[inline(always)]
    pub(crate) fn needs_closure(self) -> bool {
        self.special & 1 == 1
    }

    /// The number of its leaf, counted from one.
    #[inline(always)]
    pub(crate) fn leaf(self) -> u8 {
        self.special >> 1
    }

    /// The function takes a fixed number of arguments, as they are in the window.
    #[inline]
    pub(crate) fn is_plain(self) -> bool {
        self.arguments != Entry::NO_COUNT
    }
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
