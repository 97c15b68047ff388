//! Limits the time and memory of the data-flow analysis of a program, by counting its steps and the bytes of the
//! abstract values that it makes. A program that needs more is not planned, which is no error.

use super::node::{Key, NEVER, Node, Val};
use crate::meter::{List, Meter};
use bumpalo::Bump;
use std::cell::Cell;

/// Units of work for each byte of text: an expression that is looked at, a part of a value that is made or compared.
const UNITS_PER_BYTE: usize = 400;

/// The most units, for any text.
const MOST_UNITS: usize = 6_000_000;

/// The most bytes of abstract values.
const MOST_BYTES: u64 = 16 << 20;

/// Units between two looks at the interrupt.
const SLICE: usize = 1_024;

/// Parts of a value under known keys that are told apart.
pub(super) const MOST_FIELDS: usize = 64;

/// Abstract values, and the budget for making and comparing them.
pub(super) struct Nodes<'n> {
    arena: &'n Bump,
    /// Looks at the interrupt; false when the compilation is to end.
    goes_on: &'n dyn Fn() -> bool,
    units: Cell<usize>,
    /// Units until the next look.
    slice: Cell<usize>,
    bytes: Cell<u64>,
}

impl<'n> Nodes<'n> {
    /// A budget for a text, within what the compilation may still hold.
    pub(super) fn new(arena: &'n Bump, goes_on: &'n dyn Fn() -> bool, source: &str, room: u64) -> Nodes<'n> {
        Nodes {
            arena,
            goes_on,
            units: Cell::new(((source.len() + 400) * UNITS_PER_BYTE).min(MOST_UNITS)),
            slice: Cell::new(SLICE),
            bytes: Cell::new(MOST_BYTES.min(room / 2)),
        }
    }

    /// True when the budget is used up: what is found after that counts for nothing.
    pub(super) fn is_spent(&self) -> bool {
        self.units.get() == 0
    }

    /// Pays for some work; false when there is nothing left.
    pub(super) fn pay(&self, units: usize) -> bool {
        let left = self.units.get().saturating_sub(units);
        self.units.set(left);
        match self.slice.get().checked_sub(units) {
            Some(slice) => self.slice.set(slice),
            None => {
                self.slice.set(SLICE);
                if !(self.goes_on)() {
                    self.units.set(0);
                }
            }
        }
        !self.is_spent()
    }

    fn pay_bytes(&self, bytes: usize) -> bool {
        match self.bytes.get().checked_sub(bytes as u64) {
            Some(left) => self.bytes.set(left),
            None => self.units.set(0),
        }
        !self.is_spent()
    }

    /// A value in the arena.
    pub(super) fn node(&self, node: Node<'n>) -> Val<'n> {
        match self.pay(1) && self.pay_bytes(size_of::<Node<'_>>()) {
            true => self.arena.alloc(node),
            false => &NEVER,
        }
    }

    /// A copy of some parts with room for more.
    pub(super) fn fields(&self, from: &[(Key, Val<'n>)], more: usize) -> Option<List<'n, (Key, Val<'n>)>> {
        let count = from.len() + more;
        if !self.pay(1 + count / 4) || !self.pay_bytes(count * size_of::<(Key, Val<'_>)>()) {
            return None;
        }
        let mut fields = List::with_capacity_in(count, self.arena);
        fields.extend_from_slice_copy(from);
        Some(fields)
    }
}

/// What a compilation may still hold, and a look at its interrupt.
pub(super) fn of_meter<'m>(meter: &'m Meter<'_>) -> (u64, impl Fn() -> bool + use<'m>) {
    (meter.room(), move || meter.look_now().is_ok())
}
