//! A single-pass decoder from JSON bytes straight into values: RFC 8259, strict.
//!
//! Finished elements of open arrays lie on one stack, so an array is built with exactly its size; an open
//! object is the map it will be. The first of duplicate keys wins.

use super::{number, text};
use crate::context::Context;
use crate::fault::{Fault, Result as FaultResult};
use crate::map::MapNode;
use crate::reason::Reason;
use crate::string::StringNode;
use crate::value::Value;
use std::fmt;
use std::rc::Rc;

/// Text that is not JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// Position of the offending byte.
    pub offset: usize,
    /// What is wrong there.
    pub message: &'static str,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.message, self.offset)
    }
}

/// Why decoding ended without a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecodeFailure {
    /// The text is not JSON: recoverable.
    Invalid(DecodeError),
    /// A limit of the program: fuel, deadline, cancellation, memory.
    Fault(Box<Fault>),
}

impl From<Box<Fault>> for DecodeFailure {
    fn from(fault: Box<Fault>) -> DecodeFailure {
        DecodeFailure::Fault(fault)
    }
}

impl From<DecodeFailure> for Box<Fault> {
    fn from(failure: DecodeFailure) -> Box<Fault> {
        match failure {
            DecodeFailure::Invalid(error) => {
                Fault::new(Reason::RuntimeError, format!("invalid JSON: {error}"))
            }
            DecodeFailure::Fault(fault) => fault,
        }
    }
}

pub(super) type Outcome<T> = Result<T, DecodeFailure>;

#[cold]
pub(super) fn invalid<T>(offset: usize, message: &'static str) -> Outcome<T> {
    Err(DecodeFailure::Invalid(DecodeError { offset, message }))
}

/// An array or object whose end has not been read.
enum Open {
    /// Its elements are on the stack from here on.
    Array(usize),
    /// The entries so far, and the key whose value comes next. A key that is already there is marked:
    /// its value is read and dropped.
    Object { map: Rc<MapNode>, key: Value, duplicate: bool },
}

struct Decoder<'b> {
    bytes: &'b [u8],
    at: usize,
    /// Position up to which fuel is paid.
    paid: usize,
    open: Vec<Open>,
    elements: Vec<Value>,
    /// Elements until memory is looked at again.
    unchecked: u32,
}

/// Elements between two looks at memory.
const CHECK_EVERY: u32 = 256;

/// Strings from this length on ask for memory before they are built.
const LONG: usize = 1_024;

/// Decodes a JSON text.
///
/// # Errors
/// Text that is not JSON; limits of the program.
pub fn decode(cx: &mut Context, bytes: &[u8]) -> Result<Value, DecodeFailure> {
    let mut decoder =
        Decoder { bytes, at: 0, paid: 0, open: Vec::new(), elements: Vec::new(), unchecked: CHECK_EVERY };
    let value = decoder.document(cx)?;
    decoder.skip_blanks();
    if decoder.at < bytes.len() {
        return invalid(decoder.at, "unexpected text after the value");
    }
    decoder.pay(cx)?;
    Ok(value)
}

impl Decoder<'_> {
    fn skip_blanks(&mut self) {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    /// Pays for the bytes read since the last payment, and checks memory now and then.
    fn pay(&mut self, cx: &mut Context) -> FaultResult<()> {
        cx.tick((self.at - self.paid) as u64)?;
        self.paid = self.at;
        self.unchecked -= 1;
        if self.unchecked == 0 {
            self.unchecked = CHECK_EVERY;
            cx.reserve(self.held())?;
        }
        Ok(())
    }

    /// Bytes of the stacks, which no node accounts for yet.
    fn held(&self) -> usize {
        self.elements.capacity() * size_of::<Value>() + self.open.capacity() * size_of::<Open>()
    }

    fn document(&mut self, cx: &mut Context) -> Outcome<Value> {
        loop {
            // One value begins here.
            self.skip_blanks();
            let Some(&byte) = self.bytes.get(self.at) else {
                return invalid(self.at, "unexpected end of text");
            };
            let mut value = match byte {
                b'"' => self.string(cx)?,
                b'-' | b'0'..=b'9' => {
                    let (value, next) = number::read(cx, self.bytes, self.at)?;
                    self.at = next;
                    value
                }
                b'{' => {
                    self.at += 1;
                    if self.closes(b'}') {
                        Value::Map(MapNode::empty())
                    } else {
                        self.open(
                            cx,
                            Open::Object { map: MapNode::empty(), key: Value::Nil, duplicate: false },
                        )?;
                        self.key(cx)?;
                        continue;
                    }
                }
                b'[' => {
                    self.at += 1;
                    if self.closes(b']') {
                        Value::vector(Vec::new())
                    } else {
                        self.open(cx, Open::Array(self.elements.len()))?;
                        continue;
                    }
                }
                b't' => self.word("true", Value::Bool(true))?,
                b'f' => self.word("false", Value::Bool(false))?,
                b'n' => self.word("null", Value::Nil)?,
                _ => return invalid(self.at, "expected a value"),
            };
            self.pay(cx)?;
            // It is finished, and perhaps what encloses it is too.
            loop {
                match self.finished(cx, value)? {
                    Next::Element => break,
                    Next::Closed(whole) => value = whole,
                    Next::Done(whole) => return Ok(whole),
                }
            }
        }
    }

    /// Skips blanks and this closing bracket, if it comes next.
    fn closes(&mut self, bracket: u8) -> bool {
        self.skip_blanks();
        let closes = self.bytes.get(self.at) == Some(&bracket);
        if closes {
            self.at += 1;
        }
        closes
    }

    fn open(&mut self, cx: &mut Context, open: Open) -> Outcome<()> {
        self.pay(cx)?;
        if self.open.len() == self.open.capacity() {
            cx.reserve(self.held() + self.open.capacity().max(4) * 2 * size_of::<Open>())?;
        }
        self.open.push(open);
        Ok(())
    }

    fn word(&mut self, word: &str, value: Value) -> Outcome<Value> {
        if self.bytes[self.at..].starts_with(word.as_bytes()) {
            self.at += word.len();
            Ok(value)
        } else {
            invalid(self.at, "expected a value")
        }
    }

    fn string(&mut self, cx: &mut Context) -> Outcome<Value> {
        let (text, next) = text::read(cx, self.bytes, self.at + 1)?;
        let text = text.as_str();
        if text.len() >= LONG {
            cx.reserve(text.len() + self.held())?;
        }
        self.at = next;
        Ok(Value::Str(StringNode::new(text)))
    }

    /// Reads a key and its colon into the innermost object.
    fn key(&mut self, cx: &mut Context) -> Outcome<()> {
        self.skip_blanks();
        if self.bytes.get(self.at) != Some(&b'"') {
            return invalid(self.at, "expected a string as key");
        }
        let (text, next) = text::read(cx, self.bytes, self.at + 1)?;
        let text = text.as_str();
        if text.len() >= LONG {
            cx.reserve(text.len() + self.held())?;
        }
        let node = match cx.symbols.intern_key(text) {
            Some(symbol) => cx.symbols.string(symbol).clone(),
            None => StringNode::new(text),
        };
        self.at = next;
        self.skip_blanks();
        if self.bytes.get(self.at) != Some(&b':') {
            return invalid(self.at, "expected a colon after the key");
        }
        self.at += 1;
        if let Some(Open::Object { map, key, duplicate }) = self.open.last_mut() {
            *duplicate = map.find_text(node.as_str(), node.hash(), node.symbol()).is_some();
            *key = Value::Str(node);
        }
        self.pay(cx)?;
        Ok(())
    }

    /// Puts a finished value where it belongs and reads what follows it.
    fn finished(&mut self, cx: &mut Context, value: Value) -> Outcome<Next> {
        match self.open.last_mut() {
            None => return Ok(Next::Done(value)),
            Some(Open::Array(_)) => {
                if self.elements.len() == self.elements.capacity() {
                    cx.reserve(self.held() + self.elements.capacity().max(4) * 2 * size_of::<Value>())?;
                }
                self.elements.push(value);
            }
            Some(Open::Object { map, key, duplicate }) => {
                if !*duplicate {
                    if map.len() >= LONG && map.len().is_power_of_two() {
                        cx.reserve(map.len() * 2 * 48)?;
                    }
                    // An open object is held by its frame alone.
                    if let Some(map) = Rc::get_mut(map) {
                        map.push_new(cx, std::mem::take(key), value);
                    }
                }
            }
        }
        self.skip_blanks();
        let byte = self.bytes.get(self.at).copied();
        self.at += 1;
        match (byte, self.open.last()) {
            (Some(b','), Some(Open::Array(_))) => Ok(Next::Element),
            (Some(b','), Some(Open::Object { .. })) => {
                self.key(cx)?;
                Ok(Next::Element)
            }
            (Some(b']'), Some(Open::Array(start))) => {
                let start = *start;
                cx.reserve(self.held() + (self.elements.len() - start) * size_of::<Value>())?;
                let items: Vec<Value> = self.elements.drain(start..).collect();
                self.open.pop();
                Ok(Next::Closed(Value::vector(items)))
            }
            (Some(b'}'), Some(Open::Object { .. })) => match self.open.pop() {
                Some(Open::Object { map, .. }) => Ok(Next::Closed(Value::Map(map))),
                _ => invalid(self.at - 1, "unexpected end of an object"),
            },
            (None, _) => invalid(self.at - 1, "unexpected end of text"),
            (_, Some(Open::Array(_))) => invalid(self.at - 1, "expected a comma or the end of the array"),
            _ => invalid(self.at - 1, "expected a comma or the end of the object"),
        }
    }
}

/// What follows a finished value.
enum Next {
    /// Another value of the same array or object.
    Element,
    /// The end of the array or object, which is finished itself.
    Closed(Value),
    /// Nothing: the value is the document.
    Done(Value),
}
