//! Builtins for functions of Java's `Math` that have no name of their own in Clojure's core.

use crate::arith::{self, not_numbers};
use crate::builtins::{Builtin, Category, direct};
use crate::context::Context;
use crate::fault::Result;
use crate::value::Value;
use std::mem::take;

const INTEROP: Category = Category::Interop;

/// The rows of this module.
#[rustfmt::skip]
pub(crate) const TABLE: &[Builtin] = &[
    direct("Math/floorDiv", INTEROP, "2", "(Math/floorDiv number divisor)", "Division rounded down to an integer.", floor_div),
    direct("Math/floorMod", INTEROP, "2", "(Math/floorMod number divisor)", "The same as `mod`.", |cx, a| arith::modulo(cx, take(&mut a[0]), take(&mut a[1]))),
    direct("Math/log", INTEROP, "1", "(Math/log number)", "The natural logarithm.", |_cx, a| of_one(a, "Math/log", f64::ln)),
    direct("Math/log10", INTEROP, "1", "(Math/log10 number)", "The logarithm of base 10.", |_cx, a| of_one(a, "Math/log10", f64::log10)),
    direct("Math/exp", INTEROP, "1", "(Math/exp number)", "The power of e.", |_cx, a| of_one(a, "Math/exp", f64::exp)),
    direct("Math/cbrt", INTEROP, "1", "(Math/cbrt number)", "The cube root.", |_cx, a| of_one(a, "Math/cbrt", f64::cbrt)),
    direct("Math/hypot", INTEROP, "2", "(Math/hypot x y)", "The length of (x, y).", |_cx, a| of_two(a, "Math/hypot", f64::hypot)),
    direct("Math/signum", INTEROP, "1", "(Math/signum number)", "-1.0, 0.0 or 1.0: its sign.", |_cx, a| of_one(a, "Math/signum", |x| if x == 0.0 || x.is_nan() { x } else { x.signum() })),
    direct("Math/sin", INTEROP, "1", "(Math/sin radians)", "The sine.", |_cx, a| of_one(a, "Math/sin", f64::sin)),
    direct("Math/cos", INTEROP, "1", "(Math/cos radians)", "The cosine.", |_cx, a| of_one(a, "Math/cos", f64::cos)),
    direct("Math/tan", INTEROP, "1", "(Math/tan radians)", "The tangent.", |_cx, a| of_one(a, "Math/tan", f64::tan)),
    direct("Math/asin", INTEROP, "1", "(Math/asin number)", "The arc sine, in radians.", |_cx, a| of_one(a, "Math/asin", f64::asin)),
    direct("Math/acos", INTEROP, "1", "(Math/acos number)", "The arc cosine, in radians.", |_cx, a| of_one(a, "Math/acos", f64::acos)),
    direct("Math/atan", INTEROP, "1", "(Math/atan number)", "The arc tangent, in radians.", |_cx, a| of_one(a, "Math/atan", f64::atan)),
    direct("Math/atan2", INTEROP, "2", "(Math/atan2 y x)", "The angle of (x, y), in radians.", |_cx, a| of_two(a, "Math/atan2", f64::atan2)),
    direct("Math/toRadians", INTEROP, "1", "(Math/toRadians degrees)", "Radians of degrees.", |_cx, a| of_one(a, "Math/toRadians", f64::to_radians)),
    direct("Math/toDegrees", INTEROP, "1", "(Math/toDegrees radians)", "Degrees of radians.", |_cx, a| of_one(a, "Math/toDegrees", f64::to_degrees)),
];

fn of_one(arguments: &[Value], name: &str, function: fn(f64) -> f64) -> Result<Value> {
    match arith::to_float(&arguments[0]) {
        Some(number) => Ok(Value::Float(function(number))),
        None => Err(not_numbers(name, &[&arguments[0]])),
    }
}

fn of_two(arguments: &[Value], name: &str, function: fn(f64, f64) -> f64) -> Result<Value> {
    match (arith::to_float(&arguments[0]), arith::to_float(&arguments[1])) {
        (Some(a), Some(b)) => Ok(Value::Float(function(a, b))),
        _ => Err(not_numbers(name, &[&arguments[0], &arguments[1]])),
    }
}

/// Subtracting the modulus first makes the division exact.
fn floor_div(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let (number, divisor) = (take(&mut arguments[0]), take(&mut arguments[1]));
    let rest = arith::modulo(cx, number.clone(), divisor.clone())?;
    let number = arith::subtract(cx, number, rest)?;
    arith::quotient(cx, number, divisor)
}
