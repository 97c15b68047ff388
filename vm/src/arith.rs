//! Arithmetic on numbers of any kind: integers grow past 64 bits, floats are IEEE, mixed operands are
//! computed as floats.
//!
//! Invariants: a result that fits 64 bits is `Value::Int`; integers have at most [`MOST_BITS`] bits; work on
//! big integers pays fuel by its 64-bit limbs before it is done.

use crate::bytecode::instruction::Written;
use crate::bytecode::operation::Operation;
use crate::context::Context;
use crate::fault::{Fault, Result, Wanted, hint};
use crate::value::Value;
use crate::value::relation::order::big_to_float;
use num_bigint::{BigInt, BigUint};
use num_integer::Integer;
use num_traits::{FromPrimitive, Zero};
use std::borrow::Cow;

/// Longest integer in bits; longer results are an `arithmetic_error`.
pub const MOST_BITS: u64 = 1 << 20;

/// Two numbers brought to a common kind.
enum Pair<'v> {
    Ints(i64, i64),
    Bigs(Cow<'v, BigInt>, Cow<'v, BigInt>),
    Floats(f64, f64),
}

/// The value of a number as a float.
pub(crate) fn to_float(value: &Value) -> Option<f64> {
    match value {
        Value::Int(value) => Some(*value as f64),
        Value::Float(value) => Some(*value),
        Value::BigInt(value) => Some(big_to_float(value.get())),
        _ => None,
    }
}

/// A big integer, borrowed where it already exists.
fn big(value: &Value) -> Option<Cow<'_, BigInt>> {
    match value {
        Value::Int(value) => Some(Cow::Owned(BigInt::from(*value))),
        Value::BigInt(value) => Some(Cow::Borrowed(value.get())),
        _ => None,
    }
}

fn pair<'v>(a: &'v Value, b: &'v Value) -> Option<Pair<'v>> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Some(Pair::Ints(*a, *b)),
        (Value::Float(_), _) | (_, Value::Float(_)) => Some(Pair::Floats(to_float(a)?, to_float(b)?)),
        _ => Some(Pair::Bigs(big(a)?, big(b)?)),
    }
}

/// [`invalid_types`] for all arguments of a call; the message names only the first ones.
#[cold]
pub(crate) fn invalid_types_of(name: &str, arguments: &[Value]) -> Box<Fault> {
    const NAMED: usize = 8;
    let named: Vec<&Value> = arguments.iter().take(NAMED).collect();
    invalid_types(name, &named)
}

/// `type_error: add: invalid argument types: number, nil`.
#[cold]
pub(crate) fn invalid_types(name: &str, arguments: &[&Value]) -> Box<Fault> {
    let words: Vec<&str> = arguments.iter().map(|argument| argument.type_word()).collect();
    Fault::type_error(format_args!("{name}: invalid argument types: {}", words.join(", "))).types(&words)
}

/// [`invalid_types`] with the hint that numbers are needed.
#[cold]
pub(crate) fn not_numbers(name: &str, arguments: &[&Value]) -> Box<Fault> {
    let mut fault = invalid_types(name, arguments);
    let words = std::mem::take(&mut fault.types);
    fault.mismatch(Wanted::Number, &words)
}

/// The fault of `inc` and `dec`.
#[cold]
pub(crate) fn bad_argument(got: &Value) -> Box<Fault> {
    let word = got.type_word();
    Fault::arithmetic(format_args!("bad argument in arithmetic expression: got {word}"))
        .mismatch(Wanted::Number, &[word])
}

#[cold]
pub(crate) fn division_by_zero() -> Box<Fault> {
    Fault::arithmetic("division by zero").hint(hint::DIVISION)
}

fn limbs(value: &BigInt) -> u64 {
    value.bits().div_ceil(64).max(1)
}

/// Checks the size of an integer about to be made, and pays for `work` limb operations.
pub(crate) fn charge(cx: &mut Context, bits: u64, work: u64) -> Result<()> {
    if bits > MOST_BITS {
        return Err(Fault::arithmetic(format_args!("integer overflow: more than {MOST_BITS} bits"))
            .hint("Integers have a maximal size; use floats for very large magnitudes."));
    }
    cx.tick(work / 8 + 1)?;
    cx.reserve(bits.div_ceil(8) as usize)
}

/// Pays for an operation that takes time linear in the length of its operands.
pub(crate) fn charge_linear(cx: &mut Context, a: &BigInt, b: &BigInt) -> Result<()> {
    let longer = a.bits().max(b.bits());
    // The result may be one bit longer than the limit: the limit applies to the operands, not to the last carry.
    charge(cx, longer, longer / 64)
}

/// The operation on numbers of any kind.
///
/// # Errors
/// Not numbers; too large; division by zero.
#[inline(always)]
pub(crate) fn compute(cx: &mut Context, operation: Operation, a: Value, b: Value) -> Result<Value> {
    match operation {
        Operation::Add => add(cx, a, b),
        Operation::Subtract => subtract(cx, a, b),
        Operation::Multiply => multiply(cx, a, b),
        Operation::Modulo => modulo(cx, a, b),
        Operation::Quotient => quotient(cx, a, b),
        Operation::Remainder => remainder(cx, a, b),
    }
}

/// `a + b`.
///
/// # Errors
/// Not numbers; too large.
pub fn add(cx: &mut Context, a: Value, b: Value) -> Result<Value> {
    match pair(&a, &b) {
        Some(Pair::Ints(a, b)) => Ok(match a.checked_add(b) {
            Some(sum) => Value::Int(sum),
            None => Value::integer(BigInt::from(i128::from(a) + i128::from(b))),
        }),
        Some(Pair::Floats(a, b)) => Ok(Value::Float(a + b)),
        Some(Pair::Bigs(a, b)) => {
            charge_linear(cx, &a, &b)?;
            Ok(Value::integer(&*a + &*b))
        }
        None => Err(not_numbers("add", &[&a, &b])),
    }
}

/// `a + small`: serves `inc`, `dec`, addition and subtraction of a literal.
///
/// # Errors
/// Not a number (the fault names the operation that the source wrote); too large.
pub fn add_small(cx: &mut Context, a: Value, small: i64, written: Written) -> Result<Value> {
    match (&a, written) {
        (Value::Int(_) | Value::Float(_) | Value::BigInt(_), _) => add(cx, a, Value::Int(small)),
        (_, Written::Increment) => Err(bad_argument(&a)),
        (_, Written::Plus) => Err(not_numbers("add", &[&a, &Value::Int(small)])),
        (_, Written::Minus) => Err(not_numbers("subtract", &[&a, &Value::Int(small)])),
    }
}

/// `a - b`.
///
/// # Errors
/// Not numbers; too large.
pub fn subtract(cx: &mut Context, a: Value, b: Value) -> Result<Value> {
    match pair(&a, &b) {
        Some(Pair::Ints(a, b)) => Ok(match a.checked_sub(b) {
            Some(difference) => Value::Int(difference),
            None => Value::integer(BigInt::from(i128::from(a) - i128::from(b))),
        }),
        Some(Pair::Floats(a, b)) => Ok(Value::Float(a - b)),
        Some(Pair::Bigs(a, b)) => {
            charge_linear(cx, &a, &b)?;
            Ok(Value::integer(&*a - &*b))
        }
        None => Err(not_numbers("subtract", &[&a, &b])),
    }
}

/// `a * b`.
///
/// # Errors
/// Not numbers; too large.
pub fn multiply(cx: &mut Context, a: Value, b: Value) -> Result<Value> {
    match pair(&a, &b) {
        Some(Pair::Ints(a, b)) => Ok(match a.checked_mul(b) {
            Some(product) => Value::Int(product),
            None => Value::integer(BigInt::from(i128::from(a) * i128::from(b))),
        }),
        Some(Pair::Floats(a, b)) => Ok(Value::Float(a * b)),
        Some(Pair::Bigs(a, b)) => {
            let (a, b) = (&*a, &*b);
            charge(cx, a.bits() + b.bits(), limbs(a) * limbs(b))?;
            Ok(Value::integer(a * b))
        }
        None => Err(not_numbers("multiply", &[&a, &b])),
    }
}

fn is_int_zero(value: &Value) -> bool {
    matches!(value, Value::Int(0))
}

/// `a / b`: always a float.
///
/// # Errors
/// Not numbers; an integer zero as divisor.
pub fn divide(_cx: &mut Context, a: Value, b: Value) -> Result<Value> {
    match pair(&a, &b) {
        None => Err(not_numbers("divide", &[&a, &b])),
        Some(_) if is_int_zero(&b) => Err(division_by_zero()),
        Some(Pair::Ints(a, b)) => Ok(Value::Float(a as f64 / b as f64)),
        Some(Pair::Floats(a, b)) => Ok(Value::Float(a / b)),
        Some(Pair::Bigs(a, b)) => Ok(Value::Float(big_ratio(&a, &b))),
    }
}

/// The quotient of two big integers as a float, also when the operands are outside the range of floats.
fn big_ratio(a: &BigInt, b: &BigInt) -> f64 {
    let (whole_a, whole_b) = (big_to_float(a), big_to_float(b));
    if whole_a.is_finite() && whole_b.is_finite() {
        return whole_a / whole_b;
    }
    // The leading 64 bits of each carry all the precision a float has.
    let (shift_a, shift_b) = (a.bits().saturating_sub(64), b.bits().saturating_sub(64));
    // Shifts the magnitudes: shifting a negative integer reads all its digits.
    let leading = |value: &BigInt, shift: u64| {
        let leading = big_to_float(&BigInt::from(value.magnitude() >> shift));
        if value.sign() == num_bigint::Sign::Minus { -leading } else { leading }
    };
    let ratio = leading(a, shift_a) / leading(b, shift_b);
    let exponent = (shift_a as i64 - shift_b as i64).clamp(-4_000, 4_000) as i32;
    // Two steps, so that the power itself does not overflow where the product does not.
    ratio * 2f64.powi(exponent / 2) * 2f64.powi(exponent - exponent / 2)
}

/// `(quot a b)`: truncated; an integer also for floats.
///
/// # Errors
/// Not numbers; a zero divisor.
pub fn quotient(cx: &mut Context, a: Value, b: Value) -> Result<Value> {
    division(cx, Operation::Quotient, "quot", a, b)
}

/// `(rem a b)`: takes the sign of `a`.
///
/// # Errors
/// Not numbers; a zero divisor.
pub fn remainder(cx: &mut Context, a: Value, b: Value) -> Result<Value> {
    division(cx, Operation::Remainder, "rem", a, b)
}

/// `(mod a b)`: takes the sign of `b`.
///
/// # Errors
/// Not numbers; a zero divisor.
pub fn modulo(cx: &mut Context, a: Value, b: Value) -> Result<Value> {
    division(cx, Operation::Modulo, "mod", a, b)
}

/// One of the three integer divisions.
fn division(cx: &mut Context, kind: Operation, name: &str, a: Value, b: Value) -> Result<Value> {
    match pair(&a, &b) {
        None => Err(not_numbers(name, &[&a, &b])),
        Some(Pair::Ints(_, 0)) => Err(division_by_zero()),
        Some(Pair::Ints(a, b)) => Ok(match kind {
            Operation::Quotient => match a.checked_div(b) {
                Some(quotient) => Value::Int(quotient),
                None => Value::integer(-BigInt::from(a)),
            },
            Operation::Remainder => Value::Int(a.checked_rem(b).unwrap_or(0)),
            _ => Value::Int(if b == -1 { 0 } else { a.mod_floor(&b) }),
        }),
        Some(Pair::Floats(a, b)) => float_division(kind, a, b),
        Some(Pair::Bigs(a, b)) => {
            let (a, b) = (&*a, &*b);
            if b.is_zero() {
                return Err(division_by_zero());
            }
            charge(cx, a.bits(), limbs(a))?;
            let (quotient, rest) = long_division(cx, a.magnitude(), b.magnitude())?;
            let rest = BigInt::from_biguint(a.sign(), rest);
            Ok(Value::integer(match kind {
                Operation::Quotient => BigInt::from_biguint(a.sign() * b.sign(), quotient),
                Operation::Modulo if !rest.is_zero() && rest.sign() != b.sign() => rest + b,
                _ => rest,
            }))
        }
    }
}

/// Quotient and remainder of magnitudes by long division: a few limbs of the dividend at a time, so that no step
/// takes longer than a fraction of a millisecond.
fn long_division(cx: &mut Context, a: &BigUint, b: &BigUint) -> Result<(BigUint, BigUint)> {
    /// Products of limbs in one step.
    const STEP: u64 = 1 << 16;
    let width = b.bits().div_ceil(64).max(1);
    let block = (STEP / width).max(1) * 64;
    let mut at = a.bits().div_ceil(block);
    let (mut quotient, mut rest) = (BigUint::ZERO, BigUint::ZERO);
    if at <= 1 {
        cx.tick(width)?;
        return Ok(a.div_rem(b));
    }
    let mask = (BigUint::from(1_u8) << block) - 1_u8;
    while at > 0 {
        at -= 1;
        // Shifting the dividend and the quotient reads all that is left of them.
        cx.tick((block / 64 * width + at * block / 64 + quotient.bits() / 64) / 8 + 1)?;
        rest = (rest << block) | ((a >> (at * block)) & &mask);
        let (digits, less) = rest.div_rem(b);
        quotient = (quotient << block) | digits;
        rest = less;
    }
    Ok((quotient, rest))
}

fn float_division(kind: Operation, a: f64, b: f64) -> Result<Value> {
    if !a.is_finite() || !b.is_finite() {
        return Ok(Value::Float(f64::NAN));
    }
    if b == 0.0 {
        return Err(division_by_zero());
    }
    Ok(match kind {
        Operation::Quotient => float_to_integer((a / b).trunc()),
        Operation::Remainder => Value::Float(a % b),
        _ => {
            let rest = a % b;
            Value::Float(if rest != 0.0 && (rest < 0.0) != (b < 0.0) { rest + b } else { rest })
        }
    })
}

/// A whole float as an integer; infinities and NaN stay floats.
pub(crate) fn float_to_integer(value: f64) -> Value {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&value) {
        return Value::Int(value as i64);
    }
    BigInt::from_f64(value).map_or(Value::Float(value), Value::integer)
}

/// `(- a)`.
///
/// # Errors
/// Not a number.
pub fn negate(cx: &mut Context, a: Value) -> Result<Value> {
    match &a {
        Value::Float(value) => Ok(Value::Float(-value)),
        Value::Int(_) | Value::BigInt(_) => subtract(cx, Value::Int(0), a),
        _ => Err(not_numbers("subtract", &[&a])),
    }
}
