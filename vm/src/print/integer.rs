//! Prints big integers in decimal, in steps short enough to check the deadline between them. Writes all integers in
//! octal and hexadecimal, for the builtin `format`.

use crate::context::Context;
use crate::fault::Result;
use crate::memory::{List, items};
use crate::value::BigIntNode;
use crate::value::build::Text;
use num_bigint::BigUint;
use num_integer::Integer;
use num_traits::{Pow, Zero};

/// Decimal digits split off in one step.
const STEP_DIGITS: usize = 1_216;

/// Limbs of one step: 19 decimal digits fit 64 bits.
const STEP_LIMBS: u64 = (STEP_DIGITS / 19) as u64;

items!(at_once: BigUint);

/// Writes a big integer in decimal digits.
///
/// # Errors
/// Fuel, deadline, cancellation, memory.
pub(crate) fn write_integer(cx: &mut Context, out: &mut Text, node: &BigIntNode) -> Result<()> {
    let value = cx.limbs(node)?;
    if value.bits() <= STEP_LIMBS * 64 {
        return out.push(cx, &value.to_string());
    }
    cx.reserve((value.bits() / 3) as usize)?;
    let divisor = BigUint::from(10u32).pow(STEP_DIGITS);
    let mut rest = value.magnitude().clone();
    let mut pieces = List::default();
    while !rest.is_zero() {
        cx.tick(rest.bits().div_ceil(64) * STEP_LIMBS / 8)?;
        let (quotient, piece) = rest.div_rem(&divisor);
        pieces.push(cx, piece)?;
        rest = quotient;
    }
    if node.is_negative() {
        out.push(cx, "-")?;
    }
    for (position, piece) in pieces.iter().rev().enumerate() {
        cx.tick(STEP_LIMBS * STEP_LIMBS / 8)?;
        let digits = piece.to_string();
        if position > 0 {
            out.push_repeated(cx, '0', STEP_DIGITS - digits.len())?;
        }
        out.push(cx, &digits)?;
    }
    Ok(())
}

/// Writes an integer with radix 8 or 16, a negative one in two's complement.
///
/// # Errors
/// Fuel, deadline, cancellation, memory.
pub(crate) fn write_radix(cx: &mut Context, out: &mut Text, value: i64, radix: u32) -> Result<()> {
    let digits = if radix == 8 { format!("{value:o}") } else { format!("{value:x}") };
    out.push(cx, &digits)
}

/// Writes a big integer with radix 8 or 16.
///
/// # Errors
/// Fuel, deadline, cancellation, memory.
pub(crate) fn write_big_radix(cx: &mut Context, out: &mut Text, node: &BigIntNode, radix: u32) -> Result<()> {
    let value = cx.limbs(node)?;
    // Digits of these radixes are groups of bits, so writing takes linear time.
    cx.reserve((value.bits() / 3) as usize)?;
    if node.is_negative() {
        out.push(cx, "-")?;
    }
    out.push(cx, &value.magnitude().to_str_radix(radix))
}
