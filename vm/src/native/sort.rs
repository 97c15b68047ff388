//! Sorting: by the natural order at once, by a comparator as a resumable bottom-up merge sort.
//!
//! The comparator may be any function, so it may suspend, and it may contradict itself; a merge sort does
//! not care. It is stable: on ties the left item goes first.

use super::Action;
use crate::apply::{apply, is_direct};
use crate::context::Context;
use crate::fault::Result;
use crate::sort;
use crate::value::Value;
use crate::vector::VectorNode;
use std::rc::Rc;

/// The items in the natural order of their keys. Equal items stay in their order, descending too.
///
/// # Errors
/// Fuel, memory.
pub fn by_keys(cx: &mut Context, input: &VectorNode, keys: &[Value], descending: bool) -> Result<Value> {
    in_order(cx, input, descending, |cx, rows| sort::sort_by_key(cx, rows, |&row| &keys[row as usize]))
}

/// The items in the natural order of several keys each, of which there are `width` an item.
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
    if parts.iter().any(Value::is_composite) {
        let keys: Vec<Value> = parts.chunks(width).map(|parts| Value::vector(parts.to_vec())).collect();
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
    cx.reserve_items(input.len())?;
    let mut rows: Vec<u32> = (0..input.len() as u32).collect();
    if descending {
        // Stable and descending: the reversed items ascending, and that reversed.
        rows.reverse();
    }
    sort(cx, &mut rows)?;
    if descending {
        rows.reverse();
    }
    let items = rows.iter().map(|&row| input.get(row as usize).unwrap_or_default()).collect();
    Ok(Value::vector(items))
}

/// The machine: merges runs of `width` from `rows` into `merged`.
pub struct Sort {
    comparator: Value,
    input: Rc<VectorNode>,
    /// Keys to compare instead of the items.
    keys: Option<Vec<Value>>,
    rows: Vec<u32>,
    merged: Vec<u32>,
    width: usize,
    /// Start of the pair of runs being merged.
    start: usize,
    left: usize,
    right: usize,
}

impl Sort {
    /// A machine over the items, or over keys of the same number.
    ///
    /// # Errors
    /// Memory.
    pub fn new(
        cx: &mut Context,
        comparator: Value,
        input: Rc<VectorNode>,
        keys: Option<Vec<Value>>,
    ) -> Result<Sort> {
        cx.reserve_items(input.len() * 2)?;
        let rows = (0..input.len() as u32).collect();
        let merged = Vec::with_capacity(input.len());
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

    fn take_left(&mut self) {
        self.merged.push(self.rows[self.left]);
        self.left += 1;
    }

    fn take_right(&mut self) {
        self.merged.push(self.rows[self.right]);
        self.right += 1;
    }

    pub(super) fn resume(&mut self, cx: &mut Context, returned: Option<Value>) -> Result<Action> {
        if let Some(answer) = returned {
            self.accept(answer);
        }
        let direct = is_direct(&self.comparator);
        loop {
            if self.width >= self.rows.len() {
                let items = self.rows.iter().map(|&row| self.input.get(row as usize).unwrap_or_default());
                return Ok(Action::Return(Value::vector(items.collect())));
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
                self.accept(answer);
                continue;
            }
            self.close_pair();
            cx.tick(1)?;
        }
    }

    /// Takes the answer to (comparator right left): does the right item go first?
    fn accept(&mut self, answer: Value) {
        let right_first = match answer {
            Value::Int(number) => number < 0,
            Value::Float(number) => number < 0.0,
            Value::BigInt(number) => number.get().sign() == num_bigint::Sign::Minus,
            other => other.is_truthy(),
        };
        if right_first {
            self.take_right();
        } else {
            self.take_left();
        }
    }

    /// One of the two runs is used up: the rest of the other follows, and the next pair begins.
    fn close_pair(&mut self) {
        while self.left < self.middle() {
            self.take_left();
        }
        while self.right < self.end() {
            self.take_right();
        }
        self.start += self.width * 2;
        if self.start >= self.rows.len() {
            std::mem::swap(&mut self.rows, &mut self.merged);
            self.merged.clear();
            self.start = 0;
            self.width *= 2;
        }
        self.left = self.start;
        self.right = self.middle();
    }
}
