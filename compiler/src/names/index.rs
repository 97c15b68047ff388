//! Implements the hash table by which the compiler finds names and constants that it has already stored, so that equal
//! ones are stored only once. The table maps hashes to positions in a list, which is stored elsewhere.
//!
//! The table uses open addressing. The tables of one compilation are small and live as long as it: they need one
//! allocation without alignment or control bytes, and no rehashing of texts on growth.

/// A hash and a row, which is counted from 1: 0 marks a free slot.
type Bucket = (u32, u32);

/// Rows by their hashes.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// A power of two, or empty.
    buckets: Vec<Bucket>,
    used: usize,
}

impl Index {
    /// A table with room for this many rows.
    pub(crate) fn with_room(rows: usize) -> Index {
        let buckets = (rows + rows / 2 + 1).next_power_of_two();
        Index { buckets: vec![(0, 0); buckets], used: 0 }
    }

    /// The row of this hash for which `is_it` holds.
    pub(crate) fn find(&self, hash: u64, mut is_it: impl FnMut(usize) -> bool) -> Option<usize> {
        let hash = hash as u32;
        let mask = self.buckets.len().checked_sub(1)?;
        let mut at = hash as usize & mask;
        // There is always a free slot, so the search ends.
        loop {
            let &(known, row) = self.buckets.get(at)?;
            let row = (row as usize).checked_sub(1)?;
            if known == hash && is_it(row) {
                return Some(row);
            }
            at = (at + 1) & mask;
        }
    }

    /// The row of this hash for which `is_it` holds; if there is none, `new` is added in the same search.
    #[inline]
    pub(crate) fn find_or_insert(
        &mut self,
        hash: u64,
        new: usize,
        mut is_it: impl FnMut(usize) -> bool,
    ) -> Option<usize> {
        // At least a quarter stays free, so the search ends.
        if self.used * 4 >= self.buckets.len() * 3 {
            self.grow();
        }
        let hash = hash as u32;
        let mask = self.buckets.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let bucket = &mut self.buckets[at];
            let (known, row) = *bucket;
            if row == 0 {
                *bucket = (hash, new as u32 + 1);
                self.used += 1;
                return None;
            }
            if known == hash && is_it(row as usize - 1) {
                return Some(row as usize - 1);
            }
            at = (at + 1) & mask;
        }
    }

    #[cold]
    fn grow(&mut self) {
        let grown = vec![(0, 0); (self.buckets.len() * 2).max(8)];
        let mask = grown.len() - 1;
        for (hash, row) in
            std::mem::replace(&mut self.buckets, grown).into_iter().filter(|(_, row)| *row != 0)
        {
            let mut at = hash as usize & mask;
            while self.buckets[at].1 != 0 {
                at = (at + 1) & mask;
            }
            self.buckets[at] = (hash, row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Index;

    #[test]
    fn finds_what_was_inserted() {
        for room in [0, 3, 100] {
            let mut index = if room == 0 { Index::default() } else { Index::with_room(room) };
            // Hashes that collide, in their low bits or altogether.
            let hash = |row: usize| (row as u64 % 7) << 3;
            for row in 0..200 {
                assert_eq!(index.find(hash(row), |found| found == row), None);
                assert_eq!(index.find_or_insert(hash(row), row, |found| found == row), None);
                assert_eq!(index.find_or_insert(hash(row), 1_000, |found| found == row), Some(row));
            }
            for row in 0..200 {
                assert_eq!(index.find(hash(row), |found| found == row), Some(row));
            }
            assert_eq!(index.find(1 << 40, |_| true), Some(0), "only the low half is kept");
            assert_eq!(index.find(1, |_| true), None);
        }
    }
}
