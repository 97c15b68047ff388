//! Finds where an input of the REPL is complete (no bracket or string is open), to know whether more lines must be
//! typed, and to split pasted text into inputs. It reads input in parts, each of them once.

/// The state of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Brackets {
    /// Brackets are open, so more may follow.
    Open,
    /// A string literal is open, so what follows is part of it.
    OpenText,
    /// The input is complete, or has an error that no further text corrects.
    Whole,
}

/// The syntactic context of the next character.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum InputContext {
    #[default]
    Code,
    /// After a backslash in code.
    Character,
    Comment,
    Text,
    /// After a backslash in a string literal.
    Escape,
    /// An error that no further text corrects.
    Wrong,
}

/// The open brackets of the parts so far.
#[derive(Clone, Debug, Default)]
pub(super) struct InputBalance {
    /// Closing brackets of those that are open.
    open: Vec<char>,
    part: InputContext,
}

impl InputBalance {
    /// Reads one more part of the input.
    pub(super) fn feed(&mut self, text: &str) -> Brackets {
        for c in text.chars() {
            self.part = self.next(c);
        }
        match self.part {
            InputContext::Text | InputContext::Escape => Brackets::OpenText,
            InputContext::Wrong => Brackets::Whole,
            _ if self.open.is_empty() => Brackets::Whole,
            _ => Brackets::Open,
        }
    }

    fn next(&mut self, c: char) -> InputContext {
        match (self.part, c) {
            (InputContext::Wrong, _) => return InputContext::Wrong,
            (InputContext::Escape, _) | (InputContext::Text, _) if c != '"' && c != '\\' => {
                return InputContext::Text;
            }
            (InputContext::Escape, _) => return InputContext::Text,
            (InputContext::Text, '\\') => return InputContext::Escape,
            (InputContext::Comment, _) if c != '\n' => return InputContext::Comment,
            (InputContext::Text | InputContext::Comment | InputContext::Character, _) => {}
            (InputContext::Code, '\\') => return InputContext::Character,
            (InputContext::Code, ';') => return InputContext::Comment,
            (InputContext::Code, '"') => return InputContext::Text,
            (InputContext::Code, '(') => self.open.push(')'),
            (InputContext::Code, '[') => self.open.push(']'),
            (InputContext::Code, '{') => self.open.push('}'),
            (InputContext::Code, ')' | ']' | '}') if self.open.pop() != Some(c) => {
                return InputContext::Wrong;
            }
            (InputContext::Code, _) => {}
        }
        InputContext::Code
    }
}

/// Checks an input that is typed: it mostly grows at its end, and only what is new is read.
#[derive(Debug, Default)]
pub(super) struct TypedInput {
    /// After the parts that were accepted; `None` while the first part is typed.
    accepted: Option<InputBalance>,
    text: String,
    balance: InputBalance,
}

impl TypedInput {
    /// Whether the input ends with this part: it is complete, or a command.
    pub(super) fn is_complete(&mut self, text: &str) -> bool {
        (self.accepted.is_none() && text.starts_with(':')) || self.check(text) == Brackets::Whole
    }

    /// Accepts a part that is too long to be edited any longer; the next part goes on after it.
    pub(super) fn accept(&mut self, text: &str) {
        self.check(text);
        self.balance.feed("\n");
        self.accepted = Some(self.balance.clone());
        self.text.clear();
    }

    /// Checks the part that is typed, as it is now.
    pub(super) fn check(&mut self, text: &str) -> Brackets {
        if !text.starts_with(&self.text) {
            self.text.clear();
            self.balance = self.accepted.clone().unwrap_or_default();
        }
        let more = &text[self.text.len()..];
        self.text.push_str(more);
        self.balance.feed(more)
    }
}

/// The inputs of a text, each of one or more lines: where a line ends and nothing is open, the next one begins.
pub(super) fn inputs(text: &str) -> Vec<&str> {
    let (mut inputs, mut begin, mut end) = (Vec::new(), 0, 0);
    let mut balance = InputBalance::default();
    for line in text.split_inclusive('\n') {
        end += line.len();
        if balance.feed(line) == Brackets::Whole {
            inputs.push(&text[begin..end]);
            (balance, begin) = (InputBalance::default(), end);
        }
    }
    inputs.push(&text[begin..]);
    inputs.retain(|input| !input.trim().is_empty());
    inputs
}

/// Checks a whole text.
pub(super) fn balance(text: &str) -> Brackets {
    InputBalance::default().feed(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_where_nothing_is_open() {
        let text = "(+ 1\n 2)\n\n(f \"a\nb\")\n3 4\n(";
        assert_eq!(inputs(text), ["(+ 1\n 2)\n", "(f \"a\nb\")\n", "3 4\n", "("]);
        assert!(inputs(" \n").is_empty());
    }

    #[test]
    fn a_part_goes_on_after_those_that_were_accepted() {
        let mut typed = TypedInput::default();
        assert_eq!(typed.check("(str \"a"), Brackets::OpenText);
        typed.accept("(str \"a");
        assert_eq!(typed.check(") ("), Brackets::OpenText);
        assert_eq!(typed.check("\" [1"), Brackets::Open, "corrected");
        typed.accept("\" [1");
        assert!(!typed.is_complete(":x") && typed.is_complete("])"));
    }

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
                // Parts of one character give the same result.
                let mut parts = InputBalance::default();
                let mut last = Brackets::Whole;
                for (at, c) in text.char_indices() {
                    last = parts.feed(&text[at..at + c.len_utf8()]);
                }
                assert_eq!(last, expected, "{text} in parts");
                // So does typing it, after other text and with a correction.
                let mut typed = TypedInput::default();
                typed.check("(str \"");
                for (at, c) in text.char_indices() {
                    typed.check(&format!("{}(", &text[..at]));
                    last = typed.check(&text[..at + c.len_utf8()]);
                }
                assert_eq!(if text.is_empty() { typed.check("") } else { last }, expected, "{text} typed");
            }
        }
    }
}
