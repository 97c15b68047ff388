//! The one total order of the language (language.md 2.5): it serves `<`, `compare`, `sort`, `max`, map
//! key order and printing.
//!
//! number < false < true < nil … the bands are in `band`; within a band values compare by value,
//! vectors element by element, maps by size, then keys, then values. NaN sorts after all numbers.

use crate::context::Context;
use crate::fault::Result;
use crate::value::Value;
use num_bigint::BigInt;
use num_traits::{FromPrimitive, ToPrimitive};
use std::cmp::Ordering;
use std::rc::Rc;

/// Bands of the order, low to high.
fn band(value: &Value) -> u8 {
    match value {
        Value::Int(_) | Value::Float(_) | Value::BigInt(_) => 0,
        Value::Bool(false) => 1,
        Value::Nil => 2,
        Value::Bool(true) => 3,
        Value::Keyword(_) => 4,
        Value::Symbol(_) => 5,
        Value::Var(_) => 6,
        Value::LocalDate(_) => 7,
        Value::DateTime(_) => 8,
        Value::Duration(_) => 9,
        Value::Builtin(_) | Value::Closure(_) | Value::Combinator(_) | Value::Tool(_) => 10,
        Value::Regex(_) => 11,
        Value::Set(_) => 12,
        Value::Map(_) => 13,
        Value::Vector(_) => 14,
        Value::Str(_) => 15,
    }
}

/// Compares two values.
///
/// # Errors
/// Fuel, deadline, cancellation.
#[inline]
pub fn compare(cx: &mut Context, a: &Value, b: &Value) -> Result<Ordering> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Ok(a.cmp(b)),
        (Value::Str(a), Value::Str(b)) => Ok(a.as_str().cmp(b.as_str())),
        (Value::Keyword(a), Value::Keyword(b)) => Ok(cx.text(*a).cmp(cx.text(*b))),
        (Value::Float(a), Value::Float(b)) if !a.is_nan() && !b.is_nan() => Ok(compare_floats(*a, *b)),
        _ => compare_deep(cx, a, b, Ties::Equal),
    }
}

/// Compares two numbers; NaN is above all others and equal to itself.
pub fn compare_numbers(a: &Value, b: &Value) -> Option<Ordering> {
    Some(match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Float(a), Value::Float(b)) => compare_floats(*a, *b),
        (Value::Int(a), Value::Float(b)) => compare_int_float(*a, *b),
        (Value::Float(a), Value::Int(b)) => compare_int_float(*b, *a).reverse(),
        (Value::BigInt(a), Value::BigInt(b)) => a.get().cmp(b.get()),
        (Value::BigInt(a), Value::Int(_)) => sign_order(a.get()),
        (Value::Int(_), Value::BigInt(b)) => sign_order(b.get()).reverse(),
        (Value::BigInt(a), Value::Float(b)) => compare_big_float(a.get(), *b),
        (Value::Float(a), Value::BigInt(b)) => compare_big_float(b.get(), *a).reverse(),
        _ => return None,
    })
}

fn compare_floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

fn compare_int_float(a: i64, b: f64) -> Ordering {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if b.is_nan() {
        Ordering::Less
    } else if b.abs() < EXACT && (a.unsigned_abs()) < (1 << 53) {
        compare_floats(a as f64, b)
    } else {
        compare_big_float(&BigInt::from(a), b)
    }
}

/// A big integer against one of 64 bits: its sign decides.
fn sign_order(big: &BigInt) -> Ordering {
    if big.sign() == num_bigint::Sign::Minus { Ordering::Less } else { Ordering::Greater }
}

fn compare_big_float(a: &BigInt, b: f64) -> Ordering {
    if b.is_nan() || b == f64::INFINITY {
        return Ordering::Less;
    }
    if b == f64::NEG_INFINITY {
        return Ordering::Greater;
    }
    match BigInt::from_f64(b.trunc()) {
        Some(whole) => a.cmp(&whole).then_with(|| compare_floats(0.0, b.fract())),
        None => compare_floats(a.to_f64().unwrap_or(f64::INFINITY), b),
    }
}

/// What numbers of one value but different types are to each other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ties {
    /// Equal: the order that programs see.
    Equal,
    /// An integer comes before the float: they are different keys, and the order of keys must not depend on
    /// which came first.
    ByType,
}

enum Work<'v> {
    Pair(&'v Value, &'v Value),
    Items(&'v [Value], &'v [Value]),
    /// The rest of a comparison is decided by lengths.
    Lengths(usize, usize),
}

fn compare_deep(cx: &mut Context, a: &Value, b: &Value, ties: Ties) -> Result<Ordering> {
    let mut work = vec![Work::Pair(a, b)];
    while let Some(next) = work.pop() {
        let (a, b) = match next {
            Work::Pair(a, b) => (a, b),
            Work::Lengths(a, b) => match a.cmp(&b) {
                Ordering::Equal => continue,
                decided => return Ok(decided),
            },
            Work::Items(left, right) => match (left.split_first(), right.split_first()) {
                (Some((a, left)), Some((b, right))) => {
                    work.push(Work::Items(left, right));
                    (a, b)
                }
                _ => continue,
            },
        };
        cx.tick(1)?;
        let order = match (a, b) {
            (Value::Vector(a), Value::Vector(b)) => {
                if Rc::ptr_eq(a, b) {
                    Ordering::Equal
                } else if let (Some(left), Some(right)) = (a.as_slice(), b.as_slice()) {
                    work.push(Work::Lengths(left.len(), right.len()));
                    work.push(Work::Items(left, right));
                    Ordering::Equal
                } else {
                    compare_with_range(cx, a, b, ties)?
                }
            }
            (Value::Map(a), Value::Map(b)) => {
                if Rc::ptr_eq(a, b) {
                    Ordering::Equal
                } else if a.len() != b.len() {
                    a.len().cmp(&b.len())
                } else {
                    let left = a.order(cx)?;
                    let right = b.order(cx)?;
                    let keys = compare_members(cx, (a.keys(), left), (b.keys(), right), ties)?;
                    if keys == Ordering::Equal {
                        for (&l, &r) in left.iter().zip(right).rev() {
                            work.push(Work::Pair(a.value(l as usize), b.value(r as usize)));
                        }
                    }
                    keys
                }
            }
            (Value::Set(a), Value::Set(b)) => {
                if Rc::ptr_eq(a, b) {
                    Ordering::Equal
                } else if a.len() != b.len() {
                    a.len().cmp(&b.len())
                } else {
                    let (left, right) = (a.order(cx)?, b.order(cx)?);
                    compare_members(cx, (a.members(), left), (b.members(), right), ties)?
                }
            }
            (a, b) => compare_leaf(cx, a, b, ties),
        };
        if order != Ordering::Equal {
            return Ok(order);
        }
    }
    Ok(Ordering::Equal)
}

/// Items of a range are integers: no deeper work.
fn compare_with_range(
    cx: &mut Context,
    a: &crate::vector::VectorNode,
    b: &crate::vector::VectorNode,
    ties: Ties,
) -> Result<Ordering> {
    for (left, right) in a.iter().zip(b.iter()) {
        cx.tick(1)?;
        let order = compare_leaf(cx, &left, &right, ties);
        if order != Ordering::Equal {
            return Ok(order);
        }
    }
    Ok(a.len().cmp(&b.len()))
}

/// Sizes, then the members in order.
fn compare_members(
    cx: &mut Context,
    (a, left): (&[Value], &[u32]),
    (b, right): (&[Value], &[u32]),
    ties: Ties,
) -> Result<Ordering> {
    for (&l, &r) in left.iter().zip(right) {
        let order = compare_nested(cx, &a[l as usize], &b[r as usize], ties)?;
        if order != Ordering::Equal {
            return Ok(order);
        }
    }
    Ok(Ordering::Equal)
}

pub(crate) fn compare_nested(cx: &mut Context, a: &Value, b: &Value, ties: Ties) -> Result<Ordering> {
    if a.is_composite() && b.is_composite() {
        cx.nested_key(|cx| compare_deep(cx, a, b, ties))
    } else {
        compare_deep(cx, a, b, ties)
    }
}

pub(crate) fn compare_leaf(cx: &Context, a: &Value, b: &Value, ties: Ties) -> Ordering {
    if let Some(order) = compare_numbers(a, b) {
        let is_float = |value: &Value| matches!(value, Value::Float(_));
        return match ties {
            Ties::Equal => order,
            Ties::ByType => order.then_with(|| is_float(a).cmp(&is_float(b))),
        };
    }
    match (a, b) {
        (Value::Keyword(a), Value::Keyword(b))
        | (Value::Symbol(a), Value::Symbol(b))
        | (Value::Var(a), Value::Var(b))
        | (Value::Tool(a), Value::Tool(b)) => cx.text(*a).cmp(cx.text(*b)),
        (Value::Str(a), Value::Str(b)) => a.as_str().cmp(b.as_str()),
        (Value::Regex(a), Value::Regex(b)) => a.pattern().cmp(b.pattern()),
        (Value::LocalDate(a), Value::LocalDate(b)) => a.cmp(b),
        (Value::DateTime(a), Value::DateTime(b)) => a.cmp(b),
        (Value::Duration(a), Value::Duration(b)) => a.cmp(b),
        (Value::Builtin(a), Value::Builtin(b)) => a.info().name.cmp(b.info().name),
        (Value::Closure(a), Value::Closure(b)) => (a.unit.0, a.proto.0).cmp(&(b.unit.0, b.proto.0)),
        // A function type of its own order keeps the order total.
        (a, b) => band(a).cmp(&band(b)).then_with(|| function_rank(a).cmp(&function_rank(b))),
    }
}

fn function_rank(value: &Value) -> u8 {
    match value {
        Value::Builtin(_) => 0,
        Value::Tool(_) => 1,
        Value::Combinator(_) => 2,
        _ => 3,
    }
}
