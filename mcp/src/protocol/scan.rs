//! JSON text scanned in one pass: members of objects as they come, and values as the text they are.
//!
//! A scanner knows less than the general reader and never something else: `None` means "look at it again, by
//! serde", be it for something unusual (an escape in a key, deep nesting) or for a fault. So what is wrong with a
//! text is said in one place.

use super::borrowed::Raw;

/// What is left of a text.
pub(crate) struct Scanner<'a> {
    text: &'a str,
    /// The end of the text that has not been looked at.
    rest: &'a [u8],
}

impl<'a> Scanner<'a> {
    /// A scanner before a whole text.
    pub(crate) fn new(text: &'a str) -> Scanner<'a> {
        Scanner { text, rest: text.as_bytes() }
    }

    /// True when only blanks are left.
    pub(crate) fn is_at_end(&mut self) -> bool {
        self.blanks();
        self.rest.is_empty()
    }

    /// An object, each of its members taken by `member`.
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

    /// True when the key of this member, given in quotes and with its colon, comes next; then it is taken, and its value
    /// is next. To ask for the keys that there may be is less work than to look for the end of one.
    #[inline]
    pub(crate) fn is_at<const N: usize>(&mut self, quoted: &[u8; N]) -> bool {
        let is_at = self.takes(quoted);
        if is_at {
            self.blanks();
        }
        is_at
    }

    /// Any member: its key, without escapes and without a blank before the colon, so that none that was asked for gets
    /// here; its value is next.
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

    /// True when this ASCII text comes next, and is taken. An array, which is compared without a call.
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

    /// A string without escapes: what is between its quotes.
    #[inline]
    pub(crate) fn plain(&mut self) -> Option<&'a str> {
        self.take(b'"')?;
        let start = self.rest;
        self.run();
        let inside = self.since(start)?;
        self.take(b'"')?;
        Some(inside)
    }

    /// Any value.
    #[inline]
    pub(crate) fn value(&mut self) -> Option<Raw<'a>> {
        let start = self.rest;
        self.skip_value()?;
        self.since(start).map(Raw::scanned)
    }

    /// Any value, and whether it is a string without escapes: whoever wants to have that need not scan it again.
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

    /// Any value, which nobody wants.
    #[inline]
    pub(crate) fn skip_value(&mut self) -> Option<()> {
        match self.peek()? {
            b'"' => self.string(),
            b'{' | b'[' => self.nested(),
            _ => self.word(),
        }
    }

    /// Where the scanner is.
    #[inline]
    pub(super) fn here(&self) -> &'a [u8] {
        self.rest
    }

    /// Goes to a place of the same text.
    #[inline]
    pub(super) fn go_to(&mut self, place: &'a [u8]) {
        self.rest = place;
    }

    /// The text from there on that has been taken.
    #[inline]
    pub(super) fn since(&self, start: &'a [u8]) -> Option<&'a str> {
        self.between(start, self.rest)
    }

    /// The text from one place to another.
    #[inline]
    pub(super) fn between(&self, start: &'a [u8], end: &'a [u8]) -> Option<&'a str> {
        self.text.get(self.text.len() - start.len()..self.text.len() - end.len())
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// Any byte.
    #[inline]
    fn next(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }

    /// This byte.
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
        // Every blank is below what may stand elsewhere between tokens, so one comparison says that there is none.
        while let Some((byte, rest)) = self.rest.split_first()
            && *byte <= b' '
            && matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
        {
            self.rest = rest;
        }
    }

    /// The next byte that is no blank.
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

    /// What is between a key and its value.
    #[inline]
    fn colon(&mut self) -> Option<()> {
        (self.token()? == b':').then(|| self.blanks())
    }

    /// What a string may hold as it is, up to its next quote, backslash or control character.
    #[inline]
    fn run(&mut self) {
        // Most strings end in their first word, which is looked at without a call.
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
            // Whether it is half of a pair matters to whoever wants the character.
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

    /// A number, `true`, `false` or `null`.
    #[inline]
    fn word(&mut self) -> Option<()> {
        // Most numbers are a digit or a few.
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
            // After a value, or before the end of what is empty.
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

/// True for a text that a JSON string has as it is.
#[inline]
pub(crate) fn needs_no_escapes(text: &str) -> bool {
    after_plain(text.as_bytes()).is_empty()
}

/// Where the first quote, backslash or control character of a word is; 8 without one.
#[inline(always)]
fn first_special(word: &[u8; 8]) -> usize {
    const ONES: u64 = u64::MAX / 0xFF;
    const HIGHS: u64 = ONES << 7;
    let word = u64::from_le_bytes(*word);
    // Subtracting turns the high bit of a byte on that was smaller; the lowest such byte is exact. The high bits of
    // bytes that had them before do not count: no quote, backslash or control character has.
    let quote = (word ^ (ONES * u64::from(b'"'))).wrapping_sub(ONES);
    let backslash = (word ^ (ONES * u64::from(b'\\'))).wrapping_sub(ONES);
    let control = word.wrapping_sub(ONES * 0x20);
    let found = (quote | backslash | control) & !word & HIGHS;
    found.trailing_zeros() as usize / 8
}

/// A text from its first quote, backslash or control character on.
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

/// Up to here strings are looked through word by word.
const SHORT: usize = 64;

#[cold]
fn after_long_plain(text: &[u8]) -> &[u8] {
    let end = memchr::memchr2(b'"', b'\\', text).unwrap_or(text.len());
    // Looks at every byte, so that the loop needs no branch.
    let has_controls = text[..end].iter().fold(false, |found, byte| found | (*byte < 0x20));
    &text[if has_controls { plain_bytes(text) } else { end }..]
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
