//! Builtins that make a new sequence by regrouping, replacing or leaving out items of another (`partition`, `flatten`,
//! `distinct`, `take-nth`, `combinations`).

use crate::builtins::functions::endless::staged;
use crate::builtins::functions::transducers::{short_of_all, short_of_items, transducer};
use crate::builtins::{Builtin, Category, direct};
use crate::bytecode::StageKind;
use crate::collection::lookup::element;
use crate::collection::seq;
use crate::context::Context;
use crate::fault::{Fault, Result};
use crate::memory::List;
use crate::value::Value;
use crate::value::relation::equal::same_key;
use crate::value::set::SetNode;
use crate::value::vector::VectorNode;
use std::mem::take;
use std::rc::Rc;

const CORE: Category = Category::Core;

/// The rows of this module.
#[rustfmt::skip]
pub(crate) const TABLE: &[Builtin] = &[
    direct("partition", CORE, "2-4", "(partition n step? pad? coll)", "Parts of n items; a shorter rest is left out.", partition),
    direct("partition-all", CORE, "1-3", "(partition-all n step? coll?)", "Parts of n items; the last may be shorter.", partition_all),
    direct("partitionv", CORE, "2-4", "(partitionv n step? pad? coll)", "The same as `partition`.", partition),
    direct("partitionv-all", CORE, "1-3", "(partitionv-all n step? coll?)", "The same as `partition-all`.", partition_all),
    direct("take-nth", CORE, "1-2", "(take-nth n coll?)", "Every nth item, from the first on.", take_nth),
    direct("dedupe", CORE, "0-1", "(dedupe coll?)", "The items without those equal to the one before.", dedupe),
    direct("distinct", CORE, "0-1", "(distinct coll?)", "The items, each once, in order of first appearance.", distinct),
    direct("flatten", CORE, "1", "(flatten coll)", "The items of nested vectors, in one vector.", flatten),
    direct("combinations", CORE, "2", "(combinations coll n)", "All subsets of n items, in order.", combinations),
];

/// A size or step: a positive integer.
pub(crate) fn positive(value: &Value, name: &'static str, what: &str) -> Result<usize> {
    match value {
        Value::Int(count) if *count > 0 => Ok(seq::length(*count)),
        Value::Int(count) => {
            Err(Fault::type_error(format_args!("{name}: {what} must be a positive integer, got {count}")))
        }
        other => Err(other.mistyped(format_args!("{name}: {what} must be a positive integer"))),
    }
}

fn take_nth(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    if let Some(value) = short_of_items(cx, "take-nth", StageKind::TakeNth, arguments)? {
        return Ok(value);
    }
    let step = positive(&arguments[0], "take-nth", "n")?;
    let vector = seq::argument(cx, take(&mut arguments[1]), "take-nth", 2)?;
    let picked = (0..vector.len()).step_by(step).map(|index| vector.get(index).unwrap_or_default());
    Ok(cx.collect(picked)?.into_value())
}

fn partition(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    parts(cx, "partition", StageKind::Partition, arguments)
}

fn partition_all(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    match arguments {
        [size] => transducer(cx, "partition-all", StageKind::PartitionAll, Some(size)),
        _ => parts(cx, "partition-all", StageKind::PartitionAll, arguments),
    }
}

/// Parts of `n` items, each starting `step` items after the one before: `(n step? pad? coll)`.
fn parts(cx: &mut Context, name: &'static str, kind: StageKind, arguments: &mut [Value]) -> Result<Value> {
    let last = arguments.len() - 1;
    let size = positive(&arguments[0], name, "n")?;
    let step = if last > 1 { positive(&arguments[1], name, "step")? } else { size };
    let pad = match last {
        3 => Some(seq::argument(cx, take(&mut arguments[2]), name, 3)?),
        _ => None,
    };
    if arguments[last].endless().is_some() {
        let number = |count: usize| Value::Int(i64::try_from(count).unwrap_or(i64::MAX));
        return Ok(staged(take(&mut arguments[last]), kind, [number(size), number(step)]));
    }
    let vector = seq::argument(cx, take(&mut arguments[last]), name, last + 1)?;
    let mut parts = List::default();
    let mut start = 0;
    while start < vector.len() {
        let end = start.saturating_add(size);
        if end <= vector.len() || kind == StageKind::PartitionAll {
            push_part(cx, &mut parts, VectorNode::slice(&vector, start, end))?;
        } else {
            // Only the first part that is too short is padded; nothing follows it.
            if let Some(pad) = pad {
                let part = VectorNode::slice(&vector, start, end);
                let missing = (size - part.len()).min(pad.len());
                let mut part = part.copy_items(cx, missing)?;
                part.extend(cx, pad.iter().take(missing))?;
                let part = part.into_vector();
                push_part(cx, &mut parts, part)?;
            }
            break;
        }
        start = start.saturating_add(step);
    }
    Ok(parts.into_value())
}

/// A part shares the items of the whole, so it costs one node.
fn push_part(cx: &mut Context, parts: &mut List<Value>, part: Rc<VectorNode>) -> Result<()> {
    seq::check_memory(cx)?;
    cx.tick(1)?;
    parts.push(cx, Value::Vector(part))
}

fn dedupe(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    if let Some(value) = short_of_all(StageKind::Dedupe, arguments) {
        return Ok(value);
    }
    let vector = seq::argument(cx, take(&mut arguments[0]), "dedupe", 1)?;
    let mut kept = List::default();
    for item in vector.iter() {
        cx.tick(1)?;
        if let Some(before) = kept.last()
            && same_key(cx, before, &item)?
        {
            continue;
        }
        kept.push(cx, item)?;
    }
    Ok(kept.into_value())
}

fn distinct(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    if let Some(value) = short_of_all(StageKind::Distinct, arguments) {
        return Ok(value);
    }
    let coll = take(&mut arguments[0]);
    let vector = seq::argument(cx, coll, "distinct", 1)?;
    let mut seen: Rc<SetNode> = SetNode::empty();
    let mut kept = List::default();
    for item in vector.iter() {
        cx.tick(1)?;
        let before = seen.len();
        seen = SetNode::insert(seen, cx, item.clone())?;
        if seen.len() > before {
            kept.push(cx, item)?;
            seq::check_memory(cx)?;
        }
    }
    Ok(kept.into_value())
}

fn flatten(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let root = match take(&mut arguments[0]) {
        Value::Nil => return Ok(Value::row([])),
        Value::Vector(root) => root,
        other => return Err(seq::expected("flatten", 1, "list", &other)),
    };
    let mut flat = List::default();
    // Open vectors, each with the position at which to resume.
    let mut open = List::from_array([(root, 0)]);
    while let Some((vector, at)) = open.last_mut() {
        let item = vector.get(*at);
        *at += 1;
        cx.tick(1)?;
        match item {
            None => drop(open.pop()),
            Some(Value::Vector(inner)) => open.push(cx, (inner, 0))?,
            Some(item) => flat.push(cx, item)?,
        }
    }
    Ok(flat.into_value())
}

/// `(replace replacements coll)`: replaces items that are keys of the map by their values.
pub(crate) fn replace(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    if let Some(value) = short_of_items(cx, "replace", StageKind::Replace, arguments)? {
        return Ok(value);
    }
    let replacements = take(&mut arguments[0]);
    if !matches!(replacements, Value::Map(_) | Value::Vector(_)) {
        return Err(seq::expected("replace", 1, "map or list", &replacements));
    }
    let vector = seq::argument(cx, take(&mut arguments[1]), "replace", 2)?;
    let mut replaced = List::default();
    for item in vector.iter() {
        let item = element(cx, &replacements, &item)?.unwrap_or(item);
        cx.tick(1)?;
        replaced.push(cx, item)?;
    }
    Ok(replaced.into_value())
}

fn combinations(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let vector = seq::argument(cx, take(&mut arguments[0]), "combinations", 1)?;
    let size = match &arguments[1] {
        Value::Int(size) if *size >= 0 => seq::length(*size),
        _ => return Ok(Value::row([])),
    };
    if size > vector.len() {
        return Ok(Value::row([]));
    }
    // Ascending positions of the chosen items; the rightmost one that can still move moves next.
    let mut chosen = cx.collect(0..size)?;
    let mut subsets = List::default();
    loop {
        cx.tick(1)?;
        let subset = cx.collect(chosen.iter().map(|&at| vector.get(at).unwrap_or_default()))?;
        seq::check_memory(cx)?;
        subsets.push(cx, subset.into_value())?;
        let room = vector.len() - size;
        let Some(moving) = (0..size).rev().find(|&at| chosen[at] < at + room) else { break };
        let base = chosen[moving] + 1 - moving;
        for (at, position) in chosen.iter_mut().enumerate().skip(moving) {
            *position = base + at;
        }
    }
    Ok(subsets.into_value())
}
