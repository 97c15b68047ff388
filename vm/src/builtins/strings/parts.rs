//! Builtins that split a string at a separator or the matches of a regex (`split`), or into its lines (`split-lines`).

use super::string_argument;
use crate::arith::invalid_types_of;
use crate::collection::seq;
use crate::context::Context;
use crate::fault::{Fault, Result};
use crate::memory::List;
use crate::value::Value;
use crate::value::read::Graphemes;
use crate::value::regex::RegexNode;
use ptc_regex::after;

/// `(split s separator limit?)`.
pub(in crate::builtins) fn split(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let node = string_argument(arguments, 0, "split")?;
    let text = cx.read(node)?;
    let limit = match arguments.get(2) {
        None => 0,
        Some(_) => seq::count_argument(&arguments[2], "split", 3)?,
    };
    match &arguments[1] {
        Value::Regex(regex) => split_by(cx, text, regex, limit),
        Value::Str(separator) => match cx.graphemes(separator)? {
            0 => characters(cx, text, limit),
            1 => {
                let separator = cx.read(separator)?;
                pieces(cx, text, limit, |cx, at| {
                    let found = cx.find_first(node, at, separator)?;
                    Ok(found.map(|start| (start, start + separator.len())))
                })
            }
            count => Err(Fault::type_error(format_args!(
                "split: arg 2 expected a regex, one character or \"\", got a string of {count} characters"
            ))
            .hint("Write the separator as a regex: (split s #\", \").")),
        },
        _ => Err(invalid_types_of("split", arguments)),
    }
}

/// The pieces between the matches of a regex. Limit 0 drops trailing empty pieces, a negative limit keeps them, a
/// positive one is the maximal number of pieces.
pub(crate) fn split_by(cx: &mut Context, text: &str, regex: &RegexNode, limit: i64) -> Result<Value> {
    pieces(cx, text, limit, |cx, at| {
        Ok(cx.find_match(regex, text, at)?.and_then(|spans| spans.first().copied().flatten()))
    })
}

/// The pieces between the matches that `next` finds from a position on.
fn pieces(
    cx: &mut Context,
    text: &str,
    limit: i64,
    mut next: impl FnMut(&mut Context, usize) -> Result<Option<(usize, usize)>>,
) -> Result<Value> {
    let most = seq::length(limit);
    let mut pieces = List::default();
    let (mut last, mut at) = (0, 0);
    while at <= text.len() && (most == 0 || pieces.len() + 1 < most) {
        let Some((start, end)) = next(cx, at)? else { break };
        at = after(text, start, end);
        // An empty match at the very start separates nothing.
        if end > 0 {
            cx.tick(1)?;
            let piece = cx.copy_text(&text[last..start])?;
            pieces.push(cx, piece)?;
            last = end;
        }
        if pieces.len() % 256 == 0 {
            seq::check_memory(cx)?;
        }
    }
    if pieces.is_empty() {
        return Ok(Value::row([cx.copy_text(text)?]));
    }
    let piece = cx.copy_text(&text[last..])?;
    pieces.push(cx, piece)?;
    if limit == 0 {
        while matches!(pieces.last(), Some(Value::Str(piece)) if piece.is_empty()) {
            pieces.pop();
        }
    }
    Ok(pieces.into_value())
}

/// Every grapheme by itself.
fn characters(cx: &mut Context, text: &str, limit: i64) -> Result<Value> {
    let most = seq::length(limit);
    if text.is_empty() {
        return Ok(Value::row([cx.copy_text("")?]));
    }
    let mut pieces = List::default();
    let mut graphemes = Graphemes::from_start(text);
    while let Some(grapheme) = graphemes.next(cx)? {
        if most > 0 && pieces.len() + 1 == most {
            let rest = cx.copy_text(&text[graphemes.at() - grapheme.len()..])?;
            pieces.push(cx, rest)?;
            break;
        }
        cx.tick(1)?;
        let piece = cx.copy_text(grapheme)?;
        pieces.push(cx, piece)?;
        if pieces.len() % 256 == 0 {
            seq::check_memory(cx)?;
        }
    }
    Ok(pieces.into_value())
}

/// `(split-lines s)`: empty lines at the end are dropped.
pub(in crate::builtins) fn split_lines(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let node = string_argument(arguments, 0, "split-lines")?;
    let text = cx.read(node)?;
    pieces(cx, text, 0, |cx, at| {
        Ok(cx.find_first(node, at, "\n")?.map(|end| {
            let start = if text[at..end].ends_with('\r') { end - 1 } else { end };
            (start, end + 1)
        }))
    })
}
