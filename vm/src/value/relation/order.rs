//! The total order of all values: it serves `<`, `compare`, `sort`, `max`, map key order and printing.
//!
//! number < false < true < nil … the bands are in `band`; within a band values compare by value, vectors element by
//! element, maps by size, then keys, then values. NaN sorts after all numbers.
//!
//! Long texts and integers cost fuel by the bytes that are compared.

use crate::fault::Result;
use crate::memory::{List, STEP, items};
use crate::value::string::SHORT_TEXT;
use crate::value::symbol::Symbol;
use crate::value::{Store, Value};
use num_bigint::BigInt;
use num_traits::{FromPrimitive, ToPrimitive};
use std::cmp::Ordering;
use std::rc::Rc;

const KEYWORDS: u8 = 4;
const STRINGS: u8 = 15;

/// The band of a value in the order, low to high.
fn band(value: &Value) -> u8 {
    match value {
        Value::Int(_) | Value::Float(_) | Value::BigInt(_) => 0,
        Value::Bool(false) => 1,
        Value::Nil => 2,
        Value::Bool(true) => 3,
        Value::Keyword(_) => KEYWORDS,
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
        Value::Str(_) => STRINGS,
    }
}

/// Compares two values.
///
/// # Errors
/// Fuel, deadline, cancellation.
#[inline]
pub fn compare(cx: &mut Store, a: &Value, b: &Value) -> Result<Ordering> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Ok(a.cmp(b)),
        (Value::Str(a), Value::Str(b)) => compare_text(cx, a.as_str(), b.as_str()),
        (Value::Keyword(a), Value::Keyword(b)) => Ok(cx.text(*a).cmp(cx.text(*b))),
        (Value::Float(a), Value::Float(b)) if !a.is_nan() && !b.is_nan() => Ok(compare_floats(*a, *b)),
        _ => compare_deep(cx, a, b, Ties::Equal),
    }
}

/// Bytes that are compared for a unit of fuel.
const UNIT_BYTES: usize = 64;

/// Pays for reading this many bytes of a long text or integer.
///
/// # Errors
/// Fuel, deadline, cancellation.
pub(crate) fn pay_bytes(cx: &mut Store, bytes: usize) -> Result<()> {
    cx.tick((bytes / UNIT_BYTES) as u64)
}

/// Compares two texts.
///
/// # Errors
/// Fuel, deadline, cancellation.
#[inline]
pub(crate) fn compare_text(cx: &mut Store, a: &str, b: &str) -> Result<Ordering> {
    if a.len().min(b.len()) <= SHORT_TEXT {
        Ok(a.cmp(b))
    } else {
        compare_long(cx, a.as_bytes(), b.as_bytes())
    }
}

/// The order of texts is the order of their bytes.
#[cold]
fn compare_long(cx: &mut Store, a: &[u8], b: &[u8]) -> Result<Ordering> {
    const PART: usize = 4_096;
    let shared = a.len().min(b.len());
    let mut from = 0;
    let mut to = SHORT_TEXT;
    loop {
        let order = a[from..to].cmp(&b[from..to]);
        if order != Ordering::Equal {
            return Ok(order);
        }
        if to == shared {
            return Ok(a.len().cmp(&b.len()));
        }
        (from, to) = (to, (to + PART).min(shared));
        pay_bytes(cx, to - from)?;
    }
}

/// True for an integer of more than 256 bytes, which is further from 0 than any float.
fn is_long_integer(integer: &BigInt) -> bool {
    integer.bits() > 8 * SHORT_TEXT as u64
}

/// Pays for comparing two integers: their digits are compared only if both have as many.
///
/// # Errors
/// Fuel, deadline, cancellation.
#[inline]
pub(crate) fn pay_integers(cx: &mut Store, a: &BigInt, b: &BigInt) -> Result<()> {
    let bits = a.bits();
    if bits <= 8 * SHORT_TEXT as u64 || bits.div_ceil(64) != b.bits().div_ceil(64) {
        return Ok(());
    }
    pay_bytes(cx, (bits / 8) as usize)
}

/// True if comparing the value with any other reads only a few bytes.
pub(crate) fn is_short(value: &Value) -> bool {
    match value {
        Value::Str(node) => node.as_str().len() <= SHORT_TEXT,
        Value::BigInt(node) => !is_long_integer(node.get()),
        Value::Regex(node) => node.pattern().len() <= SHORT_TEXT,
        value => !value.is_composite(),
    }
}

/// Compares two numbers; NaN is above all others and equal to itself.
///
/// # Errors
/// Fuel, deadline, cancellation.
pub(crate) fn compare_numbers(cx: &mut Store, a: &Value, b: &Value) -> Result<Option<Ordering>> {
    if let (Value::BigInt(a), Value::BigInt(b)) = (a, b) {
        pay_integers(cx, a.get(), b.get())?;
    }
    Ok(number_order(a, b))
}

fn number_order(a: &Value, b: &Value) -> Option<Ordering> {
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

/// The float nearest to a big integer; beyond the range of floats it is infinite.
///
/// Takes constant time for long integers: those beyond the range of floats are recognised by their length.
pub(crate) fn big_to_float(value: &BigInt) -> f64 {
    let in_range = if value.bits() <= 1_024 { value.to_f64() } else { None };
    in_range.unwrap_or(if value.sign() == num_bigint::Sign::Minus {
        f64::NEG_INFINITY
    } else {
        f64::INFINITY
    })
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
        None => compare_floats(big_to_float(a), b),
    }
}

/// The values that are equal in the order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ties {
    /// Numbers of one value, functions of one text: the order that programs see.
    Equal,
    /// Only the same keys ([`crate::value::relation::equal::same_key`]): an integer comes before the float of its
    /// value. The order of keys must not depend on which came first, and an index finds keys by it.
    ByType,
}

/// Compares two keys: they are equal exactly when they are the same key.
///
/// # Errors
/// Fuel, deadline, cancellation.
pub fn compare_keys(cx: &mut Store, a: &Value, b: &Value) -> Result<Ordering> {
    compare_nested(cx, a, b, Ties::ByType)
}

/// Compares a key with a short string of this text, in the order of keys.
pub(crate) fn compare_with_text(key: &Value, text: &str) -> Ordering {
    match key {
        Value::Str(node) => node.as_str().cmp(text),
        other => band(other).cmp(&STRINGS),
    }
}

/// Compares a key with a keyword, in the order of keys.
pub(crate) fn compare_with_keyword(cx: &Store, key: &Value, symbol: Symbol) -> Ordering {
    match key {
        Value::Keyword(key) => cx.text(*key).cmp(cx.text(symbol)),
        other => band(other).cmp(&KEYWORDS),
    }
}

enum Work<'v> {
    Pair(&'v Value, &'v Value),
    Items(&'v [Value], &'v [Value]),
    /// The lengths decide the rest of a comparison.
    Lengths(usize, usize),
}

items!(at_once: Work<'_>);

fn compare_deep(cx: &mut Store, a: &Value, b: &Value, ties: Ties) -> Result<Ordering> {
    let mut work = List::from_array([Work::Pair(a, b)]);
    while let Some(next) = work.pop() {
        let (a, b) = match next {
            Work::Pair(a, b) => (a, b),
            Work::Lengths(a, b) => match a.cmp(&b) {
                Ordering::Equal => continue,
                decided => return Ok(decided),
            },
            Work::Items(left, right) => match (left.split_first(), right.split_first()) {
                (Some((a, left)), Some((b, right))) => {
                    work.push(cx, Work::Items(left, right))?;
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
                    work.push(cx, Work::Lengths(left.len(), right.len()))?;
                    work.push(cx, Work::Items(left, right))?;
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
                        for (at, (&l, &r)) in left.iter().zip(right).rev().enumerate() {
                            if at % STEP == STEP - 1 {
                                cx.fuel.poll()?;
                            }
                            work.push(cx, Work::Pair(a.value(l as usize), b.value(r as usize)))?;
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
            (Value::Closure(a), Value::Closure(b)) => {
                if ties == Ties::ByType && !Rc::ptr_eq(a, b) {
                    work.push(cx, Work::Lengths(a.captures().len(), b.captures().len()))?;
                    work.push(cx, Work::Items(a.captures(), b.captures()))?;
                }
                a.function.cmp(&b.function)
            }
            (Value::Combinator(a), Value::Combinator(b)) if ties == Ties::ByType => {
                if !Rc::ptr_eq(a, b) {
                    work.push(cx, Work::Lengths(a.parts().len(), b.parts().len()))?;
                    work.push(cx, Work::Items(a.parts(), b.parts()))?;
                }
                a.kind.cmp(&b.kind)
            }
            (a, b) => compare_any_leaf(cx, a, b, ties)?,
        };
        if order != Ordering::Equal {
            return Ok(order);
        }
    }
    Ok(Ordering::Equal)
}

/// Items of a range are integers: no deeper work.
fn compare_with_range(
    cx: &mut Store,
    a: &crate::value::vector::VectorNode,
    b: &crate::value::vector::VectorNode,
    ties: Ties,
) -> Result<Ordering> {
    for (left, right) in a.iter().zip(b.iter()) {
        cx.tick(1)?;
        let order = compare_any_leaf(cx, &left, &right, ties)?;
        if order != Ordering::Equal {
            return Ok(order);
        }
    }
    Ok(a.len().cmp(&b.len()))
}

/// Compares sizes, then the members in order.
fn compare_members(
    cx: &mut Store,
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

pub(crate) fn compare_nested(cx: &mut Store, a: &Value, b: &Value, ties: Ties) -> Result<Ordering> {
    if a.is_composite() && b.is_composite() {
        cx.nested_key(|cx| compare_deep(cx, a, b, ties))
    } else {
        cx.tick(1)?;
        compare_any_leaf(cx, a, b, ties)
    }
}

/// Compares two values, at least one of which is no collection.
fn compare_any_leaf(cx: &mut Store, a: &Value, b: &Value, ties: Ties) -> Result<Ordering> {
    match (a, b) {
        (Value::Str(a), Value::Str(b)) => return compare_text(cx, a.as_str(), b.as_str()),
        (Value::Regex(a), Value::Regex(b)) => return compare_text(cx, a.pattern(), b.pattern()),
        (Value::BigInt(a), Value::BigInt(b)) => pay_integers(cx, a.get(), b.get())?,
        _ => {}
    }
    Ok(compare_leaf(cx, a, b, ties))
}

/// Compares two values, at least one of which is short ([`is_short`]).
pub(crate) fn compare_leaf(cx: &Store, a: &Value, b: &Value, ties: Ties) -> Ordering {
    if let Some(order) = number_order(a, b) {
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
        (Value::Builtin(a), Value::Builtin(b)) => {
            cx.builtins.facts(*a).name.cmp(cx.builtins.facts(*b).name).then_with(|| a.index().cmp(&b.index()))
        }
        // A rank for each function type keeps the order total.
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
