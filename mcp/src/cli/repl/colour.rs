//! How what is typed is shown: the colours of texts, keywords and comments, and a prompt before each line.

use crate::console::style::Style;
use std::borrow::Cow;

/// What stands before an input.
pub(super) const PROMPT: &str = "ptc> ";

/// What stands before its further lines.
const CONTINUED: &str = "...> ";

/// What a further line begins with, outside of text literals. An editor that knows no further prompts shows the prompt in
/// its place: so what is shown is as wide as what is typed.
pub(super) const INDENT: &str = "     ";

const _: () = assert!(PROMPT.len() == INDENT.len() && CONTINUED.len() == INDENT.len());

/// What a part of an input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InputPart {
    Text,
    Keyword,
    Comment,
    /// The end of a line, and the indent of the next.
    Further,
    Other,
}

/// An input as it is shown: as wide as it is.
pub(super) fn coloured(text: &str, style: Style) -> Cow<'_, str> {
    if !style.is_enabled() && !text.contains('\n') {
        return text.into();
    }
    let shown = parts(text).map(|(part, text)| match part {
        InputPart::Text => style.green(text),
        InputPart::Keyword => style.cyan(text),
        InputPart::Comment => style.dim(text),
        InputPart::Further => format!("\n{}", style.green(CONTINUED)),
        InputPart::Other => text.to_owned(),
    });
    shown.collect::<String>().into()
}

/// The parts of an input, in order; together they are all of it.
fn parts(text: &str) -> impl Iterator<Item = (InputPart, &str)> {
    let (mut rest, mut begins_word) = (text, true);
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let (part, length) = match first {
            '"' => (InputPart::Text, text_length(rest)),
            ';' => (InputPart::Comment, rest.find('\n').unwrap_or(rest.len())),
            ':' if begins_word => (InputPart::Keyword, rest.find(ends_word).unwrap_or(rest.len())),
            '\n' if rest[1..].starts_with(INDENT) => (InputPart::Further, 1 + INDENT.len()),
            // A character literal is no bracket and no text.
            '\\' => (InputPart::Other, rest.char_indices().nth(2).map_or(rest.len(), |(at, _)| at)),
            other => (InputPart::Other, other.len_utf8()),
        };
        begins_word = ends_word(first);
        let (found, after) = rest.split_at(length);
        rest = after;
        Some((part, found))
    })
}

fn ends_word(c: char) -> bool {
    c.is_whitespace() || "()[]{}\"',;`@#^~".contains(c)
}

/// How long the text literal is that begins here.
fn text_length(rest: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        if c == '"' && !is_escaped {
            return at + 1;
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_keywords_and_comments_are_told_apart() {
        let text = "(get {:a \"x;\\\" :y\"} :a/b \\\" a:b) ; (:c \"d\"\n:e";
        let found: Vec<_> = parts(text).filter(|(part, _)| *part != InputPart::Other).collect();
        let expected = [
            (InputPart::Keyword, ":a"),
            (InputPart::Text, "\"x;\\\" :y\""),
            (InputPart::Keyword, ":a/b"),
            (InputPart::Comment, "; (:c \"d\""),
            (InputPart::Keyword, ":e"),
        ];
        assert_eq!(found, expected);
        let further = "(f\n     \"\n     \"\n    x\n      :y";
        let found: Vec<_> = parts(further).filter(|(part, _)| *part == InputPart::Further).collect();
        assert_eq!(found, [(InputPart::Further, "\n     "); 2], "neither in a text nor where less stands");
        for all in [text, further, "\"", "\"\\", "\\", ":", ";", "a:b", "ä\"ö", ""] {
            assert_eq!(parts(all).map(|(_, part)| part).collect::<String>(), all);
        }
    }
}
