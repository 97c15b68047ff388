//! The string type of the language: UTF-8 text with cached facts about it (whether it is ASCII, its hash, its interned
//! symbol).

use crate::memory::account;
pub use crate::value::relation::text_hash::hash_text;
use crate::value::symbol::Symbol;
use compact_str::CompactString;
use std::cell::Cell;
use std::cmp::Ordering;
use std::rc::Rc;
use unicode_segmentation::UnicodeSegmentation;

/// Logical bytes of a string node with up to [`INLINE`] bytes of text.
pub const STRING_BYTES: usize = 56;

/// Longest text that is stored in the node.
pub const INLINE: usize = 24;

/// Bytes of a preview.
const SHOWN: usize = 120;

const UNKNOWN: u8 = 0;
const ASCII: u8 = 1;
const OTHER: u8 = 2;

/// A string. Indexes of the language count graphemes; ASCII text, the common case, is indexed by byte.
#[derive(Debug)]
pub struct StringNode {
    text: CompactString,
    ascii: Cell<u8>,
    symbol: Cell<u32>,
    hash: Cell<u32>,
}

const NO_SYMBOL: u32 = u32::MAX;

impl StringNode {
    /// A string of this text.
    pub fn new(text: impl Into<CompactString>) -> Rc<StringNode> {
        let node = StringNode {
            text: text.into(),
            ascii: Cell::new(UNKNOWN),
            symbol: Cell::new(NO_SYMBOL),
            hash: Cell::new(0),
        };
        account::charge(node.bytes());
        Rc::new(node)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Logical bytes.
    pub(crate) fn bytes(&self) -> usize {
        STRING_BYTES + if self.text.is_heap_allocated() { self.text.capacity() } else { 0 }
    }

    /// True if every character is one byte; then graphemes are bytes as well, except for CR LF pairs.
    pub fn is_ascii(&self) -> bool {
        match self.ascii.get() {
            UNKNOWN => {
                let has_pair = || self.text.as_bytes().contains(&b'\r') && self.text.contains("\r\n");
                let ascii = self.text.is_ascii() && !has_pair();
                self.ascii.set(if ascii { ASCII } else { OTHER });
                ascii
            }
            known => known == ASCII,
        }
    }

    /// Whether [`StringNode::is_ascii`] is cached.
    pub(crate) fn knows_ascii(&self) -> bool {
        self.ascii.get() != UNKNOWN
    }

    /// Bytes of the text.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// No text.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Whether it begins with a text; takes no longer than reading that text.
    pub(crate) fn starts_with(&self, part: &str) -> bool {
        self.text.starts_with(part)
    }

    /// Whether it ends with a text; takes no longer than reading that text.
    pub(crate) fn ends_with(&self, part: &str) -> bool {
        self.text.ends_with(part)
    }

    /// The byte at an index, as text, of a string in which every grapheme is a byte.
    pub(crate) fn ascii_at(&self, index: usize) -> Option<&str> {
        self.text.get(index..index.checked_add(1)?)
    }

    /// The text, if it has at most this many bytes.
    pub fn short(&self, most: usize) -> Option<&str> {
        (self.text.len() <= most).then_some(&*self.text)
    }

    /// True for a single grapheme, up to the length that real scripts need.
    pub fn is_character(&self) -> bool {
        self.text.len() <= SHOWN && self.graphemes() == 1
    }

    /// The beginning of the text, for messages and for distinguishing short words.
    pub fn preview(&self) -> &str {
        &self.text[..self.text.floor_char_boundary(SHOWN)]
    }

    /// Number of graphemes.
    pub fn graphemes(&self) -> usize {
        if self.is_ascii() { self.text.len() } else { self.text.graphemes(true).count() }
    }

    /// The symbol of the same text, if it is interned.
    pub fn symbol(&self) -> Option<Symbol> {
        let symbol = self.symbol.get();
        (symbol != NO_SYMBOL).then(|| Symbol::from_index(symbol))
    }

    pub(crate) fn set_symbol(&self, symbol: Symbol) {
        self.symbol.set(symbol.index());
    }

    /// Hash of the text, computed once. Keywords of the same text hash the same.
    pub fn hash(&self) -> u32 {
        let known = self.hash.get();
        if known != 0 {
            return known;
        }
        let hash = hash_text(&self.text);
        self.hash.set(hash);
        hash
    }

    /// Appends in place if the node is not shared, else to a copy.
    pub fn append(mut this: Rc<StringNode>, more: &str) -> Rc<StringNode> {
        if let Some(node) = Rc::get_mut(&mut this)
            && node.symbol.get() == NO_SYMBOL
        {
            let before = node.bytes();
            node.text.push_str(more);
            node.ascii.set(UNKNOWN);
            node.hash.set(0);
            account::recharge(before, node.bytes());
            return this;
        }
        let mut text = CompactString::with_capacity(this.text.len() + more.len());
        text.push_str(&this.text);
        text.push_str(more);
        StringNode::new(text)
    }
}

impl PartialEq for StringNode {
    fn eq(&self, other: &StringNode) -> bool {
        self.text == other.text
    }
}

impl Eq for StringNode {}

impl PartialOrd for StringNode {
    fn partial_cmp(&self, other: &StringNode) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for StringNode {
    fn cmp(&self, other: &StringNode) -> Ordering {
        self.text.cmp(&other.text)
    }
}

impl Drop for StringNode {
    fn drop(&mut self) {
        account::release(self.bytes());
    }
}

/// Longest text that is hashed completely and compared without payment.
pub const SHORT_TEXT: usize = 256;
