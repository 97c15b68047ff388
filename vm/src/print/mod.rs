//! Prints values of the language as text: for reading back (`pr-str`), for people (`str`), and as lines of `println`.
//!
//! One writer serves all three. It has an explicit work list, pays fuel for every byte and checks memory as the text
//! grows, so deep and shared values print or end in a typed fault.

mod float;
mod integer;
mod plain;

pub use plain::plain_into;

pub(crate) use float::{Decimal, float_text};
pub(crate) use integer::{write_big_radix, write_integer, write_radix};

use crate::bytecode::CombinatorKind;
use crate::context::{Context, Function};
use crate::fault::Result;
use crate::memory::{List, STEP, items};
use crate::value::build::Text;
pub use crate::value::build::{TextLimit, brief};
use crate::value::map::MapNode;
use crate::value::set::SetNode;
use crate::value::vector::VectorNode;
use crate::value::{Closure, Value};

/// The text of a value within a limit.
#[derive(Debug, PartialEq, Eq)]
pub struct Printed {
    /// The text, at most as long as the limit, cut at a character.
    pub text: String,
    /// The text was cut.
    pub truncated: bool,
    /// Bytes of the whole text; one more than the counted maximum if it is longer.
    pub bytes: usize,
    /// Bytes saved by abbreviating.
    pub saved: usize,
}

/// How much of a text was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The text was cut.
    pub truncated: bool,
    /// Bytes of the whole text; one more than the counted maximum if it is longer.
    pub bytes: usize,
    /// Bytes saved by abbreviating.
    pub saved: usize,
}

/// The text that reads back as the value: strings quoted, maps and sets in key order.
///
/// # Errors
/// Fuel, deadline, cancellation, memory.
pub fn pr_str(cx: &mut Context, value: &Value, limit: impl Into<TextLimit>) -> Result<Printed> {
    let mut text = String::new();
    let Extent { truncated, bytes, saved } = pr_str_into(cx, value, limit.into(), &mut text)?;
    Ok(Printed { text, truncated, bytes, saved })
}

/// [`pr_str`] into the caller's memory, which replaces the content of `text`.
///
/// # Errors
/// Those of [`pr_str`]; `text` is empty then.
pub fn pr_str_into(cx: &mut Context, value: &Value, limit: TextLimit, text: &mut String) -> Result<Extent> {
    let mut buffer = Text::within(std::mem::take(text), limit);
    write_readable(cx, &mut buffer, value)?;
    let (truncated, bytes, saved) = (buffer.is_cut(), buffer.written(), buffer.saved());
    *text = buffer.into_text();
    Ok(Extent { truncated, bytes, saved })
}

/// The text of `str`: strings raw, nil empty, infinities in words. Values inside collections are written as by
/// [`pr_str`].
///
/// # Errors
/// Fuel, deadline, cancellation, memory.
pub fn display(cx: &mut Context, value: &Value) -> Result<String> {
    let mut buffer = Text::new();
    write_display(cx, &mut buffer, value)?;
    Ok(buffer.into_text())
}

/// The line that `println` writes for its arguments.
///
/// # Errors
/// Fuel, deadline, cancellation, memory.
pub fn println_text(cx: &mut Context, values: &[Value]) -> Result<String> {
    let mut buffer = Text::new();
    for (position, value) in values.iter().enumerate() {
        if position > 0 {
            buffer.push(cx, " ")?;
        }
        match value {
            Value::Str(node) => buffer.push(cx, node.as_str())?,
            Value::Vector(node) if is_characters(cx, node)? => {
                for item in node.as_slice().unwrap_or_default() {
                    buffer.push(cx, item.as_str().unwrap_or_default())?;
                }
            }
            other => write_readable(cx, &mut buffer, other)?,
        }
    }
    Ok(buffer.into_text())
}

/// True for the vectors that sequence functions make of a string, which print as that text. Writing the items pays
/// for reading them here.
fn is_characters(cx: &Context, node: &VectorNode) -> Result<bool> {
    let items = node.as_slice().unwrap_or_default();
    for some in items.chunks(STEP) {
        let is_character =
            |item: &Value| matches!(item, Value::Str(text) if text.len() <= 64 && text.graphemes() == 1);
        if !some.iter().all(is_character) {
            return Ok(false);
        }
        if some.len() == STEP {
            cx.fuel.poll()?;
        }
    }
    Ok(!items.is_empty())
}

/// Writes the text of `str`.
pub(crate) fn write_display(cx: &mut Context, buffer: &mut Text, value: &Value) -> Result<()> {
    match value {
        Value::Nil => Ok(()),
        Value::Str(node) => buffer.push(cx, node.as_str()),
        Value::Float(value) if value.is_nan() => buffer.push(cx, "NaN"),
        Value::Float(value) if value.is_infinite() => {
            buffer.push(cx, if *value > 0.0 { "Infinity" } else { "-Infinity" })
        }
        Value::Symbol(symbol) => {
            let node = cx.symbols.string(*symbol).clone();
            buffer.push(cx, node.as_str())
        }
        Value::Regex(node) => buffer.push(cx, node.pattern()),
        Value::LocalDate(date) => buffer.push(cx, &date.to_string()),
        Value::DateTime(date_time) => buffer.push(cx, &date_time.to_string()),
        Value::Int(value) => write_int(cx, buffer, *value),
        other => write_readable(cx, buffer, other),
    }
}

/// A collection that is partly written.
enum Open<'v> {
    Items(&'v [Value], bool),
    Range(&'v VectorNode, usize),
    Map(&'v MapNode, &'v [u32], usize),
    Set(&'v SetNode, &'v [u32], usize),
    /// The value of a map entry; its key is written.
    Value(&'v Value),
}

items!(at_once: Open<'_>);

/// Writes the text of `pr-str`; stops early if the buffer is full.
pub(crate) fn write_readable(cx: &mut Context, buffer: &mut Text, value: &Value) -> Result<()> {
    if !matches!(value, Value::Vector(_) | Value::Map(_) | Value::Set(_)) {
        return if buffer.is_full() { Ok(()) } else { write_leaf(cx, buffer, value) };
    }
    let mut work: List<Open<'_>> = List::default();
    let mut next = Some(value);
    while !buffer.is_full() {
        if let Some(value) = next.take() {
            match value {
                Value::Vector(node) => {
                    buffer.push(cx, "[")?;
                    let open = match node.as_slice() {
                        Some(items) => Open::Items(items, true),
                        None => Open::Range(node, 0),
                    };
                    work.push(cx, open)?;
                }
                Value::Map(node) => {
                    buffer.push(cx, "{")?;
                    let order = node.order(cx)?;
                    work.push(cx, Open::Map(node, order, 0))?;
                }
                Value::Set(node) => {
                    buffer.push(cx, "#{")?;
                    let order = node.order(cx)?;
                    work.push(cx, Open::Set(node, order, 0))?;
                }
                leaf => write_leaf(cx, buffer, leaf)?,
            }
        }
        match work.pop() {
            None => break,
            Some(Open::Value(value)) => {
                buffer.push(cx, " ")?;
                next = Some(value);
            }
            Some(Open::Items(items, first)) => match items.split_first() {
                None => buffer.push(cx, "]")?,
                Some((item, rest)) => {
                    if !first {
                        buffer.push(cx, " ")?;
                    }
                    work.push(cx, Open::Items(rest, false))?;
                    next = Some(item);
                }
            },
            Some(Open::Range(node, at)) => match node.get(at) {
                None => buffer.push(cx, "]")?,
                Some(item) => {
                    if at > 0 {
                        buffer.push(cx, " ")?;
                    }
                    write_leaf(cx, buffer, &item)?;
                    work.push(cx, Open::Range(node, at + 1))?;
                }
            },
            Some(Open::Map(node, order, at)) => match order.get(at) {
                None => buffer.push(cx, "}")?,
                Some(&row) => {
                    if at > 0 {
                        buffer.push(cx, " ")?;
                    }
                    let entry = node.entry(row as usize);
                    work.push(cx, Open::Map(node, order, at + 1))?;
                    work.push(cx, Open::Value(entry.value))?;
                    next = Some(entry.key);
                }
            },
            Some(Open::Set(node, order, at)) => match order.get(at) {
                None => buffer.push(cx, "}")?,
                Some(&row) => {
                    if at > 0 {
                        buffer.push(cx, " ")?;
                    }
                    work.push(cx, Open::Set(node, order, at + 1))?;
                    next = Some(node.member(row as usize));
                }
            },
        }
    }
    Ok(())
}

/// Writes a value without parts.
fn write_leaf(cx: &mut Context, buffer: &mut Text, value: &Value) -> Result<()> {
    match value {
        Value::Nil => buffer.push(cx, "nil"),
        Value::Bool(true) => buffer.push(cx, "true"),
        Value::Bool(false) => buffer.push(cx, "false"),
        Value::Int(value) => write_int(cx, buffer, *value),
        Value::Float(value) => buffer.push(cx, &readable_float(*value)),
        Value::BigInt(node) => write_integer(cx, buffer, node),
        Value::Str(node) => write_quoted(cx, buffer, node.as_str()),
        Value::Keyword(symbol) => write_name(cx, buffer, ":", *symbol),
        Value::Symbol(symbol) => write_name(cx, buffer, "'", *symbol),
        Value::Var(symbol) => write_name(cx, buffer, "#'", *symbol),
        Value::Tool(symbol) => write_name(cx, buffer, "tool/", *symbol),
        Value::Builtin(_) => buffer.push(cx, "#<builtin>"),
        Value::Combinator(_) if value.endless().is_some() => {
            Err(crate::value::combinator::unbounded("print"))
        }
        Value::Combinator(node) if node.kind == CombinatorKind::Reduced => buffer.push(cx, "#<reduced>"),
        Value::Combinator(_) => buffer.push(cx, "#fn[...]"),
        Value::Closure(closure) => {
            let parameters = parameters(cx, closure);
            buffer.push(cx, "#fn[")?;
            buffer.push(cx, &parameters)?;
            buffer.push(cx, "]")
        }
        Value::Regex(node) => {
            let text = readable_pattern(node.pattern());
            buffer.push(cx, &text)
        }
        // Dates print as the strings from which they are parsed.
        Value::LocalDate(date) => buffer.push(cx, &format!("\"{date}\"")),
        Value::DateTime(date_time) => buffer.push(cx, &format!("\"{date_time}\"")),
        Value::Duration(duration) => buffer.push(cx, &duration.to_string()),
        // The caller takes collections apart.
        Value::Vector(_) | Value::Map(_) | Value::Set(_) => Ok(()),
    }
}

fn parameters(cx: &Context, closure: &Closure) -> Box<str> {
    cx.function(closure)
        .and_then(Function::compiled)
        .map_or_else(|| "...".into(), |proto| proto.parameters.clone())
}

/// Writes an integer without allocating.
pub(crate) fn write_int(cx: &mut Context, buffer: &mut Text, value: i64) -> Result<()> {
    buffer.push(cx, itoa::Buffer::new().format(value))
}

/// A pattern as a literal. The reader keeps the backslash of most escapes, so most patterns are written unchanged. A
/// backslash that the reader would interpret itself is doubled.
fn readable_pattern(pattern: &str) -> String {
    let mut text = String::with_capacity(pattern.len() + 3);
    text.push_str("#\"");
    let mut characters = pattern.chars().peekable();
    while let Some(character) = characters.next() {
        let is_escape = match character {
            '"' => true,
            '\\' => matches!(characters.peek(), None | Some('\\' | '"' | 'n' | 't' | 'r' | '\n' | '\r')),
            _ => false,
        };
        if is_escape {
            text.push('\\');
        }
        text.push(character);
    }
    text.push('"');
    text
}

fn readable_float(value: f64) -> String {
    match value {
        f64::INFINITY => "##Inf".to_owned(),
        f64::NEG_INFINITY => "##-Inf".to_owned(),
        _ if value.is_nan() => "##NaN".to_owned(),
        _ => float_text(value),
    }
}

fn write_name(
    cx: &mut Context,
    buffer: &mut Text,
    prefix: &str,
    symbol: crate::value::symbol::Symbol,
) -> Result<()> {
    let node = cx.symbols.string(symbol).clone();
    buffer.push(cx, prefix)?;
    buffer.push(cx, node.as_str())
}

/// Writes a quoted string with the escapes that the reader knows.
fn write_quoted(cx: &mut Context, buffer: &mut Text, text: &str) -> Result<()> {
    buffer.push(cx, "\"")?;
    buffer.push_escaped(cx, text, |byte| match byte {
        b'"' => Some("\\\""),
        b'\\' => Some("\\\\"),
        b'\n' => Some("\\n"),
        b'\t' => Some("\\t"),
        b'\r' => Some("\\r"),
        _ => None,
    })?;
    buffer.push(cx, "\"")
}
