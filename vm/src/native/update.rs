//! Runs `update` and `update-in` (apply a function to one value inside nested collections), as a state machine that can
//! suspend while the function waits for a tool. It takes unshared collections apart on the way down the path, so that
//! they are updated in place on the way back.

use super::{Action, Native, Step};
use crate::apply::{apply, is_direct};
use crate::collection::lookup::{associate, writable_index};
use crate::context::Context;
use crate::fault::{Fault, Reason, Result};
use crate::memory::{List, items};
use crate::value::Value;
use crate::value::build::Arguments;
use crate::value::map::MapNode;
use crate::value::vector::VectorNode;
use std::mem::take;

/// A container on the way down.
struct Parent {
    container: Value,
    /// The key of the child.
    key: Value,
    /// Position of the key, if the container is a map that has it.
    row: Option<usize>,
}

items!(in_steps: Parent);

/// The machine.
pub struct Update {
    function: Value,
    /// The first one is the value at the end of the path.
    arguments: Arguments,
    target: Value,
    path: Arguments,
    parents: List<Parent>,
    /// Strings are read by the flexible key rule (`update-in`), though they are written exactly.
    flexible: bool,
}

impl Update {
    /// Changes the value at `path` in `target` to `(function old extra …)`; the first argument is a placeholder for
    /// `old`.
    pub fn new(
        function: Value,
        arguments: Arguments,
        target: Value,
        path: Arguments,
        flexible: bool,
    ) -> Update {
        Update { function, arguments, target, path, parents: List::default(), flexible }
    }

    /// Makes the change at once if the function needs no frame.
    ///
    /// # Errors
    /// A value on the path is no collection; the function faults.
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

    /// Stores the new value, and rebuilds the containers around it.
    fn ascend(&mut self, cx: &mut Context, mut value: Value) -> Result<Value> {
        while let Some(Parent { container, key, row }) = self.parents.pop() {
            cx.tick(1)?;
            value = match (container, row) {
                (Value::Map(map), Some(row)) => Value::Map(MapNode::replace_at(map, cx, row, value)?),
                (container, _) => store(cx, container, key, value)?,
            };
        }
        Ok(value)
    }

    /// Walks down the path; unshared containers give their child away.
    fn descend(&mut self, cx: &mut Context) -> Result<Value> {
        let mut here = take(&mut self.target);
        for key in take(&mut self.path) {
            cx.tick(1)?;
            let mut row = None;
            let child = match &mut here {
                Value::Nil => Value::Nil,
                Value::Map(map) => {
                    row = map.find_written(cx, &key)?;
                    match row {
                        Some(row) => MapNode::take_or_copy(map, row),
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
                other => return Err(no_map(other)),
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
        Value::Nil | Value::Map(_) => associate(cx, parent, key, value, "update"),
        Value::Vector(vector) => {
            let at = writable_index(&vector, &key, "a list is indexed by integers")?;
            VectorNode::write(vector, cx, at, value).map(Value::Vector)
        }
        other => Err(no_map(&other)),
    }
}

#[cold]
fn no_map(value: &Value) -> Box<Fault> {
    let word = value.type_word();
    Fault::runtime(format_args!("could not put/update key on a non-map value, got {word}"))
}

/// `(update map key f)` with an f that needs no frame: the common case, in place and with one lookup.
fn update_at_once(cx: &mut Context, arguments: &mut [Value]) -> Result<Step> {
    let (Value::Map(mut map), key) = (take(&mut arguments[0]), take(&mut arguments[1])) else {
        return Ok(Step::Return(Value::Nil));
    };
    // One unit for the way down, one for the way back.
    cx.tick(2)?;
    let row = map.find_written(cx, &key)?;
    if let Some(row) = row
        && let Some(slot) = MapNode::value_mut(&mut map, row)
    {
        *slot = apply(cx, &arguments[2], &mut [take(slot)])?;
        return Ok(Step::Return(Value::Map(map)));
    }
    let old = row.map(|row| map.value(row).clone()).unwrap_or_default();
    let value = apply(cx, &arguments[2], &mut [old])?;
    Ok(Step::Return(Value::Map(match row {
        Some(row) => MapNode::replace_at(map, cx, row, value)?,
        None => MapNode::insert(map, cx, key, value)?,
    })))
}

/// `(update m key f arg …)`.
pub(crate) fn update(cx: &mut Context, arguments: &mut [Value]) -> Result<Step> {
    if let [Value::Map(_), _, function] = arguments
        && is_direct(cx, function)
    {
        return update_at_once(cx, arguments);
    }
    let target = take(&mut arguments[0]);
    let path = Arguments::from_array([take(&mut arguments[1])]);
    update_path(cx, "update", target, path, false, &mut arguments[2..])
}

/// `update` with a function that needs no frame. The call is paid for before it may fault.
pub(crate) fn update_directly(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    cx.tick(1)?;
    match update(cx, arguments)? {
        Step::Return(value) => Ok(value),
        // Only other functions make it call anything.
        Step::Enter(_) | Step::TailCall(..) => Ok(Value::Nil),
    }
}

/// `(update-in m path f arg …)`.
pub(crate) fn update_in(cx: &mut Context, arguments: &mut [Value]) -> Result<Step> {
    let target = take(&mut arguments[0]);
    let mut path = match take(&mut arguments[1]) {
        Value::Vector(path) => cx.arguments(path.iter())?,
        Value::Nil => Arguments::new(),
        other => return Err(other.mistyped("update-in: arg 2 expected list")),
    };
    if path.is_empty() {
        // As in Clojure, an empty path acts on the key nil.
        path.push(cx, Value::Nil)?;
    }
    update_path(cx, "update-in", target, path, true, &mut arguments[2..])
}

fn update_path(
    cx: &mut Context,
    name: &str,
    target: Value,
    path: Arguments,
    flexible: bool,
    rest: &mut [Value],
) -> Result<Step> {
    if !matches!(target, Value::Nil | Value::Map(_) | Value::Vector(_)) {
        return Err(target.mistyped(format_args!("{name}: arg 1 expected map")));
    }
    let function = take(&mut rest[0]);
    // A placeholder for the value at the end of the path.
    let mut all = Arguments::from_array([Value::Nil]);
    all.extend(cx, rest[1..].iter_mut().map(take))?;
    if let Value::Builtin(builtin) = function {
        let (info, count) = (cx.builtins.facts(builtin), all.len());
        if !info.arity.accepts(count) && count > 1 {
            return Err(Fault::new(
                Reason::ArityError,
                format_args!(
                    "{name}: function {} but was called with {count}. The extra argument may have been intended \
                     as a default value, but {name} passes extra args to the function. Use (or current-val \
                     default) inside the function, or wrap with fnil.",
                    info.arity
                ),
            ));
        }
    }
    Update::new(function, all, target, path, flexible).start(cx)
}
