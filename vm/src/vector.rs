//! Vectors: one node type for vectors and all sequences.
//!
//! A vector is owned items, a slice of another vector (`rest`, `subvec`, `take` cost nothing but the
//! node), or an arithmetic range that has no items at all. Which one it is stays private: readers use
//! [`VectorNode::get`], [`VectorNode::iter`] and [`VectorNode::as_slice`].

use crate::heap;
use crate::interpreter::slots::{fill, fill_copy};
use crate::value::{Value, drop_children};
use std::rc::Rc;

/// Logical bytes of a vector node beside its items (16 bytes for each of its capacity).
pub const VECTOR_BYTES: usize = 56;

/// A vector.
pub struct VectorNode {
    repr: Repr,
}

enum Repr {
    /// `items[start..]`; what is before `start` is nil.
    Owned { items: Vec<Value>, start: usize },
    /// Part of an owned vector.
    Slice { base: Rc<VectorNode>, start: usize, len: usize },
    /// `start, start + step, …`: the last element fits 64 bits.
    Range { start: i64, step: i64, len: usize },
}

impl VectorNode {
    /// A vector of these items.
    pub fn new(items: Vec<Value>) -> Rc<VectorNode> {
        heap::charge(VECTOR_BYTES + items.capacity() * size_of::<Value>());
        Rc::new(VectorNode { repr: Repr::Owned { items, start: 0 } })
    }

    /// The integers `start, start + step, …`, `len` of them. The caller has checked that the last fits.
    pub fn range(start: i64, step: i64, len: usize) -> Rc<VectorNode> {
        heap::charge(VECTOR_BYTES);
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

    /// One item, moved out when nobody else holds the vector (nil stays behind), else copied.
    #[inline]
    pub(crate) fn take_item(this: &mut Rc<VectorNode>, index: usize) -> Option<Value> {
        if let Some(VectorNode { repr: Repr::Owned { items, start } }) = Rc::get_mut(this) {
            warm(items, *start + index);
            return items.get_mut(*start + index).map(std::mem::take);
        }
        this.get(index)
    }

    /// [`VectorNode::take_item`] into a slot that is empty: the value is written where it stays. False when
    /// there is no such item.
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
            warm(items, *start + index);
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

    /// The items in memory; `None` for a range.
    #[inline]
    pub fn as_slice(&self) -> Option<&[Value]> {
        match &self.repr {
            Repr::Owned { items, start } => items.get(*start..),
            Repr::Slice { base, start, len } => match &base.repr {
                Repr::Owned { items, start: skipped } => items.get(skipped + start..skipped + start + len),
                // A slice is always made of an owned vector.
                _ => None,
            },
            Repr::Range { .. } => None,
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
        heap::charge(VECTOR_BYTES);
        Rc::new(VectorNode { repr })
    }

    /// Everything but the first item: in place when nobody else holds the vector.
    pub fn rest(this: Rc<VectorNode>) -> Rc<VectorNode> {
        let mut this = this;
        if let Some(VectorNode { repr: Repr::Owned { items, start } }) = Rc::get_mut(&mut this) {
            if *start < items.len() {
                drop(std::mem::take(&mut items[*start]));
                *start += 1;
            }
            return this;
        }
        VectorNode::slice(&this, 1, usize::MAX)
    }

    /// The items as a `Vec`: moved when nobody else holds the vector, else copied.
    pub fn into_items(this: Rc<VectorNode>) -> Vec<Value> {
        match Rc::try_unwrap(this) {
            Ok(mut node) => match &mut node.repr {
                Repr::Owned { items, start: 0 } => {
                    let items = std::mem::take(items);
                    heap::release(items.capacity() * size_of::<Value>());
                    items
                }
                _ => node.copy_items(0),
            },
            Err(shared) => shared.copy_items(0),
        }
    }

    /// A copy of the items with room for `more`.
    pub fn copy_items(&self, more: usize) -> Vec<Value> {
        let mut copy = Vec::with_capacity(self.len() + more);
        match self.as_slice() {
            Some(items) => copy.extend_from_slice(items),
            None => copy.extend(self.iter()),
        }
        heap::count_copy(copy.len());
        copy
    }

    /// Runs `change` on the items: in place when nobody else holds the vector, else on a copy.
    pub fn update(this: Rc<VectorNode>, change: impl FnOnce(&mut Vec<Value>)) -> Rc<VectorNode> {
        let mut this = this;
        if let Some(VectorNode { repr: Repr::Owned { items, start } }) = Rc::get_mut(&mut this) {
            let before = items.capacity();
            if *start > 0 {
                items.drain(..*start);
                *start = 0;
            }
            change(items);
            heap::recharge(before * size_of::<Value>(), items.capacity() * size_of::<Value>());
            return this;
        }
        let mut items = this.copy_items(1);
        drop(this);
        change(&mut items);
        VectorNode::new(items)
    }

    /// Appends one item: amortised constant time when nobody else holds the vector.
    #[inline]
    pub fn push(this: Rc<VectorNode>, item: Value) -> Rc<VectorNode> {
        let mut this = this;
        if let Some(VectorNode { repr: Repr::Owned { items, .. } }) = Rc::get_mut(&mut this) {
            let before = items.capacity();
            items.push(item);
            if items.capacity() != before {
                heap::recharge(before * size_of::<Value>(), items.capacity() * size_of::<Value>());
            }
            return this;
        }
        VectorNode::update(this, |items| items.push(item))
    }

    /// [`VectorNode::push`] where the vector stands.
    #[inline]
    pub(crate) fn append(this: &mut Rc<VectorNode>, item: Value) {
        match Rc::get_mut(this) {
            Some(VectorNode { repr: Repr::Owned { items, .. } }) => {
                let before = items.capacity();
                items.push(item);
                if items.capacity() != before {
                    heap::recharge(before * size_of::<Value>(), items.capacity() * size_of::<Value>());
                }
            }
            _ => *this = VectorNode::push(this.clone(), item),
        }
    }

    /// Puts one item in front: amortised constant time when nobody else holds the vector, as a program
    /// that collects with `cons` needs.
    pub fn push_front(this: Rc<VectorNode>, item: Value) -> Rc<VectorNode> {
        let mut this = this;
        if let Some(VectorNode { repr: Repr::Owned { items, start } }) = Rc::get_mut(&mut this) {
            let before = items.capacity();
            if *start == 0 {
                let room = items.len().max(4);
                items.splice(0..0, std::iter::repeat_n(Value::Nil, room));
                *start = room;
            }
            *start -= 1;
            items[*start] = item;
            heap::recharge(before * size_of::<Value>(), items.capacity() * size_of::<Value>());
            return this;
        }
        let mut items = Vec::with_capacity(this.len() + 1);
        items.push(item);
        match this.as_slice() {
            Some(more) => items.extend_from_slice(more),
            None => items.extend(this.iter()),
        }
        heap::count_copy(items.len());
        VectorNode::new(items)
    }
}

/// Items that are brought into the cache together.
const TOGETHER: usize = 32;

/// Brings the nodes of the next items into the cache, every [`TOGETHER`] items. One after the other, with a
/// callback between them, the processor would wait for each; a short loop of loads has them all under way.
#[inline]
fn warm(items: &[Value], index: usize) {
    if index.is_multiple_of(TOGETHER) {
        warm_next(items.get(index..).unwrap_or_default());
    }
}

#[inline(never)]
fn warm_next(items: &[Value]) {
    let mut seen = 0;
    for item in items.iter().take(TOGETHER) {
        if let Value::Map(map) = item {
            seen += Rc::strong_count(map) + map.warm();
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
            // The base is an owned vector, whose own drop does not recurse.
            Repr::Slice { .. } | Repr::Range { .. } => heap::release(VECTOR_BYTES),
        }
    }
}
