//! From the hash of a key to the row where it stands: the index of sets, maps and the table of names.
//!
//! Everybody can compute the hash of a key, because it is the same in every process, so everybody can make keys
//! that collide. Therefore no search looks at more than [`slots::PROBES`] slots: an index that would need more
//! is *flooded* and becomes a sorted list, searched by hash first and among equal hashes by the order of keys.
//! Which of the two it is depends on the hashes that were added and removed and on nothing else.
//!
//! The index holds neither keys nor hashes of its own making; its owner says how a row compares with what is
//! looked for, and pays for it.

mod slots;
mod sorted;
#[cfg(test)]
mod tests;

use crate::fault::Fault;
use crate::value::Store;
use slots::Slots;
use sorted::Sorted;
use std::cmp::Ordering;
use std::convert::Infallible;

/// Whoever changes an index: a change that takes long looks at deadline and cancellation in between.
pub(crate) trait Pace<E> {
    /// Looks.
    ///
    /// # Errors
    /// It is time to end.
    fn poll(&mut self) -> Result<(), E>;
}

impl Pace<Box<Fault>> for Store {
    fn poll(&mut self) -> Result<(), Box<Fault>> {
        self.fuel.poll()
    }
}

/// Nobody who could be told to end.
impl Pace<Infallible> for () {
    fn poll(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

/// The rows of keys by their hashes.
#[derive(Debug)]
pub(crate) enum Index {
    /// An open-addressing table.
    Hashed(Slots),
    /// What a table becomes that was flooded.
    Sorted(Sorted),
}

/// An index of this kind has no place for a row within its bounds.
#[derive(Debug)]
pub(crate) struct Flooded;

/// A hash and a row in one number, which sorts by hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry(u64);

impl Entry {
    pub(crate) fn new(hash: u32, row: u32) -> Entry {
        Entry(u64::from(hash) << 32 | u64::from(row))
    }

    pub(crate) fn hash(self) -> u32 {
        (self.0 >> 32) as u32
    }

    pub(crate) fn row(self) -> usize {
        self.0 as u32 as usize
    }
}

impl Index {
    /// An empty index with room for this many rows.
    pub(crate) fn with_room(rows: usize) -> Index {
        Index::Hashed(Slots::with_room(rows))
    }

    /// An index of entries that ascend by hash and then in the order of their keys.
    pub(crate) fn sorted(entries: &[Entry]) -> Index {
        Index::Sorted(Sorted::of(entries))
    }

    /// The row of this hash for which `is_it` holds. A sorted index asks `order` instead: how a row compares with
    /// what is looked for.
    ///
    /// # Errors
    /// What comparing fails with.
    #[inline]
    pub(crate) fn find<C, E>(
        &self,
        cx: &mut C,
        hash: u32,
        mut is_it: impl FnMut(&mut C, usize) -> Result<bool, E>,
        order: impl FnMut(&mut C, usize) -> Result<Ordering, E>,
    ) -> Result<Option<usize>, E> {
        match self {
            Index::Hashed(slots) => {
                for row in slots.candidates(hash) {
                    if is_it(cx, row)? {
                        return Ok(Some(row));
                    }
                }
                Ok(None)
            }
            Index::Sorted(sorted) => sorted.find(cx, hash, order),
        }
    }

    /// Adds a row whose key is not there. `order` as in [`Index::find`].
    ///
    /// # Errors
    /// What comparing fails with; nothing has changed then.
    #[inline]
    pub(crate) fn insert<C: Pace<E>, E>(
        &mut self,
        cx: &mut C,
        entry: Entry,
        order: impl FnMut(&mut C, usize) -> Result<Ordering, E>,
    ) -> Result<Result<(), Flooded>, E> {
        match self {
            Index::Hashed(slots) => slots.insert(cx, entry),
            Index::Sorted(sorted) => sorted.insert(cx, entry, order).map(Ok),
        }
    }

    /// Removes the entry `gone`, and gives the row `moved` of another one a new number. `order` says how a row
    /// compares with `gone`, `order_moved` with the other.
    ///
    /// # Errors
    /// What comparing fails with; nothing has changed then.
    pub(crate) fn remove<C, E>(
        &mut self,
        cx: &mut C,
        gone: Entry,
        moved: Option<(Entry, u32)>,
        order: impl FnMut(&mut C, usize) -> Result<Ordering, E>,
        order_moved: impl FnMut(&mut C, usize) -> Result<Ordering, E>,
    ) -> Result<(), E> {
        match self {
            Index::Hashed(slots) => {
                slots.remove(gone);
                if let Some((moved, to)) = moved {
                    slots.rename(moved, to);
                }
            }
            Index::Sorted(sorted) => {
                let place = sorted.place(cx, gone.hash(), order)?;
                if let Some((moved, to)) = moved {
                    let other = sorted.place(cx, moved.hash(), order_moved)?;
                    sorted.set(other, Entry::new(moved.hash(), to));
                }
                sorted.remove(place);
            }
        }
        Ok(())
    }

    /// Gives back room that so few rows do not need.
    pub(crate) fn shrink<C: Pace<E>, E>(&mut self, cx: &mut C, rows: usize) {
        if let Index::Hashed(slots) = self {
            slots.shrink(cx, rows);
        }
    }

    /// An index of the same rows.
    ///
    /// # Errors
    /// What the pace fails with.
    pub(crate) fn copy<C: Pace<E>, E>(&self, cx: &mut C) -> Result<Index, E> {
        Ok(match self {
            Index::Hashed(slots) => Index::Hashed(slots.copy(cx)?),
            Index::Sorted(sorted) => Index::Sorted(sorted.copy(cx)?),
        })
    }

    /// Rows that fit before it grows.
    #[cfg(test)]
    pub(crate) fn room(&self) -> usize {
        match self {
            Index::Hashed(slots) => slots.room(),
            Index::Sorted(sorted) => sorted.len(),
        }
    }
}
