//! Whether a text is whole: every bracket closed, no string open.

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

/// Looks at a text.
pub(super) fn balance(text: &str) -> Brackets {
    let mut open: Vec<char> = Vec::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                // A character literal.
                chars.next();
            }
            ';' => {
                let rest = chars.as_str();
                let end = rest.find('\n').unwrap_or(rest.len());
                chars = rest[end..].chars();
            }
            '"' => loop {
                match chars.next() {
                    None => return Brackets::OpenText,
                    Some('\\') => {
                        chars.next();
                    }
                    Some('"') => break,
                    Some(_) => {}
                }
            },
            '(' => open.push(')'),
            '[' => open.push(']'),
            '{' => open.push('}'),
            ')' | ']' | '}' if open.pop() != Some(c) => return Brackets::Whole,
            _ => {}
        }
    }
    if open.is_empty() { Brackets::Whole } else { Brackets::Open }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_in_strings_comments_and_characters_do_not_count() {
        for whole in
            ["", "1", "(+ 1 2)", "\"(\"", "\\(", "(str \\) \"\\\"(\")", "[1 ; (\n]", ")", "(]", "; ("]
        {
            assert_eq!(balance(whole), Brackets::Whole, "{whole}");
        }
        for open in ["(", "(+ 1", "[1 {:a", "(str \"a\"", "(f ; )", "(f ; \"", "(let [x \\)", "(str \\\""] {
            assert_eq!(balance(open), Brackets::Open, "{open}");
        }
        for open in ["\"", "\"x", "(str \"a)", "(str \"a\\\"", "[1 \";"] {
            assert_eq!(balance(open), Brackets::OpenText, "{open}");
        }
    }
}
