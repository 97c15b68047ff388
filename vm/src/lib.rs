//! The register VM of PTC-Lisp.
//!
//! It has no I/O, no clock, no threads of its own: it runs a slice of a program and returns why it
//! stopped ([`isolate::Exit`]).
//!
//! # Layout
//! The data flows from top to bottom.
//!
//! - [`bytecode`]: instructions, compiled programs, disassembler, verifier
//! - [`value`], [`vector`], [`map`], [`set`], `extensions`, [`string`], [`temporal`], [`combinator`], [`regex`]: what programs
//!   compute with
//! - [`symbol`]: interned names; [`heap`]: memory accounting and freeing; [`fuel`]: fuel and interruption
//! - [`equal`], [`hash`], [`order`]: the relations between values; `index`: keys by their hashes; `sort`: sorting rows by keys;
//!   [`arith`]: numbers
//! - [`mod@print`]: values as text; [`json`]: values from and to JSON
//! - [`meter`]: how builtins allocate, and look at what may be long
//! - [`builtins`]: the table of builtin functions, one module for each part of the language
//! - [`native`]: builtins that call functions, as resumable state machines
//! - `interpreter`: the instruction loop, calls, fibers; `link`: programs into isolates; `globals`: what they define
//! - [`isolate`]: one program's world, run in slices by a driver
//! - `apply`: calls that need no frame; [`context`]: what builtins can reach
//! - [`fault`], [`reason`], [`span`], [`brief`]: why and where a program stops

#![forbid(unsafe_code)]
// Denied again where everything has to pay: in `builtins` and `native` (see `meter`).
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::disallowed_macros)]

pub mod apply;
pub mod arith;
pub mod brief;
pub mod builtins;
pub mod bytecode;
pub mod combinator;
pub mod context;
pub mod equal;
mod extensions;
pub mod fault;
pub mod fuel;
mod globals;
pub mod hash;
pub mod heap;
mod hint;
mod index;
mod interpreter;
pub mod isolate;
pub mod json;
mod link;
pub mod map;
pub mod meter;
pub mod native;
pub mod order;
pub mod print;
mod prints;
pub mod reason;
pub mod regex;

pub mod set;
pub mod similar;
mod sort;
pub mod span;
pub mod string;
pub mod symbol;
pub mod temporal;
#[cfg(test)]
mod testing;
mod unit;
pub mod value;
pub mod vector;

pub use brief::Brief;
pub use context::Context;
pub use fault::{CallSite, Fault, Result};
pub use fuel::{Interrupt, InterruptKind, Preempt, Preemption};
pub use isolate::{CallId, Ended, Exit, Isolate, IsolateOptions, Mark};
pub use reason::{Class, Reason};
pub use span::Span;
pub use value::{UnitId, Value};
