//! The vector type of the language, which also represents every other finite sequence.
//!
//! A vector is owned items, a slice of another vector (`rest`, `subvec`, `take` cost only a node), or an arithmetic
//! range, which stores no items. The representation is private: readers use [`VectorNode::get`], [`VectorNode::iter`]
//! and [`VectorNode::as_slice`].

use crate::fault::{Fault, Result};
use crate::memory::{List, STEP, account};
use crate::value::garbage::drop_children;
use crate::value::slot::{fill, fill_copy};
use crate::value::{Store, Value};
use std::rc::Rc;

/// Logical bytes of a vector node in addition to its items (16 bytes for each of its capacity).
pub const VECTOR_BYTES: usize = 56;

/// A vector.
pub struct VectorNode {
    repr: Repr,
}

enum Repr {
    /// `items[start..]`; items before `start` are nil.
    Owned { items: Vec<Value>, start: usize },
    /// Part of an owned vector.
    Slice { base: Rc<VectorNode>, start: usize, len: usize },
    /// `start, start + step, …`: the last element fits 64 bits.
    Range { start: i64, step: i64, len: usize },
}

impl VectorNode {
    /// A vector of these items.
    pub fn new(items: Vec<Value>) -> Rc<VectorNode> {
        account::charge(VECTOR_BYTES + items.capacity() * size_of::<Value>());
        Rc::new(VectorNode { repr: Repr::Owned { items, start: 0 } })
    }

    /// The integers `start, start + step, …`, `len` of them. The caller has checked that the last fits.
    pub fn range(start: i64, step: i64, len: usize) -> Rc<VectorNode> {
        account::charge(VECTOR_BYTES);
        Rc::new(VectorNode { repr: Repr::Range { start, step, len } })
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        match &self.repr {
            Repr::Owned { items, start } => items.len() - start,
            Repr::Slice { len, .. } | Repr::Range { len, .. } => *len,
        }
    }

    /// No items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A copy of one item.
    #[inline]
    pub fn get(&self, index: usize) -> Option<Value> {
        match &self.repr {
            Repr::Range { start, step, len } => {
                (index < *len).then(|| Value::Int(start + step * index as i64))
            }
            _ => self.as_slice()?.get(index).cloned(),
        }
    }

    /// One item, moved out if the vector is not shared (nil stays behind), else copied.
    #[inline]
    pub(crate) fn take_item(this: &mut Rc<VectorNode>, index: usize) -> Option<Value> {
        if let Some(VectorNode { repr: Repr::Owned { items, start } }) = Rc::get_mut(this) {
            prefetch(items, *start + index);
            return items.get_mut(*start + index).map(std::mem::take);
        }
        this.get(index)
    }

    /// [`VectorNode::take_item`] into an empty slot: the value is written directly to its final place. False if there
    /// is no such item.
    #[inline(always)]
    pub(crate) fn take_into(this: &mut Rc<VectorNode>, index: usize, slot: &mut Value) -> bool {
        match &this.repr {
            Repr::Range { start, step, len } => {
                if index < *len {
                    fill(slot, Value::Int(start + step * index as i64));
                }
                index < *len
            }
            _ => VectorNode::take_stored_into(this, index, slot),
        }
    }

    #[inline(never)]
    fn take_stored_into(this: &mut Rc<VectorNode>, index: usize, slot: &mut Value) -> bool {
        if let Some(VectorNode { repr: Repr::Owned { items, start } }) = Rc::get_mut(this) {
            prefetch(items, *start + index);
            let Some(item) = items.get_mut(*start + index) else { return false };
            fill(slot, std::mem::take(item));
            return true;
        }
        match this.as_slice().and_then(|items| items.get(index)) {
            Some(item) => {
                fill_copy(slot, item);
                true
            }
            None => false,
        }
    }

    /// The stored items; `None` for a range.
    #[inline]
    pub fn as_slice(&self) -> Option<&[Value]> {
        match &self.repr {
            Repr::Owned { items, start } => items.get(*start..),
            Repr::Slice { base, start, len } => match &base.repr {
                Repr::Owned { items, start: skipped } => items.get(skipped + start..skipped + start + len),
                // A slice always refers to an owned vector.
                _ => None,
            },
            Repr::Range { .. } => None,
        }
    }

    /// All items that it keeps alive: for a slice those of the whole vector.
    pub(crate) fn stored(&self) -> &[Value] {
        match &self.repr {
            Repr::Owned { items, .. } => items,
            Repr::Slice { base, .. } => match &base.repr {
                Repr::Owned { items, .. } => items,
                // A slice always refers to an owned vector.
                _ => &[],
            },
            Repr::Range { .. } => &[],
        }
    }

    /// The items, copied one by one.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Value> + ExactSizeIterator + '_ {
        (0..self.len()).map(|index| self.get(index).unwrap_or_default())
    }

    /// The part `start..end` (clamped), sharing the items.
    pub fn slice(this: &Rc<VectorNode>, start: usize, end: usize) -> Rc<VectorNode> {
        let end = end.min(this.len());
        let start = start.min(end);
        let len = end - start;
        if len == this.len() {
            return this.clone();
        }
        let repr = match &this.repr {
            Repr::Range { start: first, step, .. } => {
                Repr::Range { start: first.wrapping_add(step.wrapping_mul(start as i64)), step: *step, len }
            }
            Repr::Owned { .. } => Repr::Slice { base: this.clone(), start, len },
            Repr::Slice { base, start: skipped, .. } => {
                Repr::Slice { base: base.clone(), start: skipped + start, len }
            }
        };
        if len == 0 {
            return VectorNode::new(Vec::new());
        }
        account::charge(VECTOR_BYTES);
        Rc::new(VectorNode { repr })
    }

    /// Everything but the first item; in place if the vector is not shared.
    pub fn rest(mut this: Rc<VectorNode>) -> Rc<VectorNode> {
        if let Some(VectorNode { repr: Repr::Owned { items, start } }) = Rc::get_mut(&mut this) {
            if *start < items.len() {
                drop(std::mem::take(&mut items[*start]));
                *start += 1;
            }
            return this;
        }
        VectorNode::slice(&this, 1, usize::MAX)
    }

    /// A copy of the items with room for `more`. A range stores no items, so its copy may be of any size.
    ///
    /// # Errors
    /// Memory, deadline and cancellation.
    pub(crate) fn copy_items(&self, cx: &mut Store, more: usize) -> Result<List<Value>> {
        let mut copy = List::with_capacity(cx, self.len().saturating_add(more))?;
        self.copy_into(cx, &mut copy)?;
        Ok(copy)
    }

    fn copy_into(&self, cx: &mut Store, copy: &mut List<Value>) -> Result<()> {
        match self.as_slice() {
            Some(items) => copy.fill_copies(cx, items),
            None => {
                copy.fill(cx, self.iter())?;
                cx.copied(self.len())
            }
        }
    }

    /// The items for changes in place, with room for `more`: those of a copy if the vector is shared or its items are
    /// not stored.
    ///
    /// # Errors
    /// `memory_exceeded`.
    #[inline]
    pub(crate) fn exclusive<'v>(
        this: &'v mut Rc<VectorNode>,
        cx: &mut Store,
        more: usize,
    ) -> Result<&'v mut Vec<Value>> {
        let is_ready = match Rc::get_mut(this) {
            Some(VectorNode { repr: Repr::Owned { items, start: 0 } }) => {
                items.capacity() - items.len() >= more
            }
            _ => false,
        };
        if !is_ready {
            VectorNode::make_ready(this, cx, more)?;
        }
        match Rc::get_mut(this) {
            Some(VectorNode { repr: Repr::Owned { items, .. } }) => Ok(items),
            _ => Err(Fault::runtime("a vector that was just copied is shared")),
        }
    }

    #[cold]
    #[inline(never)]
    fn make_ready(this: &mut Rc<VectorNode>, cx: &mut Store, more: usize) -> Result<()> {
        if let Some(VectorNode { repr: Repr::Owned { items, start } }) = Rc::get_mut(this) {
            if *start > 0 {
                // Items before the first are nil. A failing poll ends the program.
                let len = items.len() - *start;
                for at in 0..len {
                    items.swap(at, *start + at);
                    cx.copied(1)?;
                }
                items.truncate(len);
                *start = 0;
            }
            return make_room(cx, items, more);
        }
        *this = this.copy_items(cx, more)?.into_vector();
        Ok(())
    }

    /// Appends one item, in amortised constant time if the vector is not shared.
    ///
    /// # Errors
    /// `memory_exceeded`.
    #[inline]
    pub(crate) fn push(mut this: Rc<VectorNode>, cx: &mut Store, item: Value) -> Result<Rc<VectorNode>> {
        VectorNode::append(&mut this, cx, item)?;
        Ok(this)
    }

    /// Replaces the item at an index, or appends one; in place if the vector is not shared.
    ///
    /// # Errors
    /// `memory_exceeded`.
    pub(crate) fn write(
        mut this: Rc<VectorNode>,
        cx: &mut Store,
        at: usize,
        item: Value,
    ) -> Result<Rc<VectorNode>> {
        if at == this.len() {
            return VectorNode::push(this, cx, item);
        }
        if let Some(slot) = VectorNode::exclusive(&mut this, cx, 0)?.get_mut(at) {
            *slot = item;
        }
        Ok(this)
    }

    /// [`VectorNode::push`] in place.
    ///
    /// # Errors
    /// `memory_exceeded`.
    #[inline]
    pub(crate) fn append(this: &mut Rc<VectorNode>, cx: &mut Store, item: Value) -> Result<()> {
        // Items before the first stay: a queue takes from the front and appends.
        if let Some(VectorNode { repr: Repr::Owned { items, .. } }) = Rc::get_mut(this) {
            if items.len() == items.capacity() {
                make_room(cx, items, 1)?;
            }
            items.push(item);
            return Ok(());
        }
        VectorNode::exclusive(this, cx, 1)?.push(item);
        Ok(())
    }

    /// Appends the items of another vector, each for a unit of fuel.
    ///
    /// # Errors
    /// Fuel and memory.
    pub(crate) fn append_all(this: &mut Rc<VectorNode>, cx: &mut Store, more: &VectorNode) -> Result<()> {
        let items = VectorNode::exclusive(this, cx, more.len())?;
        match more.as_slice() {
            Some(more) => {
                for part in more.chunks(STEP) {
                    cx.tick(part.len() as u64)?;
                    items.extend_from_slice(part);
                }
            }
            None => {
                for item in more.iter() {
                    cx.tick(1)?;
                    items.push(item);
                }
            }
        }
        Ok(())
    }

    /// Prepends one item, in amortised constant time if the vector is not shared, as a program that collects with
    /// `cons` needs.
    ///
    /// # Errors
    /// `memory_exceeded`.
    pub(crate) fn push_front(this: Rc<VectorNode>, cx: &mut Store, item: Value) -> Result<Rc<VectorNode>> {
        let mut this = this;
        if let Some(VectorNode { repr: Repr::Owned { items, start } }) = Rc::get_mut(&mut this) {
            let before = items.capacity();
            if *start == 0 {
                let room = items.len().max(4);
                let mut wider = List::with_capacity(cx, items.len() + room)?;
                wider.fill(cx, std::iter::repeat_n(Value::Nil, room))?;
                wider.fill(cx, items.iter_mut().map(std::mem::take))?;
                *items = wider.into_items();
                *start = room;
            }
            *start -= 1;
            items[*start] = item;
            account::recharge(before * size_of::<Value>(), items.capacity() * size_of::<Value>());
            return Ok(this);
        }
        let mut items = List::with_capacity(cx, this.len().saturating_add(1))?;
        items.push(cx, item)?;
        this.copy_into(cx, &mut items)?;
        Ok(items.into_vector())
    }
}

/// Makes room for `more` items, which are on the account from then on.
#[cold]
#[inline(never)]
fn make_room(cx: &mut Store, items: &mut Vec<Value>, more: usize) -> Result<()> {
    let before = items.capacity();
    let needed = items.len().saturating_add(more);
    if needed > before {
        let capacity = needed.max(before.saturating_mul(2)).max(4);
        // While the items move, both copies exist.
        cx.reserve_items(capacity)?;
        items.reserve_exact(capacity - items.len());
        account::recharge(before * size_of::<Value>(), items.capacity() * size_of::<Value>());
    }
    Ok(())
}

/// Number of items that are prefetched together.
const TOGETHER: usize = 32;

/// Prefetches the nodes of the next items, every [`TOGETHER`] items. One after the other, with a callback in between,
/// the processor would wait for each load; in a short loop all loads overlap.
#[inline]
fn prefetch(items: &[Value], index: usize) {
    if index.is_multiple_of(TOGETHER) {
        prefetch_next(items.get(index..).unwrap_or_default());
    }
}

#[inline(never)]
fn prefetch_next(items: &[Value]) {
    let mut seen = 0;
    for item in items.iter().take(TOGETHER) {
        if let Value::Map(map) = item {
            seen += Rc::strong_count(map) + map.prefetch();
        }
    }
    std::hint::black_box(seen);
}

impl Drop for VectorNode {
    fn drop(&mut self) {
        match &mut self.repr {
            Repr::Owned { items, .. } => {
                let items = std::mem::take(items);
                let bytes = VECTOR_BYTES + items.capacity() * size_of::<Value>();
                drop_children(items, bytes);
            }
            // The base is an owned vector; its drop does not recurse.
            Repr::Slice { .. } | Repr::Range { .. } => account::release(VECTOR_BYTES),
        }
    }
}
