//! Looking for parts of strings, and taking them out.

use super::{slice, string_argument};
use crate::arith::invalid_types;
use crate::context::Context;
use crate::fault::Result;
use crate::string::StringNode;
use crate::value::Value;
use num_bigint::Sign;
use unicode_segmentation::UnicodeSegmentation;

/// The byte where a grapheme begins; the length of the text for indexes beyond.
pub(super) fn byte_offset(node: &StringNode, index: usize) -> usize {
    let text = node.as_str();
    if node.is_ascii() {
        index.min(text.len())
    } else {
        text.grapheme_indices(true).nth(index).map_or(text.len(), |(at, _)| at)
    }
}

/// The index of the grapheme at a byte.
fn grapheme_index(node: &StringNode, at: usize) -> usize {
    if node.is_ascii() { at } else { node.as_str()[..at].graphemes(true).count() }
}

/// An index argument: negative ones are `None`.
fn index_argument(arguments: &[Value], index: usize, name: &str) -> Result<Option<usize>> {
    match &arguments[index] {
        Value::Int(value) => Ok(usize::try_from(*value).ok()),
        Value::BigInt(node) => Ok((node.get().sign() == Sign::Plus).then_some(usize::MAX)),
        _ => {
            let all: Vec<&Value> = arguments.iter().collect();
            Err(invalid_types(name, &all))
        }
    }
}

/// The part between two indexes, clamped; nothing for a negative start or an end before it.
pub(in crate::builtins) fn subs(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let node = string_argument(arguments, 0, "subs")?;
    let start = index_argument(arguments, 1, "subs")?;
    let end = if arguments.len() > 2 { index_argument(arguments, 2, "subs")? } else { Some(usize::MAX) };
    let (Some(start), Some(end)) = (start, end) else { return Ok(Value::string("")) };
    if !node.is_ascii() {
        cx.tick(node.as_str().len() as u64)?;
    }
    let end = byte_offset(node, end);
    let start = byte_offset(node, start).min(end);
    if start == 0 && end == node.as_str().len() {
        return Ok(arguments[0].clone());
    }
    slice(cx, &node.as_str()[start..end])
}

/// The strings of the first two arguments, paid for as if the first were read in full.
fn two<'v>(cx: &mut Context, arguments: &'v [Value], name: &str) -> Result<(&'v StringNode, &'v StringNode)> {
    let text = string_argument(arguments, 0, name)?;
    let part = string_argument(arguments, 1, name)?;
    cx.tick(text.as_str().len() as u64 / 8 + 1)?;
    Ok((text, part))
}

/// Whether the two strings of a call are in a relation.
pub(in crate::builtins) fn related(
    cx: &mut Context,
    arguments: &[Value],
    name: &str,
    relation: fn(&str, &str) -> bool,
) -> Result<Value> {
    let (text, part) = two(cx, arguments, name)?;
    Ok(Value::Bool(relation(text.as_str(), part.as_str())))
}

fn found(text: &StringNode, at: Option<usize>, absent: Value) -> Value {
    at.map_or(absent, |at| Value::Int(grapheme_index(text, at) as i64))
}

/// `(index-of s part from?)`: a negative start is 0.
pub(in crate::builtins) fn index_of(
    cx: &mut Context,
    arguments: &[Value],
    name: &str,
    absent: Value,
) -> Result<Value> {
    let (text, part) = two(cx, arguments, name)?;
    let from = if arguments.len() > 2 { index_argument(arguments, 2, name)?.unwrap_or(0) } else { 0 };
    let from = byte_offset(text, from);
    let at = text.as_str()[from..].find(part.as_str()).map(|at| at + from);
    Ok(found(text, at, absent))
}

/// `(last-index-of s part from?)`: the last one that begins at `from` or before.
pub(in crate::builtins) fn last_index_of(
    cx: &mut Context,
    arguments: &[Value],
    name: &str,
    absent: Value,
) -> Result<Value> {
    let (text, part) = two(cx, arguments, name)?;
    let whole = text.as_str();
    let end = if arguments.len() > 2 {
        match index_argument(arguments, 2, name)? {
            Some(from) => {
                let end = byte_offset(text, from).saturating_add(part.as_str().len());
                whole.floor_char_boundary(end)
            }
            None => return Ok(absent),
        }
    } else {
        whole.len()
    };
    Ok(found(text, whole[..end].rfind(part.as_str()), absent))
}

/// `(blank? s)`: nil is blank.
pub(in crate::builtins) fn blank(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    if arguments[0].is_nil() {
        return Ok(Value::Bool(true));
    }
    let text = string_argument(arguments, 0, "blank?")?.as_str();
    let blanks = text.chars().position(|character| !character.is_whitespace());
    cx.tick(blanks.unwrap_or(text.len()) as u64)?;
    Ok(Value::Bool(blanks.is_none()))
}
