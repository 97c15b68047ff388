//! A list that grows while a machine runs, charged as it grows.

use crate::heap;
use crate::value::Value;
use crate::vector::VectorNode;

/// A growing list of values.
#[derive(Default)]
pub struct Items(Vec<Value>);

impl Items {
    /// An empty list with room for `capacity` items; reserve memory for them first.
    pub fn with_capacity(capacity: usize) -> Items {
        let items = Vec::with_capacity(capacity);
        heap::charge(items.capacity() * size_of::<Value>());
        Items(items)
    }

    /// Adds an item.
    #[inline]
    pub fn push(&mut self, item: Value) {
        let before = self.0.capacity();
        self.0.push(item);
        if self.0.capacity() != before {
            heap::recharge(before * size_of::<Value>(), self.0.capacity() * size_of::<Value>());
        }
    }

    /// The items so far.
    pub fn as_slice(&self) -> &[Value] {
        &self.0
    }

    /// The items so far, to be changed in place.
    pub fn as_mut_slice(&mut self) -> &mut [Value] {
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
    pub fn take(&mut self) -> Vec<Value> {
        let items = std::mem::take(&mut self.0);
        heap::release(items.capacity() * size_of::<Value>());
        items
    }

    /// Takes the items out as a vector.
    pub fn take_vector(&mut self) -> Value {
        Value::Vector(VectorNode::new(self.take()))
    }
}

impl Drop for Items {
    fn drop(&mut self) {
        heap::release(self.0.capacity() * size_of::<Value>());
    }
}
