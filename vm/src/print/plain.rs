//! Prints results that are strings with line breaks, or lists of strings, as plain text without quotes and escapes,
//! which reads better.

use super::Extent;
use crate::context::Context;
use crate::fault::Result;
use crate::value::Value;
use crate::value::build::{Text, TextLimit};

/// How deep lists of texts may nest.
const DEEPEST: usize = 2;

/// Writes a text with line breaks, or lists of texts for each of which `is_listed` is true, without quotes and
/// escapes. Other values give `None`.
///
/// # Errors
/// Fuel, deadline, cancellation, memory.
pub fn plain_into(
    cx: &mut Context,
    value: &Value,
    limit: TextLimit,
    is_listed: &dyn Fn(&str) -> bool,
    text: &mut String,
) -> Result<Option<Extent>> {
    let has_breaks = match value {
        Value::Str(node) => {
            cx.tick(node.len() as u64 / 64 + 1)?;
            Some(true).filter(|_| node.as_str().contains('\n') || is_listed(node.as_str()))
        }
        Value::Vector(_) => breaks_in_list(cx, value, is_listed, DEEPEST)?,
        _ => None,
    };
    let Some(has_breaks) = has_breaks else { return Ok(None) };
    let mut buffer = Text::within(std::mem::take(text), limit);
    write(cx, &mut buffer, value, if has_breaks { "\n\n" } else { "\n" }, &mut true)?;
    let extent = Extent { truncated: buffer.is_cut(), bytes: buffer.written(), saved: buffer.saved() };
    *text = buffer.into_text();
    Ok(Some(extent))
}

/// Whether a text in a list has a line break; `None` if the list holds other values than listed texts.
fn breaks_in_list(
    cx: &mut Context,
    value: &Value,
    is_listed: &dyn Fn(&str) -> bool,
    depth: usize,
) -> Result<Option<bool>> {
    match value {
        Value::Str(node) => {
            cx.tick(node.len() as u64 / 16 + 1)?;
            Ok(is_listed(node.as_str()).then(|| node.as_str().contains('\n')))
        }
        Value::Vector(node) if depth > 0 => {
            let items = node.as_slice().unwrap_or_default();
            let mut has_breaks = false;
            for item in items {
                match breaks_in_list(cx, item, is_listed, depth - 1)? {
                    Some(breaks) => has_breaks |= breaks,
                    None => return Ok(None),
                }
            }
            Ok((!items.is_empty()).then_some(has_breaks))
        }
        _ => Ok(None),
    }
}

/// Writes texts with `between` between them.
fn write(
    cx: &mut Context,
    buffer: &mut Text,
    value: &Value,
    between: &str,
    is_first: &mut bool,
) -> Result<()> {
    match value {
        Value::Str(node) => {
            if !std::mem::take(is_first) {
                buffer.push(cx, between)?;
            }
            buffer.push(cx, node.as_str())
        }
        Value::Vector(node) => {
            let mut items = node.as_slice().unwrap_or_default().iter();
            items.try_for_each(|item| write(cx, buffer, item, between, is_first))
        }
        _ => Ok(()),
    }
}
