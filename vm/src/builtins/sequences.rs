//! Builtins over sequences that take no functions.

use super::{Builtin, Category, plain};
use crate::context::Context;
use crate::fault::Result;
use crate::value::Value;
use std::mem::take;

/// The rows of this module.
pub(super) const TABLE: &[Builtin] = &[plain(
    "vector",
    Category::Core,
    "0+",
    "(vector item …)",
    "A vector of the arguments.",
    vector,
)
.total()];

fn vector(_cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    Ok(Value::vector(arguments.iter_mut().map(take).collect()))
}
