//! Reading and replacing one element of a collection by its key: the rules shared by `get`, `get-in`,
//! `assoc`, `assoc-in`, `find`, destructuring and calls of collections.

use super::seq;
use crate::context::Context;
use crate::fault::{Fault, Result};
use crate::memory::List;
use crate::value::Value;
use crate::value::map::MapNode;
use crate::value::read::Graphemes;
use crate::value::relation::equal::equal;
use crate::value::string::StringNode;
use crate::value::vector::VectorNode;
use std::fmt::Display;
use std::mem::take;
use std::rc::Rc;

/// The element of any value under a key: in maps by the flexible rule, in sets the member, in vectors and strings by
/// index. `None` if there is none, also for values that have no elements.
///
/// # Errors
/// Comparing collections as keys pays fuel.
pub(crate) fn element(cx: &mut Context, coll: &Value, key: &Value) -> Result<Option<Value>> {
    Ok(match coll {
        Value::Map(map) => map.get(cx, key)?.cloned(),
        Value::Vector(vector) => index(key).and_then(|index| vector.get(index)),
        Value::Set(set) => set.find(cx, key)?.map(|row| set.member(row).clone()),
        Value::Str(node) => match index(key) {
            Some(index) => grapheme(cx, node, index)?,
            None => None,
        },
        _ => None,
    })
}

/// A key as an index.
pub(crate) fn index(key: &Value) -> Option<usize> {
    match key {
        Value::Int(index) => usize::try_from(*index).ok(),
        _ => None,
    }
}

/// The element at the end of a path of keys.
///
/// # Errors
/// Fuel.
pub(crate) fn element_at(cx: &mut Context, root: &Value, path: &VectorNode) -> Result<Option<Value>> {
    let mut current = root.clone();
    for key in path.iter() {
        cx.tick(1)?;
        match element(cx, &current, &key)? {
            Some(found) => current = found,
            None => return Ok(None),
        }
    }
    Ok(Some(current))
}

/// The collection with one element added or replaced; in place if it is not shared. nil counts as an empty map.
///
/// # Errors
/// `type_error` when the value or the key cannot be written to, `runtime_error` for an index out of bounds.
pub(crate) fn associate(
    cx: &mut Context,
    target: Value,
    key: Value,
    value: Value,
    name: &'static str,
) -> Result<Value> {
    match target {
        Value::Nil => Ok(Value::Map(MapNode::insert(MapNode::empty(), cx, key, value)?)),
        Value::Map(map) => Ok(Value::Map(MapNode::write(map, cx, key, value)?)),
        Value::Vector(vector) => {
            let at = writable_index(&vector, &key, format_args!("{name}: a list takes integer keys"))?;
            VectorNode::write(vector, cx, at, value).map(Value::Vector)
        }
        other => Err(seq::expected(name, 1, "map", &other)),
    }
}

/// An index that may be written to: up to one past the end. `needed` is the message for keys that are no integers.
pub(crate) fn writable_index(vector: &VectorNode, key: &Value, needed: impl Display) -> Result<usize> {
    let Value::Int(index) = key else { return Err(key.mistyped(needed)) };
    match usize::try_from(*index) {
        Ok(at) if at <= vector.len() => Ok(at),
        _ => Err(Fault::runtime(format_args!(
            "index {index} out of bounds for list of length {}",
            vector.len()
        ))),
    }
}

/// [`associate`] at the end of a path; missing collections on the way become maps. An empty path means the key nil.
///
/// # Errors
/// As [`associate`]; fuel.
pub(crate) fn associate_at(
    cx: &mut Context,
    root: Value,
    path: &VectorNode,
    value: Value,
    name: &'static str,
) -> Result<Value> {
    let mut keys = cx.collect(path.iter())?;
    let last = keys.pop().unwrap_or_default();
    let mut parents = List::with_capacity(cx, keys.len())?;
    let mut current = root;
    for key in keys {
        let (parent, child) = open(cx, current, &key, name)?;
        parents.push(cx, (parent, key))?;
        current = child;
    }
    let mut built = associate_inner(cx, current, last, value, name)?;
    while let Some((parent, key)) = parents.pop() {
        built = associate_inner(cx, parent, key, built, name)?;
    }
    Ok(built)
}

/// [`associate`] inside a path, where an error cannot name an argument position.
fn associate_inner(
    cx: &mut Context,
    target: Value,
    key: Value,
    value: Value,
    name: &'static str,
) -> Result<Value> {
    match target {
        Value::Nil | Value::Map(_) | Value::Vector(_) => associate(cx, target, key, value, name),
        other => Err(in_the_way(cx, &other, &key, name)),
    }
}

#[cold]
fn in_the_way(cx: &Context, value: &Value, key: &Value, name: &str) -> Box<Fault> {
    let fault = |key: std::fmt::Arguments<'_>| {
        value.mistyped(format_args!("{name}: could not put/update key {key} on a non-map value"))
    };
    match key {
        Value::Keyword(symbol) => fault(format_args!(":{}", cx.text(*symbol))),
        Value::Str(node) => fault(format_args!("{:?}", node.preview())),
        Value::Int(index) => fault(format_args!("{index}")),
        other => fault(format_args!("{}", other.type_word())),
    }
}

/// A collection and its element under a key. If the collection is not shared, the element is moved out and a
/// placeholder left, so that it can be changed in place and put back.
pub(crate) fn open(
    cx: &mut Context,
    parent: Value,
    key: &Value,
    name: &'static str,
) -> Result<(Value, Value)> {
    match parent {
        Value::Nil => Ok((Value::Nil, Value::Nil)),
        Value::Map(mut map) => {
            let child = match map.find_written(cx, key)? {
                Some(row) => MapNode::take_or_copy(&mut map, row),
                None => map.get(cx, key)?.cloned().unwrap_or_default(),
            };
            Ok((Value::Map(map), child))
        }
        Value::Vector(mut vector) => {
            let at = writable_index(&vector, key, format_args!("{name}: a list takes integer keys"))?;
            if Rc::strong_count(&vector) > 1 || vector.as_slice().is_none() {
                let child = vector.get(at).unwrap_or_default();
                return Ok((Value::Vector(vector), child));
            }
            let child = VectorNode::exclusive(&mut vector, cx, 0)?.get_mut(at).map(take).unwrap_or_default();
            Ok((Value::Vector(vector), child))
        }
        other => Err(in_the_way(cx, &other, key, name)),
    }
}

/// One grapheme of a string, as a string.
pub(crate) fn grapheme(cx: &mut Context, node: &StringNode, index: usize) -> Result<Option<Value>> {
    // Most strings are ASCII, where one byte is read.
    if cx.is_ascii(node)? {
        return node.ascii_at(index).map(|grapheme| cx.copy_text(grapheme)).transpose();
    }
    let mut left = index;
    let mut graphemes = Graphemes::from_start(cx.read(node)?);
    while let Some(grapheme) = graphemes.next(cx)? {
        if left == 0 {
            return cx.copy_text(grapheme).map(Some);
        }
        left -= 1;
        cx.tick(grapheme.len() as u64)?;
    }
    Ok(None)
}

/// Where an item first is in a list.
pub(crate) fn position(cx: &mut Context, list: &VectorNode, item: &Value) -> Result<Option<usize>> {
    for (position, other) in list.iter().enumerate() {
        cx.tick(1)?;
        if equal(cx, &other, item)? {
            return Ok(Some(position));
        }
    }
    Ok(None)
}
