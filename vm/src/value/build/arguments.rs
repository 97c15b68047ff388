//! Holds the arguments of a function call: up to three without an allocation, more in a list that counts against the
//! program's memory limit while the call holds them.

use crate::fault::Result;
use crate::memory::account;
use crate::value::garbage::drop_children;
use crate::value::{Store, Value};
use smallvec::SmallVec;
use std::iter::FusedIterator;
use std::mem::take;
use std::ops::{Deref, DerefMut};

/// Number of arguments stored inline.
const FEW: usize = 3;

/// Arguments of a call.
///
/// Invariant: their heap memory is charged from the moment it is allocated, and was within the limit then.
#[derive(Default)]
pub struct Arguments(SmallVec<[Value; FEW]>);

impl Arguments {
    /// No arguments.
    #[inline]
    pub fn new() -> Arguments {
        Arguments::default()
    }

    /// A few arguments, at most three.
    #[inline]
    pub fn from_array<const N: usize>(items: [Value; N]) -> Arguments {
        const { assert!(N <= FEW, "more arguments need memory") };
        Arguments(items.into_iter().collect())
    }

    /// The values of these slots, which are empty afterwards. They were paid for.
    ///
    /// # Errors
    /// `memory_exceeded`.
    #[inline]
    pub(crate) fn taken(cx: &mut Store, slots: &mut [Value]) -> Result<Arguments> {
        let mut arguments = Arguments::new();
        if slots.len() > FEW {
            arguments.grow(cx, slots.len())?;
        }
        arguments.0.extend(slots.iter_mut().map(take));
        Ok(arguments)
    }

    /// Adds an argument.
    ///
    /// # Errors
    /// `memory_exceeded`.
    #[inline]
    pub fn push(&mut self, cx: &mut Store, item: Value) -> Result<()> {
        if self.0.len() == self.0.capacity() {
            self.grow(cx, 1)?;
        }
        self.0.push(item);
        Ok(())
    }

    /// Adds an argument before the others.
    ///
    /// # Errors
    /// `memory_exceeded`.
    pub(crate) fn push_first(&mut self, cx: &mut Store, item: Value) -> Result<()> {
        self.push(cx, item)?;
        self.0.rotate_right(1);
        Ok(())
    }

    /// Adds arguments, each of which costs a unit of fuel.
    ///
    /// # Errors
    /// Fuel and memory.
    #[inline]
    pub fn extend(&mut self, cx: &mut Store, items: impl Iterator<Item = Value>) -> Result<()> {
        let expected = items.size_hint().0;
        if expected > self.0.capacity() - self.0.len() {
            self.grow(cx, expected)?;
        }
        for item in items {
            cx.tick(1)?;
            self.push(cx, item)?;
        }
        Ok(())
    }

    /// Takes the last argument out.
    #[inline]
    pub fn pop(&mut self) -> Option<Value> {
        self.0.pop()
    }

    /// Makes room for `more` arguments.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, cx: &mut Store, more: usize) -> Result<()> {
        let before = self.bytes();
        let doubled = if self.0.spilled() { self.0.capacity().saturating_mul(2) } else { 0 };
        let capacity = self.0.len().saturating_add(more).max(doubled);
        // While the arguments move, both copies exist.
        cx.reserve_items(capacity)?;
        self.0.grow(capacity);
        account::recharge(before, self.bytes());
        Ok(())
    }

    /// Bytes on the account.
    fn bytes(&self) -> usize {
        if self.0.spilled() { self.0.capacity() * size_of::<Value>() } else { 0 }
    }

    /// Frees many arguments in steps, as the items of collections are.
    #[cold]
    #[inline(never)]
    fn discard(&mut self) {
        let bytes = self.bytes();
        drop_children(take(&mut self.0).into_vec(), bytes);
    }
}

impl Store {
    /// [`Meter::reserve`](crate::memory::Meter::reserve) for a vector of `items` values.
    ///
    /// # Errors
    /// `memory_exceeded`.
    pub fn reserve_items(&mut self, items: usize) -> Result<()> {
        self.reserve(items.saturating_mul(size_of::<Value>()))
    }

    /// Arguments for a call; each costs a unit of fuel.
    ///
    /// # Errors
    /// Fuel and memory.
    #[inline]
    pub fn arguments(&mut self, items: impl Iterator<Item = Value>) -> Result<Arguments> {
        let mut arguments = Arguments::new();
        arguments.extend(self, items)?;
        Ok(arguments)
    }
}

impl Deref for Arguments {
    type Target = [Value];

    #[inline]
    fn deref(&self) -> &[Value] {
        &self.0
    }
}

impl DerefMut for Arguments {
    #[inline]
    fn deref_mut(&mut self) -> &mut [Value] {
        &mut self.0
    }
}

impl Drop for Arguments {
    #[inline]
    fn drop(&mut self) {
        if self.0.spilled() {
            self.discard();
        }
    }
}

impl IntoIterator for Arguments {
    type Item = Value;
    type IntoIter = IntoIter;

    #[inline]
    fn into_iter(self) -> IntoIter {
        IntoIter { arguments: self, next: 0 }
    }
}

/// An iterator over arguments. Their memory is on the account until the last one is taken.
pub struct IntoIter {
    arguments: Arguments,
    next: usize,
}

impl Iterator for IntoIter {
    type Item = Value;

    #[inline]
    fn next(&mut self) -> Option<Value> {
        let item = self.arguments.get_mut(self.next)?;
        self.next += 1;
        Some(take(item))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.arguments.len() - self.next;
        (left, Some(left))
    }
}

impl ExactSizeIterator for IntoIter {}
impl FusedIterator for IntoIter {}
