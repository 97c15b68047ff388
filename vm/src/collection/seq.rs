//! Converts a collection argument of a builtin (vector, map, set, string or nil) to a vector, over which the builtin
//! then iterates, or fails with a type error.

use crate::context::Context;
use crate::fault::{Fault, Result, Wanted};
use crate::memory::List;
use crate::value::Value;
use crate::value::combinator::unbounded;
use crate::value::map::MapNode;
use crate::value::read::Graphemes;
use crate::value::set::SetNode;
use crate::value::string::STRING_BYTES;
use crate::value::vector::{VECTOR_BYTES, VectorNode};
use std::rc::Rc;

/// Bytes of one value in a vector.
const SLOT: usize = size_of::<Value>();

/// Any collection as a vector: a vector unchanged, nil empty, a string as one-grapheme strings, a map
/// as `[key value]` pairs and a set as its members, both in key order.
///
/// # Errors
/// `type_error` for anything else; fuel and memory.
pub(crate) fn to_vector(cx: &mut Context, value: Value, name: &'static str) -> Result<Rc<VectorNode>> {
    convert(cx, value)?.map_err(|other| not_a_collection(&other, name))
}

/// [`to_vector`] with an error that names the position of the argument.
///
/// # Errors
/// `type_error` for anything else; fuel and memory.
pub(crate) fn argument(
    cx: &mut Context,
    value: Value,
    name: &'static str,
    position: usize,
) -> Result<Rc<VectorNode>> {
    convert(cx, value)?.map_err(|other| match other.is_function() {
        true => not_a_collection(&other, name),
        false => expected(name, position, "seqable", &other),
    })
}

/// [`to_vector`] with an error that names the value's type.
///
/// # Errors
/// `type_error` for anything else; fuel and memory.
pub(crate) fn positional(cx: &mut Context, value: Value, name: &'static str) -> Result<Rc<VectorNode>> {
    convert(cx, value)?.map_err(|other| invalid(name, &other))
}

/// The vector; `Err` gives the value back if it is no collection.
fn convert(cx: &mut Context, value: Value) -> Result<std::result::Result<Rc<VectorNode>, Value>> {
    Ok(Ok(match value {
        Value::Vector(node) => node,
        Value::Nil => List::default().into_vector(),
        Value::Str(node) => graphemes(cx, &node)?,
        Value::Map(node) => entries(cx, &node)?,
        Value::Set(node) => members(cx, &node)?,
        other => return Ok(Err(other)),
    }))
}

/// The graphemes of a string.
fn graphemes(cx: &mut Context, node: &crate::value::string::StringNode) -> Result<Rc<VectorNode>> {
    let text = cx.read(node)?;
    let count = cx.graphemes(node)?;
    cx.reserve(count.saturating_mul(SLOT + STRING_BYTES))?;
    let mut items = List::with_capacity(cx, count)?;
    if cx.is_ascii(node)? {
        for at in 0..text.len() {
            let item = cx.copy_text(&text[at..=at])?;
            items.push(cx, item)?;
        }
    } else {
        let mut graphemes = Graphemes::from_start(text);
        while let Some(grapheme) = graphemes.next(cx)? {
            let item = cx.copy_text(grapheme)?;
            items.push(cx, item)?;
        }
    }
    Ok(items.into_vector())
}

/// The entries of a map as pairs in key order.
pub(crate) fn entries(cx: &mut Context, map: &MapNode) -> Result<Rc<VectorNode>> {
    cx.reserve(map.len().saturating_mul(VECTOR_BYTES + 3 * SLOT))?;
    let order = map.order(cx)?;
    Ok(cx.collect(order.iter().map(|&row| entry(map, row as usize)))?.into_vector())
}

/// The entry at a position as a pair.
pub(crate) fn entry(map: &MapNode, row: usize) -> Value {
    pair(map.key(row).clone(), map.value(row).clone())
}

/// The members of a set in key order.
pub(crate) fn members(cx: &mut Context, set: &SetNode) -> Result<Rc<VectorNode>> {
    let order = set.order(cx)?;
    let items = order.iter().map(|&row| set.member(row as usize).clone());
    Ok(cx.collect(items)?.into_vector())
}

/// `[key value]`.
pub(crate) fn pair(key: Value, value: Value) -> Value {
    Value::row([key, value])
}

/// The two halves of a `[key value]` pair.
pub(crate) fn halves(value: &Value) -> Option<(Value, Value)> {
    match value {
        Value::Vector(node) if node.len() == 2 => Some((node.get(0)?, node.get(1)?)),
        _ => None,
    }
}

/// Checks that the values built so far are within the memory limit.
#[inline]
pub(crate) fn check_memory(cx: &mut Context) -> Result<()> {
    cx.reserve(0)
}

/// An argument that counts elements, clamped to the range of lengths.
///
/// # Errors
/// `type_error` for anything but an integer.
pub(crate) fn count_argument(value: &Value, name: &'static str, position: usize) -> Result<i64> {
    match value {
        Value::Int(count) => Ok(*count),
        Value::BigInt(big) if big.is_negative() => Ok(i64::MIN),
        Value::BigInt(_) => Ok(i64::MAX),
        other => Err(expected(name, position, "integer", other)),
    }
}

/// A count as a length: negative ones are 0.
pub(crate) fn length(count: i64) -> usize {
    usize::try_from(count.max(0)).unwrap_or(usize::MAX)
}

/// `name: arg N expected …, got …`.
#[cold]
pub(crate) fn expected(name: &str, position: usize, what: &str, got: &Value) -> Box<Fault> {
    if got.endless().is_some() {
        return unbounded(name);
    }
    let word = got.type_word();
    let fault = got.mistyped(format_args!("{name}: arg {position} expected {what}"));
    match what {
        "seqable" => fault.mismatch(Wanted::Collection, &[word]),
        "integer" | "number" => fault.mismatch(Wanted::Number, &[word]),
        _ => fault.types(&[word]),
    }
}

/// `name: invalid argument types: …`.
#[cold]
pub(crate) fn invalid(name: &str, got: &Value) -> Box<Fault> {
    if got.endless().is_some() {
        return unbounded(name);
    }
    let word = got.type_word();
    Fault::type_error(format_args!("{name}: invalid argument types: {word}"))
        .mismatch(Wanted::Collection, &[word])
}

#[cold]
fn not_a_collection(value: &Value, name: &str) -> Box<Fault> {
    if value.endless().is_some() {
        unbounded(name)
    } else if value.is_function() {
        Fault::type_error(format_args!(
            "{name}: expected a collection, got a function — collection operations like filter/map/reduce take \
             the collection last; arguments may be swapped"
        ))
    } else {
        let word = value.type_word();
        Fault::type_error(format_args!("{name}: expected seqable, got {word}"))
            .mismatch(Wanted::Collection, &[word])
    }
}
