//! Calls of `(comp f …)` whose parts are functions of the program: each part runs above the combinator,
//! which stays where it is, and what one returns is the argument of the next. What is less simple is for
//! [`super::call`].

use super::fiber::{Fiber, Frame};
use super::slots::{clear, fill, transfer};
use crate::bytecode::ProtoIndex;
use crate::bytecode::instruction::Src;
use crate::combinator::CombinatorKind;
use crate::unit::Unit;
use crate::value::{UnitId, Value};
use std::rc::Rc;

/// Where control goes on.
pub(super) struct Next {
    pub(super) unit: UnitId,
    pub(super) proto: ProtoIndex,
    pub(super) pc: u32,
    pub(super) base: u32,
    /// Calls made.
    pub(super) calls: i64,
}

/// Calls the combinator in the stack slot with the one argument that follows it; the caller goes on at
/// `pc`. `None`, and nothing done, when the call is not that simple.
#[inline(always)]
pub(super) fn enter(fiber: &mut Fiber, units: &[Rc<Unit>], at: usize, pc: usize) -> Option<Next> {
    let window = fiber.stack.get_mut(at..)?.first_chunk_mut::<3>()?;
    let [Value::Combinator(node), ..] = window else { return None };
    let (Value::Closure(closure), before) = node.parts().split_last()? else { return None };
    let entry = units[closure.unit.0 as usize].entries[usize::from(closure.proto.0)];
    if node.kind != CombinatorKind::Comp || entry.arguments != 1 || !fiber.frames.has_room(2) {
        return None;
    }
    let next = Next { unit: closure.unit, proto: closure.proto, pc: 0, base: at as u32 + 1, calls: 2 };
    let closure = entry.needs_closure.then(|| closure.clone());
    fiber.frames.enter(pc, Frame::Chain { base: at as u32, left: before.len() as u32 });
    fiber.frames.push(Frame::Code { unit: next.unit, proto: next.proto, pc: 0, base: next.base });
    // The argument makes room for the function, where that is needed; its register is empty then.
    transfer(window, 1, true, 2);
    if let Some(closure) = closure {
        fill(&mut window[1], Value::Closure(closure));
    }
    Some(next)
}

/// The part on top returns what is in its register. `None`, and nothing done, when what comes next is not
/// that simple.
#[inline(always)]
pub(super) fn advance(fiber: &mut Fiber, units: &[Rc<Unit>], src: Src) -> Option<Next> {
    let Fiber { frames, stack, .. } = fiber;
    let below_chain = frames.below_chain();
    let &mut Frame::Chain { base: at, ref mut left } = frames.below_mut()? else { return None };
    // The combinator, then the registers of the part.
    let window = stack.get_mut(at as usize..)?;
    let value = usize::from(src.reg) + 1;
    let Some(part) = left.checked_sub(1) else {
        let Some(Frame::Code { unit, proto, pc, base }) = below_chain else { return None };
        clear(&mut window[1]);
        clear(&mut window[0]);
        transfer(window, value, src.last, 0);
        frames.pop();
        frames.pop();
        return Some(Next { unit, proto, pc, base, calls: 0 });
    };
    let Value::Combinator(node) = window.first()? else { return None };
    let Value::Closure(closure) = node.parts().get(part as usize)? else { return None };
    let entry = units[closure.unit.0 as usize].entries[usize::from(closure.proto.0)];
    if entry.arguments != 1 {
        return None;
    }
    *left = part;
    let next = Next { unit: closure.unit, proto: closure.proto, pc: 0, base: at + 1, calls: 1 };
    let closure = entry.needs_closure.then(|| closure.clone());
    clear(&mut window[1]);
    if let Some(closure) = closure {
        fill(&mut window[1], Value::Closure(closure));
    }
    if value != 2 {
        transfer(window, value, src.last, 2);
    }
    if let Some(top) = frames.last_mut() {
        *top = Frame::Code { unit: next.unit, proto: next.proto, pc: 0, base: next.base };
    }
    Some(next)
}
