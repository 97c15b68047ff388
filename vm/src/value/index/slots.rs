//! The open-addressing hash table behind sets, maps and the symbol table: finds the rows (positions) of entries with a
//! given hash, in a bounded number of probes even if many hashes collide. No search probes more than [`PROBES`] slots;
//! an entry that would need more is refused as flooding.
//!
//! Made for this purpose, since the cost of a search must be the same on every platform (tables that probe groups of
//! slots depend on the processor), and since it must report flooding.

use super::{Entry, Flooded, Pace};
use crate::memory::STEP;

/// Most slots that a search probes. In a table filled up to [`room_of`], all but one search in 10^13 find a free slot
/// among the first 64, unless the hashes were chosen.
pub(super) const PROBES: usize = 64;

/// A free slot, which ends a search. The low half of a used slot is the row, counted from 1.
const EMPTY: u64 = 0;

/// The entry was removed; searches continue behind it.
const REMOVED: u64 = 1 << 32;

/// Entries by their hashes.
#[derive(Debug)]
pub(crate) struct Slots {
    /// A power of two.
    slots: Vec<u64>,
    /// Number of slots that are not [`EMPTY`].
    used: usize,
    /// Number of slots with an entry.
    len: usize,
}

/// Number of slots for this many entries.
fn size_for(rows: usize) -> usize {
    (rows * 8 / 5 + 1).next_power_of_two().max(8)
}

/// Number of entries that fit this many slots.
fn room_of(size: usize) -> usize {
    size * 5 / 8
}

fn is_entry(slot: u64) -> bool {
    slot as u32 != 0
}

fn pack(entry: Entry) -> u64 {
    entry.0 + 1
}

fn unpack(slot: u64) -> Entry {
    Entry(slot - 1)
}

/// An iterator over the slots of a search: the nth slot is n positions behind the one before.
struct Probe<'s> {
    slots: &'s [u64],
    at: usize,
    step: usize,
}

impl Iterator for Probe<'_> {
    /// A slot's index and content.
    type Item = (usize, u64);

    #[inline]
    fn next(&mut self) -> Option<(usize, u64)> {
        if self.step == PROBES {
            return None;
        }
        let at = self.at & (self.slots.len() - 1);
        self.step += 1;
        self.at = at + self.step;
        Some((at, self.slots[at]))
    }
}

/// An iterator over the rows of one hash.
pub(crate) struct Candidates<'s> {
    hash: u32,
    probe: Probe<'s>,
}

impl Iterator for Candidates<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        loop {
            let (_, slot) = self.probe.next()?;
            if (slot >> 32) as u32 == self.hash && is_entry(slot) {
                return Some(unpack(slot).row());
            }
            if slot == EMPTY {
                return None;
            }
        }
    }
}

/// Polls after a whole step.
fn step<C: Pace<E>, E>(cx: &mut C, slots: usize) -> Result<(), E> {
    if slots == STEP { cx.poll() } else { Ok(()) }
}

impl Slots {
    pub(super) fn with_room(rows: usize) -> Slots {
        Slots { slots: vec![EMPTY; size_for(rows)], used: 0, len: 0 }
    }

    /// The slots of a search, in probing order.
    #[inline]
    fn probe(&self, hash: u32) -> Probe<'_> {
        Probe { slots: &self.slots, at: hash as usize, step: 0 }
    }

    /// The rows of this hash.
    #[inline]
    pub(crate) fn candidates(&self, hash: u32) -> Candidates<'_> {
        Candidates { hash, probe: self.probe(hash) }
    }

    /// Adds an entry. If there is no slot for it, only the size of the table may have changed.
    ///
    /// # Errors
    /// Those of the pace.
    #[inline]
    pub(super) fn insert<C: Pace<E>, E>(
        &mut self,
        cx: &mut C,
        entry: Entry,
    ) -> Result<Result<(), Flooded>, E> {
        if self.used >= room_of(self.slots.len())
            && self.rebuild(cx, size_for(self.len + self.len / 2))?.is_err()
        {
            return Ok(Err(Flooded));
        }
        Ok(self.put(pack(entry)))
    }

    #[inline]
    fn put(&mut self, slot: u64) -> Result<(), Flooded> {
        let free = self.probe((slot >> 32) as u32).find(|&(_, slot)| !is_entry(slot));
        let (at, before) = free.ok_or(Flooded)?;
        self.used += usize::from(before == EMPTY);
        self.len += 1;
        self.slots[at] = slot;
        Ok(())
    }

    /// Moves the entries into a table of this size, in their current order.
    #[cold]
    #[inline(never)]
    fn rebuild<C: Pace<E>, E>(&mut self, cx: &mut C, size: usize) -> Result<Result<(), Flooded>, E> {
        let mut rebuilt = Slots { slots: vec![EMPTY; size], used: 0, len: 0 };
        for part in self.slots.chunks(STEP) {
            for &slot in part.iter().filter(|&&slot| is_entry(slot)) {
                if rebuilt.put(slot).is_err() {
                    return Ok(Err(Flooded));
                }
            }
            step(cx, part.len())?;
        }
        *self = rebuilt;
        Ok(Ok(()))
    }

    /// A table with the same entries in the same slots.
    ///
    /// # Errors
    /// Those of the pace.
    pub(super) fn copy<C: Pace<E>, E>(&self, cx: &mut C) -> Result<Slots, E> {
        let mut slots = Vec::with_capacity(self.slots.len());
        for part in self.slots.chunks(STEP) {
            slots.extend_from_slice(part);
            step(cx, part.len())?;
        }
        Ok(Slots { slots, used: self.used, len: self.len })
    }

    fn position(&self, entry: Entry) -> Option<usize> {
        let sought = pack(entry);
        self.probe(entry.hash()).find(|&(_, slot)| slot == sought).map(|(at, _)| at)
    }

    pub(super) fn remove(&mut self, entry: Entry) {
        if let Some(at) = self.position(entry) {
            self.slots[at] = REMOVED;
            self.len -= 1;
        }
    }

    pub(super) fn rename(&mut self, entry: Entry, row: u32) {
        if let Some(at) = self.position(entry) {
            self.slots[at] = pack(Entry::new(entry.hash(), row));
        }
    }

    /// Makes the table smaller when it is much larger than `rows` need.
    pub(super) fn shrink<C: Pace<E>, E>(&mut self, cx: &mut C, rows: usize) {
        if self.room() > 4 * rows {
            // The entries of the larger table may flood a smaller one; then the larger one stays. It also stays if
            // the change must end, which the next poll finds as well.
            let _ = self.rebuild(cx, size_for(2 * rows));
        }
    }

    /// Number of entries that fit before it grows.
    pub(super) fn room(&self) -> usize {
        room_of(self.slots.len())
    }
}
