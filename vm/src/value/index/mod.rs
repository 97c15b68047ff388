//! A hash index, which finds the row of a key in sets, maps and the symbol table, in few steps even if many hashes
//! collide.
//!
//! Hashes are the same in every process, so an attacker can compute them and make keys that collide. Therefore no
//! search probes more than [`slots::PROBES`] slots. An index that would need more is *flooded* and becomes a sorted
//! list, which is searched by hash, and among equal hashes by the order of keys. Which of the two it is depends only
//! on the hashes that were added and removed.
//!
//! The index holds neither keys nor computes hashes. Its owner compares a row with the sought key, and pays for that.

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

/// Lets a long change of an index check deadline and cancellation.
pub(crate) trait Pace<E> {
    /// Checks.
    ///
    /// # Errors
    /// The change must end.
    fn poll(&mut self) -> Result<(), E>;
}

impl Pace<Box<Fault>> for Store {
    fn poll(&mut self) -> Result<(), Box<Fault>> {
        self.fuel.poll()
    }
}

/// Never ends a change.
impl Pace<Infallible> for () {
    fn poll(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

/// The rows of keys, by hash.
#[derive(Debug)]
pub(crate) enum Index {
    /// An open-addressing table.
    Hashed(Slots),
    /// The form of a flooded table.
    Sorted(Sorted),
}

/// The index has no slot for a row within its bounds.
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

    /// An index of entries sorted by hash and then by the order of their keys.
    pub(crate) fn sorted(entries: &[Entry]) -> Index {
        Index::Sorted(Sorted::from_entries(entries))
    }

    /// The row of this hash for which `is_it` holds. A sorted index uses `order` instead, which compares a row with
    /// the sought key.
    ///
    /// # Errors
    /// Those of comparing.
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

    /// Adds a row with a new key. `order` as in [`Index::find`].
    ///
    /// # Errors
    /// Those of comparing; the index is unchanged then.
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

    /// Removes the entry `gone`, and gives the row `moved` of another entry a new number. `order` compares a row with
    /// the key of `gone`, `order_moved` with the key of the other entry.
    ///
    /// # Errors
    /// Those of comparing; the index is unchanged then.
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
                let position = sorted.position(cx, gone.hash(), order)?;
                if let Some((moved, to)) = moved {
                    let other = sorted.position(cx, moved.hash(), order_moved)?;
                    sorted.set(other, Entry::new(moved.hash(), to));
                }
                sorted.remove(position);
            }
        }
        Ok(())
    }

    /// Releases room that so few rows do not need.
    pub(crate) fn shrink<C: Pace<E>, E>(&mut self, cx: &mut C, rows: usize) {
        if let Index::Hashed(slots) = self {
            slots.shrink(cx, rows);
        }
    }

    /// An index of the same rows.
    ///
    /// # Errors
    /// Those of the pace.
    pub(crate) fn copy<C: Pace<E>, E>(&self, cx: &mut C) -> Result<Index, E> {
        Ok(match self {
            Index::Hashed(slots) => Index::Hashed(slots.copy(cx)?),
            Index::Sorted(sorted) => Index::Sorted(sorted.copy(cx)?),
        })
    }

    /// Number of rows that fit before it grows.
    #[cfg(test)]
    pub(crate) fn room(&self) -> usize {
        match self {
            Index::Hashed(slots) => slots.room(),
            Index::Sorted(sorted) => sorted.len(),
        }
    }
}
