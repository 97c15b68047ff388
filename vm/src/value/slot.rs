//! Writes 16-byte values into registers and items of collections in two parts, tag and payload, since copying one whole
//! from a temporary that was just written in parts would stall the processor.
//!
//! A temporary is written as a tag and a payload. Loading it as a whole soon after makes the processor wait for
//! both stores, longer than most instructions take. So scalars are moved in the two parts in which they were written,
//! and no temporary is built first.

use super::Value;

/// Fills an empty slot: one that holds nothing to drop.
#[inline(always)]
pub(crate) fn fill(slot: &mut Value, value: Value) {
    debug_assert!(!slot.is_heap(), "a slot is written while full");
    std::mem::forget(std::mem::replace(slot, value));
}

/// Fills an empty slot with a copy of a value.
#[inline(always)]
pub(crate) fn fill_copy(slot: &mut Value, value: &Value) {
    match value {
        Value::Int(int) => fill(slot, Value::Int(*int)),
        Value::Keyword(symbol) => fill(slot, Value::Keyword(*symbol)),
        Value::Str(node) => fill(slot, Value::Str(node.clone())),
        Value::Map(node) => fill(slot, Value::Map(node.clone())),
        Value::Vector(node) => fill(slot, Value::Vector(node.clone())),
        Value::Closure(node) => fill(slot, Value::Closure(node.clone())),
        Value::Combinator(node) => fill(slot, Value::Combinator(node.clone())),
        other => fill(slot, other.clone()),
    }
}

/// Fills an empty slot with a given value.
#[inline(always)]
pub(crate) fn fill_value(slot: &mut Value, value: Value) {
    match value {
        Value::Int(int) => fill(slot, Value::Int(int)),
        Value::Float(float) => fill(slot, Value::Float(float)),
        Value::Bool(bool) => fill(slot, Value::Bool(bool)),
        other => fill(slot, other),
    }
}

/// Drops the content of a slot, unless it is a scalar.
#[inline(always)]
pub(crate) fn clear(slot: &mut Value) {
    if slot.is_heap() {
        std::hint::cold_path();
        drop_slot(slot);
    }
}

#[inline(never)]
fn drop_slot(slot: &mut Value) {
    *slot = Value::Nil;
}
