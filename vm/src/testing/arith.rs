//! Tests of arithmetic: promotion, the three divisions, and the limit on the size of integers.

use super::{with_context, with_limits};
use crate::arith::*;
use crate::bytecode::instruction::Written;
use crate::context::Context;
use crate::fault::Reason;
use crate::fault::Result;
use crate::print::pr_str;
use crate::value::Value;

type Operation = fn(&mut Context, Value, Value) -> Result<Value>;

fn text(result: Result<Value>, cx: &mut Context) -> String {
    match result {
        Ok(value) => pr_str(cx, &value, usize::MAX).expect("prints").text,
        Err(fault) => format!("{}: {}", fault.reason.raw(), fault.message),
    }
}

#[test]
fn integers_grow_and_shrink() {
    with_context(|cx| {
        let big = add(cx, Value::Int(i64::MAX), Value::Int(1)).expect("adds");
        assert_eq!(text(Ok(big.clone()), cx), "9223372036854775808");
        assert!(matches!(subtract(cx, big.clone(), Value::Int(1)), Ok(Value::Int(i64::MAX))));
        let product = multiply(cx, big.clone(), big.clone());
        assert_eq!(text(product, cx), "85070591730234615865843651857942052864");
        let negated = negate(cx, Value::Int(i64::MIN));
        assert_eq!(text(negated, cx), "9223372036854775808");
        let quotient = quotient(cx, Value::Int(i64::MIN), Value::Int(-1));
        assert_eq!(text(quotient, cx), "9223372036854775808");
    });
}

#[test]
fn divisions_take_their_sign_from_the_right_operand() {
    with_context(|cx| {
        for (a, b, quot, rem, floored) in
            [(10, 3, 3, 1, 1), (-10, 3, -3, -1, 2), (10, -3, -3, 1, -2), (-10, -3, 3, -1, -1)]
        {
            let operations: [(Operation, i64); 3] = [(quotient, quot), (remainder, rem), (modulo, floored)];
            for (operation, expected) in operations {
                assert!(
                    matches!(operation(cx, Value::Int(a), Value::Int(b)), Ok(Value::Int(got)) if got == expected)
                );
            }
        }
        let floats = modulo(cx, Value::Float(-5.5), Value::Int(2));
        assert_eq!(text(floats, cx), "0.5");
        let floats = quotient(cx, Value::Float(7.5), Value::Int(2));
        assert_eq!(text(floats, cx), "3");
    });
}

#[test]
fn faults_say_what_they_got() {
    with_context(|cx| {
        for (result, expected) in [
            (add(cx, Value::Int(1), Value::Nil), "type_error: add: invalid argument types: number, nil"),
            (
                add_small(cx, Value::string("a"), 5, Written::Plus),
                "type_error: add: invalid argument types: string, number",
            ),
            (
                add_small(cx, Value::Nil, 1, Written::Increment),
                "arithmetic_error: bad argument in arithmetic expression: got nil",
            ),
            (divide(cx, Value::Float(1.0), Value::Int(0)), "arithmetic_error: division by zero"),
            (divide(cx, Value::Int(1), Value::Float(0.0)), "##Inf"),
            (modulo(cx, Value::Int(1), Value::Int(0)), "arithmetic_error: division by zero"),
        ] {
            assert_eq!(text(result, cx), expected);
        }
    });
}

#[test]
fn integers_have_a_largest_size() {
    with_context(|cx| {
        let mut value = Value::Int(3);
        let fault = loop {
            match multiply(cx, value.clone(), value) {
                Ok(square) => value = square,
                Err(fault) => break fault,
            }
        };
        assert_eq!(fault.reason, Reason::ArithmeticError);
    });
    let fault = with_limits(1_000, 1 << 30, |cx| {
        let mut value = Value::Int(3);
        loop {
            match multiply(cx, value.clone(), value) {
                Ok(square) => value = square,
                Err(fault) => break fault,
            }
        }
    });
    assert_eq!(fault.reason, Reason::FuelExceeded);
}

#[test]
fn quotients_of_integers_beyond_the_range_of_floats() {
    with_context(|cx| {
        let mut huge = Value::Int(1);
        for _ in 0..2_000 {
            huge = multiply(cx, huge, Value::Int(3)).expect("multiplies");
        }
        let more = multiply(cx, huge.clone(), Value::Int(4)).expect("multiplies");
        let ratio = divide(cx, more, huge);
        assert_eq!(text(ratio, cx), "4.0");
    });
}
