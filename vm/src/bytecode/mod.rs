//! Defines the bytecode that the compiler emits and the interpreter runs: instructions, compiled programs, and the
//! verifier.
//!
//! # Registers
//! A function sees a window of 256 registers. Register 0 holds the running closure (nil when the
//! function was called directly and captures nothing), registers 1.. the arguments. Every register is
//! *empty* or *full*; the compiler knows which at every instruction, and the [verifier](verify)
//! checks it:
//!
//! - a `Dst` must be empty and becomes full. The interpreter therefore writes registers without
//!   dropping an old value, which is where a third of its speed comes from;
//! - a `Src` must be full; when it is marked `last`, the instruction takes the value and the register
//!   becomes empty. The last reader of a value so owns it, and an update of an otherwise unshared
//!   value happens in place;
//! - both branches of a jump arrive at its target with the same registers full. Where a value dies on
//!   one branch only, the compiler drops it at the start of the other.
//!
//! At `Return` only register 0 and the returned register may be full.

pub mod arity;
mod builtin;
mod code;
mod combinator;
mod data;
mod effect;
pub(crate) mod entry;
pub mod instruction;
pub(crate) mod leaf;
mod operand;
pub(crate) mod operation;
mod reference;
pub mod verify;

pub use arity::Arity;
pub use builtin::{BuiltinId, Known, Names};
pub(crate) use builtin::{Builtins, Facts};
pub use code::{Const, GlobalName, Program, Proto, Shape};
pub use combinator::{CombinatorKind, Endless, StageKind};
pub use data::PlainData;
pub use instruction::{Args, Constant, Dst, Global, Instruction, Last, Pinned, ProtoIndex, Src, Window};

/// Longest name that a program can write, in bytes. It bounds the time of a name lookup, which costs no fuel.
pub const LONGEST_NAME: usize = 256;

/// Registers a function can address.
pub(crate) const WINDOW: usize = 256;
