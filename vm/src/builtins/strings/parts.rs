//! Splitting strings.

use super::{slice, string_argument};
use crate::arith::invalid_types;
use crate::builtins::seq;
use crate::context::Context;
use crate::fault::{Fault, Result};
use crate::regex::{RegexNode, after};
use crate::value::Value;
use unicode_segmentation::UnicodeSegmentation;

/// `(split s separator limit?)`.
pub(in crate::builtins) fn split(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let text = string_argument(arguments, 0, "split")?;
    let limit = match arguments.get(2) {
        None => 0,
        Some(_) => seq::count_argument(&arguments[2], "split", 3)?,
    };
    match &arguments[1] {
        Value::Regex(regex) => split_by(cx, text.as_str(), regex, limit),
        Value::Str(separator) => match separator.graphemes() {
            0 => characters(cx, text.as_str(), limit),
            1 => pieces(cx, text.as_str(), limit, |cx, at| {
                let separator = separator.as_str();
                let rest = &text.as_str()[at..];
                let found = rest.find(separator);
                cx.tick(found.unwrap_or(rest.len()) as u64)?;
                Ok(found.map(|start| (at + start, at + start + separator.len())))
            }),
            count => Err(Fault::type_error(format_args!(
                "split: arg 2 expected a regex, one character or \"\", got a string of {count} characters"
            ))
            .hint("Write the separator as a regex: (split s #\", \").")),
        },
        _ => {
            let all: Vec<&Value> = arguments.iter().collect();
            Err(invalid_types("split", &all))
        }
    }
}

/// The pieces between the matches of a regex. Limit 0 drops empty pieces at the end, a negative one keeps
/// them, a positive one is the most pieces there may be.
pub(in crate::builtins) fn split_by(
    cx: &mut Context,
    text: &str,
    regex: &RegexNode,
    limit: i64,
) -> Result<Value> {
    pieces(cx, text, limit, |cx, at| {
        Ok(regex.find(cx, text, at)?.and_then(|spans| spans.first().copied().flatten()))
    })
}

/// The pieces between what `next` finds from a position on.
fn pieces(
    cx: &mut Context,
    text: &str,
    limit: i64,
    mut next: impl FnMut(&mut Context, usize) -> Result<Option<(usize, usize)>>,
) -> Result<Value> {
    let most = seq::length(limit);
    let mut pieces = Vec::new();
    let (mut last, mut at) = (0, 0);
    while at <= text.len() && (most == 0 || pieces.len() + 1 < most) {
        let Some((start, end)) = next(cx, at)? else { break };
        at = after(text, start, end);
        // An empty match at the very start separates nothing.
        if end > 0 {
            let piece = slice(cx, &text[last..start])?;
            seq::push(cx, &mut pieces, piece)?;
            last = end;
        }
        if pieces.len() % 256 == 0 {
            seq::check_memory(cx)?;
        }
    }
    if pieces.is_empty() {
        return Ok(Value::vector(vec![slice(cx, text)?]));
    }
    let piece = slice(cx, &text[last..])?;
    seq::push(cx, &mut pieces, piece)?;
    if limit == 0 {
        while pieces.last().is_some_and(|piece| piece.as_str() == Some("")) {
            pieces.pop();
        }
    }
    Ok(Value::vector(pieces))
}

/// Every grapheme by itself.
fn characters(cx: &mut Context, text: &str, limit: i64) -> Result<Value> {
    let most = seq::length(limit);
    if text.is_empty() {
        return Ok(Value::vector(vec![Value::string("")]));
    }
    let mut pieces = Vec::new();
    for (at, grapheme) in text.grapheme_indices(true) {
        if most > 0 && pieces.len() + 1 == most {
            let rest = slice(cx, &text[at..])?;
            seq::push(cx, &mut pieces, rest)?;
            break;
        }
        let piece = slice(cx, grapheme)?;
        seq::push(cx, &mut pieces, piece)?;
        if pieces.len() % 256 == 0 {
            seq::check_memory(cx)?;
        }
    }
    Ok(Value::vector(pieces))
}

/// `(split-lines s)`: empty lines at the end are dropped.
pub(in crate::builtins) fn split_lines(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let text = string_argument(arguments, 0, "split-lines")?.as_str();
    pieces(cx, text, 0, |cx, at| {
        let rest = &text[at..];
        let found = rest.find('\n');
        cx.tick(found.unwrap_or(rest.len()) as u64)?;
        Ok(found.map(|end| {
            let start = if rest[..end].ends_with('\r') { end - 1 } else { end };
            (at + start, at + end + 1)
        }))
    })
}
