//! Replacing parts of strings.

use super::string_argument;
use crate::arith::invalid_types;
use crate::builtins::{Step, partitions};
use crate::context::Context;
use crate::fault::{Fault, Result};
use crate::native::Native;
use crate::native::replace::Replace;
use crate::print::Buffer;
use crate::regex::{RegexNode, after};
use crate::string::StringNode;
use crate::value::Value;
use std::mem::take;
use unicode_segmentation::UnicodeSegmentation;

/// A piece of a replacement.
enum Piece {
    Text(String),
    Group(usize),
}

/// `(replace s pattern with)`; with fewer it is the `replace` of collections.
pub(in crate::builtins) fn replace(cx: &mut Context, arguments: &mut [Value]) -> Result<Step> {
    if arguments.len() <= 2 {
        return partitions::replace(cx, arguments).map(Step::Return);
    }
    by_text_or_function(cx, arguments, "replace", false)
}

/// `(replace-first s pattern with)`.
pub(in crate::builtins) fn replace_first(cx: &mut Context, arguments: &mut [Value]) -> Result<Step> {
    by_text_or_function(cx, arguments, "replace-first", true)
}

fn by_text_or_function(
    cx: &mut Context,
    arguments: &mut [Value],
    name: &str,
    first_only: bool,
) -> Result<Step> {
    match arguments {
        [Value::Str(text), Value::Regex(regex), function]
            if function.is_function() || matches!(function, Value::Map(_) | Value::Keyword(_)) =>
        {
            let machine = Replace::new(text.clone(), regex.clone(), take(function), first_only);
            Ok(Step::Enter(Native::Replace(machine)))
        }
        _ => replace_text(cx, arguments, name, first_only).map(Step::Return),
    }
}

/// Replaces the matches of a text or regex, all or the first.
fn replace_text(cx: &mut Context, arguments: &mut [Value], name: &str, first_only: bool) -> Result<Value> {
    let text = string_argument(arguments, 0, name)?;
    let with = match &arguments[2] {
        Value::Str(with) => with.as_str(),
        _ => return Err(invalid_types(name, &[&arguments[0], &arguments[1], &arguments[2]])),
    };
    let replaced = match &arguments[1] {
        Value::Regex(regex) => replace_matches(cx, text.as_str(), regex, with, first_only)?,
        Value::Str(part) if part.as_str().is_empty() => {
            Some(insert_between(cx, text.as_str(), with, first_only)?)
        }
        Value::Str(part) => replace_literal(cx, text.as_str(), part.as_str(), with, first_only)?,
        _ => return Err(invalid_types(name, &[&arguments[0], &arguments[1], &arguments[2]])),
    };
    Ok(match replaced {
        Some(text) => Value::Str(StringNode::new(text)),
        None => take(&mut arguments[0]),
    })
}

/// `None` when there is no match.
fn replace_literal(
    cx: &mut Context,
    text: &str,
    part: &str,
    with: &str,
    first_only: bool,
) -> Result<Option<String>> {
    let mut buffer = Buffer::new(usize::MAX);
    let mut last = 0;
    for (start, _) in text.match_indices(part).take(if first_only { 1 } else { usize::MAX }) {
        buffer.push(cx, &text[last..start])?;
        buffer.push(cx, with)?;
        cx.tick(1)?;
        last = start + part.len();
    }
    if last == 0 {
        cx.tick(text.len() as u64)?;
        return Ok(None);
    }
    buffer.push(cx, &text[last..])?;
    Ok(Some(buffer.into_text()))
}

/// The empty text matches before every grapheme and at the end.
fn insert_between(cx: &mut Context, text: &str, with: &str, first_only: bool) -> Result<String> {
    let mut buffer = Buffer::new(usize::MAX);
    buffer.push(cx, with)?;
    if first_only {
        buffer.push(cx, text)?;
        return Ok(buffer.into_text());
    }
    for grapheme in text.graphemes(true) {
        buffer.push(cx, grapheme)?;
        buffer.push(cx, with)?;
    }
    Ok(buffer.into_text())
}

/// `None` when there is no match.
fn replace_matches(
    cx: &mut Context,
    text: &str,
    regex: &RegexNode,
    with: &str,
    first_only: bool,
) -> Result<Option<String>> {
    let pieces = template(regex, with)?;
    let mut buffer = Buffer::new(usize::MAX);
    let (mut last, mut at) = (0, 0);
    let mut any = false;
    while at <= text.len() && !(any && first_only) {
        let Some(spans) = regex.find(cx, text, at)? else { break };
        let Some((start, end)) = spans.first().copied().flatten() else { break };
        any = true;
        buffer.push(cx, &text[last..start])?;
        for piece in &pieces {
            match piece {
                Piece::Text(piece) => buffer.push(cx, piece)?,
                Piece::Group(group) => {
                    if let Some(Some((start, end))) = spans.get(*group) {
                        buffer.push(cx, &text[*start..*end])?;
                    }
                }
            }
        }
        last = end;
        at = after(text, start, end);
    }
    if !any {
        return Ok(None);
    }
    buffer.push(cx, &text[last..])?;
    Ok(Some(buffer.into_text()))
}

/// Takes a replacement apart: `$1`, `$12` (as long as there is such a group), `${name}`, and a backslash
/// that makes the next character plain. A `$` before anything else is plain.
fn template(regex: &RegexNode, with: &str) -> Result<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut characters = with.chars().peekable();
    while let Some(character) = characters.next() {
        match (character, characters.peek().copied()) {
            ('\\', Some(next)) => {
                characters.next();
                plain.push(next);
            }
            ('$', Some('{')) => {
                characters.next();
                let name: String = characters.by_ref().take_while(|&character| character != '}').collect();
                let group = regex
                    .group_number(&name)
                    .ok_or_else(|| Fault::runtime(format_args!("the regex has no group named {name:?}")))?;
                pieces.push(Piece::Text(take(&mut plain)));
                pieces.push(Piece::Group(group));
            }
            ('$', Some(digit)) if digit.is_ascii_digit() => {
                let mut group = 0;
                let mut digits = 0;
                while let Some(digit) = characters.peek().and_then(|digit| digit.to_digit(10)) {
                    let longer = group * 10 + digit as usize;
                    if digits > 0 && longer > regex.groups() {
                        break;
                    }
                    group = longer;
                    digits += 1;
                    characters.next();
                }
                if group > regex.groups() {
                    return Err(Fault::runtime(format_args!("the regex has no group {group}"))
                        .hint("Write \\\\$ for a plain dollar sign in a replacement."));
                }
                pieces.push(Piece::Text(take(&mut plain)));
                pieces.push(Piece::Group(group));
            }
            (other, _) => plain.push(other),
        }
    }
    pieces.push(Piece::Text(plain));
    Ok(pieces)
}
