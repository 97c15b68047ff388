//! The interpreter: runs one fiber until it ends, suspends, or its slice of fuel is used up.
//!
//! # Layout
//! - [`run`]: the instruction loop
//! - [`call`]: calling a value, whatever it is; driving native machines
//! - [`fiber`]: the state that is left when the loop returns; [`charged`], [`windows`]: its memory
//! - [`hot`]: the usual cases, fast; [`operations`]: what instructions do beyond them

mod call;
mod charged;
pub(crate) mod fiber;
mod hot;
mod operations;
mod run;
mod windows;

use crate::builtins::HostFunction;
use crate::bytecode::instruction::Signal;
use crate::context::Context;
use crate::fault::Fault;
use crate::unit::Unit;
use crate::value::Value;
use fiber::Fiber;
use std::rc::Rc;

/// Why a fiber stopped running.
pub(crate) enum Stop {
    /// It returned.
    Done(Value),
    /// It called `(return v)` or `(fail v)`.
    Signal(Signal, Value),
    /// It waits for the host; the answer goes to `dst`.
    Host { function: HostFunction, arguments: Vec<Value>, dst: u32 },
    /// The parallel machine on top waits for its branches.
    Fork,
    /// The slice is used up.
    SliceEnd,
    /// It faulted.
    Fault(Box<Fault>),
}

/// One run of one fiber.
pub(crate) struct Machine<'i> {
    pub(crate) cx: &'i mut Context,
    pub(crate) fiber: &'i mut Fiber,
    pub(crate) globals: &'i mut Vec<Option<Value>>,
    pub(crate) units: &'i [Rc<Unit>],
}
