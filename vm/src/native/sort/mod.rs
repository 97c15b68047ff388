//! Implements sorting for `sort` and `sort-by`: by the natural order in one step, and by a comparator of the program
//! with a resumable merge sort.
//!
//! The comparator may be any function, so it may suspend or be inconsistent; a merge sort tolerates both. It is
//! stable: on ties the left item goes first.

pub mod keys;

use crate::apply::{apply, is_direct};
use crate::context::Context;
use crate::fault::{Fault, Result};
use crate::memory::List;
use crate::native::Action;
use crate::value::Value;
use crate::value::relation::order::is_short;
use crate::value::relation::sort;
use crate::value::vector::VectorNode;
use std::rc::Rc;

/// Sorts items by the natural order of their keys. Equal items stay in their order, descending too.
///
/// # Errors
/// Fuel, memory.
pub fn by_keys(cx: &mut Context, input: &VectorNode, keys: &[Value], descending: bool) -> Result<Value> {
    in_order(cx, input, descending, |cx, rows| sort::sort_by_key(cx, rows, |&row| &keys[row as usize]))
}

/// Sorts items by the natural order of several keys, `width` for each item.
///
/// # Errors
/// Fuel, memory.
pub fn by_parts(
    cx: &mut Context,
    input: &VectorNode,
    parts: &[Value],
    width: usize,
    descending: bool,
) -> Result<Value> {
    if !parts.iter().all(is_short) {
        let mut keys = List::with_capacity(cx, input.len())?;
        for parts in parts.chunks(width) {
            let key = cx.collect(parts.iter().cloned())?.into_value();
            keys.push(cx, key)?;
        }
        return by_keys(cx, input, &keys, descending);
    }
    in_order(cx, input, descending, |cx, rows| sort::sort_by_parts(cx, rows, parts, width))
}

fn in_order(
    cx: &mut Context,
    input: &VectorNode,
    descending: bool,
    sort: impl FnOnce(&mut Context, &mut [u32]) -> Result<()>,
) -> Result<Value> {
    let mut rows = rows_of(cx, input)?;
    if descending {
        // Stable and descending: reverse the items, sort ascending, reverse the result.
        rows.reverse();
    }
    sort(cx, &mut rows)?;
    if descending {
        rows.reverse();
    }
    picked(cx, input, &rows)
}

/// The row numbers of the items.
fn rows_of(cx: &mut Context, input: &VectorNode) -> Result<List<u32>> {
    if u32::try_from(input.len()).is_err() {
        // No memory limit admits that many items.
        cx.reserve_items(input.len())?;
        return Err(Fault::runtime("too many items to sort"));
    }
    cx.collect(0..input.len() as u32)
}

/// The items in the order of their row numbers.
fn picked(cx: &mut Context, input: &VectorNode, rows: &[u32]) -> Result<Value> {
    let items = cx.collect(rows.iter().map(|&row| input.get(row as usize).unwrap_or_default()))?;
    Ok(items.into_value())
}

/// The machine: merges runs of `width` from `rows` into `merged`.
pub struct Sort {
    comparator: Value,
    input: Rc<VectorNode>,
    /// Keys to compare instead of the items.
    keys: Option<List<Value>>,
    rows: List<u32>,
    merged: List<u32>,
    width: usize,
    /// Start of the pair of runs being merged.
    start: usize,
    left: usize,
    right: usize,
}

impl Sort {
    /// A machine over the items, or over keys, one for each item.
    ///
    /// # Errors
    /// Memory.
    pub fn new(
        cx: &mut Context,
        comparator: Value,
        input: Rc<VectorNode>,
        keys: Option<List<Value>>,
    ) -> Result<Sort> {
        let rows = rows_of(cx, &input)?;
        let merged = List::with_capacity(cx, input.len())?;
        Ok(Sort { comparator, input, keys, rows, merged, width: 1, start: 0, left: 0, right: 1 })
    }

    fn key(&self, row: u32) -> Value {
        match &self.keys {
            Some(keys) => keys[row as usize].clone(),
            None => self.input.get(row as usize).unwrap_or_default(),
        }
    }

    fn middle(&self) -> usize {
        (self.start + self.width).min(self.rows.len())
    }

    fn end(&self) -> usize {
        (self.start + self.width * 2).min(self.rows.len())
    }

    fn take_left(&mut self, cx: &mut Context) -> Result<()> {
        self.left += 1;
        self.merged.push(cx, self.rows[self.left - 1])
    }

    fn take_right(&mut self, cx: &mut Context) -> Result<()> {
        self.right += 1;
        self.merged.push(cx, self.rows[self.right - 1])
    }

    pub(crate) fn resume(&mut self, cx: &mut Context, returned: Option<Value>) -> Result<Action> {
        if let Some(answer) = returned {
            self.accept(cx, answer)?;
        }
        let direct = is_direct(cx, &self.comparator);
        loop {
            if self.width >= self.rows.len() {
                return picked(cx, &self.input, &self.rows).map(Action::Return);
            }
            if self.left < self.middle() && self.right < self.end() {
                let (left, right) = (self.key(self.rows[self.left]), self.key(self.rows[self.right]));
                if !direct {
                    return Ok(Action::Call2(self.comparator.clone(), right, left));
                }
                if cx.fuel.slice < 0 {
                    return Ok(Action::Pause);
                }
                let answer = apply(cx, &self.comparator, &mut [right, left])?;
                self.accept(cx, answer)?;
                continue;
            }
            self.close_pair(cx)?;
        }
    }

    /// Handles the result of (comparator right left): whether the right item goes first.
    fn accept(&mut self, cx: &mut Context, answer: Value) -> Result<()> {
        let right_first = match answer {
            Value::Int(number) => number < 0,
            Value::Float(number) => number < 0.0,
            Value::BigInt(number) => number.is_negative(),
            other => other.is_truthy(),
        };
        if right_first { self.take_right(cx) } else { self.take_left(cx) }
    }

    /// One of the two runs is used up: appends the rest of the other, and starts the next pair.
    fn close_pair(&mut self, cx: &mut Context) -> Result<()> {
        while self.left < self.middle() {
            cx.tick(1)?;
            self.take_left(cx)?;
        }
        while self.right < self.end() {
            cx.tick(1)?;
            self.take_right(cx)?;
        }
        cx.tick(1)?;
        self.start += self.width * 2;
        if self.start >= self.rows.len() {
            std::mem::swap(&mut self.rows, &mut self.merged);
            self.merged.truncate(0);
            self.start = 0;
            self.width *= 2;
        }
        self.left = self.start;
        self.right = self.middle();
        Ok(())
    }
}
