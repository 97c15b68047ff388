//! `update` and `update-in`.

use super::Step;
use crate::apply::{apply, is_direct};
use crate::context::Context;
use crate::fault::{Fault, Result};
use crate::native::update::Update;
use crate::value::Value;
use crate::value::build::Arguments;
use crate::value::map::MapNode;
use std::mem::take;

/// `(update map key f)` where f needs no frame: the usual case, in place and with one lookup.
fn update_at_once(cx: &mut Context, arguments: &mut [Value]) -> Result<Step> {
    let (Value::Map(mut map), key) = (take(&mut arguments[0]), take(&mut arguments[1])) else {
        return Ok(Step::Return(Value::Nil));
    };
    // One unit for the way down, one for the way back.
    cx.tick(2)?;
    let row = map.find(cx, &key)?;
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
pub(super) fn update(cx: &mut Context, arguments: &mut [Value]) -> Result<Step> {
    if let [Value::Map(_), _, function] = arguments
        && is_direct(cx, function)
    {
        return update_at_once(cx, arguments);
    }
    let target = take(&mut arguments[0]);
    let path = Arguments::of([take(&mut arguments[1])]);
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
pub(super) fn update_in(cx: &mut Context, arguments: &mut [Value]) -> Result<Step> {
    let target = take(&mut arguments[0]);
    let mut path = match take(&mut arguments[1]) {
        Value::Vector(path) => cx.arguments(path.iter())?,
        Value::Nil => Arguments::new(),
        other => {
            return Err(Fault::type_error(format_args!(
                "update-in: arg 2 expected list, got {}",
                other.type_word()
            )));
        }
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
        let word = target.type_word();
        return Err(Fault::type_error(format_args!("{name}: arg 1 expected map, got {word}")));
    }
    let function = take(&mut rest[0]);
    // The first is what will be found at the end of the path.
    let mut all = Arguments::of([Value::Nil]);
    all.extend(cx, rest[1..].iter_mut().map(take))?;
    if let Value::Builtin(builtin) = function {
        let (info, count) = (builtin.info(), all.len());
        if !info.arity.accepts(count) && count > 1 {
            return Err(Fault::new(
                crate::Reason::ArityError,
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
