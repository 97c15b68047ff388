//! Builtins that make and read maps (`keys`, `merge`, `zipmap`), and read or write values by key or path (`get`,
//! `assoc-in`). None takes a function.

use crate::builtins::{Builtin, Category, callback, direct};
use crate::bytecode::Known;
use crate::collection::lookup::{associate, associate_at, element, element_at, index};
use crate::collection::seq::expected;
use crate::collection::{adding, seq};
use crate::context::Context;
use crate::fault::{Fault, Reason, Result};
use crate::memory::List;
use crate::native::Step;
use crate::value::Value;
use crate::value::map::{ENTRY_BYTES, Entry, MapNode};
use crate::value::vector::VectorNode;
use std::mem::take;
use std::rc::Rc;

const CORE: Category = Category::Core;

/// The rows of this module.
#[rustfmt::skip]
pub(crate) const TABLE: &[Builtin] = &[
    direct("get", CORE, "2-3", "(get coll key default?)", "What a key finds in a map, vector, set or string; keywords and strings match each other.", get),
    direct("get-in", CORE, "2-3", "(get-in coll path default?)", "What a path of keys finds.", get_in),
    direct("assoc", CORE, "1+", "(assoc coll key value …)", "The map or vector with values under these keys.", assoc),
    direct("assoc-in", CORE, "3", "(assoc-in coll path value)", "The collection with a value at the end of a path of keys.", assoc_in),
    direct("dissoc", CORE, "1+", "(dissoc m key …)", "The map without these keys.", dissoc),
    direct("merge", CORE, "0+", "(merge m …)", "The entries of all maps; later ones win.", merge),
    direct("select-keys", CORE, "2", "(select-keys m keys)", "A map of only these keys, as far as they are there.", select_keys),
    callback("zipmap", CORE, "2", "(zipmap keys values)", "A map from keys to values, pairwise.", zipmap).known(Known::Zipmap),
    direct("hash-map", CORE, "0+", "(hash-map key value …)", "A map of the arguments.", |cx, a| map_of(cx, a, "hash-map")),
    direct("sorted-map", CORE, "0+", "(sorted-map key value …)", "A map of the arguments; every map is in key order.", |cx, a| map_of(cx, a, "sorted-map")),
    direct("array-map", CORE, "0+", "(array-map key value …)", "A map of the arguments.", |cx, a| map_of(cx, a, "array-map")),
    direct("find", CORE, "2", "(find m key)", "The [key value] entry of a key, or nil.", find),
    direct("entries", CORE, "1", "(entries m)", "The [key value] pairs of a map, in key order.", entries),
    direct("keys", CORE, "1", "(keys m)", "The keys of a map, in order; nil when it is empty.", |cx, a| column(cx, &a[0], "keys", |entry| entry.key)),
    direct("vals", CORE, "1", "(vals m)", "The values of a map, in key order; nil when it is empty.", |cx, a| column(cx, &a[0], "vals", |entry| entry.value)),
    direct("key", CORE, "1", "(key entry)", "The key of a [key value] pair.", |_cx, a| half(&a[0], "key", |(key, _)| key)),
    direct("val", CORE, "1", "(val entry)", "The value of a [key value] pair.", |_cx, a| half(&a[0], "val", |(_, value)| value)),
];

/// Faults for values that have no elements.
fn readable(coll: &Value, key: &Value) -> Result<()> {
    match coll {
        Value::Nil | Value::Map(_) | Value::Vector(_) | Value::Set(_) => Ok(()),
        other if matches!(key, Value::Map(_)) => Err(Fault::type_error(format_args!(
            "get expects the collection first, e.g. (get map key) — got ({}, map), arguments appear to be swapped",
            other.type_word()
        ))),
        Value::Str(_) => Ok(()),
        other => Err(expected("get", 1, "associative", other)),
    }
}

fn get(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let (coll, key) = (&arguments[0], &arguments[1]);
    readable(coll, key)?;
    let mut found = element(cx, coll, key)?;
    if let (None, Value::Map(_), Value::Vector(path)) = (&found, coll, key)
        && !path.is_empty()
    {
        // A vector that is not itself a key is a path.
        found = element_at(cx, coll, path)?;
    }
    Ok(found.unwrap_or_else(|| arguments.get_mut(2).map(take).unwrap_or_default()))
}

/// A path of keys; nil is the empty one.
fn path(value: Value, name: &'static str) -> Result<Rc<VectorNode>> {
    match value {
        Value::Vector(path) => Ok(path),
        Value::Nil => Ok(List::default().into_vector()),
        other => Err(expected(name, 2, "list of keys", &other)),
    }
}

fn get_in(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let path = path(take(&mut arguments[1]), "get-in")?;
    let root = take(&mut arguments[0]);
    let found = element_at(cx, &root, &path)?;
    Ok(found.unwrap_or_else(|| arguments.get_mut(2).map(take).unwrap_or_default()))
}

fn assoc(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    if arguments.len() < 3 || arguments.len().is_multiple_of(2) {
        return Err(Fault::runtime(format_args!(
            "assoc requires a map or list and key-value pairs, got {} args",
            arguments.len()
        )));
    }
    let mut target = take(&mut arguments[0]);
    for pair in arguments[1..].chunks_exact_mut(2) {
        cx.tick(1)?;
        target = associate(cx, target, take(&mut pair[0]), take(&mut pair[1]), "assoc")?;
    }
    Ok(target)
}

fn assoc_in(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let path = path(take(&mut arguments[1]), "assoc-in")?;
    let (root, value) = (take(&mut arguments[0]), take(&mut arguments[2]));
    associate_at(cx, root, &path, value, "assoc-in")
}

fn dissoc(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let mut map = match take(&mut arguments[0]) {
        Value::Nil => return Ok(Value::Nil),
        Value::Map(map) => map,
        other => return Err(expected("dissoc", 1, "map", &other)),
    };
    for key in &arguments[1..] {
        cx.tick(1)?;
        map = MapNode::erase(map, cx, key)?;
    }
    Ok(Value::Map(map))
}

fn merge(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    if let [only] = arguments {
        return Ok(match take(only) {
            Value::Nil | Value::Bool(false) => Value::Map(MapNode::empty()),
            only => only,
        });
    }
    let mut merged: Rc<MapNode> = MapNode::empty();
    for (at, argument) in arguments.iter_mut().enumerate() {
        match take(argument) {
            Value::Nil | Value::Bool(false) => {}
            Value::Map(map) if merged.is_empty() => merged = map,
            Value::Map(map) => merged = adding::merge(cx, merged, &map)?,
            other => return Err(expected("merge", at + 1, "map", &other)),
        }
    }
    Ok(Value::Map(merged))
}

pub(crate) fn select_keys(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let coll = take(&mut arguments[0]);
    if !matches!(coll, Value::Nil | Value::Map(_) | Value::Vector(_)) {
        return Err(expected("select-keys", 1, "map", &coll));
    }
    let keys = seq::argument(cx, take(&mut arguments[1]), "select-keys", 2)?;
    let mut selected: Rc<MapNode> = MapNode::empty();
    for key in keys.iter() {
        cx.tick(1)?;
        if let Some(value) = element(cx, &coll, &key)? {
            selected = MapNode::insert(selected, cx, key, value)?;
        }
    }
    Ok(Value::Map(selected))
}

fn zipmap(cx: &mut Context, arguments: &mut [Value]) -> Result<Step> {
    if let Some(step) = crate::builtins::functions::endless::bounded(cx, Known::Zipmap, arguments, 0)? {
        return Ok(step);
    }
    let keys = seq::argument(cx, take(&mut arguments[0]), "zipmap", 1)?;
    let values = seq::argument(cx, take(&mut arguments[1]), "zipmap", 2)?;
    let mut map: Rc<MapNode> = MapNode::empty();
    for (key, value) in keys.iter().zip(values.iter()) {
        cx.tick(1)?;
        seq::check_memory(cx)?;
        map = MapNode::insert(map, cx, key, value)?;
    }
    Ok(Step::Return(Value::Map(map)))
}

fn map_of(cx: &mut Context, arguments: &mut [Value], name: &'static str) -> Result<Value> {
    if !arguments.len().is_multiple_of(2) {
        return Err(Fault::new(
            Reason::ArityError,
            format_args!("{name} expects an even number of arguments, got {}", arguments.len()),
        ));
    }
    let pairs = arguments.len() / 2;
    cx.reserve(pairs * ENTRY_BYTES)?;
    let mut map: Rc<MapNode> = MapNode::with_capacity(pairs);
    for pair in arguments.chunks_exact_mut(2) {
        cx.tick(1)?;
        map = MapNode::insert(map, cx, take(&mut pair[0]), take(&mut pair[1]))?;
    }
    Ok(Value::Map(map))
}

fn find(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    match &arguments[0] {
        Value::Nil => Ok(Value::Nil),
        Value::Map(map) => {
            let row = map.find_flexible(cx, &arguments[1])?;
            Ok(row.map_or(Value::Nil, |row| seq::entry(map, row)))
        }
        Value::Vector(vector) => {
            let found = index(&arguments[1]).and_then(|index| vector.get(index));
            Ok(found.map_or(Value::Nil, |found| seq::pair(take(&mut arguments[1]), found)))
        }
        other => Err(expected("find", 1, "associative", other)),
    }
}

fn entries(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    match &arguments[0] {
        Value::Nil => Ok(Value::row([])),
        Value::Map(map) => Ok(Value::Vector(seq::entries(cx, map)?)),
        other => Err(expected("entries", 1, "map", other)),
    }
}

/// One part of every entry, in key order; nil if there is none, as in Clojure. A list of `[key value]` pairs, the
/// result of filtering a map, counts as its entries.
fn column(
    cx: &mut Context,
    map: &Value,
    name: &'static str,
    part: for<'m> fn(Entry<'m>) -> &'m Value,
) -> Result<Value> {
    match map {
        Value::Nil => Ok(Value::Nil),
        Value::Map(map) if map.is_empty() => Ok(Value::Nil),
        Value::Vector(pairs) if pairs.is_empty() => Ok(Value::Nil),
        Value::Map(map) => {
            let order = map.order(cx)?;
            let parts = order.iter().map(|&row| part(map.entry(row as usize)).clone());
            Ok(cx.collect(parts)?.into_value())
        }
        Value::Vector(pairs) => {
            let mut parts = List::with_capacity(cx, pairs.len())?;
            for pair in pairs.iter() {
                cx.tick(1)?;
                let Some((key, value)) = seq::halves(&pair) else {
                    return Err(expected(name, 1, "map", map));
                };
                parts.push(cx, part(Entry { key: &key, value: &value }).clone())?;
            }
            Ok(parts.into_value())
        }
        other => Err(expected(name, 1, "map", other)),
    }
}

/// One half of a `[key value]` pair.
fn half(pair: &Value, name: &str, choose: fn((Value, Value)) -> Value) -> Result<Value> {
    seq::halves(pair).map(choose).ok_or_else(|| expected(name, 1, "[key value] pair", pair))
}
