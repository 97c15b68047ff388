//! Builtins for arithmetic, rounding, powers and roots, and for conversion to integers, floats and characters.

use crate::arith::{self, not_numbers};
use crate::builtins::{Builtin, Category, direct};
use crate::bytecode::Known;
use crate::bytecode::instruction::Written;
use crate::context::Context;
use crate::fault::{Fault, Result};
use crate::value::Value;
use std::mem::take;
use std::ops::RangeInclusive;

const CORE: Category = Category::Core;
const MATH: Category = Category::Math;

/// The rows of this module.
#[rustfmt::skip]
pub(crate) const TABLE: &[Builtin] = &[
    direct("+", CORE, "0+", "(+ number …)", "The sum; 0 for no arguments.", sum).known(Known::Add),
    direct("+'", CORE, "0+", "(+' number …)", "The same as `+`.", sum),
    direct("-", CORE, "1+", "(- number …)", "The first less the others; of one argument, its negation.", difference).known(Known::Subtract),
    direct("-'", CORE, "1+", "(-' number …)", "The same as `-`.", difference),
    direct("*", CORE, "0+", "(* number …)", "The product; 1 for no arguments.", product).known(Known::Multiply),
    direct("*'", CORE, "0+", "(*' number …)", "The same as `*`.", product),
    direct("/", CORE, "1+", "(/ number …)", "The first divided by the others, as a float; of one argument, 1/x.", quotient),
    direct("inc", CORE, "1", "(inc number)", "The number plus one.", inc).known(Known::Increment),
    direct("inc'", CORE, "1", "(inc' number)", "The same as `inc`.", inc),
    direct("dec", CORE, "1", "(dec number)", "The number less one.", dec).known(Known::Decrement),
    direct("dec'", CORE, "1", "(dec' number)", "The same as `dec`.", dec),
    direct("mod", CORE, "2", "(mod number divisor)", "The rest of floored division; takes the divisor's sign.", |cx, a| arith::modulo(cx, take(&mut a[0]), take(&mut a[1]))).known(Known::Modulo),
    direct("rem", CORE, "2", "(rem number divisor)", "The rest of truncated division.", |cx, a| arith::remainder(cx, take(&mut a[0]), take(&mut a[1]))).known(Known::Remainder),
    direct("quot", MATH, "2", "(quot number divisor)", "Division truncated to an integer.", |cx, a| arith::quotient(cx, take(&mut a[0]), take(&mut a[1]))).known(Known::Quotient),
    direct("abs", MATH, "1", "(abs number)", "The number without its sign.", abs),
    direct("floor", MATH, "1", "(floor number)", "The largest integer that is not larger.", |_cx, a| rounded(a, "floor", f64::floor)),
    direct("ceil", MATH, "1", "(ceil number)", "The smallest integer that is not smaller.", |_cx, a| rounded(a, "ceil", f64::ceil)),
    direct("round", MATH, "1", "(round number)", "The nearest integer; halves away from zero.", |_cx, a| rounded(a, "round", f64::round)),
    direct("trunc", MATH, "1", "(trunc number)", "The integer towards zero.", |_cx, a| rounded(a, "trunc", f64::trunc)),
    direct("sqrt", MATH, "1", "(sqrt number)", "The square root as a float; NaN of negative numbers.", |_cx, a| Ok(Value::Float(float_argument(a, 0, "sqrt")?.sqrt()))),
    direct("pow", MATH, "2", "(pow base exponent)", "The power as a float.", pow),
    direct("char", MATH, "1", "(char code)", "The character of a code, as a string.", char_of),
    direct("int", MATH, "1", "(int x)", "A number truncated to 32 bits, or the code of a character.", int),
    direct("long", CORE, "1", "(long number)", "The number truncated to an integer.", |_cx, a| integer(a, "long")),
    direct("num", CORE, "1", "(num number)", "The number itself.", num),
    direct("short", CORE, "1", "(short number)", "The number truncated to an integer, which has to fit 16 bits.", |_cx, a| within(a, "short", i64::from(i16::MIN)..=i64::from(i16::MAX))),
    direct("byte", CORE, "1", "(byte number)", "The number truncated to an integer, which has to fit 8 bits.", |_cx, a| within(a, "byte", i64::from(i8::MIN)..=i64::from(i8::MAX))),
    direct("double", MATH, "1", "(double number)", "The number as a float.", |_cx, a| Ok(Value::Float(float_argument(a, 0, "double")?))),
    direct("float", MATH, "1", "(float number)", "The number as a float.", |_cx, a| Ok(Value::Float(float_argument(a, 0, "float")?))),
];

type Operation = fn(&mut Context, Value, Value) -> Result<Value>;

/// Combines the arguments from left to right, beginning with `first`.
fn fold(cx: &mut Context, first: Value, rest: &mut [Value], operation: Operation) -> Result<Value> {
    cx.tick(rest.len() as u64)?;
    rest.iter_mut().try_fold(first, |result, argument| operation(cx, result, take(argument)))
}

/// `+` and `*`: the identity for no arguments; a single argument must be a number too.
fn fold_or_identity(
    cx: &mut Context,
    arguments: &mut [Value],
    identity: i64,
    name: &str,
    operation: Operation,
) -> Result<Value> {
    match arguments {
        [] => Ok(Value::Int(identity)),
        [only] if arith::to_float(only).is_some() => Ok(take(only)),
        [only] => Err(not_numbers(name, &[only])),
        [first, rest @ ..] => fold(cx, take(first), rest, operation),
    }
}

fn sum(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    if let [Value::Int(a), Value::Int(b)] = arguments
        && let Some(sum) = a.checked_add(*b)
    {
        cx.tick(1)?;
        return Ok(Value::Int(sum));
    }
    fold_or_identity(cx, arguments, 0, "add", arith::add)
}

fn product(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    fold_or_identity(cx, arguments, 1, "multiply", arith::multiply)
}

fn difference(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    match arguments {
        [only] => arith::negate(cx, take(only)),
        [first, rest @ ..] => fold(cx, take(first), rest, arith::subtract),
        [] => Ok(Value::Nil),
    }
}

fn quotient(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    match arguments {
        [only] if arith::to_float(only).is_none() => Err(not_numbers("divide", &[only])),
        [only] => arith::divide(cx, Value::Int(1), take(only)),
        [first, rest @ ..] => fold(cx, take(first), rest, arith::divide),
        [] => Ok(Value::Nil),
    }
}

#[inline]
fn step(cx: &mut Context, arguments: &mut [Value], by: i64) -> Result<Value> {
    if let [Value::Int(int)] = arguments
        && let Some(sum) = int.checked_add(by)
    {
        return Ok(Value::Int(sum));
    }
    arith::add_small(cx, take(&mut arguments[0]), by, Written::Increment)
}

fn inc(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    step(cx, arguments, 1)
}

fn dec(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    step(cx, arguments, -1)
}

fn abs(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    match &arguments[0] {
        Value::Int(value) if *value < 0 => arith::negate(cx, take(&mut arguments[0])),
        Value::BigInt(node) if node.is_negative() => arith::negate(cx, take(&mut arguments[0])),
        Value::Float(value) => Ok(Value::Float(value.abs())),
        Value::Int(_) | Value::BigInt(_) => Ok(take(&mut arguments[0])),
        other => Err(not_numbers("abs", &[other])),
    }
}

/// Integers pass, floats are rounded to integers, infinities and NaN pass.
fn rounded(arguments: &mut [Value], name: &str, round: fn(f64) -> f64) -> Result<Value> {
    match &arguments[0] {
        Value::Float(value) => Ok(arith::float_to_integer(round(*value))),
        Value::Int(_) | Value::BigInt(_) => Ok(take(&mut arguments[0])),
        other => Err(not_numbers(name, &[other])),
    }
}

fn float_argument(arguments: &[Value], index: usize, name: &str) -> Result<f64> {
    arith::to_float(&arguments[index]).ok_or_else(|| {
        let all = [&arguments[0], &arguments[arguments.len() - 1]];
        not_numbers(name, &all[..arguments.len().min(2)])
    })
}

fn pow(_cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let base = float_argument(arguments, 0, "pow")?;
    let exponent = float_argument(arguments, 1, "pow")?;
    // The two cases in which Java differs from the IEEE recommendation.
    let undefined = exponent.is_nan() || (base.abs() == 1.0 && exponent.is_infinite());
    Ok(Value::Float(if undefined { f64::NAN } else { base.powf(exponent) }))
}

fn char_of(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    match &arguments[0] {
        // A character is a string already.
        Value::Str(text) if text.is_character() => Ok(arguments[0].clone()),
        Value::Int(code) => match u32::try_from(*code).ok().and_then(char::from_u32) {
            Some(character) => cx.copy_text(character.encode_utf8(&mut [0; 4])),
            None => Err(Fault::type_error(format_args!("char: {code} is not the code of a character"))),
        },
        other => Err(not_numbers("char", &[other])),
    }
}

/// A number truncated to an integer.
fn integer(arguments: &mut [Value], name: &str) -> Result<Value> {
    Ok(match &arguments[0] {
        Value::Float(value) if value.is_nan() => Value::Int(0),
        Value::Float(value) if value.is_infinite() => {
            let sign = if *value > 0.0 { "" } else { "-" };
            return Err(Fault::arithmetic(format_args!("cannot convert {sign}Infinity to integer")));
        }
        Value::Float(value) => arith::float_to_integer(value.trunc()),
        Value::Int(_) | Value::BigInt(_) => take(&mut arguments[0]),
        other => return Err(not_numbers(name, &[other])),
    })
}

/// [`integer`], which must be in a range.
fn within(arguments: &mut [Value], name: &str, range: RangeInclusive<i64>) -> Result<Value> {
    match integer(arguments, name)? {
        Value::Int(value) if range.contains(&value) => Ok(Value::Int(value)),
        _ => Err(Fault::arithmetic("integer overflow")),
    }
}

/// A number, or the code of a character.
fn int(_cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    if let Value::Str(node) = &arguments[0] {
        let mut characters = node.preview().chars();
        if let (Some(only), None) = (characters.next(), characters.next()) {
            arguments[0] = Value::Int(i64::from(u32::from(only)));
        }
    }
    within(arguments, "int", i64::from(i32::MIN)..=i64::from(i32::MAX))
}

fn num(_cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    match &arguments[0] {
        Value::Int(_) | Value::BigInt(_) | Value::Float(_) => Ok(take(&mut arguments[0])),
        other => Err(not_numbers("num", &[other])),
    }
}
