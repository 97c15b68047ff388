//! Defines the builtins on collections: in this file those that measure or summarise a whole collection (`count`,
//! `empty?`, `frequencies`, `sum`), in submodules all others.

pub(crate) mod construction;
pub(crate) mod maps;
pub(crate) mod partitions;
pub(crate) mod relations;
pub(crate) mod sequences;
pub(crate) mod sets;
pub(crate) mod sorting;

use crate::arith;
use crate::builtins::{Builtin, Category, direct};
use crate::collection::seq;
use crate::collection::seq::expected;
use crate::context::Context;
use crate::fault::{Fault, Result};
use crate::value::Value;
use crate::value::map::MapNode;
use crate::value::set::SetNode;
use std::mem::take;
use std::rc::Rc;

const CORE: Category = Category::Core;

/// The rows of this module.
#[rustfmt::skip]
pub(crate) const TABLE: &[Builtin] = &[
    direct("count", CORE, "1", "(count coll)", "The number of items; graphemes for a string.", count),
    direct("empty?", CORE, "1", "(empty? coll)", "True when there are no items.", is_empty),
    direct("not-empty", CORE, "1", "(not-empty coll)", "The collection itself, or nil when it is empty.", not_empty),
    direct("empty", CORE, "1", "(empty coll)", "An empty collection of the same kind.", empty),
    direct("frequencies", CORE, "1", "(frequencies coll)", "A map from each item to how often it occurs.", frequencies),
    direct("sum", CORE, "1", "(sum coll)", "The sum of the numbers; nil is skipped.", sum),
    direct("avg", CORE, "1", "(avg coll)", "The mean of the numbers, nil skipped; nil when there are none.", avg),
];

fn count(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let count = size(cx, &arguments[0], "count")?;
    Ok(Value::Int(i64::try_from(count).unwrap_or(i64::MAX)))
}

/// The number of items of any collection.
fn size(cx: &mut Context, coll: &Value, name: &'static str) -> Result<usize> {
    Ok(match coll {
        Value::Nil => 0,
        Value::Vector(node) => node.len(),
        Value::Map(node) => node.len(),
        Value::Set(node) => node.len(),
        Value::Str(node) => cx.graphemes(node)?,
        other => return Err(expected(name, 1, "seqable", other)),
    })
}

fn has_none(coll: &Value, name: &'static str) -> Result<bool> {
    match coll {
        Value::Nil => Ok(true),
        other if other.endless().is_some() => Ok(false),
        other => other.has_no_items().ok_or_else(|| expected(name, 1, "seqable", other)),
    }
}

fn is_empty(_cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    Ok(Value::Bool(has_none(&arguments[0], "empty?")?))
}

fn not_empty(_cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    if has_none(&arguments[0], "not-empty")? { Ok(Value::Nil) } else { Ok(take(&mut arguments[0])) }
}

fn empty(_cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    Ok(match &arguments[0] {
        Value::Vector(_) => Value::row([]),
        Value::Map(_) => Value::Map(MapNode::empty()),
        Value::Set(_) => Value::Set(SetNode::empty()),
        // As in Clojure: a string is no collection.
        _ => Value::Nil,
    })
}

fn frequencies(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let vector = seq::argument(cx, take(&mut arguments[0]), "frequencies", 1)?;
    let mut counts: Rc<MapNode> = MapNode::empty();
    for item in vector.iter() {
        cx.tick(1)?;
        counts = match counts.find(cx, &item)? {
            Some(row) => {
                let seen = match counts.value(row) {
                    Value::Int(seen) => *seen,
                    _ => 0,
                };
                MapNode::replace_at(counts, cx, row, Value::Int(seen + 1))?
            }
            None => {
                seq::check_memory(cx)?;
                MapNode::insert(counts, cx, item, Value::Int(1))?
            }
        };
    }
    Ok(Value::Map(counts))
}

/// The sum of the numbers and how many there are.
fn total(cx: &mut Context, coll: Value, name: &'static str) -> Result<(Value, i64)> {
    let vector = seq::argument(cx, coll, name, 1)?;
    let (mut sum, mut count) = (Value::Int(0), 0);
    for item in vector.iter() {
        cx.tick(1)?;
        sum = match (sum, item) {
            (sum, Value::Nil) => sum,
            (Value::Int(sum), Value::Int(item)) if sum.checked_add(item).is_some() => {
                count += 1;
                Value::Int(sum.wrapping_add(item))
            }
            (sum, item @ (Value::Int(_) | Value::Float(_) | Value::BigInt(_))) => {
                count += 1;
                arith::add(cx, sum, item)?
            }
            (_, other) => {
                return Err(Fault::arithmetic("bad argument in arithmetic expression")
                    .hint(format_args!("{name} takes numbers and nil, got {}.", other.type_word())));
            }
        };
    }
    Ok((sum, count))
}

fn sum(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    Ok(total(cx, take(&mut arguments[0]), "sum")?.0)
}

fn avg(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let (sum, count) = total(cx, take(&mut arguments[0]), "avg")?;
    if count == 0 { Ok(Value::Nil) } else { arith::divide(cx, sum, Value::Int(count)) }
}
