//! A list that grows while a machine runs, charged as it grows.

use crate::heap;
use crate::interpreter::slots::fill_copy;
use crate::value::Value;
use crate::vector::VectorNode;

/// A growing list: of values, or of what a machine keeps on its own stack.
pub struct Items<T = Value>(Vec<T>);

impl<T> Default for Items<T> {
    fn default() -> Items<T> {
        Items(Vec::new())
    }
}

impl<T> Items<T> {
    /// An empty list with room for `capacity` items; reserve memory for them first.
    pub fn with_capacity(capacity: usize) -> Items<T> {
        let items = Vec::with_capacity(capacity);
        heap::charge(items.capacity() * size_of::<T>());
        Items(items)
    }

    /// Adds an item.
    #[inline]
    pub fn push(&mut self, item: T) {
        let before = self.0.capacity();
        self.0.push(item);
        if self.0.capacity() != before {
            heap::recharge(before * size_of::<T>(), self.0.capacity() * size_of::<T>());
        }
    }

    /// Takes the last item out.
    pub fn pop(&mut self) -> Option<T> {
        self.0.pop()
    }

    /// The last item.
    pub fn last_mut(&mut self) -> Option<&mut T> {
        self.0.last_mut()
    }

    /// The items so far.
    pub fn as_slice(&self) -> &[T] {
        &self.0
    }

    /// The items so far, to be changed in place.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.0
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// No items yet.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the items out.
    pub fn take(&mut self) -> Vec<T> {
        let items = std::mem::take(&mut self.0);
        heap::release(items.capacity() * size_of::<T>());
        items
    }
}

impl Items {
    /// Adds the value of a slot, which is empty afterwards. Integers go in the two parts they were written in.
    #[inline]
    pub(super) fn push_taken(&mut self, from: &mut Value) {
        match *from {
            Value::Int(int) => self.push(Value::Int(int)),
            _ => self.push(std::mem::take(from)),
        }
    }

    /// Adds a copy of a value, which is written where it stays.
    #[inline]
    pub(super) fn push_copy(&mut self, value: &Value) {
        self.push(Value::Nil);
        if let Some(slot) = self.0.last_mut() {
            fill_copy(slot, value);
        }
    }

    /// Takes the items out as a vector.
    pub fn take_vector(&mut self) -> Value {
        Value::Vector(VectorNode::new(self.take()))
    }
}

impl<T> Drop for Items<T> {
    fn drop(&mut self) {
        heap::release(self.0.capacity() * size_of::<T>());
    }
}
