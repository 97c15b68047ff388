//! Parses JSON string literals strictly, escapes and surrogate pairs included, and copies only those that have escapes.

use super::decode::{DecodeFailure, Outcome, STRIDE, invalid};
use crate::context::Context;
use std::borrow::Cow;

/// Longest short string.
const SHORT: usize = 64;

/// The end of the run of ordinary bytes that begins at `start`: no quote, backslash or control character.
#[inline]
fn ordinary(bytes: &[u8], start: usize) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    // The classic test for a zero byte, which also finds bytes below 0x20 by their borrow.
    let zero = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    let special = |word: u64| {
        let control = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
        control | zero(word ^ (ONES * 0x22)) | zero(word ^ (ONES * 0x5C))
    };
    let mut rest = bytes.get(start..).unwrap_or_default();
    while let Some((word, more)) = rest.split_first_chunk() {
        let special = special(u64::from_le_bytes(*word));
        if special != 0 {
            // Borrows run upwards only, so the lowest mark is exact.
            return bytes.len() - rest.len() + (special.trailing_zeros() / 8) as usize;
        }
        rest = more;
    }
    match bytes.last_chunk() {
        Some(word) if !rest.is_empty() => {
            // Bytes that were examined are shifted out; the zeros shifted in count as control characters and end the
            // run.
            let word = u64::from_le_bytes(*word) >> (8 * (8 - rest.len()));
            bytes.len() - rest.len() + (special(word).trailing_zeros() / 8) as usize
        }
        _ => {
            let is_ordinary = |&&byte: &&u8| byte >= 0x20 && byte != b'"' && byte != b'\\';
            bytes.len() - rest.len() + rest.iter().take_while(is_ordinary).count()
        }
    }
}

/// Reads a short string without escapes, the common case; gives it and the position after its closing quote. [`read`]
/// handles everything else.
#[inline]
pub(super) fn short(text: &str, start: usize) -> Option<(&str, usize)> {
    let bytes = text.as_bytes();
    let end = ordinary(&bytes[..bytes.len().min(start + SHORT)], start);
    (bytes.get(end) == Some(&b'"')).then(|| (part(text, start, end), end + 1))
}

/// Reads a string; `start` is the position after the opening quote. Gives the string and the position after
/// the closing one: a slice of the text, or a copy with escapes replaced. The caller pays for the bytes. Long
/// strings are paid for here as well, since they are scanned in strides.
#[inline]
pub(super) fn read<'b>(cx: &mut Context, text: &'b str, start: usize) -> Outcome<(Cow<'b, str>, usize)> {
    let bytes = text.as_bytes();
    let mut at = start;
    loop {
        let end = bytes.len().min(at + STRIDE);
        at = ordinary(&bytes[..end], at);
        if at < end {
            break;
        }
        if at == bytes.len() {
            return invalid(at, "unterminated string");
        }
        cx.fuel.poll()?;
    }
    match bytes[at] {
        b'"' => Ok((Cow::Borrowed(part(text, start, at)), at + 1)),
        b'\\' => escaped(cx, text, start, at),
        _ => invalid(at, "control character in a string"),
    }
}

/// A part of the text between two ASCII characters.
fn part(text: &str, start: usize, end: usize) -> &str {
    text.get(start..end).unwrap_or_default()
}

/// Continues at the first backslash.
fn escaped<'b>(
    cx: &mut Context,
    source: &'b str,
    start: usize,
    slash: usize,
) -> Outcome<(Cow<'b, str>, usize)> {
    let bytes = source.as_bytes();
    let mut text = String::new();
    let (mut plain, mut at, mut pause) = (start, slash, slash + STRIDE);
    loop {
        if at >= pause {
            pause = at + STRIDE;
            cx.fuel.poll()?;
        }
        let Some(&byte) = bytes.get(at) else { return invalid(at, "unterminated string") };
        match byte {
            b'"' => {
                push(cx, &mut text, part(source, plain, at))?;
                return Ok((Cow::Owned(text), at + 1));
            }
            b'\\' => {
                push(cx, &mut text, part(source, plain, at))?;
                let (character, next) = escape(bytes, at + 1)?;
                text.push(character);
                plain = next;
                at = next;
            }
            0..0x20 => return invalid(at, "control character in a string"),
            _ => {
                let end = bytes.len().min(at + STRIDE);
                at = ordinary(&bytes[..end], at);
            }
        }
    }
}

fn push(cx: &mut Context, text: &mut String, more: &str) -> Result<(), DecodeFailure> {
    let needed = text.len() + more.len() + 4;
    if needed > text.capacity() {
        let capacity = needed.max(text.capacity() * 2);
        cx.reserve(capacity)?;
        text.reserve_exact(capacity - text.len());
    }
    text.push_str(more);
    Ok(())
}

/// One escape, from the byte after the backslash.
fn escape(bytes: &[u8], at: usize) -> Outcome<(char, usize)> {
    let character = match bytes.get(at) {
        Some(b'"') => '"',
        Some(b'\\') => '\\',
        Some(b'/') => '/',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return unicode(bytes, at + 1),
        Some(_) => return invalid(at, "unknown escape in a string"),
        None => return invalid(at, "unterminated string"),
    };
    Ok((character, at + 1))
}

fn unicode(bytes: &[u8], at: usize) -> Outcome<(char, usize)> {
    let first = hex(bytes, at)?;
    if let Some(character) = char::from_u32(first) {
        return Ok((character, at + 4));
    }
    // A high surrogate and a low one make a character; alone they are invalid.
    if first < 0xDC00 && bytes.get(at + 4) == Some(&b'\\') && bytes.get(at + 5) == Some(&b'u') {
        let second = hex(bytes, at + 6)?;
        if (0xDC00..0xE000).contains(&second)
            && let Some(character) = char::from_u32(0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00))
        {
            return Ok((character, at + 10));
        }
    }
    invalid(at, "lone surrogate in a string")
}

fn hex(bytes: &[u8], at: usize) -> Outcome<u32> {
    let mut value = 0;
    for offset in 0..4 {
        match bytes.get(at + offset).and_then(|&byte| char::from(byte).to_digit(16)) {
            Some(digit) => value = value * 16 + digit,
            None => return invalid(at + offset, "\\u needs four hexadecimal digits"),
        }
    }
    Ok(value)
}
