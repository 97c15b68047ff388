//! Parses JSON numbers.

use super::decode::{Outcome, invalid};
use crate::context::Context;
use crate::value::Value;
use num_bigint::BigInt;

/// Most digits of an integer: reading one takes time that grows with their square.
const MOST_DIGITS: usize = 4_096;

/// Most characters of any number, since it is parsed in one step.
const MOST_CHARACTERS: usize = 1 << 16;

/// Parses an integer of at most 18 digits; gives it and the position after it. [`read`] handles everything else.
#[inline]
pub(super) fn small(bytes: &[u8], start: usize) -> Option<(i64, usize)> {
    const MOST: usize = 18;
    let negative = bytes.get(start) == Some(&b'-');
    let whole = start + usize::from(negative);
    let (mut at, mut value) = (whole, 0_i64);
    for byte in bytes.get(whole..)?.iter().take(MOST + 1) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        // Wraps only for numbers that are discarded.
        value = value.wrapping_mul(10).wrapping_add(i64::from(digit));
        at += 1;
    }
    let is_plain = !matches!(bytes.get(at), Some(b'.' | b'e' | b'E'));
    let starts_well = at == whole + 1 || (at > whole && bytes.get(whole) != Some(&b'0'));
    (is_plain && starts_well && at - whole <= MOST).then(|| (if negative { -value } else { value }, at))
}

/// Parses a number of any length and form that starts at `start`; gives it and the position after it.
pub(super) fn read(cx: &mut Context, bytes: &[u8], start: usize) -> Outcome<(Value, usize)> {
    let end_of_text = bytes.len();
    let bytes = &bytes[..end_of_text.min(start + MOST_CHARACTERS)];
    let mut at = start;
    if bytes[at] == b'-' {
        at += 1;
    }
    let whole = at;
    at = digits(bytes, whole)?;
    let digits = at - whole;
    if digits > 1 && bytes[whole] == b'0' {
        return invalid(whole, "a number must not start with 0");
    }
    let end = fraction_and_exponent(bytes, at)?;
    if end == bytes.len() && end < end_of_text {
        return invalid(start, "number has more than 65536 characters");
    }
    if end == at {
        return Ok((long_integer(cx, bytes, start, at, digits)?, at));
    }
    // The grammar has been checked: this is ASCII that the standard library parses too.
    match std::str::from_utf8(&bytes[start..end]).ok().and_then(|text| text.parse::<f64>().ok()) {
        Some(value) if value.is_finite() => Ok((Value::Float(value), end)),
        _ => invalid(start, "number out of range"),
    }
}

fn digit(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|&digit| digit <= 9)
}

fn fraction_and_exponent(bytes: &[u8], end_of_whole: usize) -> Outcome<usize> {
    let mut at = end_of_whole;
    if bytes.get(at) == Some(&b'.') {
        at = digits(bytes, at + 1)?;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        at += 1;
        if matches!(bytes.get(at), Some(b'+' | b'-')) {
            at += 1;
        }
        at = digits(bytes, at)?;
    }
    Ok(at)
}

fn digits(bytes: &[u8], start: usize) -> Outcome<usize> {
    let mut at = start;
    while digit(bytes, at).is_some() {
        at += 1;
    }
    if at == start { invalid(at, "expected a digit") } else { Ok(at) }
}

fn long_integer(cx: &mut Context, bytes: &[u8], start: usize, end: usize, digits: usize) -> Outcome<Value> {
    if digits > MOST_DIGITS {
        return invalid(start, "integer has more than 4096 digits");
    }
    let text = std::str::from_utf8(&bytes[start..end]).unwrap_or_default();
    if let Ok(value) = text.parse::<i64>() {
        return Ok(Value::Int(value));
    }
    cx.tick((digits * digits / 1_024) as u64)?;
    match text.parse::<BigInt>() {
        Ok(value) => Ok(Value::integer(value)),
        Err(_) => invalid(start, "expected a digit"),
    }
}
