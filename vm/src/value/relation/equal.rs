//! Decides whether two values are equal by `=`, or are the same map key, with a work list instead of recursion.
//!
//! `=` compares numbers by value, also inside vectors and map values; keys and set members are compared strictly.
//! Every pair of nodes costs a unit of fuel, since shared structure has few nodes and very many paths. Long texts and
//! integers cost fuel by the bytes that are compared.

use crate::fault::Result;
use crate::memory::{List, items};
use crate::value::map::MapNode;
use crate::value::relation::order::{big_to_float, compare_text, pay_integers};
use crate::value::set::SetNode;
use crate::value::string::SHORT_TEXT;
use crate::value::vector::VectorNode;
use crate::value::{Store, Value};
use std::cmp::Ordering;
use std::rc::Rc;

/// How numbers compare.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// `=`: 1 and 1.0 are equal.
    Loose,
    /// Map keys and set members: 1 and 1.0 differ.
    Strict,
}

/// `(= a b)`.
///
/// # Errors
/// Fuel, deadline, cancellation.
#[inline]
pub fn equal(cx: &mut Store, a: &Value, b: &Value) -> Result<bool> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Ok(a == b),
        (Value::Keyword(a), Value::Keyword(b)) => Ok(a == b),
        (Value::Str(a), Value::Str(b)) => Ok(Rc::ptr_eq(a, b) || same_text(cx, a.as_str(), b.as_str())?),
        // NaN is equal to itself inside collections only.
        (Value::Float(a), Value::Float(b)) => Ok(a == b),
        _ => equal_deep(cx, a, b, Mode::Loose),
    }
}

/// Whether two values are the same map key or set member.
///
/// # Errors
/// Fuel, deadline, cancellation.
#[inline]
pub fn same_key(cx: &mut Store, a: &Value, b: &Value) -> Result<bool> {
    if !a.is_composite() || !b.is_composite() {
        return equal_leaf(cx, a, b, Mode::Strict);
    }
    cx.nested_key(|cx| equal_deep(cx, a, b, Mode::Strict))
}

/// Whether two texts are the same.
///
/// # Errors
/// Fuel, deadline, cancellation.
#[inline]
pub(crate) fn same_text(cx: &mut Store, a: &str, b: &str) -> Result<bool> {
    if a.len() != b.len() {
        return Ok(false);
    }
    if a.len() <= SHORT_TEXT {
        return Ok(a == b);
    }
    Ok(compare_text(cx, a, b)? == Ordering::Equal)
}

/// Two sequences of values of the same length that are compared pairwise.
enum Work<'v> {
    Pair(&'v Value, &'v Value),
    Items(&'v [Value], &'v [Value]),
}

items!(at_once: Work<'_>);

fn equal_deep(cx: &mut Store, a: &Value, b: &Value, mode: Mode) -> Result<bool> {
    let mut work = List::from_array([Work::Pair(a, b)]);
    while let Some(next) = work.pop() {
        let (a, b) = match next {
            Work::Pair(a, b) => (a, b),
            Work::Items(left, right) => match (left.split_first(), right.split_first()) {
                (Some((a, left)), Some((b, right))) => {
                    if !left.is_empty() {
                        work.push(cx, Work::Items(left, right))?;
                    }
                    (a, b)
                }
                _ => continue,
            },
        };
        cx.tick(1)?;
        let fine = match (a, b) {
            (Value::Vector(a), Value::Vector(b)) => {
                Rc::ptr_eq(a, b) || push_vectors(cx, &mut work, a, b, mode)?
            }
            (Value::Map(a), Value::Map(b)) => Rc::ptr_eq(a, b) || push_maps(cx, &mut work, a, b)?,
            (Value::Set(a), Value::Set(b)) => Rc::ptr_eq(a, b) || sets_equal(cx, a, b)?,
            (Value::Closure(a), Value::Closure(b)) => {
                Rc::ptr_eq(a, b) || {
                    let same = a.function == b.function;
                    work.push(cx, Work::Items(a.captures(), b.captures()))?;
                    same && a.captures().len() == b.captures().len()
                }
            }
            (Value::Combinator(a), Value::Combinator(b)) => {
                Rc::ptr_eq(a, b) || {
                    work.push(cx, Work::Items(a.parts(), b.parts()))?;
                    a.kind == b.kind && a.parts().len() == b.parts().len()
                }
            }
            (a, b) => equal_leaf(cx, a, b, mode)?,
        };
        if !fine {
            return Ok(false);
        }
    }
    Ok(true)
}

fn push_vectors<'v>(
    cx: &mut Store,
    work: &mut List<Work<'v>>,
    a: &'v VectorNode,
    b: &'v VectorNode,
    mode: Mode,
) -> Result<bool> {
    if a.len() != b.len() {
        return Ok(false);
    }
    if let (Some(left), Some(right)) = (a.as_slice(), b.as_slice()) {
        work.push(cx, Work::Items(left, right))?;
        return Ok(true);
    }
    // At least one is a range: its items are integers, so the comparison goes no deeper.
    for (left, right) in a.iter().zip(b.iter()) {
        cx.tick(1)?;
        if !equal_leaf(cx, &left, &right, mode)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Finds each entry of `a` in `b`; the values go to the work list.
fn push_maps<'v>(cx: &mut Store, work: &mut List<Work<'v>>, a: &'v MapNode, b: &'v MapNode) -> Result<bool> {
    if a.len() != b.len() {
        return Ok(false);
    }
    for entry in a.entries() {
        cx.tick(1)?;
        match b.find(cx, entry.key)? {
            Some(row) => work.push(cx, Work::Pair(entry.value, b.value(row)))?,
            None => return Ok(false),
        }
    }
    Ok(true)
}

fn sets_equal(cx: &mut Store, a: &SetNode, b: &SetNode) -> Result<bool> {
    if a.len() != b.len() {
        return Ok(false);
    }
    for member in a.members() {
        cx.tick(1)?;
        if b.find(cx, member)?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn equal_leaf(cx: &mut Store, a: &Value, b: &Value, mode: Mode) -> Result<bool> {
    Ok(match (a, b) {
        (Value::Nil, Value::Nil) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Float(a), Value::Float(b)) => a == b || (a.is_nan() && b.is_nan()),
        (Value::BigInt(a), Value::BigInt(b)) => {
            pay_integers(cx, a.get(), b.get())?;
            a.get() == b.get()
        }
        (Value::Int(int), Value::Float(float)) | (Value::Float(float), Value::Int(int)) => {
            mode == Mode::Loose && *float == *int as f64 && *float as i128 == i128::from(*int)
        }
        (Value::BigInt(big), Value::Float(float)) | (Value::Float(float), Value::BigInt(big)) => {
            mode == Mode::Loose && big_to_float(big.get()) == *float
        }
        (Value::Keyword(a), Value::Keyword(b))
        | (Value::Symbol(a), Value::Symbol(b))
        | (Value::Var(a), Value::Var(b))
        | (Value::Tool(a), Value::Tool(b)) => a == b,
        (Value::Str(a), Value::Str(b)) => Rc::ptr_eq(a, b) || same_text(cx, a.as_str(), b.as_str())?,
        (Value::Builtin(a), Value::Builtin(b)) => a == b,
        (Value::Regex(a), Value::Regex(b)) => Rc::ptr_eq(a, b) || same_text(cx, a.pattern(), b.pattern())?,
        (Value::LocalDate(a), Value::LocalDate(b)) => a == b,
        (Value::DateTime(a), Value::DateTime(b)) => a == b,
        (Value::Duration(a), Value::Duration(b)) => a == b,
        _ => false,
    })
}
