//! Builtins that turn values into text: `str`, `pr-str`, `join`; and those that print it: `println`, `prn`.

use crate::collection::seq;
use crate::context::Context;
use crate::fault::{Fault, Result};
use crate::print::{println_text, write_display, write_readable};
use crate::value::Value;
use crate::value::build::{Text, append, append_node};
use std::mem::take;
use std::rc::Rc;

/// Appends to the first argument in place if it is not shared, so that building a text step by step takes time
/// proportional to its length.
pub(in crate::builtins) fn str(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let mut text = match arguments {
        [] => return cx.copy_text(""),
        [first @ Value::Str(_)] => return Ok(take(first)),
        [first @ Value::Str(_), ..] if !is_shared(first) => match take(first) {
            Value::Str(node) => node,
            other => return Ok(other),
        },
        [first, rest @ ..] => {
            let mut buffer = Text::reuse(cx);
            buffer.make_room(cx, least_bytes(first, rest))?;
            match first {
                Value::Str(text) => buffer.copy(cx, text)?,
                other => write_display(cx, &mut buffer, other)?,
            }
            for argument in rest {
                write_display(cx, &mut buffer, argument)?;
            }
            return Ok(Value::Str(buffer.into_string(cx)));
        }
    };
    for argument in &arguments[1..] {
        text = match argument {
            Value::Nil => text,
            Value::Str(more) => append_node(cx, text, more)?,
            other => {
                let mut buffer = Text::reuse(cx);
                write_display(cx, &mut buffer, other)?;
                let text = append(cx, text, buffer.as_str())?;
                buffer.give_back(cx);
                text
            }
        };
    }
    Ok(Value::Str(text))
}

/// The bytes of those arguments that are strings, so that a text of large ones grows once.
fn least_bytes(first: &Value, rest: &[Value]) -> usize {
    let bytes = |argument: &Value| if let Value::Str(text) = argument { text.len() } else { 0 };
    rest.iter().map(bytes).fold(bytes(first), usize::saturating_add)
}

fn is_shared(text: &Value) -> bool {
    matches!(text, Value::Str(node) if Rc::strong_count(node) > 1)
}

/// The arguments as program text.
pub(in crate::builtins) fn pr_str(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let mut buffer = Text::new();
    for (position, argument) in arguments.iter().enumerate() {
        if position > 0 {
            buffer.push(cx, " ")?;
        }
        write_readable(cx, &mut buffer, argument)?;
    }
    Ok(buffer.into_value())
}

/// Adds a line to the program's output.
pub(in crate::builtins) fn println(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let line = println_text(cx, arguments)?;
    cx.prints.push(&line);
    Ok(Value::Nil)
}

/// Adds a line of the arguments as `pr-str` writes them.
pub(in crate::builtins) fn prn(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let line = pr_str(cx, arguments)?;
    println(cx, &mut [line])
}

/// `(join coll)`, `(join separator coll)`.
pub(in crate::builtins) fn join(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let separator = match arguments {
        [separator, _] if separator.is_composite() => {
            return Err(Fault::type_error(format_args!(
                "join expects (separator, collection) but got a {} first, arguments may be swapped",
                separator.type_word()
            )));
        }
        [separator, _] => {
            let mut text = Text::new();
            write_display(cx, &mut text, separator)?;
            text
        }
        _ => Text::new(),
    };
    let last = arguments.len() - 1;
    let items = seq::to_vector(cx, take(&mut arguments[last]), "join")?;
    let mut buffer = Text::new();
    for (position, item) in items.iter().enumerate() {
        cx.tick(1)?;
        if position > 0 {
            buffer.push(cx, separator.as_str())?;
        }
        write_display(cx, &mut buffer, &item)?;
    }
    Ok(buffer.into_value())
}
