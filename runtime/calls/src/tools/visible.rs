//! Makes texts of servers safe to show to a model or a person: nothing in them moves a cursor, is hidden, or reverses
//! the order of letters. Tool lists are cleaned here when they arrive.

use super::UpstreamTool;
use serde::{Serialize, Serializer};
use serde_json::Value as Json;
use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::ops::Deref;
use std::sync::Arc;

/// Format characters (Unicode category Cf): they are invisible, and change how others are shown.
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
    // Separators of lines and paragraphs, and bidirectional controls.
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

/// Joiners, which some scripts and composed emoji need.
const JOINERS: [char; 2] = ['\u{200C}', '\u{200D}'];

/// True for control characters, which a terminal obeys instead of showing, except line breaks and tabs.
pub fn is_obeyed(character: char) -> bool {
    let code = u32::from(character);
    (character.is_control() && character != '\n' && character != '\t')
        || (code >= FORMAT[0].0 && FORMAT.iter().any(|(first, last)| (*first..=*last).contains(&code)))
}

/// True for a character that is shown: it is no control character, and does not change the direction of
/// writing.
pub fn is_shown(character: char) -> bool {
    !is_obeyed(character)
}

/// True for a character that is drawn as nothing, without being a format character: joiners of graphemes, fillers of
/// Hangul, selectors of variants (Unicode property `Default_Ignorable_Code_Point`).
pub fn is_ignorable(character: char) -> bool {
    matches!(
        u32::from(character),
        0x034F | 0x115F..=0x1160 | 0x17B4..=0x17B5 | 0x180B..=0x180F | 0x2065 | 0x2800 | 0x3164 | 0xFE00..=0xFE0F | 0xFFA0 | 0xFFF0..=0xFFF8 | 0xE0000..=0xE0FFF
    )
}

/// The text with each control character as its number: `\u001b`.
pub fn visible(text: &str) -> Cow<'_, str> {
    shown(text, |_| None)
}

/// [`visible`] on one line.
pub fn visible_line(text: &str) -> Cow<'_, str> {
    match visible(text) {
        text if !text.contains('\n') => text,
        text => Cow::Owned(text.replace('\r', "\\u000d").replace('\n', "\\u000a")),
    }
}

/// [`visible`] that keeps sequences for which `known` returns a length.
pub fn shown(text: &str, known: impl Fn(&str) -> Option<usize>) -> Cow<'_, str> {
    if !text.chars().any(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let after = &rest[character.len_utf8()..];
        if let Some(length) = known(rest) {
            out.push_str(&rest[..length]);
            rest = &rest[length..];
            continue;
        }
        let joins = || {
            JOINERS.contains(&character)
                && !ends_plain(&out)
                && after.starts_with(|next: char| !next.is_ascii())
        };
        // A Windows line break.
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

/// Writes a character as its number in JSON: `\u001b`.
pub fn number(character: char, out: &mut String) {
    for unit in character.encode_utf16(&mut [0; 2]) {
        // Writing to a String cannot fail.
        let _ = write!(out, "\\u{unit:04x}");
    }
}

/// True for a name that fits on one line as it is.
pub fn is_listable(name: &str) -> bool {
    !name.chars().any(|character| is_obeyed(character) || (character.is_whitespace() && character != ' '))
        && name.trim() == name
}

/// A name for lists: as a literal, unless it has only characters that the MCP specification allows in names
/// of tools (revision 2025-11-25, `server/tools`, "Tool Names").
pub fn shown_name(name: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte);
    match name.bytes().all(is_plain) {
        true => Cow::Borrowed(name),
        false => Cow::Owned(literal(name)),
    }
}

/// A text as a JSON string in which every character is visible.
pub fn literal(text: &str) -> String {
    visible(&Json::from(text).to_string()).into_owned()
}

/// Makes a tool's texts about itself visible. Names and values that calls need stay unchanged. Gives whether its title, its
/// description or one of those in its schemas has hidden characters.
pub fn clean(tool: &mut UpstreamTool) -> bool {
    let texts = [&mut tool.description, &mut tool.title].into_iter().flatten();
    let hides_in_texts = texts.fold(false, |hides, text| hides_in(text) | hides);
    let schemas = std::iter::once(&mut tool.input_schema).chain(&mut tool.output_schema);
    schemas.fold(hides_in_texts, |hides, schema| clean_schema(schema) | hides)
}

/// Makes a text visible in place. Gives whether it has hidden characters.
fn hides_in(text: &mut String) -> bool {
    // Some servers end lines with CR LF.
    let plain = text.replace("\r\n", "\n");
    let hides = visible(&plain) != plain;
    clean_text(text);
    hides
}

/// Makes a text visible in place.
pub(crate) fn clean_text(text: &mut String) {
    if let Cow::Owned(seen) = visible(text) {
        *text = seen;
    }
}

/// Cleans the descriptions in a schema, and gives whether one has hidden characters. Its depth is bounded, because it was
/// parsed from JSON.
fn clean_schema(schema: &mut Json) -> bool {
    match schema {
        Json::Object(members) => members.iter_mut().fold(false, |hides, (name, member)| {
            let hides_here = match member {
                Json::String(text) if matches!(&**name, "description" | "title" | "$comment") => {
                    hides_in(text)
                }
                // Signatures show a type as a word.
                Json::String(text) if name == "type" => {
                    *text = visible_line(text).into_owned();
                    false
                }
                Json::Array(kinds) if name == "type" => {
                    let words = kinds.iter().map(|kind| match kind {
                        Json::String(text) => visible_line(text).into(),
                        other => other.clone(),
                    });
                    *kinds = words.collect();
                    false
                }
                _ => clean_schema(member),
            };
            hides | hides_here
        }),
        Json::Array(items) => items.iter_mut().fold(false, |hides, item| clean_schema(item) | hides),
        _ => false,
    }
}

/// A text from a server, on one line and without control characters. [`visible_line`] makes it so when it arrives,
/// so an error, a log record or a value of a program cannot show it otherwise.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerText(Arc<str>);

impl ServerText {
    /// The text as it may be shown.
    #[must_use]
    pub fn new(sent: &str) -> ServerText {
        ServerText(visible_line(sent).into())
    }
}

impl Deref for ServerText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<ServerText> for Arc<str> {
    fn from(text: ServerText) -> Arc<str> {
        text.0
    }
}

impl fmt::Display for ServerText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self)
    }
}

impl fmt::Debug for ServerText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, formatter)
    }
}

impl Serialize for ServerText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
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
        assert_eq!(visible_line("a\nb\r\nc"), "a\\u000ab\\u000d\\u000ac");
    }

    #[test]
    fn names_outside_of_the_alphabet_are_literals() {
        assert_eq!(shown_name("get_user.v2/x-1"), "get_user.v2/x-1");
        assert_eq!(shown_name("get user"), "\"get user\"");
        for name in ["a\nb", "a\u{202e}b", "a\u{2028}b", "a\u{85}b", "a\tb", " a", "a\u{1b}[2J"] {
            assert!(!is_listable(name), "{name:?}");
        }
        assert!(is_listable("naïve tool") && literal("a\n\u{202e}") == "\"a\\n\\u202e\"");
    }
}
