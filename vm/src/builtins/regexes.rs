//! Builtins that find, split and extract by regular expressions: `re-find`, `re-seq`, `re-split`, `extract`,
//! `extract-int`.

use crate::arith::{invalid_types, invalid_types_of};
use crate::builtins::numbers::convert;
use crate::builtins::strings::split_by;
use crate::builtins::{Builtin, Category, direct};
use crate::bytecode::Known;
use crate::collection::seq;
use crate::context::Context;
use crate::fault::Result;
use crate::memory::List;
use crate::value::Value;
use crate::value::regex::RegexNode;
use crate::value::string::StringNode;
use ptc_regex::after;
use std::rc::Rc;

const REGEX: Category = Category::Regex;
const STRING: Category = Category::String;

/// The rows of this module.
#[rustfmt::skip]
pub(crate) const TABLE: &[Builtin] = &[
    direct("re-pattern", REGEX, "1", "(re-pattern text)", "The regex of a pattern.", re_pattern),
    direct("re-find", REGEX, "2", "(re-find regex s)", "The first match, with its groups if there are any, or nil.", re_find),
    direct("re-matches", REGEX, "2", "(re-matches regex s)", "The match of the whole string, or nil.", re_matches),
    direct("re-seq", REGEX, "2", "(re-seq regex s)", "All matches.", re_seq).known(Known::Matches),
    direct("re-split", REGEX, "2", "(re-split regex s)", "The pieces between the matches.", re_split),
    direct("extract", STRING, "2-3", "(extract pattern s group?)", "A group (1 if not given) of the first match, or nil.", extract),
    direct("extract-int", STRING, "2-4", "(extract-int pattern s group? default?)", "A group of the first match as an integer, or the default.", extract_int),
];

fn compiled(cx: &mut Context, pattern: &StringNode) -> Result<Rc<RegexNode>> {
    let pattern = cx.read(pattern)?;
    cx.compile_regex(pattern)
}

/// `(re-pattern x)`: a regex is returned unchanged.
fn re_pattern(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    match &arguments[0] {
        Value::Regex(regex) => Ok(Value::Regex(regex.clone())),
        Value::Str(node) => Ok(Value::Regex(compiled(cx, node)?)),
        other => Err(invalid_types("re-pattern", &[other])),
    }
}

/// The text of a string, without payment: a search pays for what it reads.
#[expect(clippy::disallowed_methods, reason = "a search that ends early does not look at the whole text")]
fn text_of(node: &StringNode) -> &str {
    node.as_str()
}

/// The regex and the string of a call.
fn two<'v>(arguments: &'v [Value], name: &str) -> Result<(&'v RegexNode, &'v StringNode)> {
    match arguments {
        [Value::Regex(regex), Value::Str(text)] => Ok((regex, text)),
        [regex, text, ..] => {
            let fault = invalid_types(name, &[regex, text]);
            Err(if matches!(regex, Value::Str(_)) {
                fault.hint(format_args!("{name} takes a regex first: #\"…\" or (re-pattern s)."))
            } else {
                fault
            })
        }
        _ => Err(invalid_types(name, &[])),
    }
}

fn re_find(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let (regex, text) = two(arguments, "re-find")?;
    match cx.find_match(regex, text_of(text), 0)? {
        Some(spans) => regex.match_value(cx, text_of(text), &spans),
        None => Ok(Value::Nil),
    }
}

fn re_matches(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let (regex, text) = two(arguments, "re-matches")?;
    match cx.match_whole(regex, text_of(text))? {
        Some(spans) => regex.match_value(cx, text_of(text), &spans),
        None => Ok(Value::Nil),
    }
}

fn re_seq(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let (regex, text) = two(arguments, "re-seq")?;
    let text = text_of(text);
    let mut matches = List::default();
    let mut at = 0;
    while at <= text.len() {
        let Some(spans) = cx.find_match(regex, text, at)? else { break };
        let Some((start, end)) = spans.first().copied().flatten() else { break };
        at = after(text, start, end);
        let value = regex.match_value(cx, text, &spans)?;
        cx.tick(1)?;
        matches.push(cx, value)?;
        if matches.len() % 256 == 0 {
            seq::check_memory(cx)?;
        }
    }
    Ok(matches.into_value())
}

fn re_split(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let (regex, text) = two(arguments, "re-split")?;
    split_by(cx, text_of(text), regex, 0)
}

/// The text of a group of the first match.
fn extracted<'v>(cx: &mut Context, arguments: &'v [Value], name: &str) -> Result<Option<&'v str>> {
    let regex = match &arguments[0] {
        Value::Regex(regex) => regex.clone(),
        Value::Str(pattern) => compiled(cx, pattern)?,
        _ => return Err(invalid_types(name, &[&arguments[0], &arguments[1]])),
    };
    let text = match &arguments[1] {
        Value::Str(text) => text_of(text),
        Value::Nil => return Ok(None),
        _ => return Err(invalid_types(name, &[&arguments[0], &arguments[1]])),
    };
    let group = match arguments.get(2) {
        None => 1,
        Some(Value::Int(group)) => usize::try_from(*group).unwrap_or(usize::MAX),
        Some(_) => {
            return Err(invalid_types_of(name, arguments));
        }
    };
    let spans = cx.find_match(&regex, text, 0)?;
    let span = spans.and_then(|spans| spans.get(group).copied().flatten());
    Ok(span.map(|(start, end)| &text[start..end]))
}

fn extract(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    match extracted(cx, arguments, "extract")? {
        Some(text) => cx.copy_text(text),
        None => Ok(Value::Nil),
    }
}

fn extract_int(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let number = extracted(cx, arguments, "extract-int")?.and_then(convert::long);
    Ok(match (number, arguments.get(3)) {
        (Some(number), _) => Value::Int(number),
        (None, Some(default)) => default.clone(),
        (None, None) => Value::Nil,
    })
}
