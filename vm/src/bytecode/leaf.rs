//! Functions whose whole body is one operation on integers: `(fn [x] (* x k))`, `#(mod % 7)`,
//! `(defn square [x] (* x x))`. A call of one is computed where it stands, and so is a `comp` of them: a
//! frame would be most of the cost.
//!
//! No program can tell: such a call costs the fuel of the call that it is, and whatever is not an integer in
//! range is left, untouched, to the call with a frame.

use super::Proto;
use super::code::Const;
use super::instruction::{Instruction, Src};

/// Most instructions of the functions that are looked at, the return included.
const MOST_INSTRUCTIONS: usize = 4;

/// Registers of the functions that are looked at.
const REGISTERS: usize = 8;

/// A function that is one operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaf {
    operation: Operation,
    a: Operand,
    b: Operand,
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Add,
    Subtract,
    Multiply,
    Modulo,
}

/// Where a side of the operation comes from.
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
    /// The function as one operation, if it is one.
    pub(crate) fn of(proto: &Proto, constants: &[Const]) -> Option<Leaf> {
        let [before @ .., last, Instruction::Return { src: returned }] = proto.code.as_slice() else {
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
        let read = |src| read(&registers, src);
        let (operation, a, b, dst) = match *last {
            Instruction::Add { a, b, dst } => (Operation::Add, read(a)?, read(b)?, dst),
            Instruction::Subtract { a, b, dst } => (Operation::Subtract, read(a)?, read(b)?, dst),
            Instruction::Multiply { a, b, dst } => (Operation::Multiply, read(a)?, read(b)?, dst),
            Instruction::Modulo { a, b, dst } => (Operation::Modulo, read(a)?, read(b)?, dst),
            // The sides of these do not matter to integers.
            Instruction::AddConst { a, constant: index, dst, .. } => {
                (Operation::Add, read(a)?, constant(usize::from(index.0))?, dst)
            }
            Instruction::MultiplyConst { a, constant: index, dst, .. } => {
                (Operation::Multiply, read(a)?, constant(usize::from(index.0))?, dst)
            }
            Instruction::ModuloConst { a, constant: index, dst } => {
                (Operation::Modulo, read(a)?, constant(usize::from(index.0))?, dst)
            }
            Instruction::AddSmall { a, value, dst, .. } => {
                (Operation::Add, read(a)?, Operand::Int(i64::from(value.0)), dst)
            }
            Instruction::MultiplyInt { a, value, dst, .. } => {
                (Operation::Multiply, read(a)?, Operand::Int(i64::from(value.0)), dst)
            }
            Instruction::ModuloInt { a, value, dst } => {
                (Operation::Modulo, read(a)?, Operand::Int(value.value()), dst)
            }
            _ => return None,
        };
        (returned.reg == dst.0).then_some(Leaf { operation, a, b })
    }

    /// Computes the function of integers; `None` for all else.
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
        match self.operation {
            Operation::Add => a.checked_add(b),
            Operation::Subtract => a.checked_sub(b),
            Operation::Multiply => a.checked_mul(b),
            Operation::Modulo => modulo(a, b),
        }
    }
}

fn read(registers: &[Option<Operand>; REGISTERS], src: Src) -> Option<Operand> {
    *registers.get(usize::from(src.reg))?
}

/// `(mod a b)` of integers.
#[inline(always)]
pub(crate) fn modulo(a: i64, b: i64) -> Option<i64> {
    let rest = a.checked_rem(b)?;
    Some(if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest })
}
