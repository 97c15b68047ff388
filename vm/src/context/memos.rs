//! Caches the results of memoized functions, and commits or discards those that a run has added.

use super::Context;
use crate::fault::Result;
use crate::memory::{Fuel, Interrupt, account};
use crate::value::Value;
use crate::value::map::MapNode;
use std::collections::BTreeMap;
use std::mem::{replace, take};
use std::rc::Rc;

/// The tables of an isolate, from the vector of arguments to the result. Additions of a run to older tables are held
/// separately until the run is committed.
#[derive(Default)]
pub struct Memos {
    tables: BTreeMap<usize, Rc<MapNode>>,
    /// The number of the next table; numbers are not reused.
    next: usize,
    /// Tables with lower numbers belong to earlier runs.
    kept: usize,
    /// Additions of this run to those, by table number.
    added: BTreeMap<usize, Rc<MapNode>>,
}

/// Logical bytes of a table in addition to its map.
const TABLE_BYTES: usize = 16;

impl Memos {
    /// A new table, and its number.
    ///
    /// # Errors
    /// Memory.
    pub fn add(cx: &mut Context) -> Result<i64> {
        cx.reserve(TABLE_BYTES)?;
        account::charge(TABLE_BYTES);
        let number = cx.memos.next;
        cx.memos.next += 1;
        cx.memos.tables.insert(number, MapNode::empty());
        Ok(i64::try_from(number).unwrap_or(i64::MAX))
    }

    /// True when there are memoized functions.
    pub(crate) fn exist(&self) -> bool {
        self.next > 0
    }

    /// The result for a vector of arguments, if it is known.
    ///
    /// # Errors
    /// Comparing arguments pays fuel.
    pub(crate) fn find(cx: &mut Context, table: usize, key: &Value) -> Result<Option<Value>> {
        let layers = [cx.memos.tables.get(&table).cloned(), cx.memos.added.get(&table).cloned()];
        for map in layers.into_iter().flatten() {
            if let Some(row) = map.find(cx, key)? {
                return Ok(Some(map.value(row).clone()));
            }
        }
        Ok(None)
    }

    /// Stores a result.
    ///
    /// # Errors
    /// Fuel and memory.
    pub(crate) fn insert(cx: &mut Context, table: usize, key: Value, result: Value) -> Result<()> {
        // Moved out and back in, so that the map is unshared and changes in place.
        let is_kept = table < cx.memos.kept;
        let map = match is_kept {
            true => cx.memos.added.remove(&table),
            false => cx.memos.tables.get_mut(&table).map(|slot| replace(slot, MapNode::empty())),
        };
        let map = MapNode::insert(map.unwrap_or_else(MapNode::empty), cx, key, result)?;
        if is_kept {
            cx.memos.added.insert(table, map);
        } else if let Some(slot) = cx.memos.tables.get_mut(&table) {
            *slot = map;
        }
        Ok(())
    }

    /// Keeps the additions of the run.
    pub(crate) fn commit(cx: &mut Context) {
        cx.memos.kept = cx.memos.next;
        if cx.memos.added.is_empty() {
            return;
        }
        // The run has paid for its results and is over; their size was checked against its limits.
        let fuel = replace(&mut cx.fuel, Fuel::new(u64::MAX, Interrupt::default()));
        account::unlimited(|| {
            for (table, added) in take(&mut cx.memos.added) {
                let Some(slot) = cx.memos.tables.get_mut(&table) else { continue };
                let old = replace(slot, MapNode::empty());
                let grown = added.entries().try_fold(old, |map, entry| {
                    MapNode::insert(map, cx, entry.key.clone(), entry.value.clone())
                });
                // Results that cannot be kept are computed again.
                if let (Ok(map), Some(slot)) = (grown, cx.memos.tables.get_mut(&table)) {
                    *slot = map;
                }
            }
        });
        cx.fuel = fuel;
    }

    /// Discards the additions of the run.
    pub(crate) fn roll_back(&mut self) {
        if !self.added.is_empty() {
            self.added.clear();
        }
        if self.next > self.kept {
            let gone = self.tables.split_off(&self.kept);
            account::release(gone.len() * TABLE_BYTES);
            self.next = self.kept;
        }
    }

    /// The maps of a table, from vectors of arguments to results.
    pub(crate) fn maps(&self, table: usize) -> impl Iterator<Item = &Rc<MapNode>> {
        self.tables.get(&table).into_iter().chain(self.added.get(&table))
    }

    /// Removes the tables of unreachable functions. Only between two runs.
    pub(crate) fn sweep(&mut self, is_reached: impl Fn(usize) -> bool) {
        let before = self.tables.len();
        self.tables.retain(|&table, _| is_reached(table));
        account::release((before - self.tables.len()) * TABLE_BYTES);
    }
}

impl Drop for Memos {
    fn drop(&mut self) {
        account::release(self.tables.len() * TABLE_BYTES);
    }
}
