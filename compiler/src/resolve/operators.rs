//! Translates calls of builtins that have bytecode instructions of their own to IR: arithmetic, comparison, `not`,
//! `nil?`, `some?`.

use super::Resolver;
use crate::ir::effects::is_inert;
use crate::ir::{Arithmetic, Comparison, Kind, Literal, Ref, Refs, Test, TestKind, as_test};
use ptc_vm::Span;
use ptc_vm::bytecode::Known;
use ptc_vm::bytecode::instruction::Written;

impl<'a> Resolver<'a, '_> {
    /// The expression of an operator, if the builtin is one and has the right number of operands.
    #[inline(never)]
    pub(crate) fn operator(&mut self, known: Known, span: Span, operands: Refs<'a>) -> Option<Ref<'a>> {
        let kind = match (known, operands) {
            (Known::Add, [a, b]) if small(b).is_some() => Kind::AddSmall(a, small(b)?, Written::Plus),
            // Subtracting 0 from -0.0 is not the same as adding it.
            (Known::Subtract, [a, b]) if small(b).is_some_and(|value| value != 0 && value != i16::MIN) => {
                Kind::AddSmall(a, -small(b)?, Written::Minus)
            }
            (Known::Add, [_, _, ..]) => self.arithmetic(Arithmetic::Add, operands)?,
            (Known::Subtract, [_, _, ..]) => self.arithmetic(Arithmetic::Subtract, operands)?,
            (Known::Multiply, [_, _, ..]) => self.arithmetic(Arithmetic::Multiply, operands)?,
            (Known::Modulo, [_, _]) => Kind::Arithmetic(Arithmetic::Modulo, operands),
            (Known::Quotient, [_, _]) => Kind::Arithmetic(Arithmetic::Quotient, operands),
            (Known::Remainder, [_, _]) => Kind::Arithmetic(Arithmetic::Remainder, operands),
            (Known::Increment, [a]) => Kind::AddSmall(a, 1, Written::Increment),
            (Known::Decrement, [a]) => Kind::AddSmall(a, -1, Written::Increment),
            (Known::Equal, [a, b]) => test(compare(Comparison::Equal, a, b, false)),
            (Known::NotEqual, [a, b]) => {
                Kind::Test(Test { negated: true, kind: compare(Comparison::Equal, a, b, false) })
            }
            (Known::Less, [a, b]) => test(compare(Comparison::Less, a, b, false)),
            (Known::Greater, [a, b]) => test(compare(Comparison::Less, b, a, true)),
            (Known::LessEqual, [a, b]) => test(compare(Comparison::LessEqual, a, b, false)),
            (Known::GreaterEqual, [a, b]) => test(compare(Comparison::LessEqual, b, a, true)),
            (Known::Not, [a]) => {
                let inner = as_test(a);
                Kind::Test(Test { negated: !inner.negated, kind: inner.kind })
            }
            (Known::IsNil, [a]) => Kind::Test(Test { negated: true, kind: TestKind::NotNil(a) }),
            (Known::IsSome, [a]) => test(TestKind::NotNil(a)),
            _ => return None,
        };
        Some(self.expr(span, kind))
    }

    /// Folding from the left computes before later operands are evaluated, so it is used only if that is
    /// unobservable.
    fn arithmetic(&self, op: Arithmetic, operands: Refs<'a>) -> Option<Kind<'a>> {
        let is_unobservable = operands[2..].iter().all(|operand| is_inert(operand, 3));
        is_unobservable.then_some(Kind::Arithmetic(op, operands))
    }
}

fn test(kind: TestKind<'_>) -> Kind<'_> {
    Kind::Test(Test { negated: false, kind })
}

fn compare<'a>(op: Comparison, a: Ref<'a>, b: Ref<'a>, swapped: bool) -> TestKind<'a> {
    TestKind::Compare { op, a, b, swapped }
}

fn small(expr: Ref<'_>) -> Option<i16> {
    match expr.kind {
        Kind::Literal(Literal::Int(value)) => i16::try_from(value).ok(),
        _ => None,
    }
}
