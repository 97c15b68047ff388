//! Formats REPL input for display: colours strings, keywords and comments, and shows a prompt in place of the indent of
//! each further line.

use ptc_server::console::Style;
use std::borrow::Cow;

/// The prompt of an input's first line.
pub(super) const PROMPT: &str = "ptc> ";

/// The prompt of its further lines.
pub(super) const CONTINUED: &str = "...> ";

/// The indent of a further line outside of string literals. The editor has no continuation prompts, so one is
/// shown in place of the indent, with the same width.
pub(super) const INDENT: &str = "     ";

const _: () = assert!(PROMPT.len() == INDENT.len() && CONTINUED.len() == INDENT.len());

/// The kind of a part of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InputPart {
    Text,
    Keyword,
    Comment,
    /// A line end and the indent of the next line.
    Further,
    Other,
}

/// The input with colours; its visible width does not change.
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

/// Splits an input into parts, in order and without gaps.
fn parts(text: &str) -> impl Iterator<Item = (InputPart, &str)> {
    let (mut rest, mut begins_word) = (text, true);
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let (part, length) = match first {
            '"' => (InputPart::Text, text_length(rest)),
            ';' => (InputPart::Comment, rest.find('\n').unwrap_or(rest.len())),
            ':' if begins_word => (InputPart::Keyword, rest.find(ends_word).unwrap_or(rest.len())),
            '\n' if rest[1..].starts_with(INDENT) => (InputPart::Further, 1 + INDENT.len()),
            // A character literal is neither bracket nor string.
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

/// The length of the string literal at the beginning of `rest`.
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
