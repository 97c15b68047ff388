//! Builtins that test strings (`includes?`, `blank?`), find positions in them (`index-of`), and extract a part between
//! two indexes (`subs`).

use super::string_argument;
use crate::arith::invalid_types_of;
use crate::context::Context;
use crate::fault::Result;
use crate::value::Value;
use crate::value::read::Graphemes;
use crate::value::string::StringNode;

/// The byte offset of a grapheme; the length of the text for indexes beyond it.
fn byte_offset(cx: &mut Context, node: &StringNode, index: usize) -> Result<usize> {
    if cx.is_ascii(node)? {
        return Ok(index.min(node.len()));
    }
    let mut graphemes = Graphemes::from_start(cx.read(node)?);
    for _ in 0..index {
        match graphemes.next(cx)? {
            Some(grapheme) => cx.tick(grapheme.len() as u64)?,
            None => break,
        }
    }
    Ok(graphemes.at())
}

/// The index of the grapheme at a byte offset.
fn grapheme_index(cx: &mut Context, node: &StringNode, at: usize) -> Result<usize> {
    if cx.is_ascii(node)? {
        return Ok(at);
    }
    let mut count = 0;
    let mut graphemes = Graphemes::from_start(&cx.read(node)?[..at]);
    while let Some(grapheme) = graphemes.next(cx)? {
        cx.tick(grapheme.len() as u64)?;
        count += 1;
    }
    Ok(count)
}

/// The graphemes from one index to another.
pub(super) fn part(cx: &mut Context, node: &StringNode, start: usize, end: usize) -> Result<Value> {
    let end = byte_offset(cx, node, end)?;
    let start = byte_offset(cx, node, start)?.min(end);
    let text = cx.read(node)?;
    cx.copy_text(&text[start..end])
}

/// An index argument: negative ones are `None`.
fn index_argument(arguments: &[Value], index: usize, name: &str) -> Result<Option<usize>> {
    match &arguments[index] {
        Value::Int(value) => Ok(usize::try_from(*value).ok()),
        Value::BigInt(node) => Ok((!node.is_negative()).then_some(usize::MAX)),
        _ => Err(invalid_types_of(name, arguments)),
    }
}

/// The part between two indexes, clamped; nothing for a negative start or an end before it.
pub(in crate::builtins) fn subs(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let node = string_argument(arguments, 0, "subs")?;
    let start = index_argument(arguments, 1, "subs")?;
    let end = if arguments.len() > 2 { index_argument(arguments, 2, "subs")? } else { Some(usize::MAX) };
    let (Some(start), Some(end)) = (start, end) else { return cx.copy_text("") };
    if start == 0 && end >= node.len() {
        return Ok(arguments[0].clone());
    }
    part(cx, node, start, end)
}

/// The strings of the first two arguments.
fn two<'v>(arguments: &'v [Value], name: &str) -> Result<(&'v StringNode, &'v StringNode)> {
    Ok((string_argument(arguments, 0, name)?, string_argument(arguments, 1, name)?))
}

/// Whether a relation of the two strings holds that reads at most as many bytes as the second has.
pub(in crate::builtins) fn related(
    cx: &mut Context,
    arguments: &[Value],
    name: &str,
    relation: fn(&StringNode, &str) -> bool,
) -> Result<Value> {
    let (text, part) = two(arguments, name)?;
    let part = cx.read(part)?;
    cx.tick(1)?;
    Ok(Value::Bool(relation(text, part)))
}

/// `(includes? s part)`.
pub(in crate::builtins) fn includes(cx: &mut Context, arguments: &[Value], name: &str) -> Result<Value> {
    let (text, part) = two(arguments, name)?;
    let part = cx.read(part)?;
    Ok(Value::Bool(cx.find_first(text, 0, part)?.is_some()))
}

fn found(cx: &mut Context, text: &StringNode, at: Option<usize>, absent: Value) -> Result<Value> {
    match at {
        Some(at) => Ok(Value::Int(grapheme_index(cx, text, at)? as i64)),
        None => Ok(absent),
    }
}

/// `(index-of s part from?)`: a negative start is 0.
pub(in crate::builtins) fn index_of(
    cx: &mut Context,
    arguments: &[Value],
    name: &str,
    absent: Value,
) -> Result<Value> {
    let (text, part) = two(arguments, name)?;
    let from = if arguments.len() > 2 { index_argument(arguments, 2, name)?.unwrap_or(0) } else { 0 };
    let from = byte_offset(cx, text, from)?;
    let part = cx.read(part)?;
    let at = cx.find_first(text, from, part)?;
    found(cx, text, at, absent)
}

/// `(last-index-of s part from?)`: the last one that begins at `from` or before.
pub(in crate::builtins) fn last_index_of(
    cx: &mut Context,
    arguments: &[Value],
    name: &str,
    absent: Value,
) -> Result<Value> {
    let (text, part) = two(arguments, name)?;
    let end = if arguments.len() > 2 {
        match index_argument(arguments, 2, name)? {
            Some(from) => byte_offset(cx, text, from)?.saturating_add(part.len()).min(text.len()),
            None => return Ok(absent),
        }
    } else {
        text.len()
    };
    let part = cx.read(part)?;
    let at = cx.find_last(text, end, part)?;
    found(cx, text, at, absent)
}

/// `(blank? s)`: nil is blank.
pub(in crate::builtins) fn blank(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    if arguments[0].is_nil() {
        return Ok(Value::Bool(true));
    }
    let node = string_argument(arguments, 0, "blank?")?;
    if node.preview().chars().any(|character| !character.is_whitespace()) {
        return Ok(Value::Bool(false));
    }
    let text = cx.read(node)?;
    let blanks = text.chars().position(|character| !character.is_whitespace());
    cx.tick(blanks.unwrap_or(text.len()) as u64)?;
    Ok(Value::Bool(blanks.is_none()))
}
