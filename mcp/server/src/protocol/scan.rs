//! A JSON scanner for one pass over a text: passes on members of objects, and values as text.
//!
//! It accepts less than serde does, and never anything else. `None` means "parse it with serde": the text has
//! something unusual (an escape in a key, deep nesting) or a fault. So error messages come from one place.

use super::borrowed::Raw;

/// A position in a JSON text.
pub(crate) struct Scanner<'a> {
    text: &'a str,
    /// The rest of the text that has not been scanned.
    rest: &'a [u8],
}

impl<'a> Scanner<'a> {
    /// A scanner at the start of a text.
    pub(crate) fn new(text: &'a str) -> Scanner<'a> {
        Scanner { text, rest: text.as_bytes() }
    }

    /// True when only whitespace is left.
    pub(crate) fn is_at_end(&mut self) -> bool {
        self.blanks();
        self.rest.is_empty()
    }

    /// Scans an object; `member` scans each of its members.
    #[inline]
    pub(crate) fn object(&mut self, mut member: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        if self.token()? != b'{' {
            return None;
        }
        self.blanks();
        if self.peek()? == b'}' {
            return self.take(b'}');
        }
        loop {
            member(self)?;
            match self.token()? {
                b',' => self.blanks(),
                b'}' => return Some(()),
                _ => return None,
            }
        }
    }

    /// Skips this key, given in quotes and with its colon, if it comes next; its value is next then. Comparing
    /// with expected keys is cheaper than searching for the end of a key.
    #[inline]
    pub(crate) fn is_at<const N: usize>(&mut self, quoted: &[u8; N]) -> bool {
        let is_at = self.takes(quoted);
        if is_at {
            self.blanks();
        }
        is_at
    }

    /// Scans any other key; its value is next. The key must have no escapes, and no whitespace before the
    /// colon: otherwise an expected key could slip through.
    #[inline]
    pub(crate) fn any_key(&mut self) -> Option<&'a [u8]> {
        self.take(b'"')?;
        let start = self.rest;
        self.run();
        let key = start.get(..start.len() - self.rest.len())?;
        self.take(b'"')?;
        self.take(b':')?;
        self.blanks();
        Some(key)
    }

    /// Skips this ASCII text if it comes next. It is an array, so that the comparison is inlined.
    #[inline]
    pub(crate) fn takes<const N: usize>(&mut self, text: &[u8; N]) -> bool {
        match self.rest.split_first_chunk() {
            Some((found, rest)) if found == text => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    /// Scans a string without escapes, and returns what is between its quotes.
    #[inline]
    pub(crate) fn plain(&mut self) -> Option<&'a str> {
        self.take(b'"')?;
        let start = self.rest;
        self.run();
        let inside = self.since(start)?;
        self.take(b'"')?;
        Some(inside)
    }

    /// Scans any value.
    #[inline]
    pub(crate) fn value(&mut self) -> Option<Raw<'a>> {
        let start = self.rest;
        self.skip_value()?;
        self.since(start).map(Raw::scanned)
    }

    /// Scans any value; true if it is a string without escapes, so that it need not be scanned again.
    #[inline]
    pub(super) fn value_and_plainness(&mut self) -> Option<(Raw<'a>, bool)> {
        let start = self.rest;
        let is_plain = self.peek()? == b'"' && {
            self.next()?;
            self.run();
            self.next()? == b'"'
        };
        if !is_plain {
            self.rest = start;
            self.skip_value()?;
        }
        self.since(start).map(|text| (Raw::scanned(text), is_plain))
    }

    /// Skips any value.
    #[inline]
    pub(crate) fn skip_value(&mut self) -> Option<()> {
        match self.peek()? {
            b'"' => self.string(),
            b'{' | b'[' => self.nested(),
            _ => self.word(),
        }
    }

    /// The current position.
    #[inline]
    pub(super) fn here(&self) -> &'a [u8] {
        self.rest
    }

    /// Goes to a position in the same text.
    #[inline]
    pub(super) fn go_to(&mut self, place: &'a [u8]) {
        self.rest = place;
    }

    /// The text from `start` to the current position.
    #[inline]
    pub(super) fn since(&self, start: &'a [u8]) -> Option<&'a str> {
        self.between(start, self.rest)
    }

    /// The text between two positions.
    #[inline]
    pub(super) fn between(&self, start: &'a [u8], end: &'a [u8]) -> Option<&'a str> {
        self.text.get(self.text.len() - start.len()..self.text.len() - end.len())
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// Takes any byte.
    #[inline]
    fn next(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }

    /// Takes this byte.
    #[inline]
    fn take(&mut self, byte: u8) -> Option<()> {
        match self.rest.split_first() {
            Some((found, rest)) if *found == byte => {
                self.rest = rest;
                Some(())
            }
            _ => None,
        }
    }

    #[inline]
    fn blanks(&mut self) {
        // Whitespace is below every other byte that occurs between tokens, so one comparison rules it out.
        while let Some((byte, rest)) = self.rest.split_first()
            && *byte <= b' '
            && matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
        {
            self.rest = rest;
        }
    }

    /// Takes the next byte that is not whitespace.
    #[inline]
    fn token(&mut self) -> Option<u8> {
        match self.next()? {
            b' ' | b'\t' | b'\n' | b'\r' => {
                self.blanks();
                self.next()
            }
            byte => Some(byte),
        }
    }

    /// Skips the colon between a key and its value.
    #[inline]
    fn colon(&mut self) -> Option<()> {
        (self.token()? == b':').then(|| self.blanks())
    }

    /// Skips characters of a string up to the next quote, backslash or control character.
    #[inline]
    fn run(&mut self) {
        // Most strings end within the first 8 bytes, which are checked without a call.
        self.rest = match self.rest.first_chunk().map(first_special) {
            Some(at @ ..8) => &self.rest[at..],
            _ => after_plain(self.rest),
        };
    }

    #[inline]
    fn string(&mut self) -> Option<()> {
        self.take(b'"')?;
        loop {
            self.run();
            match self.peek()? {
                b'"' => return self.take(b'"'),
                b'\\' => self.escape()?,
                _ => return None,
            }
        }
    }

    fn escape(&mut self) -> Option<()> {
        let length = match self.rest.get(1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 2,
            // Whether surrogates are paired is checked when the string is decoded.
            b'u' if self.rest.get(2..6)?.iter().all(u8::is_ascii_hexdigit) => 6,
            _ => return None,
        };
        self.skip(length)
    }

    #[inline]
    fn skip(&mut self, length: usize) -> Option<()> {
        self.rest = self.rest.get(length..)?;
        Some(())
    }

    /// Skips a number, `true`, `false` or `null`.
    #[inline]
    fn word(&mut self) -> Option<()> {
        // Most numbers have one or a few digits.
        if let Some((b'1'..=b'9', mut rest)) = self.rest.split_first() {
            while let Some((b'0'..=b'9', more)) = rest.split_first() {
                rest = more;
            }
            if !matches!(rest.first(), Some(b'.' | b'e' | b'E')) {
                self.rest = rest;
                return Some(());
            }
        }
        self.any_word()
    }

    fn any_word(&mut self) -> Option<()> {
        let length = match self.peek()? {
            b'-' | b'0'..=b'9' => number_length(self.rest)?,
            _ => {
                [&b"true"[..], b"false", b"null"].into_iter().find(|word| self.rest.starts_with(word))?.len()
            }
        };
        self.skip(length)
    }

    /// Skips an object or an array.
    fn nested(&mut self) -> Option<()> {
        /// Nothing is open.
        const NONE: u64 = 1;
        // Kinds of the open containers, a bit each, below a leading one. The lowest bit is the innermost; 1 is
        // an object.
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
                    self.next()?;
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
            // After a value, or at the end of an empty container.
            loop {
                if open == NONE {
                    return Some(());
                }
                match (self.token()?, open & 1 == 1) {
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

    #[inline]
    fn key(&mut self) -> Option<()> {
        self.string()?;
        self.colon()
    }
}

/// True if the text needs no escapes in a JSON string.
#[inline]
pub(crate) fn needs_no_escapes(text: &str) -> bool {
    after_plain(text.as_bytes()).is_empty()
}

/// Index of the first quote, backslash or control character in a word; 8 without one.
#[inline(always)]
fn first_special(word: &[u8; 8]) -> usize {
    const ONES: u64 = u64::MAX / 0xFF;
    const HIGHS: u64 = ONES << 7;
    let word = u64::from_le_bytes(*word);
    // The subtraction sets the high bit of each byte that was smaller, and the lowest such byte is exact. Bytes
    // that had the high bit before do not count: no quote, backslash or control character has it.
    let quote = (word ^ (ONES * u64::from(b'"'))).wrapping_sub(ONES);
    let backslash = (word ^ (ONES * u64::from(b'\\'))).wrapping_sub(ONES);
    let control = word.wrapping_sub(ONES * 0x20);
    let found = (quote | backslash | control) & !word & HIGHS;
    found.trailing_zeros() as usize / 8
}

/// The rest of a text from its first quote, backslash or control character on.
#[inline(never)]
fn after_plain(text: &[u8]) -> &[u8] {
    let mut rest = text;
    while let Some((word, more)) = rest.split_first_chunk() {
        let at = first_special(word);
        if at < 8 {
            return &rest[at..];
        }
        rest = more;
        if text.len() - rest.len() >= SHORT {
            return after_long_plain(rest);
        }
    }
    &rest[plain_bytes(rest)..]
}

/// Strings up to this length are scanned word by word.
const SHORT: usize = 64;

#[cold]
fn after_long_plain(text: &[u8]) -> &[u8] {
    let end = memchr::memchr2(b'"', b'\\', text).unwrap_or(text.len());
    // Checks every byte, so that the loop needs no branch.
    let has_controls = text[..end].iter().fold(false, |found, byte| found | (*byte < 0x20));
    &text[if has_controls { plain_bytes(text) } else { end }..]
}

fn plain_bytes(text: &[u8]) -> usize {
    text.iter().take_while(|byte| !matches!(byte, ..0x20 | b'"' | b'\\')).count()
}

/// Length of the number at the start of a text.
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
