//! Builtins that compare values of any type: `=`, `not=`, `<` and its relatives, `compare`, `max`, `min`.

use crate::builtins::{Builtin, Category, direct};
use crate::bytecode::Known;
use crate::context::Context;
use crate::fault::Result;
use crate::value::Value;
use crate::value::relation::equal::equal;
use crate::value::relation::order;
use std::cmp::Ordering;
use std::mem::take;

const CORE: Category = Category::Core;

/// The rows of this module.
#[rustfmt::skip]
pub(crate) const TABLE: &[Builtin] = &[
    direct("=", CORE, "1+", "(= x y …)", "True when all are equal; 1 and 1.0 are.", is_equal).known(Known::Equal),
    direct("==", CORE, "1+", "(== x y …)", "True when all are equal; 1 and 1.0 are.", is_equal),
    direct("not=", CORE, "1+", "(not= x y …)", "True when not all are equal.", not_equal).known(Known::NotEqual),
    direct("<", CORE, "1+", "(< x y …)", "True when each is below the next.", |cx, a| ordered(cx, a, Ordering::is_lt)).known(Known::Less),
    direct(">", CORE, "1+", "(> x y …)", "True when each is above the next.", |cx, a| ordered(cx, a, Ordering::is_gt)).known(Known::Greater),
    direct("<=", CORE, "1+", "(<= x y …)", "True when each is at most the next.", |cx, a| ordered(cx, a, Ordering::is_le)).known(Known::LessEqual),
    direct(">=", CORE, "1+", "(>= x y …)", "True when each is at least the next.", |cx, a| ordered(cx, a, Ordering::is_ge)).known(Known::GreaterEqual),
    direct("compare", CORE, "2", "(compare x y)", "-1, 0 or 1: the order of two values of any types; nil comes first.", compare).known(Known::Compare),
    direct("max", Category::Math, "1+", "(max x …)", "The highest value.", |cx, a| extreme(cx, a, Ordering::Greater)),
    direct("min", Category::Math, "1+", "(min x …)", "The lowest value.", |cx, a| extreme(cx, a, Ordering::Less)),
];

fn all_equal(cx: &mut Context, arguments: &[Value]) -> Result<bool> {
    for pair in arguments.windows(2) {
        if !equal(cx, &pair[0], &pair[1])? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_equal(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    Ok(Value::Bool(all_equal(cx, arguments)?))
}

fn not_equal(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    Ok(Value::Bool(!all_equal(cx, arguments)?))
}

fn is_nan(value: &Value) -> bool {
    matches!(value, Value::Float(value) if value.is_nan())
}

/// NaN is neither below, above nor equal to anything.
fn ordered(cx: &mut Context, arguments: &[Value], test: fn(Ordering) -> bool) -> Result<Value> {
    for pair in arguments.windows(2) {
        let (a, b) = (&pair[0], &pair[1]);
        if is_nan(a) || is_nan(b) || !test(order::compare(cx, a, b)?) {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

fn compare(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let (a, b) = (&arguments[0], &arguments[1]);
    let is_number = |value: &Value| matches!(value, Value::Int(_) | Value::Float(_) | Value::BigInt(_));
    if (is_nan(a) && is_number(b)) || (is_nan(b) && is_number(a)) {
        return Ok(Value::Int(0));
    }
    if a.is_nil() != b.is_nil() {
        // As in Clojure. The sort order differs: there nil comes after numbers and false.
        return Ok(Value::Int(if a.is_nil() { -1 } else { 1 }));
    }
    Ok(Value::Int(order::compare(cx, a, b)? as i64))
}

/// The value that compares to all others as `wanted`; the first one on ties, NaN if there is one.
fn extreme(cx: &mut Context, arguments: &mut [Value], wanted: Ordering) -> Result<Value> {
    let mut best = 0;
    for at in 0..arguments.len() {
        if is_nan(&arguments[at]) {
            best = at;
            break;
        }
        if order::compare(cx, &arguments[at], &arguments[best])? == wanted {
            best = at;
        }
    }
    Ok(take(&mut arguments[best]))
}
