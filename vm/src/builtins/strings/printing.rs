//! Builtins that print: `println`, `prn`.

use super::output::pr_str;
use crate::context::Context;
use crate::fault::Result;
use crate::print;
use crate::value::Value;

/// Adds a line to the program's output.
pub(in crate::builtins) fn println(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let line = print::println_text(cx, arguments)?;
    cx.prints.push(&line);
    Ok(Value::Nil)
}

/// Adds a line of the arguments as `pr-str` writes them.
pub(in crate::builtins) fn prn(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let line = pr_str(cx, arguments)?;
    println(cx, &mut [line])
}
