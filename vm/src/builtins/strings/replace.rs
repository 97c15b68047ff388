//! Builtins `replace` and `replace-first`, which replace matches of a text or regex in a string; the replacement may
//! refer to groups of the match (`$1`, `${name}`).

use super::string_argument;
use crate::arith::invalid_types;
use crate::builtins::collections::partitions;
use crate::context::Context;
use crate::fault::{Fault, Result};
use crate::native::replace::Replace;
use crate::native::{Native, Step};
use crate::value::Value;
use crate::value::build::Text;
use crate::value::read::Graphemes;
use crate::value::regex::RegexNode;
use crate::value::string::StringNode;
use ptc_regex::after;
use std::mem::take;

/// `(replace s pattern with)`; with fewer arguments it is the `replace` of collections.
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
pub(super) fn replace_text(
    cx: &mut Context,
    arguments: &mut [Value],
    name: &str,
    first_only: bool,
) -> Result<Value> {
    let text = string_argument(arguments, 0, name)?;
    let with = match &arguments[2] {
        Value::Str(with) => cx.read(with)?,
        _ => return Err(invalid_types(name, &[&arguments[0], &arguments[1], &arguments[2]])),
    };
    let replaced = match &arguments[1] {
        Value::Regex(regex) => {
            let text = cx.read(text)?;
            replace_matches(cx, text, regex, with, first_only)?
        }
        Value::Str(part) if part.is_empty() => {
            let text = cx.read(text)?;
            Some(insert_between(cx, text, with, first_only)?)
        }
        Value::Str(part) => {
            let part = cx.read(part)?;
            replace_literal(cx, text, part, with, first_only)?
        }
        _ => return Err(invalid_types(name, &[&arguments[0], &arguments[1], &arguments[2]])),
    };
    Ok(match replaced {
        Some(text) => text.into_value(),
        None => take(&mut arguments[0]),
    })
}

/// `None` when there is no match.
fn replace_literal(
    cx: &mut Context,
    node: &StringNode,
    part: &str,
    with: &str,
    first_only: bool,
) -> Result<Option<Text>> {
    let mut buffer = Text::new();
    let text = cx.read(node)?;
    let mut last = 0;
    while let Some(at) = cx.find_first(node, last, part)? {
        buffer.push(cx, &text[last..at])?;
        buffer.push(cx, with)?;
        cx.tick(1)?;
        last = at + part.len();
        if first_only {
            break;
        }
    }
    if last == 0 {
        return Ok(None);
    }
    buffer.push(cx, &text[last..])?;
    Ok(Some(buffer))
}

/// The empty text matches before every grapheme and at the end.
fn insert_between(cx: &mut Context, text: &str, with: &str, first_only: bool) -> Result<Text> {
    let mut buffer = Text::new();
    buffer.push(cx, with)?;
    if first_only {
        buffer.push(cx, text)?;
        return Ok(buffer);
    }
    let mut graphemes = Graphemes::from_start(text);
    while let Some(grapheme) = graphemes.next(cx)? {
        cx.tick(grapheme.len() as u64)?;
        buffer.push(cx, grapheme)?;
        buffer.push(cx, with)?;
    }
    Ok(buffer)
}

/// `None` when there is no match.
fn replace_matches(
    cx: &mut Context,
    text: &str,
    regex: &RegexNode,
    with: &str,
    first_only: bool,
) -> Result<Option<Text>> {
    check_template(cx, regex, with)?;
    let mut buffer = Text::new();
    let (mut last, mut at) = (0, 0);
    let mut any = false;
    while at <= text.len() && !(any && first_only) {
        let Some(spans) = cx.find_match(regex, text, at)? else { break };
        let Some((start, end)) = spans.first().copied().flatten() else { break };
        any = true;
        buffer.push(cx, &text[last..start])?;
        let mut template = with;
        while !template.is_empty() {
            cx.tick(1)?;
            let next;
            (next, template) = piece(regex, template)?;
            match next {
                Piece::Text(piece) => buffer.push(cx, piece)?,
                Piece::Group(group) => {
                    if let Some(Some((start, end))) = spans.get(group) {
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
    Ok(Some(buffer))
}

/// A piece of a replacement.
enum Piece<'w> {
    Text(&'w str),
    Group(usize),
}

/// Splits off the first piece of a replacement: `$1`, `$12` (if there is such a group), `${name}`, a backslash that
/// makes the next character plain, or the text before any of these. A `$` before anything else is plain.
///
/// A replacement is parsed again for every match, which costs no more than writing it.
fn piece<'w>(regex: &RegexNode, with: &'w str) -> Result<(Piece<'w>, &'w str)> {
    let plain = |end: usize, from: usize| Ok((Piece::Text(&with[from..end]), &with[end..]));
    let special = |text: &str, from: usize| {
        let found = memchr::memchr2(b'\\', b'$', &text.as_bytes()[from..]);
        found.map_or(text.len(), |at| at + from)
    };
    let mut characters = with.chars();
    match (characters.next(), characters.next()) {
        (Some('\\'), Some(next)) => plain(1 + next.len_utf8(), 1),
        (Some('$'), Some('{')) => {
            let (name, rest) = with[2..].split_once('}').unwrap_or((&with[2..], ""));
            match regex.compiled().group_number(name) {
                Some(group) => Ok((Piece::Group(group), rest)),
                None => Err(Fault::runtime(format_args!("the regex has no group named {name:?}"))),
            }
        }
        (Some('$'), Some(digit)) if digit.is_ascii_digit() => {
            let (mut group, mut end) = (0, 1);
            while let Some(digit) = with[end..].chars().next().and_then(|digit| digit.to_digit(10)) {
                let longer = group * 10 + digit as usize;
                if end > 1 && longer > regex.compiled().groups() {
                    break;
                }
                group = longer;
                end += 1;
            }
            if group > regex.compiled().groups() {
                return Err(Fault::runtime(format_args!("the regex has no group {group}"))
                    .hint("Write \\\\$ for a plain dollar sign in a replacement."));
            }
            Ok((Piece::Group(group), &with[end..]))
        }
        // A special character without a meaning here stands for itself.
        _ => plain(special(with, with.chars().next().map_or(0, char::len_utf8)), 0),
    }
}

/// Faults for groups that the regex does not have, even without a match.
fn check_template(cx: &mut Context, regex: &RegexNode, with: &str) -> Result<()> {
    let mut rest = with;
    while !rest.is_empty() {
        cx.tick(1)?;
        rest = piece(regex, rest)?.1;
    }
    Ok(())
}
