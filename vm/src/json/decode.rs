//! A single-pass decoder from JSON bytes straight into values: RFC 8259, strict.
//!
//! Finished elements of open arrays, and keys and values of open objects, lie on one stack, so a collection is built
//! with exactly its size. The last of duplicate keys wins, as in most other readers.
//!
//! Rows of data look alike. A key is first compared with the key that came after the same predecessor last time, and
//! recent short strings are shared; both save more than the parsing costs. In a small text, a key is compared with
//! the key at the same position in the row before: symbols would cost more than they save.

use super::known_keys::{KnownKeys, Siblings};
use super::{number, text};
use crate::context::Context;
use crate::fault::{Fault, Reason, Result as FaultResult};
use crate::memory::List;
use crate::value::map::MapNode;
use crate::value::string::StringNode;
use crate::value::symbol::Symbol;
use crate::value::vector::VectorNode;
use crate::value::{Value, garbage};
use std::borrow::Cow;
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
                Fault::new(Reason::RuntimeError, format_args!("invalid JSON: {error}"))
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

/// An array or object that is still open.
enum Open {
    /// Its elements start here on the stack.
    Array(usize),
    /// Its keys and values start at `start` on the stack; `last` is the symbol of the last key.
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
    /// The key that followed each key last time, by symbol; the first key of an object follows none.
    successors: Vec<Option<Symbol>>,
    recent: RecentStrings,
    known_keys: KnownKeys,
    /// Replaces successors and known keys in a small text.
    siblings: Option<Siblings>,
    /// Number of open arrays.
    rows: usize,
    /// Elements until the next memory check.
    unchecked: u32,
}

/// Elements between two memory checks.
const CHECK_EVERY: u32 = 256;

/// Bytes of UTF-8 validation for a unit of fuel.
const VALIDATED: usize = 64;

/// Bytes that are read between two polls.
pub(super) const STRIDE: usize = 1 << 16;

/// Strings from this length on reserve memory before they are built.
const LONG: usize = 1_024;

/// Values of an earlier program that are freed between two checks of the deadline.
const DRAIN_STEP: usize = 1 << 14;

/// Decodes a JSON text.
///
/// # Errors
/// Text that is not JSON; limits of the program.
pub fn decode(cx: &mut Context, bytes: &[u8]) -> Result<Value, DecodeFailure> {
    cx.tick((bytes.len() / VALIDATED) as u64)?;
    match std::str::from_utf8(bytes) {
        Ok(text) => decode_text(cx, text),
        Err(error) => invalid(error.valid_up_to(), "invalid UTF-8"),
    }
}

/// [`decode`] for bytes that are known to be UTF-8.
///
/// # Errors
/// Text that is not JSON; limits of the program.
pub(crate) fn decode_text(cx: &mut Context, text: &str) -> Result<Value, DecodeFailure> {
    // Garbage of an earlier program is freed first: its memory serves this value.
    while garbage::drain_waiting(DRAIN_STEP) {
        cx.fuel.poll()?;
    }
    let bytes = text.as_bytes();
    let elements = cx.take_stack();
    let mut decoder = Decoder {
        text,
        bytes,
        at: 0,
        paid: 0,
        open: Vec::new(),
        elements,
        successors: Vec::new(),
        recent: RecentStrings::for_text(bytes.len()),
        known_keys: KnownKeys::default(),
        siblings: (bytes.len() < RecentStrings::UNSHARED).then(Siblings::default),
        rows: 0,
        unchecked: CHECK_EVERY,
    };
    let value = decoder.document(cx)?;
    decoder.skip_blanks(cx)?;
    if decoder.at < bytes.len() {
        return invalid(decoder.at, "unexpected text after the value");
    }
    decoder.pay(cx)?;
    cx.keep_stack(decoder.elements);
    Ok(value)
}

impl Decoder<'_> {
    /// Between two tokens there is usually no blank, or one.
    #[inline]
    fn skip_blanks(&mut self, cx: &Context) -> FaultResult<()> {
        if !self.is_at_blank() {
            return Ok(());
        }
        self.at += 1;
        if self.is_at_blank() { self.skip_many_blanks(cx) } else { Ok(()) }
    }

    #[inline]
    fn is_at_blank(&self) -> bool {
        matches!(self.bytes.get(self.at), Some(b' ' | b'\n' | b'\r' | b'\t'))
    }

    #[cold]
    fn skip_many_blanks(&mut self, cx: &Context) -> FaultResult<()> {
        let mut pause = self.at + STRIDE;
        while self.is_at_blank() {
            self.at += 1;
            if self.at == pause {
                pause += STRIDE;
                cx.fuel.poll()?;
            }
        }
        Ok(())
    }

    /// Pays for the bytes read since the last payment, and regularly checks memory.
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

    /// Bytes of the stacks, which no node is charged for yet.
    fn held(&self) -> usize {
        self.elements.capacity() * size_of::<Value>() + self.open.capacity() * size_of::<Open>()
    }

    /// Every value is pushed to the stack right where it is read, so that it is written there in parts.
    fn document(&mut self, cx: &mut Context) -> Outcome<Value> {
        loop {
            // A value begins here.
            self.skip_blanks(cx)?;
            let Some(&byte) = self.bytes.get(self.at) else {
                return invalid(self.at, "unexpected end of text");
            };
            match byte {
                b'"' => {
                    let node = self.string(cx)?;
                    self.push_string(cx, node)?;
                }
                b'-' | b'0'..=b'9' => match number::small(self.bytes, self.at) {
                    Some((int, next)) => {
                        self.at = next;
                        self.push_int(cx, int)?;
                    }
                    None => self.number(cx)?,
                },
                b'{' => {
                    self.at += 1;
                    if !self.closes(cx, b'}')? {
                        self.open(cx, Open::Object { start: self.elements.len(), last: None })?;
                        self.key(cx)?;
                        continue;
                    }
                    self.push_map(cx, MapNode::empty())?;
                }
                b'[' => {
                    self.at += 1;
                    if !self.closes(cx, b']')? {
                        self.open(cx, Open::Array(self.elements.len()))?;
                        self.rows += 1;
                        continue;
                    }
                    self.push_vector(cx, VectorNode::new(Vec::new()))?;
                }
                b't' => {
                    self.word("true")?;
                    self.push_word(cx, Some(true))?;
                }
                b'f' => {
                    self.word("false")?;
                    self.push_word(cx, Some(false))?;
                }
                b'n' => {
                    self.word("null")?;
                    self.push_word(cx, None)?;
                }
                _ => return invalid(self.at, "expected a value"),
            }
            self.pay(cx)?;
            // It is finished, and possibly the collections around it are too.
            while self.finished(cx)? {
                if self.open.is_empty() {
                    return Ok(self.elements.pop().unwrap_or_default());
                }
            }
        }
    }

    /// Skips blanks and this closing bracket, if it comes next.
    fn closes(&mut self, cx: &Context, bracket: u8) -> FaultResult<bool> {
        self.skip_blanks(cx)?;
        let closes = self.bytes.get(self.at) == Some(&bracket);
        if closes {
            self.at += 1;
        }
        Ok(closes)
    }

    fn open(&mut self, cx: &mut Context, open: Open) -> Outcome<()> {
        self.pay(cx)?;
        if self.open.len() == self.open.capacity() {
            cx.reserve(self.held() + self.open.capacity().max(4) * 2 * size_of::<Open>())?;
        }
        self.open.push(open);
        Ok(())
    }

    fn word(&mut self, word: &str) -> Outcome<()> {
        if self.bytes[self.at..].starts_with(word.as_bytes()) {
            self.at += word.len();
            Ok(())
        } else {
            invalid(self.at, "expected a value")
        }
    }

    /// A number other than one of a few digits.
    #[inline(never)]
    fn number(&mut self, cx: &mut Context) -> Outcome<()> {
        let (value, next) = number::read(cx, self.bytes, self.at)?;
        self.at = next;
        Ok(self.push(cx, value)?)
    }

    fn string(&mut self, cx: &mut Context) -> Outcome<Rc<StringNode>> {
        if let Some((text, next)) = text::short(self.text, self.at + 1) {
            self.at = next;
            return Ok(self.recent.string(text));
        }
        self.long_string(cx)
    }

    #[inline(never)]
    fn long_string(&mut self, cx: &mut Context) -> Outcome<Rc<StringNode>> {
        let (text, next) = text::read(cx, self.text, self.at + 1)?;
        self.at = next;
        if text.len() >= LONG {
            cx.reserve(text.len() + self.held())?;
        }
        Ok(self.recent.string(&text))
    }

    /// Reads a key and its colon into the innermost object.
    fn key(&mut self, cx: &mut Context) -> Outcome<()> {
        self.skip_blanks(cx)?;
        if self.bytes.get(self.at) != Some(&b'"') {
            return invalid(self.at, "expected a string as key");
        }
        let last = match self.open.last() {
            Some(Open::Object { last, .. }) => *last,
            _ => None,
        };
        let (node, symbol) = match self.expected_key(cx, last) {
            Some(symbol) => (cx.symbols.string(symbol).clone(), Some(symbol)),
            None => match self.siblings.as_ref().and_then(|siblings| self.key_of_row(siblings)) {
                Some(node) => {
                    self.at += node.len() + 2;
                    let symbol = node.symbol();
                    (node, symbol)
                }
                None => self.new_key(cx, last)?,
            },
        };
        self.skip_blanks(cx)?;
        if self.bytes.get(self.at) != Some(&b':') {
            return invalid(self.at, "expected a colon after the key");
        }
        self.at += 1;
        if let Some(Open::Object { last, .. }) = self.open.last_mut() {
            *last = symbol;
        }
        self.push_string(cx, node)?;
        self.pay(cx)?;
        Ok(())
    }

    /// Reads the key that came here last time, if it comes now too. A small text has no successors.
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

    /// The key at this position in the row before, in a small text, if it comes now too.
    #[inline(never)]
    fn key_of_row(&self, siblings: &Siblings) -> Option<Rc<StringNode>> {
        let Some(Open::Object { start, .. }) = self.open.last() else { return None };
        let node = siblings.key(self.open.len(), (self.elements.len() - start) / 2)?;
        let rest = self.bytes.get(self.at + 1..)?.strip_prefix(node.as_str().as_bytes())?;
        (rest.first() == Some(&b'"')).then(|| node.clone())
    }

    fn new_key(
        &mut self,
        cx: &mut Context,
        last: Option<Symbol>,
    ) -> Outcome<(Rc<StringNode>, Option<Symbol>)> {
        if let Some((text, next)) = text::short(self.text, self.at + 1) {
            self.at = next;
            return Ok(self.key_of(cx, last, text, true));
        }
        let (text, next) = text::read(cx, self.text, self.at + 1)?;
        self.at = next;
        // Only a key without escapes can be recognised by its bytes.
        let plain = matches!(text, Cow::Borrowed(_));
        if text.len() >= LONG {
            cx.reserve(text.len() + self.held())?;
        }
        Ok(self.key_of(cx, last, &text, plain))
    }

    /// The node and the symbol of a key, given its predecessor.
    fn key_of(
        &mut self,
        cx: &mut Context,
        last: Option<Symbol>,
        text: &str,
        plain: bool,
    ) -> (Rc<StringNode>, Option<Symbol>) {
        // Only rows of an array repeat their keys.
        let has_successors = self.rows > 0 && self.siblings.is_none();
        let symbol = if has_successors { cx.symbols.intern_key(text) } else { cx.symbols.find_key(text) };
        let Some(symbol) = symbol else {
            return (StringNode::new(text), None);
        };
        if plain && has_successors {
            let place = place(last);
            if self.successors.len() <= place {
                self.successors.resize(place + 1, None);
            }
            self.successors[place] = Some(symbol);
        }
        (cx.symbols.string(symbol).clone(), Some(symbol))
    }

    #[inline(never)]
    fn push_int(&mut self, cx: &mut Context, int: i64) -> FaultResult<()> {
        self.push(cx, Value::Int(int))
    }

    #[inline(never)]
    fn push_string(&mut self, cx: &mut Context, node: Rc<StringNode>) -> FaultResult<()> {
        self.push(cx, Value::Str(node))
    }

    #[inline(never)]
    fn push_vector(&mut self, cx: &mut Context, node: Rc<VectorNode>) -> FaultResult<()> {
        self.push(cx, Value::Vector(node))
    }

    #[inline(never)]
    fn push_map(&mut self, cx: &mut Context, node: Rc<MapNode>) -> FaultResult<()> {
        self.push(cx, Value::Map(node))
    }

    #[inline(never)]
    fn push_word(&mut self, cx: &mut Context, bool: Option<bool>) -> FaultResult<()> {
        self.push(cx, bool.map_or(Value::Nil, Value::Bool))
    }

    /// Pushes a value to the stack. Frequent kinds have functions of their own, so that the value is written in
    /// parts: loading it as a whole would wait for the stores.
    #[inline(always)]
    fn push(&mut self, cx: &mut Context, value: Value) -> FaultResult<()> {
        if self.elements.len() == self.elements.capacity() {
            self.grow(cx)?;
        }
        self.elements.push(value);
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, cx: &mut Context) -> FaultResult<()> {
        let more = self.elements.capacity().max(4);
        cx.reserve(self.held() + more * 2 * size_of::<Value>())?;
        self.elements.reserve(more);
        Ok(())
    }

    /// Reads what follows a finished value. True if that finished another value, which is then on the stack, or if
    /// nothing can follow because the value is the whole document.
    fn finished(&mut self, cx: &mut Context) -> Outcome<bool> {
        let Some(open) = self.open.last() else { return Ok(true) };
        let (is_object, start) = match *open {
            Open::Array(start) => (false, start),
            Open::Object { start, .. } => (true, start),
        };
        self.skip_blanks(cx)?;
        let byte = self.bytes.get(self.at).copied();
        self.at += 1;
        match (byte, is_object) {
            (Some(b','), false) => Ok(false),
            (Some(b','), true) => {
                self.key(cx)?;
                Ok(false)
            }
            (Some(b']'), false) => {
                cx.reserve(self.held() + (self.elements.len() - start) * size_of::<Value>())?;
                let mut items = List::with_capacity(cx, self.elements.len() - start)?;
                items.fill(cx, self.elements.drain(start..))?;
                self.open.pop();
                self.rows -= 1;
                self.push_vector(cx, items.into_vector())?;
                Ok(true)
            }
            (Some(b'}'), true) => {
                // A node with its entries is larger than its part of the stack.
                cx.reserve(self.held() + (self.elements.len() - start) * size_of::<Value>() + 256)?;
                let pairs = self.elements.get_mut(start..).unwrap_or_default();
                let map = match &mut self.siblings {
                    _ if self.rows == 0 => MapNode::from_pairs(cx, pairs)?,
                    None => self.known_keys.map(cx, pairs)?,
                    Some(siblings) => siblings.map(cx, self.open.len(), pairs)?,
                };
                // Only the values of repeated keys are left to drop.
                self.elements.truncate(start);
                self.open.pop();
                self.push_map(cx, map)?;
                Ok(true)
            }
            (None, _) => invalid(self.at - 1, "unexpected end of text"),
            (_, false) => invalid(self.at - 1, "expected a comma or the end of the array"),
            (_, true) => invalid(self.at - 1, "expected a comma or the end of the object"),
        }
    }
}

/// Index of a key's successor.
fn place(last: Option<Symbol>) -> usize {
    last.map_or(0, |symbol| symbol.index() as usize + 1)
}

/// A table of recent short strings.
pub(super) struct RecentStrings {
    kept: Vec<Option<Rc<StringNode>>>,
    /// Number of hash bits that select a slot.
    bits: u32,
}

impl RecentStrings {
    /// The table is largest, 512 strings, for texts of at least 2 to this power of bytes.
    const LARGE: u32 = 13;

    /// For a JSON text of this length: one slot for every 16 bytes; a small answer is not worth a table.
    fn for_text(length: usize) -> RecentStrings {
        let bits = match length.checked_ilog2().unwrap_or(0).min(Self::LARGE) {
            few if few < Self::SMALL => 0,
            bits => bits - 4,
        };
        RecentStrings { kept: Vec::new(), bits }
    }

    /// Texts shorter than this share no strings.
    pub(super) const UNSHARED: usize = 1 << Self::SMALL;

    const SMALL: u32 = 9;

    /// The node of a text.
    fn string(&mut self, text: &str) -> Rc<StringNode> {
        if text.len() > crate::value::string::INLINE || self.bits == 0 {
            return StringNode::new(text);
        }
        if self.kept.is_empty() {
            self.kept.resize(1 << self.bits, None);
        }
        let place = (Self::hash(text.as_bytes()) >> (64 - self.bits)) as usize;
        match &self.kept[place] {
            Some(node) if node.as_str() == text => node.clone(),
            _ => {
                let node = StringNode::new(text);
                self.kept[place] = Some(node.clone());
                node
            }
        }
    }

    /// A cheap hash of the first and last bytes and the length; its high bits are good.
    fn hash(text: &[u8]) -> u64 {
        let word = match (text.first_chunk::<8>(), text.last_chunk::<8>()) {
            (Some(first), Some(last)) => {
                u64::from_le_bytes(*first) ^ u64::from_le_bytes(*last).rotate_left(29)
            }
            _ => match (text.first_chunk::<4>(), text.last_chunk::<4>()) {
                (Some(first), Some(last)) => {
                    u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last))
                }
                _ => text.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)),
            },
        };
        (word ^ (text.len() as u64) << 56).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}
