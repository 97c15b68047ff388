//! Recognises leaf functions, which do one operation on integers, such as `#(mod % 7)`, and computes calls of them
//! without a call frame, which would cost more than the operation. Other examples are `(fn [x] (* x k))` and `(defn
//! square [x] (* x x))`. A `comp` of leaf functions is computed inline as well.
//!
//! Programs cannot observe this: such a call costs the fuel of a call, and any other operand is left, untouched, to a
//! call with a frame.

use super::Proto;
use super::code::Const;
use super::instruction::{Constant, Dst, Instruction, Side, Src, instruction_table};
use super::operation::Operation;

/// Maximal number of instructions of a leaf function, including the return.
const MOST_INSTRUCTIONS: usize = 4;

/// Maximal number of registers of a leaf function.
const REGISTERS: usize = 8;

/// A function that is one operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaf {
    operation: Operation,
    a: Operand,
    b: Operand,
}

/// The source of an operand.
#[derive(Clone, Copy, Debug)]
enum Operand {
    /// An argument, counted from 0.
    Argument(u8),
    /// A captured value.
    Capture(u16),
    /// A constant.
    Int(i64),
}

impl Leaf {
    /// The function as a leaf, if it is one.
    pub(crate) fn from_proto(proto: &Proto, constants: &[Const]) -> Option<Leaf> {
        let [before @ .., last, Instruction::Return { src: returned }] = &proto.code[..] else {
            return None;
        };
        if proto.code.len() > MOST_INSTRUCTIONS || proto.shape.variadic {
            return None;
        }
        let mut registers = [None; REGISTERS];
        for argument in 0..proto.shape.fixed {
            *registers.get_mut(usize::from(argument) + 1)? = Some(Operand::Argument(argument));
        }
        let constant = |index: usize| match constants.get(index)? {
            Const::Int(int) => Some(Operand::Int(*int)),
            _ => None,
        };
        for instruction in before {
            let (operand, dst) = match *instruction {
                Instruction::LoadCapture { index, dst } => (Operand::Capture(index.0), dst),
                Instruction::LoadInt { value, dst } => (Operand::Int(i64::from(value.0)), dst),
                Instruction::LoadConst { constant: index, dst } => (constant(usize::from(index.0))?, dst),
                Instruction::Move { src, dst } => (read(&registers, src)?, dst),
                _ => return None,
            };
            *registers.get_mut(usize::from(dst.0))? = Some(operand);
        }
        let Arithmetic { operation, a, b, side, dst } = Arithmetic::from_instruction(last)?;
        let a = read(&registers, a)?;
        let b = match b {
            Second::Register(src) => read(&registers, src)?,
            Second::Constant(index) => constant(usize::from(index.0))?,
            Second::Int(int) => Operand::Int(int),
        };
        let (a, b) = match side {
            Side::Right => (a, b),
            Side::Left => (b, a),
        };
        (returned.0 == dst.0).then_some(Leaf { operation, a, b })
    }

    /// Computes the function for integers; `None` for other values.
    #[inline(always)]
    pub(crate) fn compute(
        self,
        argument: impl Fn(u8) -> Option<i64>,
        capture: impl Fn(u16) -> Option<i64>,
    ) -> Option<i64> {
        let value = |operand| match operand {
            Operand::Argument(index) => argument(index),
            Operand::Capture(index) => capture(index),
            Operand::Int(int) => Some(int),
        };
        let (a, b) = (value(self.a)?, value(self.b)?);
        self.operation.ints(a, b)
    }
}

/// An instruction that is an operation on two numbers.
struct Arithmetic {
    operation: Operation,
    a: Src,
    b: Second,
    side: Side,
    dst: Dst,
}

/// Its second operand, and the side on which it stands.
enum Second {
    Register(Src),
    Constant(Constant),
    Int(i64),
}

/// The arithmetic part of a row of the instruction table.
macro_rules! arithmetic {
    (compute($operation:ident, $a:ident, $b:ident, $dst:ident)) => {
        arithmetic!(Operation::$operation, $a, Second::Register($b), Side::Right, $dst)
    };
    (compute_constant($operation:ident, $a:ident, $constant:ident, $dst:ident, $side:expr)) => {
        arithmetic!(Operation::$operation, $a, Second::Constant($constant), $side, $dst)
    };
    (compute_int($operation:ident, $a:ident, $value:ident, $dst:ident, $side:expr)) => {
        arithmetic!(Operation::$operation, $a, Second::Int($value.value()), $side, $dst)
    };
    (add_small($a:ident, $value:ident, $dst:ident, $written:ident)) => {
        arithmetic!(Operation::Add, $a, Second::Int($value.value()), Side::Right, $dst)
    };
    ($operation:expr, $a:ident, $b:expr, $side:expr, $dst:ident) => {
        Some(Arithmetic { operation: $operation, a: $a, b: $b, side: $side, dst: $dst })
    };
    ($($other:tt)*) => {
        None
    };
}

macro_rules! arithmetic_of {
    ([$instruction:expr] $(
        $(#[doc = $doc:literal])+
        $name:ident $text:literal $flow:ident { $($field:ident: $type:ty),* } $loops:ident $work:ident $operands:tt;
    )+) => {
        match $instruction {
            $(Instruction::$name { $($field),* } => { let _ = ($($field,)*); arithmetic!($work $operands) })+
        }
    };
}

impl Arithmetic {
    fn from_instruction(instruction: &Instruction) -> Option<Arithmetic> {
        instruction_table!(arithmetic_of * instruction)
    }
}

fn read(registers: &[Option<Operand>; REGISTERS], src: Src) -> Option<Operand> {
    *registers.get(usize::from(src.reg))?
}
