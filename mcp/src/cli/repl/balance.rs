//! Whether a text is whole: every bracket closed, no string open. The text may come in parts, each of which is read once.

/// How a text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Brackets {
    /// Brackets are open, so that more may follow.
    Open,
    /// A text literal is open: what follows is part of it.
    OpenText,
    /// It is whole, or so wrong that nothing that follows can mend it.
    Whole,
}

/// What the next character is part of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Code,
    /// The character behind a backslash in code.
    Character,
    Comment,
    Text,
    /// The character behind a backslash in a text literal.
    Escape,
    /// Nothing that follows can mend the text.
    Wrong,
}

/// The brackets of the parts so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Balance {
    /// Brackets that would close those that are open.
    open: Vec<char>,
    part: Part,
}

impl Balance {
    /// Reads one more part of the text.
    pub(super) fn feed(&mut self, text: &str) -> Brackets {
        for c in text.chars() {
            self.part = self.next(c);
        }
        match self.part {
            Part::Text | Part::Escape => Brackets::OpenText,
            Part::Wrong => Brackets::Whole,
            _ if self.open.is_empty() => Brackets::Whole,
            _ => Brackets::Open,
        }
    }

    fn next(&mut self, c: char) -> Part {
        match (self.part, c) {
            (Part::Wrong, _) => return Part::Wrong,
            (Part::Escape, _) | (Part::Text, _) if c != '"' && c != '\\' => return Part::Text,
            (Part::Escape, _) => return Part::Text,
            (Part::Text, '\\') => return Part::Escape,
            (Part::Comment, _) if c != '\n' => return Part::Comment,
            (Part::Text | Part::Comment | Part::Character, _) => {}
            (Part::Code, '\\') => return Part::Character,
            (Part::Code, ';') => return Part::Comment,
            (Part::Code, '"') => return Part::Text,
            (Part::Code, '(') => self.open.push(')'),
            (Part::Code, '[') => self.open.push(']'),
            (Part::Code, '{') => self.open.push('}'),
            (Part::Code, ')' | ']' | '}') if self.open.pop() != Some(c) => return Part::Wrong,
            (Part::Code, _) => {}
        }
        Part::Code
    }
}

/// Looks at a whole text.
pub(super) fn balance(text: &str) -> Brackets {
    Balance::default().feed(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_in_strings_comments_and_characters_do_not_count() {
        let all = [
            (
                Brackets::Whole,
                &["", "1", "(+ 1 2)", "\"(\"", "\\(", "(str \\) \"\\\"(\")", "[1 ; (\n]", ")", "(]", "; ("][..],
            ),
            (
                Brackets::Open,
                &["(", "(+ 1", "[1 {:a", "(str \"a\"", "(f ; )", "(f ; \"", "(let [x \\)", "(str \\\""],
            ),
            (Brackets::OpenText, &["\"", "\"x", "(str \"a)", "(str \"a\\\"", "[1 \";", "\"\\"]),
        ];
        for (expected, texts) in all {
            for text in texts {
                assert_eq!(balance(text), expected, "{text}");
                // In parts of one character it is the same.
                let mut parts = Balance::default();
                let mut last = Brackets::Whole;
                for (at, c) in text.char_indices() {
                    last = parts.feed(&text[at..at + c.len_utf8()]);
                }
                assert_eq!(last, expected, "{text} in parts");
            }
        }
    }
}
