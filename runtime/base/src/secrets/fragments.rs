//! Finds parts of known secret keys in a text, such as the end of a key that another program has truncated, so that
//! they can be redacted.
//!
//! A service may show the end of a key, or a line of it from the middle on. Parts are recognized by windows
//! of eight bytes (*grams*): all grams are in one sorted table, so a text is scanned once, whatever it
//! contains. Only values that look like keys have parts: the parts of words and paths are ordinary text.

use super::canonical::LONGEST_NAME;
use super::forms::{SHORTEST_LINE, is_telling};
use memchr::memchr3;
use secrecy::{ExposeSecret, SecretSlice};
use std::ops::Range;

/// Length of a gram and of the shortest part. A part this short counts only at the beginning or end of a text
/// or at a cut.
const GRAM: usize = SHORTEST_LINE;

/// Length of a part that counts anywhere.
const ANYWHERE: usize = 16;

/// Every part of [`ANYWHERE`] bytes has a gram that begins at a multiple of this.
const STRIDE: usize = ANYWHERE - GRAM + 1;

/// Bits of the filter in front of the table, as a power of two: 8 KiB fit into the L1 cache.
const FILTER: u32 = 16;

/// What else delimits a part.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Borders {
    /// An ellipsis.
    Cuts,
    /// A quotation mark as well: the text consists of several.
    Quotes,
}

/// The grams of all key material.
#[derive(Default)]
pub(super) struct Fragments {
    /// Bloom filter of the grams; empty without any.
    filter: Vec<u64>,
    /// All grams, sorted.
    grams: SecretSlice<u64>,
}

impl Fragments {
    /// The grams of these canonical texts.
    pub(super) fn new(texts: &[Vec<u8>]) -> Fragments {
        let mut grams: Vec<u64> =
            texts.iter().flat_map(|text| (0..text.len()).filter_map(|at| gram(text, at))).collect();
        grams.sort_unstable();
        grams.dedup();
        let mut filter = if grams.is_empty() { Vec::new() } else { vec![0; 1 << (FILTER - 6)] };
        for &gram in &grams {
            let (word, bit) = place_in_filter(gram);
            filter[word] |= bit;
        }
        Fragments { filter, grams: grams.into() }
    }

    /// The ranges of parts in a canonical text, unordered; some may occur twice.
    pub(super) fn find(&self, text: &[u8], borders: Borders) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        if self.filter.is_empty() || text.len() < GRAM {
            return found;
        }
        let mut at = 0;
        while at + GRAM <= text.len() {
            if self.has(text, at) {
                let place = self.backwards(text, 0, at + GRAM).start..self.forwards(text, at, text.len()).end;
                at = place.end - GRAM;
                found.extend(Some(place).filter(|place| place.len() >= ANYWHERE));
            }
            at += STRIDE;
        }
        for_each_piece(text, borders, |piece| {
            found.push(self.forwards(text, piece.start, piece.end));
            // The cut may be in the middle of an escape.
            for end in (piece.start..=piece.end).rev().take(BROKEN + 1) {
                if broken_escape(&text[end..piece.end]) == piece.end - end {
                    let part = self.backwards(text, piece.start, end);
                    found.push(part.start..if part.is_empty() { part.end } else { piece.end });
                }
            }
        });
        found.retain(|place| is_telling(&text[place.clone()]));
        found
    }

    /// The longest part that begins here; empty if there is none.
    fn forwards(&self, text: &[u8], start: usize, limit: usize) -> Range<usize> {
        let grams = (start..limit.saturating_sub(GRAM - 1)).take_while(|&at| self.has(text, at)).count();
        start..if grams == 0 { start } else { start + grams + GRAM - 1 }
    }

    /// The longest part that ends here; empty if there is none.
    fn backwards(&self, text: &[u8], limit: usize, end: usize) -> Range<usize> {
        let last = end.saturating_sub(GRAM - 1);
        let grams = (limit..last).rev().take_while(|&at| self.has(text, at)).count();
        if grams == 0 { end..end } else { last - grams..end }
    }

    fn has(&self, text: &[u8], at: usize) -> bool {
        gram(text, at).is_some_and(|gram| {
            let (word, bit) = place_in_filter(gram);
            self.filter[word] & bit != 0 && self.grams.expose_secret().binary_search(&gram).is_ok()
        })
    }
}

fn gram(text: &[u8], at: usize) -> Option<u64> {
    text.get(at..at + GRAM)?.try_into().ok().map(u64::from_le_bytes)
}

fn place_in_filter(gram: u64) -> (usize, u64) {
    // Fibonacci hashing: the high bits depend on all others.
    let hash = gram.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - FILTER);
    ((hash >> 6) as usize, 1 << (hash & 63))
}

/// Visits each piece between delimiters.
fn for_each_piece(text: &[u8], borders: Borders, mut visit: impl FnMut(Range<usize>)) {
    let (mut start, mut at) = (0, 0);
    while let Some(offset) = memchr3(b'.', ELLIPSIS[0], b'"', &text[at..]) {
        let here = at + offset;
        let width = match ellipsis(&text[here..]) {
            0 if text[here] == b'"' && borders == Borders::Quotes => 1,
            width => width,
        };
        at = here + width.max(1);
        if width > 0 {
            visit(start..here);
            start = at;
        }
    }
    visit(start..text.len());
}

const ELLIPSIS: &[u8] = "…".as_bytes();

/// Length of an ellipsis at the beginning of the text; 0 without one.
pub(super) fn ellipsis(text: &[u8]) -> usize {
    if text.starts_with(b"...") {
        return text.iter().take_while(|&&byte| byte == b'.').count();
    }
    if text.starts_with(ELLIPSIS) { ELLIPSIS.len() } else { 0 }
}

/// Maximum length of a broken escape: `&` and a name.
const BROKEN: usize = 1 + LONGEST_NAME;

/// Length of what can be the beginning of an escape: `%`, `%4`, `%u00e`, `&#x4`, `&quo`, and without their backslashes
/// `u`, `u00e`, `u{1f6`, `U0001f6`, `x4`, `30`.
pub(super) fn broken_escape(rest: &[u8]) -> usize {
    let Some(first) = rest.first() else { return 0 };
    let (most, belongs): (usize, fn(&u8) -> bool) = match first {
        b'%' if rest.get(1) == Some(&b'u') => (4, |byte| byte.is_ascii_hexdigit() || *byte == b'u'),
        b'%' | b'x' => (1, u8::is_ascii_hexdigit),
        b'u' if rest.get(1) == Some(&b'{') => (7, |byte| byte.is_ascii_hexdigit() || *byte == b'{'),
        b'u' => (3, u8::is_ascii_hexdigit),
        b'U' => (7, u8::is_ascii_hexdigit),
        b'0'..=b'3' => (1, u8::is_ascii_digit),
        b'&' => (LONGEST_NAME, |byte| byte.is_ascii_alphanumeric() || *byte == b'#'),
        _ => return 0,
    };
    1 + rest[1..].iter().take(most).take_while(|byte| belongs(byte)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcw";

    fn clean(text: &str) -> String {
        let fragments = Fragments::new(&[KEY.as_bytes().to_vec()]);
        let mut text = text.as_bytes().to_vec();
        for place in fragments.find(&text.clone(), Borders::Cuts) {
            text[place].fill(b'#');
        }
        String::from_utf8(text).expect("whole characters")
    }

    #[test]
    fn parts_at_borders_and_long_parts_anywhere() {
        let table = [
            ("no qhkiG9w0B in it", "no qhkiG9w0B in it"),
            ("no ADANBgkqhkiG9w0BAQEFA in it", "no ##################### in it"),
            ("qhkiG9w0B is", "######### is"),
            ("is qhkiG9w0B", "is #########"),
            ("qhkiG9w is", "qhkiG9w is"),
            ("is qhkiG9w0B... and …kqhkiG9w0 so", "is #########... and …######### so"),
            ("is qhkiG9w0B%4", "is ###########"),
            ("is qhkiG9w0BU0000", "is ##############"),
            ("is qhkiG9w0Bu{4", "is ############"),
            ("is qhkiG9w0B%u00", "is #############"),
            ("is qhkiG9w0B&hyphe", "is ###############"),
            (KEY, "####################################"),
        ];
        for (text, wanted) in table {
            assert_eq!(clean(text), wanted, "{text}");
        }
        // A long part is found wherever it begins.
        for before in 0..2 * STRIDE {
            for part in KEY.as_bytes().windows(ANYWHERE) {
                let text = format!("{}{}!", "-".repeat(before), std::str::from_utf8(part).expect("ASCII"));
                assert_eq!(clean(&text), format!("{}{}!", "-".repeat(before), "#".repeat(ANYWHERE)));
            }
        }
    }

    #[test]
    fn words_names_and_numbers_tell_nothing() {
        for word in ["credentials", "Credentials", "HOME", "90210734", "----", ""] {
            assert!(!is_telling(word.as_bytes()), "{word}");
        }
        for key in ["MIIEvQIB", "8347ae17", "gKqhkiGw"] {
            assert!(is_telling(key.as_bytes()), "{key}");
        }
    }
}
