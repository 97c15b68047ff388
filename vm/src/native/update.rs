//! `update` and `update-in`: the path is taken apart on the way down, so that an unshared structure is
//! updated in place on the way back.

use super::{Action, Native};
use crate::apply::{apply, is_direct};
use crate::builtins::Step;
use crate::context::Context;
use crate::fault::{Fault, Result};
use crate::memory::List;
use crate::value::Value;
use crate::value::build::Arguments;
use crate::value::map::MapNode;
use crate::value::vector::VectorNode;
use std::mem::take;
use std::rc::Rc;

/// A container on the way down.
struct Parent {
    container: Value,
    /// The key it is changed at.
    key: Value,
    /// Position of the key, if the container is a map that has it.
    row: Option<usize>,
}

/// The machine.
pub struct Update {
    function: Value,
    /// The first is what is found at the end of the path.
    arguments: Arguments,
    target: Value,
    path: Arguments,
    parents: List<Parent>,
    /// Reads by the flexible key rule (`update-in`); writes are always exact.
    flexible: bool,
}

impl Update {
    /// Changes what is at `path` in `target` to `(function old extra …)`; the first argument is a place for `old`.
    pub fn new(
        function: Value,
        arguments: Arguments,
        target: Value,
        path: Arguments,
        flexible: bool,
    ) -> Update {
        Update { function, arguments, target, path, parents: List::default(), flexible }
    }

    /// Makes the change at once where the function needs no frame.
    ///
    /// # Errors
    /// What lies on the path is no collection; what the function faults with.
    pub fn start(mut self, cx: &mut Context) -> Result<Step> {
        if is_direct(cx, &self.function)
            && let Action::Return(value) = self.resume(cx, None)?
        {
            return Ok(Step::Return(value));
        }
        Ok(Step::Enter(Native::Update(Box::new(self))))
    }

    pub(super) fn resume(&mut self, cx: &mut Context, returned: Option<Value>) -> Result<Action> {
        match returned {
            None => {
                let old = self.descend(cx)?;
                let mut arguments = take(&mut self.arguments);
                let first = arguments.first_mut().map(|first| *first = old);
                debug_assert!(first.is_some(), "there is a place for what is found");
                if is_direct(cx, &self.function) {
                    let value = apply(cx, &self.function, &mut arguments)?;
                    drop(arguments);
                    return self.ascend(cx, value).map(Action::Return);
                }
                Ok(match &mut *arguments {
                    [only] => Action::Call1(self.function.clone(), take(only)),
                    _ => Action::Call(self.function.clone(), arguments),
                })
            }
            Some(value) => self.ascend(cx, value).map(Action::Return),
        }
    }

    /// Puts the new value in, and the containers around it back together.
    fn ascend(&mut self, cx: &mut Context, value: Value) -> Result<Value> {
        let mut value = value;
        while let Some(Parent { container, key, row }) = self.parents.pop() {
            cx.tick(1)?;
            value = match (container, row) {
                (Value::Map(map), Some(row)) => Value::Map(MapNode::replace_at(map, cx, row, value)?),
                (container, _) => store(cx, container, key, value)?,
            };
        }
        Ok(value)
    }

    /// Walks down the path; containers that nobody else holds give their child away.
    fn descend(&mut self, cx: &mut Context) -> Result<Value> {
        let mut here = take(&mut self.target);
        for key in take(&mut self.path) {
            cx.tick(1)?;
            let mut row = None;
            let child = match &mut here {
                Value::Nil => Value::Nil,
                Value::Map(map) => {
                    row = map.find(cx, &key)?;
                    match row {
                        Some(row) => match MapNode::take_at(map, row) {
                            Some(child) => child,
                            None => map.value(row).clone(),
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
                    return Err(Fault::runtime(format_args!(
                        "could not put/update key on a non-map value, got {word}"
                    )));
                }
            };
            self.parents.push(cx, Parent { container: here, key, row })?;
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
                    store_item(cx, vector, index as usize, value)
                }
                Value::Int(index) => {
                    Err(Fault::runtime(format_args!("index {index} out of bounds for list of length {len}")))
                }
                other => Err(Fault::type_error(format_args!(
                    "a list is indexed by integers, got {}",
                    other.type_word()
                ))),
            }
        }
        other => Err(Fault::runtime(format_args!(
            "could not put/update key on a non-map value, got {}",
            other.type_word()
        ))),
    }
}

fn store_item(cx: &mut Context, vector: Rc<VectorNode>, index: usize, value: Value) -> Result<Value> {
    let mut vector = vector;
    if index == vector.len() {
        return Ok(Value::Vector(VectorNode::push(vector, cx, value)?));
    }
    if let Some(item) = VectorNode::exclusive(&mut vector, cx, 0)?.get_mut(index) {
        *item = value;
    }
    Ok(Value::Vector(vector))
}
