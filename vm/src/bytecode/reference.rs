//! Describes the constant, global name, captured value, function or builtin that an instruction refers to, so that the
//! verifier and the disassembler need not know each instruction. Other code finds the called builtin here.

use super::builtin::BuiltinId;
use super::operand::ProtoIndex;

/// The target of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// A constant.
    Constant(u16),
    /// A constant that is a keyword or a string.
    Key(u16),
    /// A constant set of distinct keywords and strings, with this many members.
    Keys {
        /// The constant.
        constant: u16,
        /// Members.
        count: u8,
    },
    /// A global name.
    Global(u16),
    /// A value that the running closure has captured.
    Capture(u16),
    /// A function of the program, with this many captured values.
    Function {
        /// The function.
        proto: ProtoIndex,
        /// Values.
        captures: u8,
    },
    /// A builtin.
    Builtin(BuiltinId),
}
