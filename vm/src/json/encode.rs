//! Encodes values as JSON text, or reports which value or key has no JSON form and where it is. An explicit work list
//! replaces recursion.

use crate::context::Context;
use crate::fault::Result;
use crate::memory::{List, items};
use crate::print::{float_text, write_int, write_integer};
use crate::value::Value;
use crate::value::build::{Text, TextLimit};
use crate::value::map::MapNode;
use crate::value::set::SetNode;
use crate::value::vector::VectorNode;
use std::fmt;

/// The keys that have a JSON form. In both modes, keywords and symbols become their names, sets become arrays, dates
/// and instants ISO 8601 texts, durations milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// For results to the host: keywords and strings.
    Names,
    /// For text of a program and arguments of tools: integers as well.
    NamesAndIntegers,
}

/// Why a value has no JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EncodeFailure {
    /// A value without a JSON form.
    NotJson {
        /// Its path: `rows[0].ts`, or `<root>`.
        path: String,
        /// Its type.
        kind: &'static str,
    },
    /// Two keys of a map that JSON cannot tell apart, such as `:n` and `"n"`.
    SameName {
        /// The path of one of the values.
        path: String,
        /// One key in program notation.
        key: String,
        /// The other one.
        other: String,
    },
    /// The text is longer than the limit.
    TooLarge {
        /// The limit in bytes.
        limit: usize,
        /// Bytes of the whole text; one more than the counted maximum if it is longer.
        bytes: usize,
    },
}

impl fmt::Display for EncodeFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EncodeFailure::NotJson { path, .. } => write!(f, "non-JSON-encodable value at {path}"),
            EncodeFailure::SameName { path, key, other } => {
                write!(f, "the keys {key} and {other} have the same name in JSON (at {path})")
            }
            EncodeFailure::TooLarge { limit, .. } => write!(f, "the JSON text is longer than {limit} bytes"),
        }
    }
}

/// Bytes shown of a key.
const SHOWN_BYTES: usize = 256;

/// A 64-bit integer has at most this many characters.
const INTEGER_BYTES: usize = 20;

/// A collection that is partly written.
enum Open<'v> {
    Vector(&'v VectorNode, usize),
    Map(&'v MapNode, &'v [u32], usize),
    Set(&'v SetNode, &'v [u32], usize),
}

items!(at_once: Open<'_>);

/// Encodes a value; object keys are in key order.
///
/// # Errors
/// The outer result: limits of the program. The inner one: a value without JSON form, or too long a text.
pub fn encode(
    cx: &mut Context,
    value: &Value,
    keys: Keys,
    limit: impl Into<TextLimit>,
) -> Result<std::result::Result<String, EncodeFailure>> {
    Ok(encode_text(cx, value, keys, limit.into())?.map(Text::into_text))
}

/// [`encode`] into text that is on the account.
///
/// # Errors
/// Those of [`encode`].
pub(crate) fn encode_text(
    cx: &mut Context,
    value: &Value,
    keys: Keys,
    limit: TextLimit,
) -> Result<std::result::Result<Text, EncodeFailure>> {
    let mut encoder = Encoder { buffer: Text::limited(limit), keys };
    let mut open: List<Open<'_>> = List::default();
    if !encoder.begin(cx, &mut open, value)? {
        return Ok(Err(not_json(cx, &open, value)));
    }
    while let Some(innermost) = open.last_mut() {
        if encoder.buffer.is_full() {
            break;
        }
        let (offending, written) = match innermost {
            Open::Vector(node, at) => {
                let index = *at;
                if index == node.len() {
                    open.pop();
                    encoder.buffer.push(cx, "]")?;
                    continue;
                }
                *at += 1;
                encoder.separate(cx, index)?;
                match node.as_slice() {
                    Some(items) => {
                        let item = &items[index];
                        (item, encoder.begin(cx, &mut open, item)?)
                    }
                    None => {
                        // Ranges hold integers.
                        if let Some(Value::Int(item)) = node.get(index) {
                            write_int(cx, &mut encoder.buffer, item)?;
                        }
                        continue;
                    }
                }
            }
            Open::Set(node, order, at) => {
                let (node, index) = (*node, *at);
                let Some(&row) = order.get(index) else {
                    open.pop();
                    encoder.buffer.push(cx, "]")?;
                    continue;
                };
                *at += 1;
                encoder.separate(cx, index)?;
                let item = node.member(row as usize);
                (item, encoder.begin(cx, &mut open, item)?)
            }
            Open::Map(node, order, at) => {
                let (node, index) = (*node, *at);
                let Some(&row) = order.get(index) else {
                    open.pop();
                    encoder.buffer.push(cx, "}")?;
                    continue;
                };
                *at += 1;
                encoder.separate(cx, index)?;
                let entry = node.entry(row as usize);
                match encoder.key(cx, node, entry.key)? {
                    Key::Written => {}
                    Key::NotJson => return Ok(Err(not_json(cx, &open, entry.key))),
                    Key::SameAs(other) => {
                        let path = path_of(cx, &open);
                        let [key, other] = [entry.key, &other].map(|key| shown(cx, key));
                        return Ok(Err(EncodeFailure::SameName { path, key, other }));
                    }
                }
                encoder.buffer.push(cx, ":")?;
                (entry.value, encoder.begin(cx, &mut open, entry.value)?)
            }
        };
        if !written {
            return Ok(Err(not_json(cx, &open, offending)));
        }
    }
    if encoder.buffer.is_cut() {
        let bytes = encoder.buffer.written();
        return Ok(Err(EncodeFailure::TooLarge { limit: limit.bytes, bytes }));
    }
    Ok(Ok(encoder.buffer))
}

struct Encoder {
    buffer: Text,
    keys: Keys,
}

/// The outcome of writing a key.
enum Key {
    Written,
    NotJson,
    /// Another key of the map has the same name.
    SameAs(Value),
}

impl Encoder {
    fn separate(&mut self, cx: &mut Context, index: usize) -> Result<()> {
        if index > 0 { self.buffer.push(cx, ",") } else { Ok(()) }
    }

    /// Writes a leaf, or the opening bracket of a collection; false if the value has no JSON form.
    fn begin<'v>(&mut self, cx: &mut Context, open: &mut List<Open<'v>>, value: &'v Value) -> Result<bool> {
        match value {
            Value::Nil => self.buffer.push(cx, "null")?,
            Value::Bool(true) => self.buffer.push(cx, "true")?,
            Value::Bool(false) => self.buffer.push(cx, "false")?,
            Value::Int(value) => write_int(cx, &mut self.buffer, *value)?,
            Value::BigInt(node) => write_integer(cx, &mut self.buffer, node)?,
            Value::Float(value) if value.is_finite() => self.buffer.push(cx, &float_text(*value))?,
            Value::Str(node) => self.quoted(cx, node.as_str())?,
            Value::Keyword(symbol) | Value::Symbol(symbol) => {
                let node = cx.symbols.string(*symbol).clone();
                self.quoted(cx, node.as_str())?;
            }
            Value::LocalDate(date) => self.quoted(cx, &date.to_string())?,
            Value::DateTime(date_time) => self.quoted(cx, &date_time.to_string())?,
            Value::Duration(duration) => write_int(cx, &mut self.buffer, duration.millis())?,
            Value::Vector(node) => {
                self.buffer.push(cx, "[")?;
                open.push(cx, Open::Vector(node, 0))?;
            }
            Value::Map(node) => {
                self.buffer.push(cx, "{")?;
                let order = node.order(cx)?;
                open.push(cx, Open::Map(node, order, 0))?;
            }
            Value::Set(node) => {
                self.buffer.push(cx, "[")?;
                let order = node.order(cx)?;
                open.push(cx, Open::Set(node, order, 0))?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Writes a key, unless it has no JSON form or shares its name with another key. Of two such keys the string is
    /// refused, since it comes last.
    fn key(&mut self, cx: &mut Context, map: &MapNode, key: &Value) -> Result<Key> {
        match key {
            Value::Str(node) => {
                let symbol = node.symbol().or_else(|| cx.symbols.find(node.as_str()));
                if let Some(symbol) = symbol
                    && map.find_keyword(cx, symbol).is_some()
                {
                    return Ok(Key::SameAs(Value::Keyword(symbol)));
                }
                if self.keys == Keys::NamesAndIntegers
                    && node.as_str().len() <= INTEGER_BYTES
                    && let Ok(number) = node.as_str().parse::<i64>()
                    && number.to_string() == node.as_str()
                    && map.find(cx, &Value::Int(number))?.is_some()
                {
                    return Ok(Key::SameAs(Value::Int(number)));
                }
                self.quoted(cx, node.as_str())?;
            }
            Value::Keyword(symbol) => {
                let node = cx.symbols.string(*symbol).clone();
                self.quoted(cx, node.as_str())?;
            }
            Value::Int(value) if self.keys == Keys::NamesAndIntegers => {
                self.buffer.push(cx, "\"")?;
                write_int(cx, &mut self.buffer, *value)?;
                self.buffer.push(cx, "\"")?;
            }
            Value::BigInt(value) if self.keys == Keys::NamesAndIntegers => {
                self.buffer.push(cx, "\"")?;
                write_integer(cx, &mut self.buffer, value)?;
                self.buffer.push(cx, "\"")?;
            }
            _ => return Ok(Key::NotJson),
        }
        Ok(Key::Written)
    }

    fn quoted(&mut self, cx: &mut Context, text: &str) -> Result<()> {
        self.buffer.push(cx, "\"")?;
        self.buffer.push_escaped(cx, text, escape)?;
        self.buffer.push(cx, "\"")
    }
}

/// The escape of a byte that is not allowed in a JSON string.
#[inline]
fn escape(byte: u8) -> Option<&'static str> {
    const CONTROL: [&str; 32] = [
        "\\u0000", "\\u0001", "\\u0002", "\\u0003", "\\u0004", "\\u0005", "\\u0006", "\\u0007", "\\b", "\\t",
        "\\n", "\\u000b", "\\f", "\\r", "\\u000e", "\\u000f", "\\u0010", "\\u0011", "\\u0012", "\\u0013",
        "\\u0014", "\\u0015", "\\u0016", "\\u0017", "\\u0018", "\\u0019", "\\u001a", "\\u001b", "\\u001c",
        "\\u001d", "\\u001e", "\\u001f",
    ];
    match byte {
        b'"' => Some("\\\""),
        b'\\' => Some("\\\\"),
        // Most bytes need no escape.
        0x20.. => None,
        control => CONTROL.get(usize::from(control)).copied(),
    }
}

/// The failure for a value inside these collections.
fn not_json(cx: &Context, open: &[Open<'_>], value: &Value) -> EncodeFailure {
    EncodeFailure::NotJson { path: path_of(cx, open), kind: value.type_word() }
}

/// A key in program notation.
fn shown(cx: &Context, key: &Value) -> String {
    let name = || {
        let name = cx.name(key).unwrap_or_default();
        &name[..name.floor_char_boundary(SHOWN_BYTES)]
    };
    match key {
        Value::Keyword(_) => format!(":{}", name()),
        Value::Int(number) => number.to_string(),
        _ => format!("{:?}", name()),
    }
}

/// The encoder's position, such as `rows[0].ts`.
fn path_of(cx: &Context, open: &[Open<'_>]) -> String {
    /// Path levels that are shown.
    const SHOWN: usize = 16;
    let mut path = String::new();
    for (level, innermost) in open.iter().enumerate() {
        if level == SHOWN {
            path.push_str("...");
            break;
        }
        match innermost {
            // A position is already past its current element.
            Open::Vector(_, at) | Open::Set(_, _, at) => {
                path.push_str(&format!("[{}]", at.saturating_sub(1)))
            }
            Open::Map(node, order, at) => {
                let key = order.get(at.saturating_sub(1)).map(|&row| node.key(row as usize));
                if !path.is_empty() {
                    path.push('.');
                }
                match key {
                    Some(Value::Int(number)) => path.push_str(&number.to_string()),
                    Some(key) => {
                        let name = cx.name(key).unwrap_or(key.type_word());
                        path.push_str(&name[..name.floor_char_boundary(SHOWN_BYTES)]);
                    }
                    None => path.push('?'),
                }
            }
        }
    }
    if path.is_empty() {
        path.push_str("<root>");
    }
    path
}
