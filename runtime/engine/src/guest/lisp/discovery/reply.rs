//! Defines the plain data that `apropos`, `dir`, `doc` and similar forms answer with, estimates its size for the limit,
//! and converts it to Lisp values.

use crate::guest::lisp::build::count;
use ptc_vm::json::{DecodeFailure, decode};
use ptc_vm::value::map::MapNode;
use ptc_vm::{Context, Fault, Reason, Value};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// An answer as plain data. It is built before the program has room for its values.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DiscoveryReply {
    /// Nil: there is no answer.
    Nil,
    /// One text.
    Text(String),
    /// A keyword.
    Keyword(Cow<'static, str>),
    /// A number.
    Number(usize),
    /// A list of texts.
    Lines(Vec<String>),
    /// A map with keyword keys.
    Map(Vec<(Cow<'static, str>, DiscoveryReply)>),
    /// A map with string keys.
    Named(Vec<(Cow<'static, str>, DiscoveryReply)>),
    /// JSON text, as a value with string keys.
    Json(String),
    /// A line to print; the value is nil.
    Print(String),
}

/// Bytes of a text in JSON, with quotes and a separator.
fn text_bytes(text: &str) -> usize {
    let escape = |byte: u8| match byte {
        b'"' | b'\\' | 8 | b'\t' | b'\n' | 12 | b'\r' => 1,
        0..=31 => 5,
        _ => 0,
    };
    text.len() + text.bytes().map(escape).sum::<usize>() + 3
}

/// Drops the lines that exceed a limit on the bytes of their JSON form. Returns how many lines there were.
pub(crate) fn cut_lines(lines: &mut Vec<String>, cap: usize) -> usize {
    let all = lines.len();
    // Two brackets, minus the separator that the last line does not have.
    let mut bytes = 1;
    let fitting = lines.iter().take_while(|line| {
        bytes += text_bytes(line);
        bytes <= cap
    });
    let fitting = fitting.count();
    lines.truncate(fitting);
    all
}

impl DiscoveryReply {
    /// A keyword.
    pub(crate) const fn keyword(name: &'static str) -> DiscoveryReply {
        DiscoveryReply::Keyword(Cow::Borrowed(name))
    }

    /// A map with keyword keys.
    pub(crate) fn map(entries: Vec<(&'static str, DiscoveryReply)>) -> DiscoveryReply {
        DiscoveryReply::Map(entries.into_iter().map(|(key, value)| (key.into(), value)).collect())
    }

    /// Approximate bytes of its JSON form, for the size limit.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            DiscoveryReply::Nil | DiscoveryReply::Print(_) => 4,
            DiscoveryReply::Keyword(name) => text_bytes(name),
            DiscoveryReply::Number(_) => 20,
            DiscoveryReply::Text(text) => text_bytes(text),
            DiscoveryReply::Lines(lines) => lines.iter().map(|line| text_bytes(line)).sum::<usize>() + 2,
            DiscoveryReply::Map(entries) | DiscoveryReply::Named(entries) => {
                entries.iter().map(|(key, value)| text_bytes(key) + value.bytes()).sum::<usize>() + 2
            }
            DiscoveryReply::Json(text) => text.len(),
        }
    }

    /// The texts of a reply that consists of texts.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        let (text, lines) = match self {
            DiscoveryReply::Text(text) => (Some(text), &[][..]),
            DiscoveryReply::Lines(lines) => (None, lines.as_slice()),
            _ => (None, &[][..]),
        };
        text.into_iter().chain(lines).map(String::as_str)
    }

    /// Makes the value under the program's budget. Replies nest three levels at most.
    pub(crate) fn into_value(self, cx: &mut Context) -> Result<Value, Box<Fault>> {
        cx.tick(1)?;
        let has_names = matches!(self, DiscoveryReply::Named(_));
        Ok(match self {
            DiscoveryReply::Nil => Value::Nil,
            DiscoveryReply::Text(text) => cx.host_text(&text)?,
            DiscoveryReply::Keyword(name) => cx.keyword(&name),
            DiscoveryReply::Number(number) => count(number as u64),
            DiscoveryReply::Lines(lines) => {
                cx.reserve_items(lines.len())?;
                let mut items = Vec::with_capacity(lines.len());
                for line in lines {
                    items.push(cx.host_text(&line)?);
                }
                Value::vector(items)
            }
            DiscoveryReply::Map(entries) | DiscoveryReply::Named(entries) => {
                let mut map = MapNode::with_capacity(entries.len());
                for (key, value) in entries {
                    let key = if has_names { cx.host_text(&key)? } else { cx.keyword(&key) };
                    let value = value.into_value(cx)?;
                    map = MapNode::insert(map, cx, key, value)?;
                }
                Value::Map(map)
            }
            DiscoveryReply::Json(text) => match decode(cx, text.as_bytes()) {
                Ok(value) => value,
                Err(DecodeFailure::Fault(fault)) => return Err(fault),
                Err(DecodeFailure::Invalid(why)) => {
                    return Err(Fault::new(Reason::ExecutionError, format_args!("internal: {why}")));
                }
            },
            DiscoveryReply::Print(line) => {
                cx.prints.push(&line);
                Value::Nil
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_one_by_one_at_the_cap() {
        let mut lines: Vec<String> = (0..10).map(|n| format!("line \"{n}\"\n\u{1}é")).collect();
        let exact = serde_json::to_string(&lines[..4]).unwrap().len();
        assert_eq!((cut_lines(&mut lines, exact), lines.len()), (10, 4));
        assert_eq!((cut_lines(&mut lines, exact - 1), lines.len()), (4, 3));
        assert_eq!((cut_lines(&mut lines, 5), lines.len()), (3, 0));
    }
}
