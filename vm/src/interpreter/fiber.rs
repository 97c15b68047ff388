//! A fiber: the suspended state of one line of execution, as plain data. Registers, frames and native
//! state machines sit in three vectors; nothing in them points into tables or holds Rust closures.

use super::charged::Charged;
use super::frames::FrameStack;
use super::windows;
use crate::bytecode::instruction::Reference;
use crate::bytecode::{BuiltinId, Proto, WINDOW};
use crate::context::{Function, Prints};
use crate::fault::{CallSite, Fault, Span, UnitId};
use crate::interpreter::hints;
use crate::native::Native;
use crate::value::Value;
use crate::value::code_ref::FunctionId;
use std::collections::HashMap;

/// Where the first window begins. Stacks and the code of small programs both begin where pages of memory do, and a
/// load from code whose address ends in the same twelve bits as that of a register just written waits for the
/// store: loops took a third longer.
pub(crate) const FIRST_SLOT: usize = 32;

/// Slots of a stack that has room for the first window.
pub(crate) const FIRST_ROOM: usize = FIRST_SLOT + WINDOW;

/// One level of the call stack.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Frame {
    /// A function of a program.
    Code {
        /// The function.
        function: FunctionId,
        /// The next instruction (the running frame keeps it in a local variable).
        pc: u32,
        /// Where its registers begin. The caller finds the result here.
        base: u32,
    },
    /// The state machine on top of `Fiber::natives`.
    Native {
        /// Where its caller wants the result, if that is code.
        dst: u32,
        /// The first stack slot its callbacks may use.
        top: u32,
    },
    /// A call of `(comp f …)` under way: what the part on top returns goes to the next part.
    Chain {
        /// The stack slot of the combinator; the window of the part that runs comes after it. Code that
        /// called finds the result here.
        base: u32,
        /// Parts to be called yet; they are called from the last to the first.
        left: u32,
    },
}

const _: () = assert!(size_of::<Frame>() == 16);

/// One line of execution.
#[derive(Default)]
pub(crate) struct Fiber {
    pub(crate) stack: Charged<Value>,
    pub(crate) frames: FrameStack,
    pub(crate) natives: Charged<Native>,
    /// A value that arrived while the fiber was not running: it goes to the frame on top.
    pub(crate) delivery: Option<Delivery>,
    /// Globals that a parallel branch defined for itself; `None` outside branches.
    pub(crate) overlay: Option<HashMap<u32, Value>>,
    /// Lines printed by a branch.
    pub(crate) prints: Option<Prints>,
    /// It waits, and its stack holds nothing but the registers in use, from [`FIRST_SLOT`] on.
    is_parked: bool,
}

/// A value and the stack slot it is for; a native frame on top takes it instead.
pub(crate) struct Delivery {
    pub(crate) value: Value,
    pub(crate) dst: u32,
}

impl Fiber {
    /// A branch of `pmap`: it has definitions and printed lines of its own.
    pub(crate) fn branch(overlay: HashMap<u32, Value>, prints: Prints) -> Fiber {
        let mut fiber = Fiber::default();
        (fiber.overlay, fiber.prints) = (Some(overlay), Some(prints));
        fiber
    }

    /// The call that the topmost function of the program is at.
    pub(crate) fn place(&self, functions: &[Function]) -> Option<(UnitId, Span)> {
        self.frames.iter().rev().find_map(|frame| match *frame {
            Frame::Code { function, pc, .. } => {
                let function = functions.get(function.place())?;
                let span = function.compiled()?.spans.get((pc as usize).saturating_sub(1))?;
                Some((function.unit.code.unit(), *span))
            }
            Frame::Native { .. } | Frame::Chain { .. } => None,
        })
    }

    /// Says in a fault where the fiber is and what to do about it. A place that is already known stays.
    #[cold]
    pub(crate) fn locate(&self, functions: &[Function], fault: &mut Fault) {
        if fault.place.is_none() {
            fault.place = self.place(functions);
            fault.calls = self.calls(functions, fault.place);
        }
        hints::complete(fault, self.builtin(functions), self.frames.len());
    }

    /// The program, function and instruction that a frame of code is at.
    fn instruction<'f>(&self, functions: &'f [Function], frame: usize) -> Option<(UnitId, &'f Proto, usize)> {
        match *self.frames.get(frame)? {
            Frame::Code { function, pc, .. } => {
                let function = functions.get(function.place())?;
                let unit = function.unit.code.unit();
                Some((unit, function.compiled()?, (pc as usize).saturating_sub(1)))
            }
            Frame::Native { .. } | Frame::Chain { .. } => None,
        }
    }

    /// The builtin that the topmost function of the program has called, if it has called one.
    fn builtin(&self, functions: &[Function]) -> Option<BuiltinId> {
        let top = (0..self.frames.len()).rev().find(|&at| matches!(self.frames[at], Frame::Code { .. }))?;
        let (_, proto, at) = self.instruction(functions, top)?;
        match proto.code.get(at)?.reference()? {
            Reference::Builtin(builtin) => Some(builtin),
            _ => None,
        }
    }

    /// The innermost two calls of functions and the outermost, without those that the place lies in: a
    /// function written where it is passed needs no call site.
    fn calls(&self, functions: &[Function], place: Option<(UnitId, Span)>) -> Vec<CallSite> {
        const INNERMOST: usize = 2;
        let is_code = |at: &usize| matches!(self.frames[*at], Frame::Code { .. });
        let inner: Vec<usize> = (0..self.frames.len()).rev().filter(is_code).take(INNERMOST + 1).collect();
        let outer: Vec<usize> = (0..self.frames.len()).filter(is_code).take(2).collect();
        let mut pairs: Vec<(usize, usize)> = inner.windows(2).map(|pair| (pair[1], pair[0])).collect();
        if let [caller, callee] = outer[..]
            && !pairs.contains(&(caller, callee))
        {
            pairs.push((caller, callee));
        }
        let site = |(caller, callee): (usize, usize)| {
            let (unit, proto, at) = self.instruction(functions, caller)?;
            let span = *proto.spans.get(at)?;
            let function = self.instruction(functions, callee)?.1.name.clone();
            let is_around = place.is_some_and(|(inside, place)| inside == unit && span.covers(place));
            (!is_around).then_some(CallSite { function, unit, span })
        };
        let mut calls: Vec<CallSite> = pairs.into_iter().filter_map(site).collect();
        // A function that calls itself is said once.
        calls.dedup();
        calls
    }

    /// Makes room for a window at `base`; the stack is charged like any node.
    #[inline]
    pub(crate) fn reserve_window(stack: &mut Charged<Value>, base: usize) {
        if stack.len() < base + WINDOW {
            Fiber::grow(stack, base + WINDOW);
        }
    }

    #[cold]
    fn grow(stack: &mut Charged<Value>, needed: usize) {
        if stack.is_empty() && needed == FIRST_ROOM {
            stack.adopt(windows::take());
            return;
        }
        stack.make_room(needed);
        let room = stack.room();
        stack.resize_with(room, Value::default);
    }

    /// Adds a native frame.
    pub(crate) fn push_native(&mut self, native: Native, dst: u32, top: u32) {
        const FIRST: usize = 2;
        if self.natives.len() == self.natives.room() {
            let needed = (self.natives.len() + 1).max(FIRST);
            self.natives.make_room(needed);
        }
        self.natives.push(native);
        self.frames.push(Frame::Native { dst, top });
    }

    /// Removes the native frame on top and says where its result goes.
    pub(crate) fn pop_native(&mut self) -> u32 {
        self.natives.pop();
        match self.frames.pop() {
            Some(Frame::Native { dst, .. }) => *dst,
            // Frames and natives are pushed and popped together.
            _ => 0,
        }
    }

    /// Makes the fiber small before it waits: registers above those of the functions that run are given back, with the
    /// window that they are in, so that the next fiber runs in memory that is warm. The slot of the answer stays.
    ///
    /// What is kept must not depend on scalars left in registers: in a kept window they are another program's.
    pub(crate) fn park(&mut self, answer: u32, functions: &[Function]) {
        // The stack of a deep recursion is not worth it.
        const SMALL: usize = 16 * WINDOW;
        if !(FIRST_ROOM..=SMALL).contains(&self.stack.len()) {
            return;
        }
        // Above them functions have returned, and have left their registers empty; that is looked at where the window is
        // taken back.
        let keep = self.in_use(functions).max(answer as usize + 1);
        if keep <= FIRST_ROOM {
            self.is_parked = true;
            windows::give(self.stack.move_out(FIRST_SLOT..keep.max(FIRST_SLOT)), true);
        } else if keep < self.stack.len() {
            windows::give(self.stack.move_out(0..keep), true);
        }
    }

    /// Takes a window again, to run.
    #[inline]
    pub(crate) fn unpark(&mut self) {
        if std::mem::take(&mut self.is_parked) {
            self.stack.move_into(windows::take(), FIRST_SLOT);
        }
    }

    /// Registers up to the end of the topmost function of the program, and what frames above it keep.
    fn in_use(&self, functions: &[Function]) -> usize {
        let mut most = 0;
        for frame in self.frames.iter().rev() {
            match *frame {
                Frame::Native { top, .. } => most = most.max(top as usize),
                Frame::Chain { base, .. } => most = most.max(base as usize + 1),
                Frame::Code { function, base, .. } => {
                    let proto = functions.get(function.place()).and_then(Function::compiled);
                    return most.max(base as usize + proto.map_or(WINDOW, |proto| proto.registers.into()));
                }
            }
        }
        most
    }

    /// Takes a fiber that has returned off the account and keeps its memory for the next program; false when it
    /// has to be dropped instead, because it grew beyond what every fiber begins with.
    ///
    /// Invariant: no program can tell a recycled fiber from a new one. Both begin with the same room, and the
    /// verifier has checked that a function leaves its registers empty when it returns.
    pub(crate) fn recycle(&mut self) -> bool {
        let is_small = self.stack.room() == FIRST_ROOM && self.natives.room() == 0;
        let is_main = self.overlay.is_none() && self.prints.is_none() && self.delivery.is_none();
        let recycles = is_small && is_main && self.frames.recycle();
        if recycles {
            self.stack.recycle();
        }
        recycles
    }

    /// Begins another program after [`Fiber::recycle`].
    pub(crate) fn reuse(&mut self) {
        self.frames.reuse();
        self.stack.reuse();
    }

    /// Drops everything, for an end that is not a return.
    pub(crate) fn clear(&mut self) {
        // The verifier has checked that a function leaves its registers empty when it returns.
        let has_returned = self.frames.is_empty();
        self.natives.clear();
        self.frames.clear();
        if self.stack.len() >= FIRST_ROOM {
            windows::give(self.stack.release(), has_returned);
        }
        self.stack.clear();
        self.is_parked = false;
        self.delivery = None;
        self.overlay = None;
        self.prints = None;
    }
}

impl Drop for Fiber {
    fn drop(&mut self) {
        self.clear();
    }
}
