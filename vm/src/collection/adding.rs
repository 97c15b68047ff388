//! Adds items to vectors and sets, and entries to maps, by the rules that `conj`, `into`, `merge` and other builtins
//! share.

use super::seq::{self, expected};
use crate::context::Context;
use crate::fault::{Fault, Result};
use crate::value::Value;
use crate::value::map::{ENTRY_BYTES, MapNode};
use crate::value::set::SetNode;
use crate::value::symbol::Symbol;
use crate::value::vector::VectorNode;
use std::rc::Rc;

/// Adds one item, as `conj` does.
pub(crate) fn add(cx: &mut Context, target: Value, item: Value, name: &'static str) -> Result<Value> {
    match target {
        Value::Vector(vector) => Ok(Value::Vector(VectorNode::push(vector, cx, item)?)),
        Value::Set(set) => Ok(Value::Set(SetNode::insert(set, cx, item)?)),
        Value::Map(map) => Ok(Value::Map(add_entries(cx, map, item, name)?)),
        other => Err(expected(name, 1, "collection", &other)),
    }
}

/// Adds a `[key value]` pair, or all entries of a map, to a map; nil adds nothing.
pub(crate) fn add_entries(
    cx: &mut Context,
    map: Rc<MapNode>,
    item: Value,
    name: &'static str,
) -> Result<Rc<MapNode>> {
    if let Some((key, value)) = seq::halves(&item) {
        return MapNode::write(map, cx, key, value);
    }
    match item {
        Value::Nil => Ok(map),
        Value::Map(more) => merge(cx, map, &more),
        Value::Vector(node) => Err(Fault::type_error(format_args!(
            "{name}: a map takes [key value] pairs or maps, got a list of {} items",
            node.len()
        ))),
        other => Err(other.mistyped(format_args!("{name}: a map takes [key value] pairs or maps"))),
    }
}

/// Adds all entries of one map to another. A keyword of `from` replaces a string key of `into`, as in any write. It
/// never replaces a string key from its own map, which was written with both on purpose.
pub(crate) fn merge(cx: &mut Context, mut into: Rc<MapNode>, from: &Rc<MapNode>) -> Result<Rc<MapNode>> {
    if Rc::ptr_eq(&into, from) {
        return Ok(into);
    }
    if into.is_empty() {
        return Ok(from.clone());
    }
    cx.reserve(from.len().saturating_mul(ENTRY_BYTES))?;
    for entry in from.entries() {
        cx.tick(1)?;
        into = match entry.key {
            Value::Keyword(keyword) if !meets_alone(cx, &into, from, *keyword)? => {
                MapNode::insert(into, cx, entry.key.clone(), entry.value.clone())?
            }
            key => MapNode::write(into, cx, key.clone(), entry.value.clone())?,
        };
    }
    Ok(into)
}

/// Whether a keyword of `from` may replace the key it matches in `into`: no other key of `from` has that name.
fn meets_alone(cx: &mut Context, into: &MapNode, from: &MapNode, keyword: Symbol) -> Result<bool> {
    let Some(row) = into.find_written(cx, &Value::Keyword(keyword))? else { return Ok(true) };
    let met = into.key(row);
    if !matches!(met, Value::Str(_)) {
        return Ok(true);
    }
    let own_name = Value::Str(cx.symbols.string(keyword).clone());
    let own = from.find_keyword(cx, keyword);
    let named = from.find_flexible(cx, met)?;
    Ok((named.is_none() || named == own) && from.find(cx, &own_name)?.is_none())
}

/// Adds the items of a collection to a set.
pub(crate) fn add_members(
    cx: &mut Context,
    mut set: Rc<SetNode>,
    more: Value,
    name: &'static str,
    position: usize,
) -> Result<Rc<SetNode>> {
    if let Value::Set(more) = more {
        if set.is_empty() || Rc::ptr_eq(&set, &more) {
            return Ok(more);
        }
        cx.reserve_items(more.len())?;
        for member in more.members() {
            cx.tick(1)?;
            set = SetNode::insert(set, cx, member.clone())?;
        }
        return Ok(set);
    }
    let items = seq::argument(cx, more, name, position)?;
    for item in items.iter() {
        cx.tick(1)?;
        seq::check_memory(cx)?;
        set = SetNode::insert(set, cx, item)?;
    }
    Ok(set)
}
