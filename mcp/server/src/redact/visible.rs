//! Escapes foreign text for a terminal, so that it cannot move the cursor, hide text or reverse its direction.

use ptc_calls::tools::visible::{self as tools, is_obeyed, number};
use std::borrow::Cow;

/// The reader of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    /// A program, which needs every byte unchanged.
    Program,
    /// A person. With `colours` the stream is a terminal, and our colours are kept.
    Person { colours: bool },
}

/// Writes each character that a terminal interprets as its number. With `colours`, sequences that only change
/// colours are left.
pub(super) fn shown(text: &str, colours: bool) -> Cow<'_, str> {
    tools::shown(text, |rest| colour(rest).filter(|_| colours))
}

/// Length of an escape sequence at the start of `text` that sets the weight or colour of letters.
fn colour(text: &str) -> Option<usize> {
    const LONGEST: usize = 8;
    let body = text.strip_prefix("\x1b[")?;
    let end = body.find('m').filter(|end| *end <= LONGEST)?;
    // Neither backgrounds nor hidden letters.
    let is_plain =
        |code: &str| matches!(code, "" | "0" | "1" | "2" | "3" | "4" | "22" | "39") || is_foreground(code);
    body[..end].split(';').all(is_plain).then_some(end + 3)
}

fn is_foreground(code: &str) -> bool {
    code.parse().is_ok_and(|code: u8| (31..=37).contains(&code) || (90..=97).contains(&code))
}

/// Escapes such characters in JSON text, where they occur in strings only. The meaning stays the same.
pub(super) fn escaped(json: &str) -> Cow<'_, str> {
    if !json.chars().any(is_obeyed) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for character in json.chars() {
        // A line end may separate two values.
        match is_obeyed(character) && character != '\r' {
            true => number(character, &mut out),
            false => out.push(character),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_left_where_they_are_ours_to_show() {
        assert_eq!(
            shown("\x1b[1;31mno\x1b[0m\x1b[8mhidden\x1b[41m", true),
            "\x1b[1;31mno\x1b[0m\\u001b[8mhidden\\u001b[41m"
        );
    }

    #[test]
    fn json_means_the_same() {
        let json = "{\"a\":\"x\u{202E}\u{9b}\u{E0041}y\"}\n";
        let escaped = escaped(json);
        assert!(escaped.is_ascii());
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&escaped).unwrap(),
            serde_json::from_str::<serde_json::Value>(json).unwrap()
        );
    }
}
