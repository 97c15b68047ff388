//! Allocates ranges of rows in the function table, one range for each loaded program, and reuses the ranges of unloaded
//! ones.
//!
//! The next allocation depends only on the rows in use, not on history: after a rollback it is the same as before.

use std::ops::Range;

/// The free ranges of a table; its last row is in use. Sorted; no two ranges are adjacent.
#[derive(Default)]
pub(super) struct FreeRanges(Vec<Range<u32>>);

impl FreeRanges {
    /// The start of a free range of `rows` rows, in a table of this length.
    pub(super) fn find(&self, rows: usize, length: usize) -> u32 {
        let fits = self.0.iter().find(|free| free.len() >= rows);
        fits.map_or(length as u32, |free| free.start)
    }

    /// Allocates rows that [`FreeRanges::find`] has found.
    pub(super) fn take(&mut self, rows: Range<u32>) {
        let at = self.0.partition_point(|free| free.start < rows.start);
        match self.0.get_mut(at) {
            Some(free) if free.start == rows.start && free.end == rows.end => drop(self.0.remove(at)),
            Some(free) if free.start == rows.start => free.start = rows.end,
            // At the end of the table.
            _ => {}
        }
    }

    /// Frees rows. Gives the new length of a table that had this length.
    pub(super) fn give_back(&mut self, mut rows: Range<u32>, length: usize) -> usize {
        let at = self.0.partition_point(|free| free.start < rows.start);
        if self.0.get(at).is_some_and(|next| next.start == rows.end) {
            rows.end = self.0.remove(at).end;
        }
        if let Some(before) = at.checked_sub(1)
            && self.0.get(before).is_some_and(|before| before.end == rows.start)
        {
            rows.start = self.0.remove(before).start;
        }
        if rows.end as usize == length {
            return rows.start as usize;
        }
        let at = self.0.partition_point(|free| free.start < rows.start);
        self.0.insert(at, rows);
        length
    }
}

#[cfg(test)]
mod tests {
    use super::FreeRanges;

    /// A table of who has which row.
    #[derive(Default)]
    struct Table {
        rows: Vec<Option<u32>>,
        free: FreeRanges,
    }

    impl Table {
        fn add(&mut self, who: u32, count: usize) -> u32 {
            let first = self.free.find(count, self.rows.len());
            let rows = first..first + count as u32;
            self.free.take(rows.clone());
            self.rows.resize(self.rows.len().max(rows.end as usize), None);
            for row in rows {
                assert_eq!(self.rows[row as usize].replace(who), None, "row {row} is in use");
            }
            first
        }

        fn remove(&mut self, first: u32, count: usize) {
            let rows = first..first + count as u32;
            self.rows[first as usize..rows.end as usize].fill(None);
            let left = self.free.give_back(rows, self.rows.len());
            self.rows.truncate(left);
        }
    }

    #[test]
    fn rows_are_given_out_once_and_the_table_ends_with_one_in_use() {
        let mut table = Table::default();
        let mut held: Vec<(u32, usize)> = Vec::new();
        let mut random = 7_u64;
        for who in 0..10_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let number = (random >> 33) as usize;
            if !number.is_multiple_of(3) || held.is_empty() {
                let count = 1 + number / 3 % 7;
                held.push((table.add(who, count), count));
            } else {
                let (first, count) = held.swap_remove(number / 3 % held.len());
                table.remove(first, count);
            }
            if held.len() > 40 {
                for (first, count) in held.drain(3..30) {
                    table.remove(first, count);
                }
            }
            let in_use: usize = held.iter().map(|(_, count)| count).sum();
            assert_eq!(table.rows.iter().flatten().count(), in_use);
            assert!(table.rows.last().is_none_or(Option::is_some));
        }
        held.drain(..).for_each(|(first, count)| table.remove(first, count));
        assert!(table.rows.is_empty() && table.free.0.is_empty());
    }

    #[test]
    fn a_rollback_leaves_the_places_that_were_free() {
        let mut table = Table::default();
        let first: Vec<u32> = (0..5).map(|who| table.add(who, 2)).collect();
        table.remove(first[1], 2);
        table.remove(first[3], 2);
        let before = table.free.0.clone();
        let run: Vec<u32> = [1, 2, 4].map(|count| table.add(9, count)).into();
        assert_eq!(run, [2, 6, 10]);
        for (first, count) in run.into_iter().zip([1, 2, 4]).rev() {
            table.remove(first, count);
        }
        assert_eq!((table.free.0, table.rows.len()), (before, 10));
    }
}
