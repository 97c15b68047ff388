//! Translates calls of builtins that have bytecode instructions of their own to IR: arithmetic, comparison, `not`,
//! `nil?`, `some?`.

use super::Resolver;
use crate::ir::effects::is_inert;
use crate::ir::{Arithmetic, Comparison, Kind, Literal, Ref, Test, TestKind, as_test};
use ptc_vm::Span;
use ptc_vm::bytecode::Known;
use ptc_vm::bytecode::instruction::Written;

impl<'a> Resolver<'a, '_> {
    /// The expression of an operator, if the builtin is one and has the right number of operands.
    #[inline(never)]
    pub(crate) fn operator(&mut self, known: Known, span: Span, operands: &'a [Ref<'a>]) -> Option<Ref<'a>> {
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
            (Known::Equal, [a, b]) => test(equal(a, b)),
            (Known::NotEqual, [a, b]) => Kind::Test(Test { negated: true, kind: equal(a, b) }),
            (Known::Less, [a, b]) => test(TestKind::Compare { op: Comparison::Less, a, b, swapped: false }),
            (Known::Greater, [a, b]) => {
                test(TestKind::Compare { op: Comparison::Less, a: b, b: a, swapped: true })
            }
            (Known::LessEqual, [a, b]) => {
                test(TestKind::Compare { op: Comparison::LessEqual, a, b, swapped: false })
            }
            (Known::GreaterEqual, [a, b]) => {
                test(TestKind::Compare { op: Comparison::LessEqual, a: b, b: a, swapped: true })
            }
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
    fn arithmetic(&self, op: Arithmetic, operands: &'a [Ref<'a>]) -> Option<Kind<'a>> {
        if operands[2..].iter().all(|operand| is_inert(operand, 3)) {
            return Some(Kind::Arithmetic(op, operands));
        }
        None
    }
}

fn test(kind: TestKind<'_>) -> Kind<'_> {
    Kind::Test(Test { negated: false, kind })
}

fn equal<'a>(a: Ref<'a>, b: Ref<'a>) -> TestKind<'a> {
    TestKind::Compare { op: Comparison::Equal, a, b, swapped: false }
}

fn small(expr: Ref<'_>) -> Option<i16> {
    match expr.kind {
        Kind::Literal(Literal::Int(value)) => i16::try_from(value).ok(),
        _ => None,
    }
}
