//! An open-addressing table of which no search looks at more than [`PROBES`] slots.
//!
//! Our own one, because what a search costs must be the same on every platform (tables that look at groups of
//! slots look at as many as the processor likes) and because it must say when it is flooded.

use super::{Entry, Flooded, Pace};
use crate::memory::STEP;

/// Slots that a search looks at, at most. A table as full as [`room_of`] allows has a free slot among the first 64 of
/// a search but for one time in 10^13, unless the hashes were chosen.
pub(super) const PROBES: usize = 64;

/// No entry, and none behind it. The low half of a slot is the row, counted from 1.
const EMPTY: u64 = 0;

/// The entry was removed; searches go on behind it.
const REMOVED: u64 = 1 << 32;

/// Entries by their hashes.
#[derive(Debug)]
pub(crate) struct Slots {
    /// A power of two.
    slots: Vec<u64>,
    /// Slots that are not [`EMPTY`].
    used: usize,
    /// Slots that hold an entry.
    len: usize,
}

/// Slots for so many entries.
fn size_for(rows: usize) -> usize {
    (rows * 8 / 5 + 1).next_power_of_two().max(8)
}

/// Entries that fit so many slots.
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

/// A search: the nth slot is n places behind the one before.
struct Probe<'s> {
    slots: &'s [u64],
    at: usize,
    step: usize,
}

impl Iterator for Probe<'_> {
    /// A place, and what is there.
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

/// The rows of one hash.
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

/// A poll after a whole step.
fn step<C: Pace<E>, E>(cx: &mut C, slots: usize) -> Result<(), E> {
    if slots == STEP { cx.poll() } else { Ok(()) }
}

impl Slots {
    pub(super) fn with_room(rows: usize) -> Slots {
        Slots { slots: vec![EMPTY; size_for(rows)], used: 0, len: 0 }
    }

    /// The slots of a search, in the order it looks at them.
    #[inline]
    fn probe(&self, hash: u32) -> Probe<'_> {
        Probe { slots: &self.slots, at: hash as usize, step: 0 }
    }

    /// The rows of this hash.
    #[inline]
    pub(crate) fn candidates(&self, hash: u32) -> Candidates<'_> {
        Candidates { hash, probe: self.probe(hash) }
    }

    /// Adds an entry. When there is no place for it, nothing has changed but the size of the table.
    ///
    /// # Errors
    /// What the pace fails with.
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

    /// The entries in a table of this size, in the order they stand in.
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

    /// A table with the same entries in the same places.
    ///
    /// # Errors
    /// What the pace fails with.
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
            // A smaller table may be flooded by what the larger one holds: then that stays. It stays as well when it
            // is time to end, which the next poll finds, too.
            let _ = self.rebuild(cx, size_for(2 * rows));
        }
    }

    /// Entries that fit before it grows.
    pub(super) fn room(&self) -> usize {
        room_of(self.slots.len())
    }
}
