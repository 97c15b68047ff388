//! Builtins that test a value of any type (`nil?`, `string?`, `even?`), and give false instead of an error for a value
//! of a wrong type.

use crate::builtins::functions::callbacks::is_callable;
use crate::builtins::{Builtin, Category, direct};
use crate::bytecode::Known;
use crate::context::Context;
use crate::fault::Result;
use crate::value::Value;
use crate::value::set::SetNode;
use std::mem::take;
use std::rc::Rc;

const CORE: Category = Category::Core;

/// A predicate of one value.
macro_rules! test {
    ($name:literal, $doc:literal, $value:pat $(if $guard:expr)?) => {
        direct($name, CORE, "1", concat!("(", $name, " x)"), $doc, |_cx, arguments| {
            Ok(Value::Bool(matches!(&arguments[0], $value $(if $guard)?)))
        })
        .total()
    };
}

/// The rows of this module.
#[rustfmt::skip]
pub(crate) const TABLE: &[Builtin] = &[
    test!("not", "True for nil and false.", value if !value.is_truthy()).known(Known::Not),
    test!("boolean", "False for nil and false, true for anything else.", value if value.is_truthy()),
    test!("nil?", "True for nil.", Value::Nil).known(Known::IsNil),
    test!("some?", "True for anything but nil.", value if !value.is_nil()).known(Known::IsSome),
    direct("any?", CORE, "1", "(any? x)", "True.", |_cx, _a| Ok(Value::Bool(true))).total(),
    test!("true?", "True for true.", Value::Bool(true)),
    test!("false?", "True for false.", Value::Bool(false)),
    test!("boolean?", "True for true and false.", Value::Bool(_)),
    test!("number?", "True for numbers.", Value::Int(_) | Value::Float(_) | Value::BigInt(_)),
    test!("int?", "True for integers.", Value::Int(_) | Value::BigInt(_)),
    test!("integer?", "True for integers.", Value::Int(_) | Value::BigInt(_)),
    test!("rational?", "True for integers.", Value::Int(_) | Value::BigInt(_)),
    test!("float?", "True for floats.", Value::Float(_)),
    test!("double?", "True for floats.", Value::Float(_)),
    direct("nat-int?", CORE, "1", "(nat-int? x)", "True for integers from 0 on.", |_cx, a| integer_sign(a, |sign| sign >= 0)).total(),
    direct("pos-int?", CORE, "1", "(pos-int? x)", "True for integers above 0.", |_cx, a| integer_sign(a, |sign| sign > 0)).total(),
    direct("neg-int?", CORE, "1", "(neg-int? x)", "True for integers below 0.", |_cx, a| integer_sign(a, |sign| sign < 0)).total(),
    direct("zero?", CORE, "1", "(zero? x)", "True for the number 0.", |_cx, a| number_sign(a, |sign| sign == 0)).total(),
    direct("pos?", CORE, "1", "(pos? x)", "True for numbers above 0.", |_cx, a| number_sign(a, |sign| sign > 0)).total(),
    direct("neg?", CORE, "1", "(neg? x)", "True for numbers below 0.", |_cx, a| number_sign(a, |sign| sign < 0)).total(),
    test!("even?", "True for even numbers.", value if parity(value) == Some(0)),
    test!("odd?", "True for odd numbers.", value if parity(value) == Some(1)),
    test!("NaN?", "True for ##NaN.", Value::Float(value) if value.is_nan()),
    test!("infinite?", "True for ##Inf and ##-Inf.", Value::Float(value) if value.is_infinite()),
    test!("string?", "True for strings.", Value::Str(_)),
    test!("char?", "True for strings of one character.", Value::Str(node) if node.is_character()),
    test!("keyword?", "True for keywords.", Value::Keyword(_)),
    test!("vector?", "True for vectors, which all sequences are.", Value::Vector(_)),
    test!("map?", "True for maps.", Value::Map(_)),
    test!("set?", "True for sets.", Value::Set(_)),
    test!("regex?", "True for regular expressions.", Value::Regex(_)),
    test!("fn?", "True for functions.", value if value.is_function()),
    test!("ifn?", "True for everything that can be called.", value if is_callable(value) || matches!(value, Value::Vector(_))),
    test!("coll?", "True for vectors, maps and sets.", Value::Vector(_) | Value::Map(_) | Value::Set(_)),
    test!("list?", "True for sequences: lists are vectors.", Value::Vector(_)),
    test!("seq?", "True for sequences.", Value::Vector(_)),
    test!("sequential?", "True for sequences.", Value::Vector(_)),
    test!("associative?", "True for maps and vectors.", Value::Vector(_) | Value::Map(_)),
    test!("counted?", "True for what knows its size.", Value::Vector(_) | Value::Map(_) | Value::Set(_) | Value::Str(_)),
    test!("indexed?", "True for what has positions.", Value::Vector(_) | Value::Str(_)),
    test!("reversible?", "True for what can be reversed.", Value::Vector(_) | Value::Str(_)),
    test!("seqable?", "True for what seq takes.", Value::Nil | Value::Vector(_) | Value::Map(_) | Value::Set(_) | Value::Str(_)),
    direct("distinct?", CORE, "1+", "(distinct? x …)", "True when no two arguments are the same.", is_distinct),
    never("symbol?", "(symbol? x)", "False: there are no symbols at run time."),
    never("decimal?", "(decimal? x)", "False: there are no decimals."),
    never("ratio?", "(ratio? x)", "False: there are no ratios."),
    never("sorted?", "(sorted? x)", "False: every map and set iterates in key order."),
    never("map-entry?", "(map-entry? x)", "False: entries are vectors."),
];

/// A predicate that is false for every value of this language.
const fn never(name: &'static str, usage: &'static str, doc: &'static str) -> Builtin {
    direct(name, CORE, "1", usage, doc, |_cx, _arguments| Ok(Value::Bool(false))).total()
}

/// -1, 0 or 1 for an integer.
fn sign_of_integer(value: &Value) -> Option<i32> {
    match value {
        Value::Int(value) => Some(value.signum() as i32),
        Value::BigInt(node) => Some(if node.is_negative() { -1 } else { 1 }),
        _ => None,
    }
}

fn integer_sign(arguments: &[Value], test: fn(i32) -> bool) -> Result<Value> {
    Ok(Value::Bool(sign_of_integer(&arguments[0]).is_some_and(test)))
}

fn number_sign(arguments: &[Value], test: fn(i32) -> bool) -> Result<Value> {
    let sign = match &arguments[0] {
        Value::Float(value) if value.is_nan() => None,
        Value::Float(value) => Some(i32::from(*value > 0.0) - i32::from(*value < 0.0)),
        other => sign_of_integer(other),
    };
    Ok(Value::Bool(sign.is_some_and(test)))
}

/// 0 for even, 1 for odd whole numbers.
fn parity(value: &Value) -> Option<u8> {
    match value {
        Value::Int(value) => Some((value & 1) as u8),
        Value::BigInt(node) => Some(u8::from(node.is_odd())),
        Value::Float(value) if value.is_finite() && value.fract() == 0.0 => {
            Some(u8::from(value % 2.0 != 0.0))
        }
        _ => None,
    }
}

fn is_distinct(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let mut seen: Rc<SetNode> = SetNode::empty();
    let count = arguments.len();
    for item in arguments {
        cx.tick(1)?;
        seen = SetNode::insert(seen, cx, take(item))?;
    }
    Ok(Value::Bool(seen.len() == count))
}
