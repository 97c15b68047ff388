//! The bytecode interpreter: runs one fiber (a thread of control in a program) until it ends, suspends, or has used up
//! its slice of fuel (the work budget).
//!
//! # Layout
//! - this file: the loop of frames; [`run`]: the complete instruction table
//! - [`call`]: calls any value; drives native machines; [`chain`]: fast `comp` of functions; [`leaf`]: functions that
//!   are one operation
//! - [`registers`]: reading and moving registers
//! - [`fiber`]: the state that is left when the loop returns; [`frames`], [`charged`], [`windows`]: its memory
//! - [`tracked`]: runs that track where values come from
//! - [`hot`]: the common cases, fast; [`out_of_line`]: their out-of-line parts; [`operations`]: everything beyond them

mod call;
mod chain;
mod charged;
pub(crate) mod fiber;
mod frames;
pub(crate) mod globals;
pub(crate) mod hints;
mod hot;
pub(crate) mod leaf;
mod operations;
mod out_of_line;
mod registers;
mod run;
pub(crate) mod tracked;
mod windows;

use crate::builtins::HostFunction;
use crate::bytecode::instruction::Signal;
use crate::context::{Context, Function};
use crate::fault::{Fault, Result};
use crate::interpreter::globals::Globals;
use crate::native::Action;
use crate::value::Value;
use crate::value::build::Arguments;
use fiber::{Fiber, Frame};

/// Why a fiber stopped running.
pub(crate) enum Stop {
    /// It returned.
    Done(Value),
    /// It called `(return v)` or `(fail v)`.
    Signal(Signal, Value),
    /// It waits for the host. Boxed, so that the other reasons are small to pass on.
    Host(Box<HostRequest>),
    /// The parallel machine on top waits for its branches.
    Fork,
    /// The slice is used up.
    SliceEnd,
    /// It faulted.
    Fault(Box<Fault>),
}

/// A fiber's request to the host.
pub(crate) struct HostRequest {
    pub(crate) function: HostFunction,
    pub(crate) arguments: Arguments,
    /// The slot for the answer.
    pub(crate) dst: u32,
}

/// Why the hot loop exits.
enum HotExit {
    /// The next instruction needs the complete table.
    SlowPath,
    /// The machine on top requests an action.
    Act(Action),
    /// A function returned a value to a frame that is not code; the slot is for code that the value may reach.
    Returned(Value, u32),
    /// A frame was pushed.
    Drive,
    /// The fiber must stop.
    Stop(Stop),
}

/// One run of one fiber.
pub(crate) struct Machine<'i> {
    pub(crate) cx: &'i mut Context,
    pub(crate) fiber: &'i mut Fiber,
    pub(crate) globals: &'i mut Globals,
    pub(crate) functions: &'i [Function],
    /// Why the hot loop exits, as set by its out-of-line parts.
    hot_exit: HotExit,
    /// The request of a builtin called by the hot loop, if it did not just compute a value.
    pending: Option<out_of_line::Pending>,
}

impl<'i> Machine<'i> {
    /// A run of this fiber.
    pub(crate) fn new(
        cx: &'i mut Context,
        fiber: &'i mut Fiber,
        globals: &'i mut Globals,
        functions: &'i [Function],
    ) -> Machine<'i> {
        Machine { cx, fiber, globals, functions, hot_exit: HotExit::SlowPath, pending: None }
    }

    /// Runs until the fiber stops.
    pub(crate) fn run(&mut self) -> Stop {
        let mut stop = match self.fiber.delivery.take() {
            None => Ok(None),
            Some(delivery) => self.deliver(delivery.value, delivery.dst),
        };
        loop {
            match stop {
                Ok(Some(stop)) => return stop,
                Ok(None) => stop = self.run_frames(),
                Err(mut fault) => {
                    self.fiber.locate(self.functions, &mut fault);
                    return Stop::Fault(fault);
                }
            }
        }
    }

    /// Runs code frames until the fiber stops; a fault leaves the frames unchanged.
    fn run_frames(&mut self) -> Result<Option<Stop>> {
        loop {
            match self.fiber.frames.last() {
                Some(Frame::Code { .. }) => {
                    let hot = if self.cx.hot_loop { self.run_hot()? } else { HotExit::SlowPath };
                    let stop = match hot {
                        HotExit::SlowPath => self.run_one()?,
                        HotExit::Act(action) => self.act(Some(action), None)?,
                        HotExit::Returned(value, dst) => self.deliver(value, dst)?,
                        HotExit::Drive => None,
                        HotExit::Stop(stop) => Some(stop),
                    };
                    if stop.is_some() {
                        return Ok(stop);
                    }
                }
                Some(Frame::Native { .. } | Frame::Chain { .. } | Frame::Floor) => {
                    if let Some(stop) = self.drive(None)? {
                        return Ok(Some(stop));
                    }
                }
                None => return Ok(Some(Stop::Done(Value::Nil))),
            }
        }
    }

    /// Stores the position of the frame on top.
    #[inline]
    fn save(&mut self, pc: usize) {
        if let Some(Frame::Code { pc: saved, .. }) = self.fiber.frames.last_mut() {
            *saved = pc as u32;
        }
    }
}
