//! Implements `data/NAME`, by which a program reads an entry of its input data (the `context` object).

use super::internal::{keyed, row};
use crate::builtins::Builtin;
use crate::bytecode::Known;
use crate::context::Context;
use crate::fault::{Fault, Result, nearest};
use crate::value::Value;
use std::fmt;

/// The rows of this module.
pub(crate) const TABLE: &[Builtin] =
    &[row("%data", "1", "(%data k)", "One entry of the program's input data.", data).known(Known::DataEntry)];

/// Number of context keys that a hint lists.
const MOST_NAMES: usize = 12;

/// Number of context keys that a missing key is compared with.
const MOST_COMPARED: usize = 1_000;

const NO_CONTEXT: &str = "No context was passed: give the call a `context` object.";

/// Names with commas between them.
fn listed<'n>(names: impl Iterator<Item = &'n str> + Clone) -> impl fmt::Display {
    fmt::from_fn(move |f| {
        names.clone().enumerate().try_for_each(|(position, name)| {
            let comma = if position > 0 { ", " } else { "" };
            write!(f, "{comma}{name}")
        })
    })
}

fn data(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let data = cx.data.clone();
    if let Some(found) = keyed(cx, &data, &arguments[0])? {
        return Ok(found);
    }
    if !cx.strict_data {
        return Ok(Value::Nil);
    }
    let key = cx.name(&arguments[0]).unwrap_or_default();
    let fault = Fault::runtime(format_args!(
        "data/{key} is not bound: the `context` object did not provide a `{key}` key"
    ));
    let Value::Map(map) = &data else { return Err(fault.hint(NO_CONTEXT)) };
    let names = map.keys().iter().filter_map(|key| cx.name(key));
    Err(match nearest(key, names.clone().take(MOST_COMPARED)) {
        Some(near) => fault.hint(format_args!("Did you mean data/{near}?")),
        None if map.is_empty() => fault.hint(NO_CONTEXT),
        None => fault.hint(format_args!("It provides: {}.", listed(names.take(MOST_NAMES)))),
    })
}
