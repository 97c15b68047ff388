//! String nodes: UTF-8 text with cached facts about it (whether it is ASCII, its hash, its symbol), and the hash
//! function of texts.

use crate::memory::account;
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
    pub fn append(this: Rc<StringNode>, more: &str) -> Rc<StringNode> {
        let mut this = this;
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

/// Hash of a key's text; never 0, which means "not computed yet". The same in every process and on every platform. It
/// takes constant time: only parts of a text longer than [`SHORT_TEXT`] are hashed.
pub fn hash_text(text: &str) -> u32 {
    let bytes = text.as_bytes();
    let state = (bytes.len() as u64 ^ FACTORS[0]).wrapping_mul(FACTORS[1]);
    let state = if bytes.len() > SHORT_TEXT { hash_parts(state, bytes) } else { hash_bytes(state, bytes) };
    ((fold(state, FACTORS[3]) >> 16) as u32).max(1)
}

/// Odd random-looking constants: the fractional parts of the roots of the first primes.
const FACTORS: [u64; 4] =
    [0x6A09_E667_F3BC_C909, 0xBB67_AE85_84CA_A73B, 0x3C6E_F372_FE94_F82B, 0xA54F_F53A_5F1D_36F1];

fn fold(a: u64, b: u64) -> u64 {
    let wide = u128::from(a) * u128::from(b);
    wide as u64 ^ (wide >> 64) as u64
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|word| word.try_into().ok()).map_or(0, u64::from_le_bytes)
}

fn half_word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).map_or(0, u32::from_le_bytes).into()
}

fn hash_bytes(mut state: u64, bytes: &[u8]) -> u64 {
    let len = bytes.len();
    let mut at = 0;
    while at + 16 < len {
        state = fold(state ^ word(bytes, at), FACTORS[2] ^ word(bytes, at + 8));
        at += 16;
    }
    // The rest is read from both its ends, which overlap.
    let (a, b) = match len {
        16.. => (word(bytes, len - 16), word(bytes, len - 8)),
        8..16 => (word(bytes, 0), word(bytes, len - 8)),
        4..8 => (half_word(bytes, 0), half_word(bytes, len - 4)),
        1..4 => (u64::from(bytes[0]) << 8 | u64::from(bytes[len / 2]), u64::from(bytes[len - 1])),
        0 => (0, 0),
    };
    fold(state ^ a, FACTORS[3] ^ b)
}

/// The ends of a long text, and words from between them.
#[cold]
fn hash_parts(state: u64, bytes: &[u8]) -> u64 {
    const END: usize = SHORT_TEXT / 4;
    const WORDS: usize = 16;
    let (start, rest) = bytes.split_at(END);
    let (middle, end) = rest.split_at(rest.len() - END);
    let stride = middle.len() / WORDS;
    let between = (0..WORDS).fold(state, |state, at| fold(state ^ word(middle, at * stride), FACTORS[2]));
    hash_bytes(hash_bytes(between, start), end)
}
