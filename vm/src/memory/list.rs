//! A list for builtins that grows only as far as the memory limit of the program allows, and counts against that limit
//! while it exists.

use super::account;
use super::copy::STEP;
use super::meter::Meter;
use crate::fault::Result;
use std::mem::take;
use std::ops::{Deref, DerefMut};

/// An element type of lists: its drop is cheap even for many elements, or it is freed in steps.
pub trait Item: Sized {
    /// Frees the items of a list that is dropped.
    fn discard(dropped: Dropped<Self>);
}

/// The items of a dropped list.
pub struct Dropped<T> {
    pub(crate) items: Vec<T>,
    /// On the account until the items are gone.
    pub(crate) bytes: usize,
}

impl<T> Dropped<T> {
    /// Frees items that own nothing, or that are few.
    #[inline]
    pub fn at_once(self) {
        drop(self.items);
        account::release(self.bytes);
    }
}

/// Implements [`Item`] with a method of [`Dropped`].
macro_rules! items {
    ($free:ident: $($item:ty),+ $(,)?) => {$(
        impl $crate::memory::Item for $item {
            #[inline]
            fn discard(dropped: $crate::memory::Dropped<Self>) {
                dropped.$free();
            }
        }
    )+};
}

pub(crate) use items;

items!(at_once: u8, u32, usize);

/// A growing list of values, or of an operation's own stack.
///
/// Invariant: its capacity is charged from the moment it is allocated, and was within the limit then.
pub struct List<T: Item>(Vec<T>);

/// Room of a list with its first item.
const FIRST: usize = 4;

impl<T: Item> Default for List<T> {
    fn default() -> List<T> {
        List(Vec::new())
    }
}

impl<T: Item> List<T> {
    /// A list of a few items.
    pub fn from_array<const N: usize>(items: [T; N]) -> List<T> {
        List::charged(Vec::from(items))
    }

    /// An empty list with room for `capacity` items.
    ///
    /// # Errors
    /// `memory_exceeded`.
    pub fn with_capacity(cx: &mut Meter, capacity: usize) -> Result<List<T>> {
        cx.reserve(capacity.saturating_mul(size_of::<T>()))?;
        Ok(List::charged(Vec::with_capacity(capacity)))
    }

    /// A list of items that are not on the account yet.
    pub(crate) fn charged(items: Vec<T>) -> List<T> {
        account::charge(items.capacity() * size_of::<T>());
        List(items)
    }

    /// Adds items that were paid for, as far as the list was made with room for them.
    ///
    /// # Errors
    /// Deadline and cancellation.
    pub(crate) fn fill(&mut self, cx: &mut Meter, items: impl Iterator<Item = T>) -> Result<()> {
        let mut items = items.take(self.0.capacity() - self.0.len());
        loop {
            let full = self.0.len() + STEP;
            self.0.extend(items.by_ref().take(STEP));
            if self.0.len() < full {
                return Ok(());
            }
            cx.fuel.poll()?;
        }
    }

    /// Adds copies of shared items; the list was made with room for them.
    ///
    /// # Errors
    /// Deadline and cancellation.
    pub(crate) fn fill_copies(&mut self, cx: &mut Meter, items: &[T]) -> Result<()>
    where
        T: Clone,
    {
        debug_assert!(items.len() <= self.0.capacity() - self.0.len(), "there is room");
        cx.copy_items(&mut self.0, items)
    }

    /// Adds an item.
    ///
    /// # Errors
    /// `memory_exceeded`.
    #[inline]
    pub fn push(&mut self, cx: &mut Meter, item: T) -> Result<()> {
        if self.0.len() == self.0.capacity() {
            self.grow(cx, 1)?;
        }
        self.0.push(item);
        Ok(())
    }

    /// Makes room for `more` items.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, cx: &mut Meter, more: usize) -> Result<()> {
        let before = self.0.capacity();
        let capacity = self.0.len().saturating_add(more).max(before.saturating_mul(2)).max(FIRST);
        // While the items move, both copies exist.
        cx.reserve(capacity.saturating_mul(size_of::<T>()))?;
        self.0.reserve_exact(capacity - self.0.len());
        account::recharge(before * size_of::<T>(), self.0.capacity() * size_of::<T>());
        Ok(())
    }

    /// Adds items, each of which costs a unit of fuel.
    ///
    /// # Errors
    /// Fuel and memory.
    pub fn extend(&mut self, cx: &mut Meter, items: impl IntoIterator<Item = T>) -> Result<()> {
        let items = items.into_iter();
        let room = self.0.capacity() - self.0.len();
        let expected = items.size_hint().0;
        if expected > room {
            self.grow(cx, expected)?;
        }
        for item in items {
            cx.tick(1)?;
            self.push(cx, item)?;
        }
        Ok(())
    }

    /// Makes exactly enough room for `more` items.
    ///
    /// # Errors
    /// `memory_exceeded`.
    #[inline]
    pub fn make_room(&mut self, cx: &mut Meter, more: usize) -> Result<()> {
        if more > self.0.capacity() - self.0.len() { self.grow(cx, more) } else { Ok(()) }
    }

    /// Adds items that were paid for elsewhere.
    ///
    /// # Errors
    /// `memory_exceeded`.
    #[inline]
    pub fn append(&mut self, cx: &mut Meter, items: &[T]) -> Result<()>
    where
        T: Copy,
    {
        self.make_room(cx, items.len())?;
        self.0.extend_from_slice(items);
        Ok(())
    }

    /// True if the next item needs no memory.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.0.len() < self.0.capacity()
    }

    /// Adds an item; the list must [have room](List::has_room).
    #[inline(always)]
    pub(crate) fn push_within(&mut self, item: T) {
        debug_assert!(self.has_room(), "room was made before");
        self.0.push(item);
    }

    /// The items, off the account: for a node that charges for them.
    pub(crate) fn into_items(mut self) -> Vec<T> {
        let items = take(&mut self.0);
        account::release(items.capacity() * size_of::<T>());
        items
    }

    /// Takes the last item out.
    pub fn pop(&mut self) -> Option<T> {
        self.0.pop()
    }

    /// Leaves the first `len` items.
    pub fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }
}

impl<T: Item> Deref for List<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: Item> DerefMut for List<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T: Item> IntoIterator for List<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.into_items().into_iter()
    }
}

impl<T: Item> Drop for List<T> {
    #[inline]
    fn drop(&mut self) {
        if self.0.capacity() > 0 {
            let bytes = self.0.capacity() * size_of::<T>();
            T::discard(Dropped { items: take(&mut self.0), bytes });
        }
    }
}
