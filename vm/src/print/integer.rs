//! The decimal text of big integers, in steps short enough to look at the deadline between them.

use crate::context::Context;
use crate::fault::Result;
use num_bigint::{BigInt, BigUint};
use num_integer::Integer;
use num_traits::{Pow, Zero};

/// Decimal digits split off in one step.
const STEP_DIGITS: usize = 1_216;

/// Limbs of one step: 19 decimal digits fit 64 bits.
const STEP_LIMBS: u64 = (STEP_DIGITS / 19) as u64;

/// The decimal text of an integer.
///
/// # Errors
/// Fuel, deadline, cancellation, memory.
pub(crate) fn integer_text(cx: &mut Context, value: &BigInt) -> Result<String> {
    if value.bits() <= STEP_LIMBS * 64 {
        cx.tick(value.bits() / 64)?;
        return Ok(value.to_string());
    }
    cx.reserve((value.bits() / 3) as usize)?;
    let divisor = BigUint::from(10u32).pow(STEP_DIGITS);
    let mut rest = value.magnitude().clone();
    let mut pieces = Vec::new();
    while !rest.is_zero() {
        cx.tick(rest.bits().div_ceil(64) * STEP_LIMBS / 8)?;
        let (quotient, piece) = rest.div_rem(&divisor);
        pieces.push(piece);
        rest = quotient;
    }
    let mut text = String::new();
    if value.sign() == num_bigint::Sign::Minus {
        text.push('-');
    }
    for (position, piece) in pieces.iter().rev().enumerate() {
        cx.tick(STEP_LIMBS * STEP_LIMBS / 8)?;
        let digits = piece.to_string();
        if position > 0 {
            text.extend(std::iter::repeat_n('0', STEP_DIGITS - digits.len()));
        }
        text.push_str(&digits);
    }
    Ok(text)
}
