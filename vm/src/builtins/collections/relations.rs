//! Builtins of `clojure.set` that treat sets of maps as tables of a database (`project`, `rename`, `join`). The other
//! functions on subsets and keys (`subset?`, `rename-keys`) are here too.

use crate::builtins::collections::maps::select_keys;
use crate::builtins::functions::callbacks::each;
use crate::builtins::{Builtin, Category, callback, direct};
use crate::collection::seq;
use crate::collection::seq::expected;
use crate::context::Context;
use crate::fault::Result;
use crate::memory::List;
use crate::native::each::Kind;
use crate::value::Value;
use crate::value::map::{ENTRY_BYTES, MapNode};
use crate::value::set::SetNode;
use std::mem::take;
use std::rc::Rc;

const SET: Category = Category::Set;

/// The rows of this module.
#[rustfmt::skip]
pub(crate) const TABLE: &[Builtin] = &[
    direct("subset?", SET, "2", "(subset? a b)", "Whether every member of a is in b.", |cx, a| { let [a, b] = a else { return Ok(Value::Nil) }; subset(cx, "subset?", a, b) }),
    direct("superset?", SET, "2", "(superset? a b)", "Whether every member of b is in a.", |cx, a| { let [a, b] = a else { return Ok(Value::Nil) }; subset(cx, "superset?", b, a) }),
    callback("select", SET, "2", "(select pred s)", "The members for which pred holds, as a set.", |cx, a| each(cx, "select", Kind::Select, false, a)),
    direct("project", SET, "2", "(project rows keys)", "The rows with only these keys, as a set.", project),
    direct("rename-keys", SET, "2", "(rename-keys m {old new})", "m with keys renamed.", rename_keys),
    direct("rename", SET, "2", "(rename rows {old new})", "The rows with keys renamed, as a set.", rename),
    direct("map-invert", SET, "1", "(map-invert m)", "A map from the values of m to its keys.", map_invert),
    direct("index", SET, "2", "(index rows keys)", "A map from what the rows have at these keys to the set of such rows.", index),
    direct("join", SET, "2-3", "(set/join a b {a-key b-key})", "The rows of a and b that agree on their common keys, or on these, merged.", join),
];

fn subset(cx: &mut Context, name: &'static str, small: &mut Value, large: &mut Value) -> Result<Value> {
    let large = match take(large) {
        Value::Set(set) => set,
        other => crate::collection::adding::add_members(cx, SetNode::empty(), other, name, 2)?,
    };
    for member in seq::argument(cx, take(small), name, 1)?.iter() {
        cx.tick(1)?;
        if large.find(cx, &member)?.is_none() {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

/// The set of the results of `change` for every row.
fn rows(
    cx: &mut Context,
    name: &'static str,
    rows: Value,
    change: impl Fn(&mut Context, Value) -> Result<Value>,
) -> Result<Value> {
    let mut set: Rc<SetNode> = SetNode::empty();
    for row in seq::argument(cx, rows, name, 1)?.iter() {
        cx.tick(1)?;
        seq::check_memory(cx)?;
        let row = change(cx, row)?;
        set = SetNode::insert(set, cx, row)?;
    }
    Ok(Value::Set(set))
}

fn project(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let keys = arguments[1].clone();
    rows(cx, "project", take(&mut arguments[0]), |cx, row| select_keys(cx, &mut [row, keys.clone()]))
}

fn rename_keys(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    match &arguments[1] {
        Value::Nil => Ok(take(&mut arguments[0])),
        Value::Map(names) => {
            let names = names.clone();
            renamed(cx, take(&mut arguments[0]), &names)
        }
        other => Err(expected("rename-keys", 2, "map", other)),
    }
}

fn rename(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let names = match take(&mut arguments[1]) {
        Value::Map(names) => names,
        other => return Err(expected("rename", 2, "map", &other)),
    };
    rows(cx, "rename", take(&mut arguments[0]), |cx, row| renamed(cx, row, &names))
}

/// All values are read before any is written, so that names can be exchanged.
fn renamed(cx: &mut Context, row: Value, names: &MapNode) -> Result<Value> {
    let mut map = match row {
        Value::Nil => return Ok(Value::Nil),
        Value::Map(map) => map,
        other => return Err(expected("rename-keys", 1, "map", &other)),
    };
    let mut found: List<(Value, Value, Value)> = List::default();
    let order = names.order(cx)?;
    for &at in order {
        let entry = names.entry(at as usize);
        if let Some(row) = map.find_flexible(cx, entry.key)? {
            let old = map.entry(row);
            cx.tick(1)?;
            found.push(cx, (old.key.clone(), entry.value.clone(), old.value.clone()))?;
        }
    }
    cx.reserve(map.len().saturating_mul(ENTRY_BYTES))?;
    for (old, _, _) in found.iter() {
        map = MapNode::remove(map, cx, old)?;
    }
    for (_, new, value) in found {
        map = MapNode::write(map, cx, new, value)?;
    }
    Ok(Value::Map(map))
}

fn map_invert(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let map = match take(&mut arguments[0]) {
        Value::Nil => MapNode::empty(),
        Value::Map(map) => map,
        other => return Err(expected("map-invert", 1, "map", &other)),
    };
    cx.reserve(map.len().saturating_mul(ENTRY_BYTES))?;
    let mut inverted: Rc<MapNode> = MapNode::empty();
    for &row in map.order(cx)? {
        cx.tick(1)?;
        let entry = map.entry(row as usize);
        inverted = MapNode::insert(inverted, cx, entry.value.clone(), entry.key.clone())?;
    }
    Ok(Value::Map(inverted))
}

fn index(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let keys = arguments[1].clone();
    let rows = seq::argument(cx, take(&mut arguments[0]), "index", 1)?;
    let mut groups: Rc<MapNode> = MapNode::empty();
    for row in rows.iter() {
        let key = select_keys(cx, &mut [row.clone(), keys.clone()])?;
        groups = add_to_group(cx, groups, key, row)?;
    }
    Ok(Value::Map(groups))
}

/// Adds a row to the set at a key.
fn add_to_group(cx: &mut Context, mut groups: Rc<MapNode>, key: Value, row: Value) -> Result<Rc<MapNode>> {
    cx.tick(1)?;
    seq::check_memory(cx)?;
    let row_of_group = groups.find(cx, &key)?;
    let group = match row_of_group.and_then(|at| MapNode::take_at(&mut groups, at)) {
        Some(Value::Set(group)) => group,
        _ => SetNode::empty(),
    };
    let group = SetNode::insert(group, cx, row)?;
    MapNode::insert(groups, cx, key, Value::Set(group))
}

fn join(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let left = seq::argument(cx, take(&mut arguments[0]), "join", 1)?;
    let right = seq::argument(cx, take(&mut arguments[1]), "join", 2)?;
    let keys = match arguments.get(2) {
        None | Some(Value::Nil) => common_keys(cx, left.get(0), right.get(0))?,
        Some(Value::Map(keys)) => keys.clone(),
        Some(other) => return Err(expected("join", 3, "map", other)),
    };
    let mut groups: Rc<MapNode> = MapNode::empty();
    for row in right.iter() {
        let key = values_at(cx, &row, &keys, 2, false)?;
        groups = add_to_group(cx, groups, key, row)?;
    }
    let mut joined: Rc<SetNode> = SetNode::empty();
    for row in left.iter() {
        cx.tick(1)?;
        let key = values_at(cx, &row, &keys, 1, true)?;
        let Some(at) = groups.find(cx, &key)? else { continue };
        let (Value::Map(row), Value::Set(group)) = (&row, groups.value(at)) else { continue };
        for partner in group.members() {
            if let Value::Map(partner) = partner {
                seq::check_memory(cx)?;
                let merged = crate::collection::adding::merge(cx, row.clone(), partner)?;
                joined = SetNode::insert(joined, cx, Value::Map(merged))?;
            }
        }
    }
    Ok(Value::Set(joined))
}

/// The keys that the first rows share, each mapped to itself.
fn common_keys(cx: &mut Context, left: Option<Value>, right: Option<Value>) -> Result<Rc<MapNode>> {
    let mut keys: Rc<MapNode> = MapNode::empty();
    if let (Some(Value::Map(left)), Some(Value::Map(right))) = (left, right) {
        for entry in left.entries() {
            cx.tick(1)?;
            if right.find(cx, entry.key)?.is_some() {
                keys = MapNode::insert(keys, cx, entry.key.clone(), entry.key.clone())?;
            }
        }
    }
    Ok(keys)
}

/// The values of a row at the keys (left names) or the values (right names) of a map, in its order.
fn values_at(cx: &mut Context, row: &Value, keys: &MapNode, position: usize, left: bool) -> Result<Value> {
    let Value::Map(map) = row else { return Err(expected("join", position, "collection of maps", row)) };
    let mut values = List::with_capacity(cx, keys.len())?;
    for &row in keys.order(cx)? {
        let entry = keys.entry(row as usize);
        cx.tick(1)?;
        let key = if left { entry.key } else { entry.value };
        let value = map.get(cx, key)?.cloned().unwrap_or_default();
        values.push(cx, value)?;
    }
    Ok(values.into_value())
}
