//! What operands refer to outside of registers. The verifier checks it, the disassembler names it, and whoever wants to
//! know which builtin an instruction calls finds it here, all without knowing the instruction.

use super::builtin::BuiltinId;
use super::operand::ProtoIndex;

/// What an operand refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// A constant.
    Constant(u16),
    /// A constant that is a keyword or a string.
    Key(u16),
    /// A constant set of so many different keywords and strings.
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
    /// A function of the program with so many captured values.
    Function {
        /// The function.
        proto: ProtoIndex,
        /// Values.
        captures: u8,
    },
    /// A builtin.
    Builtin(BuiltinId),
}
