//! `update` and `update-in`: the path is taken apart on the way down, so that an unshared structure is
//! updated in place on the way back.

use super::Action;
use crate::context::Context;
use crate::fault::{Fault, Result};
use crate::map::MapNode;
use crate::value::Value;
use crate::vector::VectorNode;
use std::mem::take;
use std::rc::Rc;

/// The machine.
pub struct Update {
    function: Value,
    extra: Vec<Value>,
    target: Value,
    path: Vec<Value>,
    /// Containers on the way down, each with the key it is changed at.
    parents: Vec<(Value, Value)>,
    /// Reads by the flexible key rule (`update-in`); writes are always exact.
    flexible: bool,
}

impl Update {
    /// Changes what is at `path` in `target` to `(function old extra …)`.
    pub fn new(
        function: Value,
        extra: Vec<Value>,
        target: Value,
        path: Vec<Value>,
        flexible: bool,
    ) -> Update {
        Update { function, extra, target, path, parents: Vec::new(), flexible }
    }

    pub(super) fn resume(&mut self, cx: &mut Context, returned: Option<Value>) -> Result<Action> {
        match returned {
            None => {
                let old = self.descend(cx)?;
                if self.extra.is_empty() {
                    return Ok(Action::Call1(self.function.clone(), old));
                }
                let mut arguments = vec![old];
                arguments.append(&mut self.extra);
                Ok(Action::Call(self.function.clone(), arguments))
            }
            Some(value) => {
                let mut value = value;
                while let Some((parent, key)) = self.parents.pop() {
                    cx.tick(1)?;
                    value = store(cx, parent, key, value)?;
                }
                Ok(Action::Return(value))
            }
        }
    }

    /// Walks down the path; containers that nobody else holds give their child away.
    fn descend(&mut self, cx: &mut Context) -> Result<Value> {
        let mut here = take(&mut self.target);
        for key in take(&mut self.path) {
            cx.tick(1)?;
            let child = match &mut here {
                Value::Nil => Value::Nil,
                Value::Map(map) => {
                    let exact = map.find(cx, &key)?;
                    match exact {
                        Some(row) => match MapNode::take_at(map, row) {
                            Some(child) => child,
                            None => map.entries()[row].value.clone(),
                        },
                        None if self.flexible => map.get(cx, &key)?.cloned().unwrap_or_default(),
                        None => Value::Nil,
                    }
                }
                Value::Vector(vector) => match &key {
                    Value::Int(index) => {
                        usize::try_from(*index).ok().and_then(|index| vector.get(index)).unwrap_or_default()
                    }
                    _ => Value::Nil,
                },
                other => {
                    let word = other.type_word();
                    return Err(Fault::runtime(format!(
                        "could not put/update key on a non-map value, got {word}"
                    )));
                }
            };
            self.parents.push((here, key));
            here = child;
        }
        Ok(here)
    }
}

/// `(assoc parent key value)`.
fn store(cx: &mut Context, parent: Value, key: Value, value: Value) -> Result<Value> {
    match parent {
        Value::Nil => Ok(Value::Map(MapNode::insert(MapNode::with_capacity(1), cx, key, value)?)),
        Value::Map(map) => Ok(Value::Map(MapNode::insert(map, cx, key, value)?)),
        Value::Vector(vector) => {
            let len = vector.len();
            match key {
                Value::Int(index) if usize::try_from(index).is_ok_and(|index| index <= len) => {
                    Ok(Value::Vector(store_item(vector, index as usize, value)))
                }
                Value::Int(index) => {
                    Err(Fault::runtime(format!("index {index} out of bounds for list of length {len}")))
                }
                other => Err(Fault::type_error(format!(
                    "a list is indexed by integers, got {}",
                    other.type_word()
                ))),
            }
        }
        other => Err(Fault::runtime(format!(
            "could not put/update key on a non-map value, got {}",
            other.type_word()
        ))),
    }
}

fn store_item(vector: Rc<VectorNode>, index: usize, value: Value) -> Rc<VectorNode> {
    VectorNode::update(vector, |items| match items.get_mut(index) {
        Some(item) => *item = value,
        None => items.push(value),
    })
}
