//! Runs calls of functions that are one operation on integers ([`Leaf`], such as `#(mod % 7)`) without a call frame,
//! which would cost more than the operation.
//!
//! Programs cannot observe this: such a call costs the fuel of a call, and any other operand is left, untouched, to a
//! call with a frame.

use crate::bytecode::instruction::Window;
use crate::bytecode::leaf::Leaf;
use crate::bytecode::{CombinatorKind, WINDOW};
use crate::context::Function;
use crate::value::Value;
use crate::value::combinator::Combinator;
use crate::value::slot::{clear, fill};

#[inline(always)]
fn integer(value: Option<&Value>) -> Option<i64> {
    match value {
        Some(Value::Int(int)) => Some(*int),
        _ => None,
    }
}

/// Calls the closure at the beginning of the window, a leaf function with that many arguments. False, and nothing
/// changed, if the call needs a frame.
#[inline(never)]
pub(super) fn call(registers: &mut [Value; WINDOW], window: Window, leaf: Leaf) -> bool {
    let at = usize::from(window.at);
    let Some((callee, arguments)) = registers.get_mut(at..).and_then(<[Value]>::split_first_mut) else {
        return false;
    };
    let computed = {
        let captures = match callee {
            Value::Closure(closure) => closure.captures(),
            _ => &[],
        };
        leaf.compute(
            |index| integer(arguments.get(usize::from(index))),
            |index| integer(captures.get(usize::from(index))),
        )
    };
    let Some(value) = computed else { return false };
    clear(callee);
    fill(callee, Value::Int(value));
    true
}

/// Calls the combinator at the beginning of the window with one argument, if it is a `comp` of leaf functions and
/// `slice` pays for all. Gives the number of calls that were made: zero, and nothing changed, if one of them needs a
/// frame.
#[inline(never)]
pub(super) fn call_chain(
    registers: &mut [Value; WINDOW],
    window: Window,
    functions: &[Function],
    slice: i64,
) -> i64 {
    let at = usize::from(window.at);
    let Some([callee, Value::Int(argument), ..]) = registers.get_mut(at..) else { return 0 };
    let Value::Combinator(node) = callee else { return 0 };
    let calls = node.parts().len() as i64 + 1;
    if calls > slice {
        return 0;
    }
    let Some(value) = run_chain(node, functions, *argument) else { return 0 };
    clear(callee);
    fill(callee, Value::Int(value));
    calls
}

#[inline(always)]
fn run_chain(node: &Combinator, functions: &[Function], argument: i64) -> Option<i64> {
    if node.kind != CombinatorKind::Comp {
        return None;
    }
    node.parts().iter().rev().try_fold(argument, |value, part| {
        let Value::Closure(closure) = part else { return None };
        let function = functions.get(closure.function.index())?;
        if function.entry.arguments != 1 {
            return None;
        }
        function.leaf()?.compute(|_| Some(value), |index| integer(closure.captures().get(usize::from(index))))
    })
}
