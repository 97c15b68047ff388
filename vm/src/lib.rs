//! A register-based virtual machine, which runs compiled PTC-Lisp programs in slices, within limits of memory and work.
//!
//! It has no I/O, no clock, no threads of its own: it runs a slice of a program and returns why it
//! stopped ([`isolate::Exit`]).
//!
//! # Layout
//! The modules from bottom to top; each uses only those before it (`.ci/rooms.py` checks that and draws it).
//!
//! - [`fault`]: why and where a program stops
//! - [`memory`]: the resources of a program: logical bytes, fuel, time
//! - [`bytecode`]: instructions, compiled programs, the verifier
//! - [`value`]: the values of programs: nodes, names, relations, bounded construction and reading
//! - `sources`: where values come from, in runs that track it
//! - [`context`]: the state that builtins work on
//! - [`mod@print`]: values as text; [`arith`]: numbers; [`json`]: values from and to JSON
//! - `collection`: operations on collections for builtins and machines; `apply`: calls that need no frame
//! - [`native`]: builtins that call functions, as resumable state machines
//! - [`builtins`]: the table of builtin functions, one module for each part of the language
//! - `disassembly`: programs as text
//! - `interpreter`: the instruction loop, calls, fibers, globals
//! - [`isolate`]: the world of one program, run in slices by a driver
//! - `testing`: unit tests across modules

#![forbid(unsafe_code)]
// Denied again in `builtins`, `native` and `collection`, where everything has to pay (see `value::build`).
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::disallowed_macros)]

pub mod apply;
pub mod arith;
pub mod builtins;
pub mod bytecode;
mod collection;
pub mod context;
mod disassembly;
pub mod fault;
mod interpreter;
pub mod isolate;
pub mod json;
pub mod memory;
pub mod native;
pub mod print;
mod sources;
#[cfg(test)]
mod testing;
pub mod value;

pub use context::Context;
pub use fault::{BoundedText, CallSite, Class, Fault, Reason, Result, Span, UnitId};
pub use isolate::sources::{AnswerSources, DefinedFrom, SourceText};
pub use isolate::{Arity, Budget, CallId, Definition, Ended, Exit, Isolate, NotData, OverLimit, Tuning};
pub use memory::{Interrupt, InterruptKind, Preempt, Preemption};
pub use sources::{CallSources, PartSources, Sources};
pub use value::Value;
