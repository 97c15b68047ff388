//! Patterns in the dialect that people write (Java's and PCRE's) to the dialect of the matching engines.
//!
//! What both know passes unchanged. `$` matches at the end of the text only, not before a final newline.

/// A pattern for one of the two engines.
pub(super) struct Translated {
    pub(super) pattern: String,
    /// It looks around, refers back or must not backtrack: only the backtracking engine knows that.
    pub(super) backtracking: bool,
}

struct Translator {
    input: Vec<char>,
    at: usize,
    output: String,
    backtracking: bool,
    /// Open brackets of character classes.
    class: usize,
    /// What precedes is a quantifier, so that `+` makes it possessive.
    quantified: bool,
}

/// Translates a pattern; what is wrong with it is for the engine to say.
pub(super) fn translate(pattern: &str) -> Translated {
    let mut translator = Translator {
        input: pattern.chars().collect(),
        at: 0,
        output: String::with_capacity(pattern.len() + 16),
        backtracking: false,
        class: 0,
        quantified: false,
    };
    while translator.at < translator.input.len() {
        if translator.class > 0 { translator.in_class() } else { translator.outside() }
    }
    Translated { pattern: translator.output, backtracking: translator.backtracking }
}

impl Translator {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.input.get(self.at + ahead).copied()
    }

    fn take(&mut self) -> Option<char> {
        let character = self.peek(0);
        self.at += 1;
        character
    }

    /// Copies characters up to and including `end`.
    fn copy_through(&mut self, end: char) {
        while let Some(character) = self.take() {
            self.output.push(character);
            if character == end {
                return;
            }
        }
    }

    fn outside(&mut self) {
        let was_quantified = std::mem::take(&mut self.quantified);
        match self.take() {
            Some('\\') => self.escape(),
            Some('[') => self.open_class(),
            Some('(') => self.group(),
            Some('{') if self.is_repetition() => {
                self.output.push('{');
                self.copy_through('}');
                self.quantified = true;
            }
            Some('{') => self.output.push_str("\\{"),
            Some('+') if was_quantified => {
                self.backtracking = true;
                self.output.push('+');
            }
            Some('?') if was_quantified => self.output.push('?'),
            Some(quantifier @ ('*' | '+' | '?')) => {
                self.output.push(quantifier);
                self.quantified = true;
            }
            Some(other) => self.output.push(other),
            None => {}
        }
    }

    /// True after a `{` that begins `{n}`, `{n,}` or `{n,m}`; any other is a plain character.
    fn is_repetition(&self) -> bool {
        let mut ahead = 0;
        while self.peek(ahead).is_some_and(|character| character.is_ascii_digit()) {
            ahead += 1;
        }
        if ahead == 0 {
            return false;
        }
        if self.peek(ahead) == Some(',') {
            ahead += 1;
            while self.peek(ahead).is_some_and(|character| character.is_ascii_digit()) {
                ahead += 1;
            }
        }
        self.peek(ahead) == Some('}')
    }

    /// After an opening parenthesis.
    fn group(&mut self) {
        if self.peek(0) != Some('?') {
            self.output.push('(');
            return;
        }
        match (self.peek(1), self.peek(2)) {
            (Some('#'), _) => {
                while !matches!(self.take(), Some(')') | None) {}
                return;
            }
            (Some('=' | '!' | '>' | '('), _) | (Some('<'), Some('=' | '!')) | (Some('P'), Some('=')) => {
                self.backtracking = true;
            }
            _ => {}
        }
        self.output.push_str("(?");
        self.at += 1;
        // What follows is no quantifier.
        if let Some(character @ ('=' | '!' | '>' | '<' | 'P')) = self.peek(0) {
            self.output.push(character);
            self.at += 1;
        }
    }

    /// After an opening bracket.
    fn open_class(&mut self) {
        self.class += 1;
        self.output.push('[');
        if self.peek(0) == Some('^') {
            self.at += 1;
            self.output.push('^');
        }
        // A bracket in first place is a plain character.
        if self.peek(0) == Some(']') {
            self.at += 1;
            self.output.push_str("\\]");
        }
    }

    fn in_class(&mut self) {
        match self.take() {
            Some('\\') => self.escape(),
            Some('[') if self.peek(0) == Some(':') => {
                self.output.push('[');
                self.copy_through(']');
            }
            Some('[') => self.open_class(),
            Some(']') => {
                self.class -= 1;
                self.output.push(']');
            }
            // Difference of classes in the engine, plain characters here.
            Some(sign @ ('-' | '~')) if self.peek(0) == Some(sign) => {
                self.output.push('\\');
                self.output.push(sign);
            }
            Some(other) => self.output.push(other),
            None => {}
        }
    }

    /// After a backslash.
    fn escape(&mut self) {
        let in_class = self.class > 0;
        let Some(character) = self.take() else {
            self.output.push('\\');
            return;
        };
        match character {
            'Q' => self.quoted(),
            'E' => {}
            'h' if in_class => self.output.push_str(" \\t"),
            'h' => self.output.push_str("[ \\t]"),
            'H' => self.output.push_str("[^ \\t]"),
            'R' => self.output.push_str("(?:\\r\\n|[\\n\\x0B\\f\\r\\x{85}\\x{2028}\\x{2029}])"),
            'e' => self.output.push_str("\\x1B"),
            'Z' if !in_class => {
                self.backtracking = true;
                self.output.push_str("(?=\\n?\\z)");
            }
            'c' => match self.take() {
                Some(letter) => self.code(u32::from(letter.to_ascii_uppercase()) ^ 0x40),
                None => self.output.push_str("\\c"),
            },
            '0' => {
                let mut code = 0;
                for _ in 0..3 {
                    let Some(digit) = self.peek(0).and_then(|character| character.to_digit(8)) else { break };
                    code = code * 8 + digit;
                    self.at += 1;
                }
                self.code(code);
            }
            '1'..='9' | 'K' if !in_class => {
                self.backtracking = true;
                self.output.push('\\');
                self.output.push(character);
            }
            'k' => {
                self.backtracking = true;
                self.output.push_str("\\k");
            }
            'x' | 'u' | 'p' | 'P' => {
                self.output.push('\\');
                self.output.push(character);
                if self.peek(0) == Some('{') {
                    self.copy_through('}');
                }
            }
            '<' | '>' => self.output.push(character),
            other if !other.is_ascii() => self.output.push(other),
            other => {
                self.output.push('\\');
                self.output.push(other);
            }
        }
    }

    fn code(&mut self, code: u32) {
        self.output.push_str(&format!("\\x{{{code:X}}}"));
    }

    /// After `\Q`: plain characters up to `\E`.
    fn quoted(&mut self) {
        while let Some(character) = self.take() {
            if character == '\\' && self.peek(0) == Some('E') {
                self.at += 1;
                return;
            }
            if character.is_ascii_punctuation() && !matches!(character, '<' | '>') {
                self.output.push('\\');
            }
            self.output.push(character);
        }
    }
}
