//! Reads and moves values in the interpreter's virtual registers, which are slots on one stack; the last read of a
//! value empties its slot.

use crate::bytecode::WINDOW;
use crate::value::Value;
use crate::value::slot::fill;

/// Reads a stack slot; the last reader takes the value.
#[inline]
pub(super) fn take_or_copy(stack: &mut [Value], from: usize, last: bool) -> Value {
    if last { std::mem::take(&mut stack[from]) } else { stack[from].clone() }
}

/// Moves or copies a value to another slot, which is empty.
#[inline(always)]
pub(super) fn transfer(stack: &mut [Value], from: usize, last: bool, to: usize) {
    match stack[from] {
        Value::Int(int) => fill(&mut stack[to], Value::Int(int)),
        _ => {
            let value = take_or_copy(stack, from, last);
            fill(&mut stack[to], value);
        }
    }
}

/// The registers of the function with its window at `base`.
#[inline(always)]
pub(super) fn window(stack: &mut [Value], base: u32) -> Option<&mut [Value; WINDOW]> {
    let base = base as usize;
    stack.get_mut(base..base + WINDOW)?.try_into().ok()
}
