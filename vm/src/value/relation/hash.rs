//! Hashes map keys and set members: equal keys hash equal, and a hash is the same on every platform, so that the cost
//! of a program depends only on the program. It is also the same in every process and in every build.
//! [`crate::value::relation::equal::same_key`] decides which keys are equal.
//!
//! A hash reads only the first few elements of the first few levels, so it takes bounded time for any value, however
//! deep or shared. Equal keys hash equal. Different keys may collide, and an attacker can compute such keys: an index
//! (`index`) bounds the cost of collisions.

use crate::fault::Result;
use crate::value::{Store, Value};

const DEPTH: u32 = 3;
const WIDTH: usize = 8;

/// Elements read for a unit of fuel.
const ELEMENTS: u64 = 16;

/// The hash of a key.
///
/// # Errors
/// Reading many elements of a collection pays fuel.
#[inline]
pub fn hash_value(cx: &mut Store, value: &Value) -> Result<u32> {
    if !value.is_composite() {
        return Ok(hash_at(cx, value, 0, &mut 0));
    }
    let mut seen = 0;
    let hash = hash_at(cx, value, DEPTH, &mut seen);
    cx.tick(seen / ELEMENTS)?;
    Ok(hash)
}

/// The two halves of a number, each bit of which changes about half of the bits of the result.
fn mix(left: u32, right: u32) -> u32 {
    let wide = (u64::from(left) << 32 | u64::from(right)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let wide = (wide ^ wide >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    (wide >> 32) as u32
}

fn mix_wide(value: i64, salt: u32) -> u32 {
    mix(mix(value as u32, salt), (value >> 32) as u32)
}

fn hash_at(cx: &Store, value: &Value, depth: u32, seen: &mut u64) -> u32 {
    *seen += 1;
    match value {
        Value::Nil => 1,
        Value::Bool(value) => 2 + u32::from(*value),
        Value::Int(value) => mix(*value as u32, (*value >> 32) as u32 ^ 0x51),
        Value::Float(value) => {
            // -0.0 and 0.0 are the same key, and so are all NaNs.
            let bits = if *value == 0.0 {
                0
            } else if value.is_nan() {
                f64::NAN.to_bits()
            } else {
                value.to_bits()
            };
            mix(bits as u32, (bits >> 32) as u32 ^ 0x77)
        }
        // A keyword and a string of the same text hash the same, so one probe finds both kinds.
        Value::Keyword(symbol) => cx.symbols.hash(*symbol),
        Value::Str(node) => node.hash(),
        Value::Symbol(symbol) => mix(cx.symbols.hash(*symbol), 11),
        Value::Var(symbol) => mix(cx.symbols.hash(*symbol), 12),
        Value::Tool(symbol) => mix(cx.symbols.hash(*symbol), 13),
        Value::Builtin(builtin) => mix(builtin.index() as u32, 14),
        Value::BigInt(node) => node.get().iter_u32_digits().take(WIDTH).fold(15, mix),
        Value::Regex(node) => mix(super::text_hash::hash_text(node.pattern()), 16),
        Value::LocalDate(date) => mix(date.epoch_day() as u32, 23),
        Value::DateTime(date_time) => mix_wide(date_time.micros(), 24),
        Value::Duration(duration) => mix_wide(duration.millis(), 25),
        Value::Closure(node) => {
            let hash = mix(node.function.0, 17);
            hash_items(cx, hash, node.captures(), depth, seen)
        }
        Value::Combinator(node) => {
            hash_items(cx, mix(node.parts().len() as u32, 18), node.parts(), depth, seen)
        }
        Value::Vector(node) => {
            let mut hash = mix(node.len() as u32, 19);
            if depth > 0 {
                for index in 0..node.len().min(WIDTH) {
                    let item = node.get(index).unwrap_or_default();
                    hash = mix(hash, hash_at(cx, &item, depth - 1, seen));
                }
            }
            hash
        }
        // Unordered: a sum over all entries, or the size alone when there are many.
        Value::Map(node) => {
            let mut hash = mix(node.len() as u32, 20);
            if depth > 0 && node.len() <= WIDTH {
                for entry in node.entries() {
                    let key = hash_at(cx, entry.key, depth - 1, seen);
                    hash = hash.wrapping_add(mix(key, hash_at(cx, entry.value, depth - 1, seen)));
                }
            }
            hash
        }
        Value::Set(node) => {
            let mut hash = mix(node.len() as u32, 21);
            if depth > 0 && node.len() <= WIDTH {
                for member in node.members() {
                    hash = hash.wrapping_add(mix(hash_at(cx, member, depth - 1, seen), 22));
                }
            }
            hash
        }
    }
}

fn hash_items(cx: &Store, start: u32, items: &[Value], depth: u32, seen: &mut u64) -> u32 {
    let looked_at = if depth == 0 { &[][..] } else { &items[..items.len().min(WIDTH)] };
    looked_at.iter().fold(start, |hash, item| mix(hash, hash_at(cx, item, depth - 1, seen)))
}
