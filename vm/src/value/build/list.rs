//! Builds vectors of the language in lists that count against the program's memory limit, and converts such a list to a
//! vector without copying it.

use crate::fault::Result;
use crate::memory::{List, Meter, items};
use crate::value::Value;
use crate::value::map::MapNode;
use crate::value::slot::fill_copy;
use crate::value::string::StringNode;
use crate::value::vector::VectorNode;
use std::mem::take;
use std::rc::Rc;

items!(in_steps:
    Rc<MapNode>,
    Rc<StringNode>,
    Rc<VectorNode>,
    (Rc<VectorNode>, usize),
    (Rc<StringNode>, Value),
    (Value, Value),
    (Value, Value, Value),
    (&'static str, Value),
);

impl List<Value> {
    /// The arguments of a call, which were paid for when they became arguments.
    ///
    /// # Errors
    /// Memory, deadline and cancellation.
    pub(crate) fn taken(cx: &mut Meter, arguments: &mut [Value]) -> Result<List<Value>> {
        let mut items = List::with_capacity(cx, arguments.len())?;
        items.fill(cx, arguments.iter_mut().map(take))?;
        Ok(items)
    }

    /// Moves the value of a slot to the end; the slot is empty afterwards. Integers are moved in the two parts in
    /// which they were written. The list must [have room](List::has_room).
    #[inline]
    pub(crate) fn push_taken(&mut self, from: &mut Value) {
        match *from {
            Value::Int(int) => self.push_within(Value::Int(int)),
            _ => self.push_within(take(from)),
        }
    }

    /// Adds a copy of a value, written directly into its final place.
    ///
    /// # Errors
    /// `memory_exceeded`.
    #[inline]
    pub(crate) fn push_copy(&mut self, cx: &mut Meter, value: &Value) -> Result<()> {
        self.push(cx, Value::Nil)?;
        if let Some(slot) = self.last_mut() {
            fill_copy(slot, value);
        }
        Ok(())
    }

    /// The items as a vector node: nothing is copied.
    pub fn into_vector(self) -> Rc<VectorNode> {
        VectorNode::new(self.into_items())
    }

    /// The items as a vector.
    pub fn into_value(self) -> Value {
        Value::Vector(self.into_vector())
    }

    /// Takes the items out as a vector.
    pub fn take_vector(&mut self) -> Value {
        take(self).into_value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::garbage::drain;
    use crate::value::testing::with_store;

    const MANY: usize = 100_000;

    /// The number of steps in which a dropped value is freed.
    fn steps_to_free(dropped: impl Sized) -> usize {
        drop(dropped);
        let mut steps = 1;
        while drain(4_096) {
            steps += 1;
        }
        steps
    }

    #[test]
    fn many_items_are_freed_in_steps() {
        with_store(|cx| {
            let texts = cx.collect((0..MANY).map(|_| Value::string("text"))).expect("room");
            assert!(steps_to_free(texts) > MANY / 4_096 / 2);
            let pairs = cx.collect((0..MANY).map(|_| (Value::string("key"), Value::Nil))).expect("room");
            assert!(steps_to_free(pairs) > MANY / 4_096 / 2);
            let numbers = cx.collect((0..MANY).map(|number| Value::Int(number as i64))).expect("room");
            assert_eq!(steps_to_free(numbers), 1);
        });
    }
}
