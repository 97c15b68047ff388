//! A single-pass decoder from JSON bytes straight into values: RFC 8259, strict.
//!
//! Finished elements of open arrays, and keys and values of open objects, lie on one stack, so a
//! collection is built with exactly its size. The first of duplicate keys wins.
//!
//! Rows of data look alike: a key is first compared with the one that came after the same key last time,
//! and short strings that have been met lately are shared. Both save more than the parsing costs.

use super::{number, text};
use crate::context::Context;
use crate::fault::{Fault, Result as FaultResult};
use crate::heap;
use crate::map::MapNode;
use crate::reason::Reason;
use crate::string::StringNode;
use crate::symbol::Symbol;
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
    /// Its keys and values are on the stack from `start` on; `last` is the symbol of the last key.
    Object { start: usize, last: Option<Symbol> },
}

struct Decoder<'b> {
    text: &'b str,
    bytes: &'b [u8],
    at: usize,
    /// Position up to which fuel is paid.
    paid: usize,
    open: Vec<Open>,
    elements: Vec<Value>,
    /// The key that came after each key last time, by symbol; objects begin with the key after none.
    successors: Vec<Option<Symbol>>,
    recent: RecentStrings,
    /// Elements until memory is looked at again.
    unchecked: u32,
}

/// Elements between two looks at memory.
const CHECK_EVERY: u32 = 256;

/// Strings from this length on ask for memory before they are built.
const LONG: usize = 1_024;

/// Values of an earlier program that are freed between two looks at the deadline.
const DRAIN_STEP: usize = 1 << 14;

/// Decodes a JSON text.
///
/// # Errors
/// Text that is not JSON; limits of the program.
pub fn decode(cx: &mut Context, bytes: &[u8]) -> Result<Value, DecodeFailure> {
    // What an earlier program has left is freed first: its memory serves this value.
    while heap::drain(DRAIN_STEP) {
        cx.fuel.poll()?;
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return invalid(error.valid_up_to(), "invalid UTF-8"),
    };
    let mut decoder = Decoder {
        text,
        bytes,
        at: 0,
        paid: 0,
        open: Vec::new(),
        elements: Vec::new(),
        successors: Vec::new(),
        recent: RecentStrings::default(),
        unchecked: CHECK_EVERY,
    };
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
                        self.open(cx, Open::Object { start: self.elements.len(), last: None })?;
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
        let (text, next) = text::read(cx, self.text, self.at + 1)?;
        self.at = next;
        let text = text.as_str();
        if text.len() >= LONG {
            cx.reserve(text.len() + self.held())?;
        }
        Ok(Value::Str(self.recent.string(text)))
    }

    /// Reads a key and its colon into the innermost object.
    fn key(&mut self, cx: &mut Context) -> Outcome<()> {
        self.skip_blanks();
        if self.bytes.get(self.at) != Some(&b'"') {
            return invalid(self.at, "expected a string as key");
        }
        let last = match self.open.last() {
            Some(Open::Object { last, .. }) => *last,
            _ => None,
        };
        let (node, symbol) = match self.expected_key(cx, last) {
            Some(symbol) => (cx.symbols.string(symbol).clone(), Some(symbol)),
            None => self.new_key(cx, last)?,
        };
        self.skip_blanks();
        if self.bytes.get(self.at) != Some(&b':') {
            return invalid(self.at, "expected a colon after the key");
        }
        self.at += 1;
        if let Some(Open::Object { last, .. }) = self.open.last_mut() {
            *last = symbol;
        }
        self.push(cx, Value::Str(node))?;
        self.pay(cx)?;
        Ok(())
    }

    /// The key that came here last time, if it comes now too; reads it.
    fn expected_key(&mut self, cx: &Context, last: Option<Symbol>) -> Option<Symbol> {
        let symbol = (*self.successors.get(place(last))?)?;
        let text = cx.symbols.text(symbol).as_bytes();
        let start = self.at + 1;
        let rest = self.bytes.get(start..)?;
        if !rest.starts_with(text) || rest.get(text.len()) != Some(&b'"') {
            return None;
        }
        self.at = start + text.len() + 1;
        Some(symbol)
    }

    fn new_key(
        &mut self,
        cx: &mut Context,
        last: Option<Symbol>,
    ) -> Outcome<(Rc<StringNode>, Option<Symbol>)> {
        let (text, next) = text::read(cx, self.text, self.at + 1)?;
        self.at = next;
        // Only a key that stands in the input as it is can be recognised by its bytes.
        let plain = matches!(text, text::Text::Plain(_));
        let text = text.as_str();
        if text.len() >= LONG {
            cx.reserve(text.len() + self.held())?;
        }
        let Some(symbol) = cx.symbols.intern_key(text) else {
            return Ok((StringNode::new(text), None));
        };
        if plain {
            let place = place(last);
            if self.successors.len() <= place {
                self.successors.resize(place + 1, None);
            }
            self.successors[place] = Some(symbol);
        }
        Ok((cx.symbols.string(symbol).clone(), Some(symbol)))
    }

    /// Puts a value on the stack.
    fn push(&mut self, cx: &mut Context, value: Value) -> FaultResult<()> {
        if self.elements.len() == self.elements.capacity() {
            cx.reserve(self.held() + self.elements.capacity().max(4) * 2 * size_of::<Value>())?;
        }
        self.elements.push(value);
        Ok(())
    }

    /// Puts a finished value where it belongs and reads what follows it.
    fn finished(&mut self, cx: &mut Context, value: Value) -> Outcome<Next> {
        if self.open.is_empty() {
            return Ok(Next::Done(value));
        }
        self.push(cx, value)?;
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
                Some(Open::Object { start, .. }) => {
                    // A node and its entries are larger than the stack's part.
                    cx.reserve(self.held() + (self.elements.len() - start) * size_of::<Value>() + 256)?;
                    Ok(Next::Closed(Value::Map(MapNode::from_pairs(cx, self.elements.drain(start..))?)))
                }
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

/// Where the successor of a key is kept.
fn place(last: Option<Symbol>) -> usize {
    last.map_or(0, |symbol| symbol.index() as usize + 1)
}

/// Short strings met lately.
#[derive(Default)]
struct RecentStrings(Vec<Option<Rc<StringNode>>>);

impl RecentStrings {
    /// Strings kept.
    const KEPT: usize = 512;

    /// The node of a text.
    fn string(&mut self, text: &str) -> Rc<StringNode> {
        if text.len() > crate::string::INLINE {
            return StringNode::new(text);
        }
        if self.0.is_empty() {
            self.0.resize(Self::KEPT, None);
        }
        let place = Self::place(text.as_bytes());
        match &self.0[place] {
            Some(node) if node.as_str() == text => node.clone(),
            _ => {
                let node = StringNode::new(text);
                self.0[place] = Some(node.clone());
                node
            }
        }
    }

    /// A cheap hash: the first and the last bytes and the length.
    fn place(text: &[u8]) -> usize {
        let half = |bytes: &[u8]| bytes.iter().fold(0_u64, |word, &byte| word << 8 | u64::from(byte));
        let length = text.len().min(8);
        let word = half(&text[..length]) ^ half(&text[text.len() - length..]).rotate_left(29);
        let mixed = (word ^ (text.len() as u64) << 56).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> 55) as usize
    }
}
