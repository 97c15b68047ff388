//! Computes arithmetic on the common kinds of numbers, integers within 64 bits and floats, as the fast path of the
//! interpreter. Big integers, mixed operands and faults are handled by `arith`.

/// An operation on two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// `+`.
    Add,
    /// `-`.
    Subtract,
    /// `*`.
    Multiply,
    /// `mod`.
    Modulo,
    /// `quot`.
    Quotient,
    /// `rem`.
    Remainder,
}

impl Operation {
    /// Whether the operands may be swapped.
    pub(crate) const fn is_commutative(self) -> bool {
        matches!(self, Operation::Add | Operation::Multiply)
    }

    /// The result for integers; `None` if it is too large or undefined.
    #[inline(always)]
    pub(crate) fn ints(self, a: i64, b: i64) -> Option<i64> {
        match self {
            Operation::Add => a.checked_add(b),
            Operation::Subtract => a.checked_sub(b),
            Operation::Multiply => a.checked_mul(b),
            Operation::Modulo => {
                let rest = a.checked_rem(b)?;
                Some(if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest })
            }
            Operation::Quotient => a.checked_div(b),
            Operation::Remainder => a.checked_rem(b),
        }
    }

    /// The same for an integer literal in the instruction: most divisors are positive, which is the simple case.
    #[inline(always)]
    pub(crate) fn by_literal(self, a: i64, literal: i64) -> Option<i64> {
        match self {
            Operation::Add | Operation::Subtract | Operation::Multiply => self.ints(a, literal),
            Operation::Modulo => (literal > 0).then(|| a.rem_euclid(literal)),
            Operation::Quotient => (literal > 0).then(|| a / literal),
            Operation::Remainder => (literal > 0).then(|| a % literal),
        }
    }

    /// The result for floats, if that is one operation of the processor.
    #[inline(always)]
    pub(crate) fn floats(self, a: f64, b: f64) -> Option<f64> {
        match self {
            Operation::Add => Some(a + b),
            Operation::Subtract => Some(a - b),
            Operation::Multiply => Some(a * b),
            Operation::Modulo | Operation::Quotient | Operation::Remainder => None,
        }
    }
}
