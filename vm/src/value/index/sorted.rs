//! A sorted list in chunks, which replaces a hash table that has too many collisions, so that searches stay
//! logarithmic.
//!
//! Entries are sorted by hash, and those of one hash by the order of their keys, so a search compares keys only if
//! hashes are equal, and no more than the logarithm of their number.

use super::{Entry, Pace};
use crate::memory::STEP;
use std::cmp::Ordering;

/// Most entries of a chunk; an insertion moves up to as many.
const MOST: usize = 512;

/// A chunk with fewer entries is joined with its neighbour.
const FEW: usize = MOST / 8;

/// Entries in order.
#[derive(Debug)]
pub(crate) struct Sorted {
    /// None is empty.
    chunks: Vec<Vec<Entry>>,
}

/// The position of an entry, or where it would be inserted.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryPosition {
    chunk: usize,
    at: usize,
    is_there: bool,
}

/// The first position in `0..len` that is not before the sought one, and whether it is that one.
fn first_not_less<E>(
    len: usize,
    mut order: impl FnMut(usize) -> Result<Ordering, E>,
) -> Result<(usize, bool), E> {
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = low.midpoint(high);
        match order(middle)? {
            Ordering::Less => low = middle + 1,
            Ordering::Equal => return Ok((middle, true)),
            Ordering::Greater => high = middle,
        }
    }
    Ok((low, false))
}

impl Sorted {
    pub(super) fn from_entries(entries: &[Entry]) -> Sorted {
        Sorted { chunks: entries.chunks(MOST / 2).map(<[Entry]>::to_vec).collect() }
    }

    /// The position of the entry with this hash and with the key that `order` compares rows with.
    ///
    /// # Errors
    /// Those of comparing.
    pub(super) fn position<C, E>(
        &self,
        cx: &mut C,
        hash: u32,
        mut order: impl FnMut(&mut C, usize) -> Result<Ordering, E>,
    ) -> Result<EntryPosition, E> {
        let mut compare = |entry: Entry| match entry.hash().cmp(&hash) {
            Ordering::Equal => order(cx, entry.row()),
            decided => Ok(decided),
        };
        // The chunk with the first last entry that is not before it; if there is none, the last chunk.
        let (chunk, is_last) = first_not_less(self.chunks.len(), |chunk| match self.chunks[chunk].last() {
            Some(&last) => compare(last),
            None => Ok(Ordering::Less),
        })?;
        let chunk = chunk.min(self.chunks.len().saturating_sub(1));
        let entries = self.chunks.get(chunk).map_or(&[][..], Vec::as_slice);
        if is_last {
            return Ok(EntryPosition { chunk, at: entries.len() - 1, is_there: true });
        }
        let (at, is_there) = first_not_less(entries.len(), |at| compare(entries[at]))?;
        Ok(EntryPosition { chunk, at, is_there })
    }

    /// A list of the same entries.
    ///
    /// # Errors
    /// Those of the pace.
    pub(super) fn copy<C: Pace<E>, E>(&self, cx: &mut C) -> Result<Sorted, E> {
        let mut chunks = Vec::with_capacity(self.chunks.len());
        for part in self.chunks.chunks(STEP / MOST) {
            chunks.extend_from_slice(part);
            cx.poll()?;
        }
        Ok(Sorted { chunks })
    }

    fn entry(&self, position: EntryPosition) -> Option<Entry> {
        self.chunks.get(position.chunk)?.get(position.at).copied().filter(|_| position.is_there)
    }

    /// The row of this hash and of the key that `order` compares rows with.
    ///
    /// # Errors
    /// Those of comparing.
    #[cold]
    #[inline(never)]
    pub(super) fn find<C, E>(
        &self,
        cx: &mut C,
        hash: u32,
        order: impl FnMut(&mut C, usize) -> Result<Ordering, E>,
    ) -> Result<Option<usize>, E> {
        let position = self.position(cx, hash, order)?;
        Ok(self.entry(position).map(Entry::row))
    }

    /// Adds an entry with a new key.
    ///
    /// # Errors
    /// Those of comparing.
    pub(super) fn insert<C, E>(
        &mut self,
        cx: &mut C,
        entry: Entry,
        order: impl FnMut(&mut C, usize) -> Result<Ordering, E>,
    ) -> Result<(), E> {
        let position = self.position(cx, entry.hash(), order)?;
        let Some(chunk) = self.chunks.get_mut(position.chunk) else {
            self.chunks.push(vec![entry]);
            return Ok(());
        };
        chunk.insert(position.at, entry);
        if chunk.len() > MOST {
            let upper = chunk.split_off(MOST / 2);
            self.chunks.insert(position.chunk + 1, upper);
        }
        Ok(())
    }

    pub(super) fn set(&mut self, position: EntryPosition, entry: Entry) {
        if position.is_there {
            self.chunks[position.chunk][position.at] = entry;
        }
    }

    pub(super) fn remove(&mut self, position: EntryPosition) {
        if !position.is_there {
            return;
        }
        let chunk = &mut self.chunks[position.chunk];
        chunk.remove(position.at);
        if chunk.len() < FEW {
            self.join(position.chunk);
        }
    }

    /// Joins a chunk of few entries with the one before it, or the next one with it.
    fn join(&mut self, at: usize) {
        let left = at.saturating_sub(1);
        if self.chunks[at].is_empty() {
            self.chunks.remove(at);
        } else if left + 1 < self.chunks.len()
            && self.chunks[left].len() + self.chunks[left + 1].len() < MOST / 2
        {
            let right = self.chunks.remove(left + 1);
            self.chunks[left].extend(right);
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.chunks.iter().map(Vec::len).sum()
    }

    #[cfg(test)]
    pub(super) fn chunk_count(&self) -> usize {
        self.chunks.len()
    }
}
