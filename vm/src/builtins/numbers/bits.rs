//! Builtins on the bits of integers of any size, in two's complement.

use crate::arith::{charge, charge_linear};
use crate::builtins::{Builtin, Category, direct};
use crate::context::Context;
use crate::fault::{Fault, Result};
use crate::value::Value;
use num_bigint::BigInt;
use num_traits::ToPrimitive;
use std::mem::take;

const MATH: Category = Category::Math;

/// The rows of this module.
#[rustfmt::skip]
pub(crate) const TABLE: &[Builtin] = &[
    direct("bit-and", MATH, "2+", "(bit-and int int …)", "The bits set in all.", |cx, a| fold(cx, a, "bit-and", |a, b| a & b, |a, b| a & b)),
    direct("bit-or", MATH, "2+", "(bit-or int int …)", "The bits set in any.", |cx, a| fold(cx, a, "bit-or", |a, b| a | b, |a, b| a | b)),
    direct("bit-xor", MATH, "2+", "(bit-xor int int …)", "The bits set in an odd number of them.", |cx, a| fold(cx, a, "bit-xor", |a, b| a ^ b, |a, b| a ^ b)),
    direct("bit-and-not", MATH, "2+", "(bit-and-not int int …)", "The bits of the first not set in the others.", |cx, a| fold(cx, a, "bit-and-not", |a, b| a & !b, |a, b| a & !b.clone())),
    direct("bit-not", MATH, "1", "(bit-not int)", "The bits the other way round.", not),
    direct("bit-shift-left", MATH, "2", "(bit-shift-left int places)", "The bits moved up.", shift_left),
    direct("bit-shift-right", MATH, "2", "(bit-shift-right int places)", "The bits moved down; the sign stays.", shift_right),
    direct("bit-set", MATH, "2", "(bit-set int place)", "The integer with this bit set.", |cx, a| with_bit(cx, a, "bit-set", |_| true)),
    direct("bit-clear", MATH, "2", "(bit-clear int place)", "The integer with this bit cleared.", |cx, a| with_bit(cx, a, "bit-clear", |_| false)),
    direct("bit-flip", MATH, "2", "(bit-flip int place)", "The integer with this bit changed.", |cx, a| with_bit(cx, a, "bit-flip", |bit| !bit)),
    direct("bit-test", MATH, "2", "(bit-test int place)", "Whether this bit is set.", test),
];

#[cold]
fn not_an_integer(name: &str, position: usize, value: &Value) -> Box<Fault> {
    let got = if matches!(value, Value::Float(_)) { "float" } else { value.type_word() };
    Fault::type_error(format_args!("{name}: arg {position} expected integer, got {got}"))
}

/// A copy of an integer.
fn big(cx: &mut Context, name: &str, position: usize, value: &Value) -> Result<BigInt> {
    match value {
        Value::Int(value) => Ok(BigInt::from(*value)),
        Value::BigInt(node) => {
            let value = cx.limbs(node)?;
            cx.reserve((value.bits() / 8) as usize)?;
            Ok(value.clone())
        }
        other => Err(not_an_integer(name, position, other)),
    }
}

fn fold(
    cx: &mut Context,
    arguments: &mut [Value],
    name: &str,
    small: fn(i64, i64) -> i64,
    large: fn(&BigInt, &BigInt) -> BigInt,
) -> Result<Value> {
    cx.tick(arguments.len() as u64)?;
    let mut result = take(&mut arguments[0]);
    for (index, argument) in arguments.iter().enumerate().skip(1) {
        result = match (&result, argument) {
            (Value::Int(a), Value::Int(b)) => Value::Int(small(*a, *b)),
            (a, b) => {
                let (a, b) = (big(cx, name, 1, a)?, big(cx, name, index + 1, b)?);
                charge_linear(cx, &a, &b)?;
                Value::integer(large(&a, &b))
            }
        };
    }
    Ok(result)
}

fn not(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    if let Value::Int(value) = arguments[0] {
        return Ok(Value::Int(!value));
    }
    let value = big(cx, "bit-not", 1, &arguments[0])?;
    charge_linear(cx, &value, &value)?;
    Ok(Value::integer(!value))
}

/// The second argument: a number of bits, or a bit index. `None` if it is larger than any integer's length.
fn places(arguments: &[Value], name: &str) -> Result<Option<u64>> {
    match &arguments[1] {
        Value::Int(places) if *places >= 0 => Ok(places.to_u64()),
        Value::BigInt(node) if !node.is_negative() => Ok(None),
        Value::Int(_) | Value::BigInt(_) => {
            Err(Fault::type_error(format_args!("{name}: arg 2 expected a non-negative integer")))
        }
        other => Err(not_an_integer(name, 2, other)),
    }
}

fn shift_left(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let value = big(cx, "bit-shift-left", 1, &arguments[0])?;
    let places = places(arguments, "bit-shift-left")?.unwrap_or(u64::MAX);
    if value.bits() == 0 {
        return Ok(Value::Int(0));
    }
    let bits = value.bits().saturating_add(places);
    charge(cx, bits, bits / 64)?;
    Ok(Value::integer(value << places))
}

fn shift_right(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let places = places(arguments, "bit-shift-right")?.unwrap_or(u64::MAX);
    if let Value::Int(value) = arguments[0] {
        return Ok(Value::Int(value >> places.min(63)));
    }
    let value = big(cx, "bit-shift-right", 1, &arguments[0])?;
    charge_linear(cx, &value, &value)?;
    Ok(Value::integer(value >> places))
}

/// The integer with one bit set or cleared; `change` gets the old bit.
fn with_bit(cx: &mut Context, arguments: &[Value], name: &str, change: fn(bool) -> bool) -> Result<Value> {
    let mut value = big(cx, name, 1, &arguments[0])?;
    let place = places(arguments, name)?.unwrap_or(u64::MAX);
    let old = value.bit(place);
    let new = change(old);
    if old == new {
        return Ok(arguments[0].clone());
    }
    let bits = value.bits().max(place.saturating_add(1));
    charge(cx, bits, bits / 64)?;
    value.set_bit(place, new);
    Ok(Value::integer(value))
}

fn test(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let value = big(cx, "bit-test", 1, &arguments[0])?;
    let place = places(arguments, "bit-test")?.unwrap_or(u64::MAX);
    Ok(Value::Bool(value.bit(place)))
}
