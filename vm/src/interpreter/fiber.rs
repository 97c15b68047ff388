//! Holds the state of a fiber, one thread of control in a program: registers, call frames and running builtins, with
//! ways to shrink it while it waits and to reuse its memory.
//!
//! A suspended fiber is plain data. Registers, frames and native state machines sit in three vectors; nothing in them
//! points into tables or holds Rust closures.

mod location;

use super::charged::Charged;
use super::frames::FrameStack;
use super::windows;
use crate::bytecode::WINDOW;
use crate::context::{Function, Prints};
use crate::interpreter::tracked::state::FiberTrack;
use crate::native::Native;
use crate::value::Value;
use crate::value::code_ref::FunctionId;
use std::collections::HashMap;

/// Index of the first window. Stacks and the code of small programs both start at page boundaries. A load from code
/// with the same low twelve address bits as a register just written waits for that store: without this offset loops
/// took a third longer.
pub(crate) const FIRST_SLOT: usize = 32;

/// Number of slots of a stack with room for the first window.
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
        /// First slot of its registers. The caller finds the result there.
        base: u32,
    },
    /// The state machine on top of `Fiber::natives`.
    Native {
        /// The slot for its result, if code called it.
        dst: u32,
        /// The first stack slot its callbacks may use.
        top: u32,
    },
    /// A call of `(comp f …)` in progress: the result of the part on top goes to the next part.
    Chain {
        /// The stack slot of the combinator; the window of the running part follows it. Calling code finds the result
        /// here.
        base: u32,
        /// Number of parts still to be called, from the last to the first.
        left: u32,
    },
    /// Stands for a frame that the hot loop may not return to (see `tracked`).
    Floor,
}

const _: () = assert!(size_of::<Frame>() == 16);

/// One line of execution.
#[derive(Default)]
pub(crate) struct Fiber {
    pub(crate) stack: Charged<Value>,
    pub(crate) frames: FrameStack,
    pub(crate) natives: Charged<Native>,
    /// A value that arrived while the fiber was not running, for the frame on top.
    pub(crate) delivery: Option<Delivery>,
    /// Globals that a parallel branch defined for itself; `None` outside branches.
    pub(crate) overlay: Option<HashMap<u32, Value>>,
    /// Lines printed by a branch.
    pub(crate) prints: Option<Prints>,
    /// Where its values come from, in a run that tracks it.
    pub(crate) track: Option<Box<FiberTrack>>,
    /// The fiber waits, and its stack is cut down to the registers in use, from [`FIRST_SLOT`] on.
    is_parked: bool,
}

/// A value and its stack slot; a native frame on top takes the value instead.
pub(crate) struct Delivery {
    pub(crate) value: Value,
    pub(crate) dst: u32,
}

impl Fiber {
    /// A branch of `pmap`, with its own definitions and printed lines.
    pub(crate) fn branch(overlay: HashMap<u32, Value>, prints: Prints) -> Fiber {
        let mut fiber = Fiber::default();
        (fiber.overlay, fiber.prints) = (Some(overlay), Some(prints));
        fiber
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

    /// Removes the native frame on top. Gives the slot for its result.
    pub(crate) fn pop_native(&mut self) -> u32 {
        self.natives.pop();
        match self.frames.pop() {
            Some(Frame::Native { dst, .. }) => *dst,
            // Frames and natives are pushed and popped together.
            _ => 0,
        }
    }

    /// Shrinks the fiber before it waits: registers above those of the active functions are given back with their
    /// window, so that the next fiber runs in warm memory. The slot of the answer stays.
    ///
    /// The retained size must not depend on scalars left in registers: in a reused window they belong to another
    /// program.
    pub(crate) fn park(&mut self, answer: u32, functions: &[Function]) {
        // Shrinking the stack of a deep recursion is not worth it.
        const SMALL: usize = 16 * WINDOW;
        if !(FIRST_ROOM..=SMALL).contains(&self.stack.len()) {
            return;
        }
        // Functions above them have returned and left their registers empty; this is checked when the window is taken
        // back.
        let keep = self.in_use(functions).max(answer as usize + 1);
        if keep <= FIRST_ROOM {
            self.is_parked = true;
            windows::give(self.stack.move_out(FIRST_SLOT..keep.max(FIRST_SLOT)), true);
        } else if keep < self.stack.len() {
            windows::give(self.stack.move_out(0..keep), true);
        }
    }

    /// Takes a window again before running.
    #[inline]
    pub(crate) fn unpark(&mut self) {
        if std::mem::take(&mut self.is_parked) {
            self.stack.move_into(windows::take(), FIRST_SLOT);
        }
    }

    /// Registers up to the end of the topmost function of the program, and those that frames above it hold.
    fn in_use(&self, functions: &[Function]) -> usize {
        let mut most = 0;
        for frame in self.frames.iter().rev() {
            match *frame {
                Frame::Native { top, .. } => most = most.max(top as usize),
                Frame::Chain { base, .. } => most = most.max(base as usize + 1),
                Frame::Floor => {}
                Frame::Code { function, base, .. } => {
                    let proto = functions.get(function.index()).and_then(Function::compiled);
                    return most.max(base as usize + proto.map_or(WINDOW, |proto| proto.registers.into()));
                }
            }
        }
        most
    }

    /// Takes a returned fiber off the account and stores its memory for the next program; false if the fiber must be
    /// dropped instead, because it grew beyond the initial size.
    ///
    /// Invariant: no program can distinguish a recycled fiber from a new one. Both start with the same room, and the
    /// verifier has checked that functions leave their registers empty at return.
    pub(crate) fn recycle(&mut self) -> bool {
        self.track = None;
        let is_small = self.stack.room() == FIRST_ROOM && self.natives.room() == 0;
        let is_main = self.overlay.is_none() && self.prints.is_none() && self.delivery.is_none();
        let recycles = is_small && is_main && self.frames.recycle();
        if recycles {
            self.stack.recycle();
        }
        recycles
    }

    /// Starts another program after [`Fiber::recycle`].
    pub(crate) fn reuse(&mut self) {
        self.frames.reuse();
        self.stack.reuse();
    }

    /// Drops everything, after an end other than a return.
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
        self.track = None;
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
