//! The bytecode: instructions, compiled programs, their text form and their verifier.
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

pub mod disassemble;
mod effect;
pub mod instruction;
pub mod program;
pub mod verify;

pub use instruction::{Args, Constant, Dst, Global, Instruction, Pinned, ProtoIndex, Src, Window};
pub use program::{Const, GlobalName, Program, Proto, Shape};
