//! Implements the slow paths of bytecode instructions, outside the interpreter's main loop: comparison of any values,
//! look-up of global names, building of maps and sets, and choice of a function's arity.

use crate::bytecode::instruction::{Args, Relation};
use crate::bytecode::{Proto, Shape, WINDOW};
use crate::context::{Context, Function, Unit};
use crate::fault::{Fault, Reason, Result};
use crate::interpreter::globals::Globals;
use crate::value::code_ref::FunctionId;
use crate::value::map::MapNode;
use crate::value::relation::equal::equal;
use crate::value::relation::order::{compare, compare_numbers};
use crate::value::set::SetNode;
use crate::value::{Closure, Value};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::rc::Rc;

/// Whether a relation holds.
pub(super) fn holds(cx: &mut Context, relation: Relation, a: &Value, b: &Value) -> Result<bool> {
    match relation {
        Relation::Equal => equal(cx, a, b),
        Relation::NotEqual => Ok(!equal(cx, a, b)?),
        // Comparisons with NaN are false.
        order => Ok(ordered(cx, a, b)?.is_some_and(|found| order.holds(&found, &Ordering::Equal))),
    }
}

fn ordered(cx: &mut Context, a: &Value, b: &Value) -> Result<Option<Ordering>> {
    let nan = |value: &Value| matches!(value, Value::Float(float) if float.is_nan());
    if nan(a) || nan(b) {
        return Ok(None);
    }
    match compare_numbers(cx, a, b)? {
        Some(order) => Ok(Some(order)),
        None => compare(cx, a, b).map(Some),
    }
}

/// The value of a global slot; a branch of pmap looks at its own definitions first.
#[inline]
pub(super) fn find_global<'g>(
    globals: &'g Globals,
    overlay: &'g Option<HashMap<u32, Value>>,
    slot: u32,
) -> Option<&'g Value> {
    if let Some(overlay) = overlay
        && let Some(value) = overlay.get(&slot)
    {
        return Some(value);
    }
    globals.get(slot)
}

/// The value of a name without a definition: the builtin of that name.
#[cold]
pub(super) fn unbound(unit: &Unit, global: u16) -> Result<Value> {
    let name = &unit.program.globals[usize::from(global)];
    match name.builtin {
        Some(builtin) => Ok(Value::Builtin(builtin)),
        None => Err(Fault::new(
            Reason::UnboundVar,
            format_args!("Undefined variable: {}", unit.program.global(global)),
        )),
    }
}

#[cold]
pub(super) fn loop_limit(limit: u64) -> Box<Fault> {
    Fault::new(
        Reason::LoopLimitExceeded,
        format_args!(
            "Loop iteration limit exceeded ({limit} iterations). Use reduce/map over a finite sequence instead, \
             or split work across smaller loops."
        ),
    )
}

/// Adds keys and values, alternating; a later equal key wins.
pub(super) fn add_entries(cx: &mut Context, mut map: Rc<MapNode>, items: Vec<Value>) -> Result<Rc<MapNode>> {
    let mut items = items.into_iter();
    while let (Some(key), Some(value)) = (items.next(), items.next()) {
        map = MapNode::insert(map, cx, key, value)?;
    }
    Ok(map)
}

/// Adds members.
pub(super) fn add_members(cx: &mut Context, mut set: Rc<SetNode>, items: Vec<Value>) -> Result<Rc<SetNode>> {
    for item in items {
        set = SetNode::insert(set, cx, item)?;
    }
    Ok(set)
}

/// The map of a constant set of keys and the values in the registers.
#[inline]
pub(super) fn make_record(keys: &Value, registers: &mut [Value; WINDOW], items: Args) -> Value {
    let from = usize::from(items.at);
    let values = registers[from..from + usize::from(items.count)].iter_mut().map(std::mem::take);
    match keys {
        Value::Set(keys) => Value::Map(MapNode::from_keys(keys.clone(), values)),
        // The verifier has checked that the keys are a set.
        _ => Value::Nil,
    }
}

pub(super) fn take_args(registers: &mut [Value; WINDOW], args: Args) -> Vec<Value> {
    let from = usize::from(args.at);
    registers[from..from + usize::from(args.count)].iter_mut().map(std::mem::take).collect()
}

/// The arity of a closure that fits this number of arguments exactly, if there is one.
#[inline]
pub(super) fn target(functions: &[Function], closure: &Closure, count: u8) -> Option<FunctionId> {
    let fits = |proto: &Proto| proto.shape == Shape { fixed: count, variadic: false };
    let mut arities = functions.get(closure.function.index())?.arities();
    arities.find(|(_, proto)| fits(proto)).map(|(function, _)| function)
}
