//! Builtins that build sequences (`list`, `concat`, `interleave`, `range` …) or add items to a collection (`conj`,
//! `into`).

use crate::arith::invalid_types;
use crate::builtins::functions::{endless, transducers};
use crate::builtins::{Builtin, Category, callback, direct};
use crate::bytecode::{Known, StageKind};
use crate::collection::adding::{add, add_entries, add_members, merge};
use crate::collection::seq;
use crate::collection::seq::expected;
use crate::context::Context;
use crate::fault::{Fault, Result};
use crate::memory::List;
use crate::native::Step;
use crate::value::Value;
use crate::value::vector::VectorNode;
use num_traits::ToPrimitive;
use std::mem::take;
use std::rc::Rc;

const CORE: Category = Category::Core;

/// The rows of this module.
#[rustfmt::skip]
pub(crate) const TABLE: &[Builtin] = &[
    direct("vector", CORE, "0+", "(vector item …)", "A vector of the arguments.", vector).total(),
    direct("list*", CORE, "1+", "(list* item … coll)", "The items in front of those of the collection.", list_star),
    direct("list", CORE, "0+", "(list item …)", "A vector of the arguments.", vector).total(),
    direct("vec", CORE, "1", "(vec coll)", "A vector of the items of any collection.", vec),
    direct("seq", CORE, "1", "(seq coll)", "The items as a vector; nil when there are none.", seq).known(Known::Seq),
    direct("cons", CORE, "2", "(cons item coll)", "A sequence with an item in front.", cons),
    direct("conj", CORE, "0+", "(conj coll item …)", "Adds items: to the end of a vector, into a set or map.", conj).known(Known::Conj),
    callback("into", CORE, "0-3", "(into to xform? from)", "Adds every item of one collection, or what a transducer makes of them, to another.", |cx, a| match a.len() {
        3 => transducers::into(cx, a),
        _ => into(cx, a).map(Step::Return),
    }),
    direct("concat", CORE, "0+", "(concat coll …)", "The items of all collections, one after another.", concat),
    callback("zip", CORE, "2", "(zip a b)", "Pairs of the items of two collections.", zip).known(Known::Zip),
    callback("interleave", CORE, "0+", "(interleave coll …)", "First items of all, then second items, …", interleave).known(Known::Interleave),
    direct("interpose", CORE, "1-2", "(interpose separator coll?)", "The items with a separator between them.", interpose),
    direct("range", CORE, "0-3", "(range start? end step?)", "Numbers from start up to, not including, end; without arguments from 0 on, endlessly.", range).known(Known::Range),
];

fn vector(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    Ok(List::taken(cx, arguments)?.into_value())
}

fn list_star(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let last = arguments.len() - 1;
    let tail = seq::argument(cx, take(&mut arguments[last]), "list*", last + 1)?;
    let mut items = List::taken(cx, &mut arguments[..last])?;
    items.extend(cx, tail.iter())?;
    Ok(items.into_value())
}

fn vec(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    Ok(Value::Vector(seq::argument(cx, take(&mut arguments[0]), "vec", 1)?))
}

fn seq(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    if arguments[0].endless().is_some() {
        return Ok(take(&mut arguments[0]));
    }
    let vector = seq::argument(cx, take(&mut arguments[0]), "seq", 1)?;
    Ok(if vector.is_empty() { Value::Nil } else { Value::Vector(vector) })
}

fn cons(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let item = take(&mut arguments[0]);
    if arguments[1].endless().is_some() {
        return Ok(endless::after(List::from_array([item]).into_vector(), take(&mut arguments[1])));
    }
    let vector = seq::argument(cx, take(&mut arguments[1]), "cons", 2)?;
    Ok(Value::Vector(VectorNode::push_front(vector, cx, item)?))
}

fn conj(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let Some((target, items)) = arguments.split_first_mut() else { return Ok(Value::row([])) };
    let mut target = take(target);
    if matches!(target, Value::Nil) && !items.is_empty() {
        target = Value::row([]);
    }
    for item in items {
        cx.tick(1)?;
        target = add(cx, target, take(item), "conj")?;
    }
    Ok(target)
}

fn into(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let [target, source] = arguments else {
        return Ok(arguments.first_mut().map_or_else(|| Value::row([]), take));
    };
    let (target, source) = (take(target), take(source));
    match target {
        Value::Nil => append(cx, List::default().into_vector(), source, "into", 2).map(Value::Vector),
        Value::Vector(vector) => append(cx, vector, source, "into", 2).map(Value::Vector),
        Value::Set(set) => add_members(cx, set, source, "into", 2).map(Value::Set),
        Value::Map(mut map) => match source {
            Value::Map(more) => merge(cx, map, &more).map(Value::Map),
            source => {
                let items = seq::argument(cx, source, "into", 2)?;
                for item in items.iter() {
                    cx.tick(1)?;
                    seq::check_memory(cx)?;
                    map = add_entries(cx, map, item, "into")?;
                }
                Ok(Value::Map(map))
            }
        },
        other => Err(expected("into", 1, "collection", &other)),
    }
}

/// Appends the items of a collection to a vector.
fn append(
    cx: &mut Context,
    mut vector: Rc<VectorNode>,
    more: Value,
    name: &'static str,
    position: usize,
) -> Result<Rc<VectorNode>> {
    let more = seq::argument(cx, more, name, position)?;
    if vector.is_empty() || more.is_empty() {
        return Ok(if more.is_empty() { vector } else { more });
    }
    VectorNode::append_all(&mut vector, cx, &more)?;
    Ok(vector)
}

fn concat(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let mut all = List::default().into_vector();
    for (at, coll) in arguments.iter_mut().enumerate() {
        if coll.endless().is_some() {
            // Collections after an endless sequence are never reached.
            return Ok(endless::after(all, take(coll)));
        }
        all = append(cx, all, take(coll), "concat", at + 1)?;
    }
    Ok(Value::Vector(all))
}

fn zip(cx: &mut Context, arguments: &mut [Value]) -> Result<Step> {
    if let Some(step) = endless::bounded(cx, Known::Zip, arguments, 0)? {
        return Ok(step);
    }
    let left = seq::argument(cx, take(&mut arguments[0]), "zip", 1)?;
    let right = seq::argument(cx, take(&mut arguments[1]), "zip", 2)?;
    let mut pairs = List::default();
    for (a, b) in left.iter().zip(right.iter()) {
        cx.tick(1)?;
        seq::check_memory(cx)?;
        pairs.push(cx, seq::pair(a, b))?;
    }
    Ok(Step::Return(pairs.into_value()))
}

fn interleave(cx: &mut Context, arguments: &mut [Value]) -> Result<Step> {
    if let Some(step) = endless::bounded(cx, Known::Interleave, arguments, 0)? {
        return Ok(step);
    }
    let mut colls = List::with_capacity(cx, arguments.len())?;
    for coll in arguments.iter_mut() {
        let coll = seq::positional(cx, take(coll), "interleave")?;
        colls.push(cx, coll)?;
    }
    let shortest = colls.iter().map(|coll| coll.len()).min().unwrap_or(0);
    let count = shortest.saturating_mul(colls.len());
    let mut items = List::with_capacity(cx, count)?;
    for index in 0..shortest {
        items.extend(cx, colls.iter().filter_map(|coll| coll.get(index)))?;
    }
    Ok(Step::Return(items.into_value()))
}

fn interpose(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    if let Some(value) = transducers::short_of_items(cx, "interpose", StageKind::Interpose, arguments)? {
        return Ok(value);
    }
    let separator = take(&mut arguments[0]);
    let vector = seq::positional(cx, take(&mut arguments[1]), "interpose")?;
    let count = vector.len().saturating_mul(2).saturating_sub(1);
    let mut items = List::with_capacity(cx, count)?;
    for (at, item) in vector.iter().enumerate() {
        if at > 0 {
            items.push(cx, separator.clone())?;
        }
        cx.tick(2)?;
        items.push(cx, item)?;
    }
    Ok(items.into_value())
}

pub(crate) fn range(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let (start, end, step) = match arguments {
        [end] => (Value::Int(0), take(end), Value::Int(1)),
        [start, end] => (take(start), take(end), Value::Int(1)),
        [start, end, step, ..] => (take(start), take(end), take(step)),
        [] => return Ok(endless::counting()),
    };
    match (start, end, step) {
        (Value::Int(start), Value::Int(end), Value::Int(step)) => integer_range(start, i128::from(end), step),
        (Value::Int(start), Value::BigInt(end), Value::Int(step)) => {
            let end = cx.limbs(&end)?.to_i128().ok_or_else(too_long)?;
            integer_range(start, end, step)
        }
        (Value::Int(start), Value::Float(end), Value::Int(step)) if end.is_finite() => {
            let end = if step > 0 { end.ceil() } else { end.floor() };
            integer_range(start, end as i128, step)
        }
        (start, end, step) => match (as_float(&start), as_float(&end), as_float(&step)) {
            (Some(from), Some(to), Some(by)) => float_range(cx, start, from, to, by),
            _ => Err(invalid_types("range", &[&start, &end, &step])),
        },
    }
}

#[cold]
fn zero_step() -> Box<Fault> {
    Fault::type_error("range: the step must not be zero")
}

#[cold]
fn too_long() -> Box<Fault> {
    Fault::type_error("range: numbers or length do not fit 64 bits")
}

fn as_float(value: &Value) -> Option<f64> {
    match value {
        Value::Int(value) => Some(*value as f64),
        Value::Float(value) => Some(*value),
        _ => None,
    }
}

/// A range of integers does not store its items.
fn integer_range(start: i64, end: i128, step: i64) -> Result<Value> {
    if step == 0 {
        return Err(zero_step());
    }
    let start_wide = i128::from(start);
    let distance = if step > 0 { end.saturating_sub(start_wide) } else { start_wide.saturating_sub(end) };
    let stride = i128::from(step.unsigned_abs());
    let steps = distance.max(0).saturating_add(stride - 1) / stride;
    // If the end does not fit 64 bits, the last items may not either.
    let last = i128::from(start).saturating_add(i128::from(step).saturating_mul((steps - 1).max(0)));
    match (usize::try_from(steps), i64::try_from(steps), i64::try_from(last)) {
        (Ok(0), _, _) => Ok(Value::row([])),
        (Ok(len), Ok(_), Ok(_)) => Ok(Value::Vector(VectorNode::range(start, step, len))),
        _ => Err(too_long()),
    }
}

/// Floats accumulate, as repeated addition of the step would.
fn float_range(cx: &mut Context, start: Value, from: f64, to: f64, by: f64) -> Result<Value> {
    if by == 0.0 {
        return Err(zero_step());
    }
    if [from, to, by].iter().any(|value| !value.is_finite()) {
        return Err(Fault::type_error("range: the bounds must be finite numbers")
            .hint("Give the range an end, for example (range 0 100)."));
    }
    let (mut items, mut at, mut next) = (List::default(), from, Some(start));
    while if by > 0.0 { at < to } else { at > to } {
        // The first item keeps its own type: (range 0 1 0.5) starts with the integer 0.
        cx.tick(1)?;
        items.push(cx, next.take().unwrap_or(Value::Float(at)))?;
        at += by;
    }
    Ok(items.into_value())
}
