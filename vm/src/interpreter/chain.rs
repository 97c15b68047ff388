//! A fast path for calls of functions composed with `comp`: each part runs in place on the stack, and its result
//! becomes the argument of the next part. The combinator stays in its slot, and each part, a function of the program,
//! runs above it. [`super::call`] handles all other cases.

use super::fiber::{Fiber, Frame};
use super::registers::transfer;
use crate::bytecode::CombinatorKind;
use crate::bytecode::instruction::Src;
use crate::context::Function;
use crate::value::Value;
use crate::value::slot::{clear, fill};

/// Calls the combinator in the stack slot with the one argument that follows it, and its last part: two calls. The
/// caller resumes at `pc`. False, and nothing changed, if the call does not fit.
#[inline(never)]
pub(super) fn enter(fiber: &mut Fiber, functions: &[Function], at: u32, pc: usize) -> bool {
    let Some(window) = fiber.stack.get_mut(at as usize..).and_then(|window| window.first_chunk_mut::<3>())
    else {
        return false;
    };
    let [Value::Combinator(node), ..] = window else { return false };
    let Some((Value::Closure(closure), before)) = node.parts().split_last() else { return false };
    let Some(Function { entry, .. }) = functions.get(closure.function.index()) else { return false };
    if node.kind != CombinatorKind::Comp || entry.arguments != 1 || !fiber.frames.has_room(2) {
        return false;
    }
    let part = Frame::Code { function: closure.function, pc: 0, base: at + 1 };
    let closure = entry.needs_closure().then(|| closure.clone());
    fiber.frames.enter(pc, Frame::Chain { base: at, left: before.len() as u32 });
    fiber.frames.push(part);
    // If the function needs its closure, the argument makes room for it; its register is empty then.
    transfer(window, 1, true, 2);
    if let Some(closure) = closure {
        fill(&mut window[1], Value::Closure(closure));
    }
    true
}

/// The part on top returns the value in its register. Gives the number of further calls that are made; `None`, and
/// nothing changed, if the next part does not fit.
#[inline(always)]
pub(super) fn advance(fiber: &mut Fiber, functions: &[Function], src: Src) -> Option<i64> {
    let Fiber { frames, stack, .. } = fiber;
    let is_called_by_code = matches!(frames.below_chain(), Some(Frame::Code { .. }));
    let &mut Frame::Chain { base: at, ref mut left } = frames.below_mut()? else { return None };
    // The combinator, then the registers of the part.
    let window = stack.get_mut(at as usize..)?;
    let value = usize::from(src.reg) + 1;
    let Some(part) = left.checked_sub(1) else {
        if !is_called_by_code {
            return None;
        }
        clear(&mut window[1]);
        clear(&mut window[0]);
        transfer(window, value, src.last, 0);
        frames.pop();
        frames.pop();
        return Some(0);
    };
    let Value::Combinator(node) = window.first()? else { return None };
    let Value::Closure(closure) = node.parts().get(part as usize)? else { return None };
    let Function { entry, .. } = functions.get(closure.function.index())?;
    if entry.arguments != 1 {
        return None;
    }
    *left = part;
    let next = Frame::Code { function: closure.function, pc: 0, base: at + 1 };
    let closure = entry.needs_closure().then(|| closure.clone());
    clear(&mut window[1]);
    if let Some(closure) = closure {
        fill(&mut window[1], Value::Closure(closure));
    }
    if value != 2 {
        transfer(window, value, src.last, 2);
    }
    if let Some(top) = frames.last_mut() {
        *top = next;
    }
    Some(1)
}
