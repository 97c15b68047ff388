//! Text that somebody else wrote, as a person may see it: nothing in it moves the cursor, hides, or turns the order of
//! letters round.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Who reads a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    /// A program, to which every byte counts.
    Program,
    /// A person; `colours`: the stream is a terminal that shows colours of ours.
    Person { colours: bool },
}

/// Characters of format (Unicode's Cf): they are not seen, and change how others are.
const FORMAT: [(u32, u32); 21] = [
    (0x00AD, 0x00AD),
    (0x0600, 0x0605),
    (0x061C, 0x061C),
    (0x06DD, 0x06DD),
    (0x070F, 0x070F),
    (0x0890, 0x0891),
    (0x08E2, 0x08E2),
    (0x180E, 0x180E),
    (0x200B, 0x200F),
    // Separators of lines and paragraphs, and the order of letters.
    (0x2028, 0x202E),
    (0x2060, 0x2064),
    (0x2066, 0x206F),
    (0xFEFF, 0xFEFF),
    (0xFFF9, 0xFFFB),
    (0x110BD, 0x110BD),
    (0x110CD, 0x110CD),
    (0x13430, 0x1343F),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0001, 0xE0001),
    (0xE0020, 0xE007F),
];

/// What joins letters of scripts that are joined, and parts of one picture.
const JOINERS: [char; 2] = ['\u{200C}', '\u{200D}'];

/// True for what a terminal obeys instead of showing it, line ends and tabs aside.
fn is_obeyed(character: char) -> bool {
    let code = u32::from(character);
    (character.is_control() && character != '\n' && character != '\t')
        || (code >= FORMAT[0].0 && FORMAT.iter().any(|(first, last)| (*first..=*last).contains(&code)))
}

/// The character stands for itself: nothing obeys it, and it does not turn the direction of writing.
pub fn is_shown(character: char) -> bool {
    !is_obeyed(character)
}

/// The text, in which each character that is obeyed is written as its number: `\u001b`.
pub fn visible(text: &str) -> Cow<'_, str> {
    shown(text, false)
}

/// The same on one line.
pub fn visible_line(text: &str) -> Cow<'_, str> {
    match visible(text) {
        text if !text.contains('\n') => text,
        text => Cow::Owned(text.replace('\n', "\\u000a")),
    }
}

/// `colours`: sequences that change colours and nothing else are left.
pub(super) fn shown(text: &str, colours: bool) -> Cow<'_, str> {
    if !text.chars().any(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let after = &rest[character.len_utf8()..];
        if let Some(length) = colour(rest).filter(|_| colours) {
            out.push_str(&rest[..length]);
            rest = &rest[length..];
            continue;
        }
        let joins = || {
            JOINERS.contains(&character)
                && !ends_plain(&out)
                && after.starts_with(|next: char| !next.is_ascii())
        };
        // A line end as Windows writes it.
        let ends_line = character == '\r' && after.starts_with('\n');
        match is_obeyed(character) && !ends_line && !joins() {
            true => number(character, &mut out),
            false => out.push(character),
        }
        rest = after;
    }
    Cow::Owned(out)
}

fn ends_plain(text: &str) -> bool {
    text.chars().next_back().is_none_or(|last| last.is_ascii())
}

/// The length of a sequence that sets the weight or colour of letters, at the beginning of a text.
fn colour(text: &str) -> Option<usize> {
    const LONGEST: usize = 8;
    let body = text.strip_prefix("\x1b[")?;
    let end = body.find('m').filter(|end| *end <= LONGEST)?;
    // Neither backgrounds nor what hides letters.
    let is_plain =
        |code: &str| matches!(code, "" | "0" | "1" | "2" | "3" | "4" | "22" | "39") || is_foreground(code);
    body[..end].split(';').all(is_plain).then_some(end + 3)
}

fn is_foreground(code: &str) -> bool {
    code.parse().is_ok_and(|code: u8| (31..=37).contains(&code) || (90..=97).contains(&code))
}

/// JSON text in which such characters are written as escapes: it means the same. They stand in strings only.
pub(super) fn escaped(json: &str) -> Cow<'_, str> {
    if !json.chars().any(is_obeyed) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for character in json.chars() {
        // A line end may stand between two values.
        match is_obeyed(character) && character != '\r' {
            true => number(character, &mut out),
            false => out.push(character),
        }
    }
    Cow::Owned(out)
}

/// Writes a character as JSON has it: `\u001b`.
fn number(character: char, out: &mut String) {
    for unit in character.encode_utf16(&mut [0; 2]) {
        // Writing to a String cannot fail.
        let _ = write!(out, "\\u{unit:04x}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_obeyed_is_marked() {
        for (text, want) in [
            ("plain ü 漢\n\tx\r\ny", "plain ü 漢\n\tx\r\ny"),
            ("a\x1b[2Jb\x07c\u{9b}2Jd\x7f\rz", "a\\u001b[2Jb\\u0007c\\u009b2Jd\\u007f\\u000dz"),
            ("user\u{202E}txt.exe\u{200B}\u{2066}", "user\\u202etxt.exe\\u200b\\u2066"),
            ("\x1b]0;title\x07\x1b[31mred", "\\u001b]0;title\\u0007\\u001b[31mred"),
            ("👩\u{200D}🔧 a\u{200D}b \u{E0041}", "👩\u{200D}🔧 a\\u200db \\udb40\\udc41"),
        ] {
            assert_eq!(visible(text), want, "{text:?}");
        }
        assert_eq!(visible_line("a\nb"), "a\\u000ab");
    }

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
