//! JSON text scanned in one pass: members of objects as they come, and values as the text they are.
//!
//! A scanner knows less than the general reader and never something else: `None` means "look at it again, by
//! serde", be it for something unusual (an escape in a key, deep nesting) or for a fault. So what is wrong with a
//! text is said in one place.

use super::borrowed::Raw;
use std::borrow::Cow;

/// What is left of a text.
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    /// A scanner before a whole text.
    pub(crate) fn new(text: &'a str) -> Scanner<'a> {
        Scanner { text, at: 0 }
    }

    /// True when only blanks are left.
    pub(crate) fn is_at_end(&mut self) -> bool {
        self.blanks();
        self.at == self.text.len()
    }

    /// An object, each of its members taken by `member`.
    #[inline]
    pub(crate) fn object(&mut self, mut member: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.blanks();
        self.take(b'{')?;
        self.blanks();
        if self.peek()? == b'}' {
            return self.take(b'}');
        }
        loop {
            member(self)?;
            self.blanks();
            let byte = self.peek()?;
            self.at += 1;
            match byte {
                b',' => self.blanks(),
                b'}' => return Some(()),
                _ => return None,
            }
        }
    }

    /// True when the key of this member, given in quotes, comes next; then it is taken, and its value is next. To
    /// ask for the keys that there may be is less work than to look for the end of one.
    #[inline]
    pub(crate) fn is_at<const N: usize>(&mut self, quoted: &[u8; N]) -> Option<bool> {
        if !self.takes(quoted) {
            return Some(false);
        }
        self.colon().map(|()| true)
    }

    /// Any member: its key, without escapes; its value is next.
    pub(crate) fn any_key(&mut self) -> Option<&'a str> {
        let key = self.plain()?;
        self.colon().map(|()| key)
    }

    /// True when this ASCII text comes next, and is taken. An array, which is compared without a call.
    #[inline]
    pub(crate) fn takes<const N: usize>(&mut self, text: &[u8; N]) -> bool {
        let found = self.text.as_bytes()[self.at..].first_chunk() == Some(text);
        if found {
            self.at += N;
        }
        found
    }

    /// A string, read.
    pub(crate) fn text(&mut self) -> Option<Cow<'a, str>> {
        let start = self.at;
        if let Some(inside) = self.plain() {
            return Some(Cow::Borrowed(inside));
        }
        self.at = start;
        self.string()?;
        serde_json::from_str(self.text.get(start..self.at)?).ok().map(Cow::Owned)
    }

    /// A string without escapes: what is between its quotes.
    #[inline]
    pub(crate) fn plain(&mut self) -> Option<&'a str> {
        self.take(b'"')?;
        let start = self.at;
        self.run();
        let inside = self.text.get(start..self.at)?;
        self.take(b'"')?;
        Some(inside)
    }

    /// Any value.
    #[inline]
    pub(crate) fn value(&mut self) -> Option<Raw<'a>> {
        let start = self.at;
        match self.peek()? {
            b'"' => self.string()?,
            b'{' | b'[' => self.nested()?,
            _ => self.word()?,
        }
        self.text.get(start..self.at).map(Raw::scanned)
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// This byte.
    #[inline]
    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    #[inline]
    fn blanks(&mut self) {
        // Every blank is below what may stand elsewhere between tokens, so one comparison says that there is none.
        while let Some(byte) = self.peek()
            && byte <= b' '
            && matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
        {
            self.at += 1;
        }
    }

    /// What is between a key and its value.
    #[inline]
    fn colon(&mut self) -> Option<()> {
        self.blanks();
        self.take(b':')?;
        self.blanks();
        Some(())
    }

    /// What a string may hold as it is, up to its next quote, backslash or control character.
    #[inline]
    fn run(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += plain_length(rest);
    }

    #[inline]
    fn string(&mut self) -> Option<()> {
        self.take(b'"')?;
        loop {
            self.run();
            match self.peek()? {
                b'"' => break,
                b'\\' => self.escape()?,
                _ => return None,
            }
        }
        self.at += 1;
        Some(())
    }

    fn escape(&mut self) -> Option<()> {
        let rest = self.text.as_bytes().get(self.at + 1..)?;
        self.at += match rest.first()? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 2,
            // Whether it is half of a pair matters to whoever wants the character.
            b'u' if rest.get(1..5)?.iter().all(u8::is_ascii_hexdigit) => 6,
            _ => return None,
        };
        Some(())
    }

    /// A number, `true`, `false` or `null`.
    fn word(&mut self) -> Option<()> {
        let rest = &self.text.as_bytes()[self.at..];
        let length = match rest.first()? {
            b'-' | b'0'..=b'9' => number_length(rest)?,
            _ => [&b"true"[..], b"false", b"null"].into_iter().find(|word| rest.starts_with(word))?.len(),
        };
        self.at += length;
        Some(())
    }

    /// An object or an array with whatever is in it.
    fn nested(&mut self) -> Option<()> {
        /// Nothing is open.
        const NONE: u64 = 1;
        // The kinds of what is open, a bit each, below a one: the lowest is the innermost, and 1 is an object.
        let mut open = NONE;
        loop {
            // Before a value.
            match self.peek()? {
                byte @ (b'{' | b'[') => {
                    if open >> 63 != 0 {
                        return None;
                    }
                    let is_object = byte == b'{';
                    open = open << 1 | u64::from(is_object);
                    self.at += 1;
                    self.blanks();
                    match (self.peek()?, is_object) {
                        (b'}', true) | (b']', false) => {}
                        (_, true) => {
                            self.key()?;
                            continue;
                        }
                        (_, false) => continue,
                    }
                }
                b'"' => self.string()?,
                _ => self.word()?,
            }
            // After a value, or before the end of what is empty.
            loop {
                if open == NONE {
                    return Some(());
                }
                self.blanks();
                let byte = self.peek()?;
                self.at += 1;
                match (byte, open & 1 == 1) {
                    (b'}', true) | (b']', false) => open >>= 1,
                    (b',', is_object) => {
                        self.blanks();
                        if is_object {
                            self.key()?;
                        }
                        break;
                    }
                    _ => return None,
                }
            }
        }
    }

    fn key(&mut self) -> Option<()> {
        self.string()?;
        self.colon()
    }
}

/// How many bytes of a text come before a quote, a backslash or a control character.
#[inline]
fn plain_length(text: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 0xFF;
    const HIGHS: u64 = ONES << 7;
    /// The high bit of the lowest byte that is below `bound`, itself at most 0x80; bits above it mean nothing.
    fn below(word: u64, bound: u64) -> u64 {
        word.wrapping_sub(ONES * bound) & !word & HIGHS
    }
    let mut at = 0;
    while let Some(word) = text.get(at..).and_then(|rest| rest.first_chunk()) {
        let word = u64::from_le_bytes(*word);
        let quote = below(word ^ (ONES * u64::from(b'"')), 1);
        let backslash = below(word ^ (ONES * u64::from(b'\\')), 1);
        let found = below(word, 0x20) | quote | backslash;
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
        if at >= SHORT {
            return at + long_plain_length(&text[at..]);
        }
    }
    at + plain_bytes(&text[at..])
}

/// Up to here strings are looked through word by word.
const SHORT: usize = 64;

#[cold]
fn long_plain_length(text: &[u8]) -> usize {
    let end = memchr::memchr2(b'"', b'\\', text).unwrap_or(text.len());
    // Looks at every byte, so that the loop needs no branch.
    let has_controls = text[..end].iter().fold(false, |found, byte| found | (*byte < 0x20));
    if has_controls { plain_bytes(text) } else { end }
}

fn plain_bytes(text: &[u8]) -> usize {
    text.iter().take_while(|byte| !matches!(byte, ..0x20 | b'"' | b'\\')).count()
}

/// How long the number is that a text begins with.
fn number_length(text: &[u8]) -> Option<usize> {
    let digits = |at: usize| text[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let at = usize::from(text.first() == Some(&b'-'));
    let whole = digits(at);
    if whole == 0 || (whole > 1 && text[at] == b'0') {
        return None;
    }
    let mut at = at + whole;
    if text.get(at) == Some(&b'.') {
        let fraction = digits(at + 1);
        if fraction == 0 {
            return None;
        }
        at += 1 + fraction;
    }
    if let Some(b'e' | b'E') = text.get(at) {
        at += 1 + usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits(at);
        if exponent == 0 {
            return None;
        }
        at += exponent;
    }
    Some(at)
}
