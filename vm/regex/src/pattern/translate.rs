//! Translates regular expressions from the syntax that people write (Java's and PCRE's) to that of the parser, the
//! crate `regex-syntax`.
//!
//! Common syntax passes unchanged. Syntax that the parser does not know (look-around, back-references, atomic groups)
//! becomes a capturing group: the parser numbers groups in the order of their parentheses, and the list of kinds gives
//! the meaning of each.

/// A pattern for the parser.
pub(crate) struct Translated {
    pub(crate) pattern: String,
    /// The meanings of the capturing groups of the pattern, in the order of their parentheses.
    pub(crate) kinds: Vec<Kind>,
}

/// The meaning of a group that the parser takes for a capturing group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Capture,
    Around {
        ahead: bool,
        negative: bool,
    },
    Atomic,
    /// The body has no meaning.
    Backreference(Reference),
    /// As above; `\K`: the match begins here.
    Keep,
    /// As above; `\G`: the position where the search began.
    Continue,
    /// The body is one alternative or two.
    IfGroup(Reference),
    /// The same; the condition is the first part of the first alternative.
    IfMatches,
}

/// A reference to a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reference {
    Number(u16),
    Name(String),
}

impl std::fmt::Display for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Reference::Number(number) => write!(f, "{number}"),
            Reference::Name(name) => write!(f, "{name:?}"),
        }
    }
}

/// Classes of Java that the parser does not know or takes for larger ones, as items of a bracket: without and with
/// negation.
const JAVA_CLASSES: &[(&str, &str, &str)] = &[
    ("Lower", "[:lower:]", "[:^lower:]"),
    ("Upper", "[:upper:]", "[:^upper:]"),
    ("ASCII", "[:ascii:]", "[:^ascii:]"),
    ("Alpha", "[:alpha:]", "[:^alpha:]"),
    ("Digit", "[:digit:]", "[:^digit:]"),
    ("Alnum", "[:alnum:]", "[:^alnum:]"),
    ("Punct", "[:punct:]", "[:^punct:]"),
    ("Graph", "[:graph:]", "[:^graph:]"),
    ("Print", "[:print:]", "[:^print:]"),
    ("Blank", "[:blank:]", "[:^blank:]"),
    ("Cntrl", "[:cntrl:]", "[:^cntrl:]"),
    ("XDigit", "[:xdigit:]", "[:^xdigit:]"),
    ("Space", "[:space:]", "[:^space:]"),
    ("javaLetter", "\\p{L}", "\\P{L}"),
    ("javaDigit", "\\p{Nd}", "\\P{Nd}"),
    ("javaLetterOrDigit", "\\p{L}\\p{Nd}", "[^\\p{L}\\p{Nd}]"),
    ("javaLowerCase", "\\p{Lowercase}", "\\P{Lowercase}"),
    ("javaUpperCase", "\\p{Uppercase}", "\\P{Uppercase}"),
    ("javaWhitespace", "\\s", "\\S"),
];

/// Letters that stand for a class behind a backslash: no range begins with a class.
const CLASS_LETTERS: &str = "dDwWsShHpP";

/// Replaces a part without subparts. Like any text that is not always empty, it may be repeated.
const PLACEHOLDER: &str = "(a*)";

/// The start of a part in the output, and in the list of kinds.
#[derive(Clone, Copy, Default)]
struct Start {
    output: usize,
    kinds: usize,
}

struct Translator {
    input: Vec<char>,
    at: usize,
    output: String,
    kinds: Vec<Kind>,
    /// Number of open brackets of character classes.
    class: usize,
    /// The previous item of a bracket is a class, so `-` is a plain character.
    after_class: bool,
    /// The previous token is a quantifier, so `+` makes it possessive.
    quantified: bool,
    /// The part to which a quantifier would apply.
    part: Start,
    /// Open groups.
    open: Vec<Start>,
}

/// Translates a pattern; the parser reports its errors.
pub(crate) fn translate(pattern: &str) -> Translated {
    let mut translator = Translator {
        input: pattern.chars().collect(),
        at: 0,
        output: String::with_capacity(pattern.len() + 16),
        kinds: Vec::new(),
        class: 0,
        after_class: false,
        quantified: false,
        part: Start::default(),
        open: Vec::new(),
    };
    while translator.at < translator.input.len() {
        if translator.class > 0 { translator.in_class() } else { translator.outside() }
    }
    Translated { pattern: translator.output, kinds: translator.kinds }
}

/// For tests: the pattern as the parser gets it, and whether it needs the backtracking search.
#[doc(hidden)]
pub fn translated(pattern: &str) -> (String, bool) {
    let translated = translate(pattern);
    let backtracking = translated.kinds.iter().any(|kind| *kind != Kind::Capture);
    (translated.pattern, backtracking)
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

    fn here(&self) -> Start {
        Start { output: self.output.len(), kinds: self.kinds.len() }
    }

    fn outside(&mut self) {
        let was_quantified = std::mem::take(&mut self.quantified);
        match self.take() {
            Some('{') if self.is_repetition() => {
                self.output.push('{');
                self.copy_through('}');
                self.quantified = true;
            }
            Some('+') if was_quantified => {
                self.output.insert(self.part.output, '(');
                self.output.push(')');
                self.kinds.insert(self.part.kinds, Kind::Atomic);
            }
            Some('?') if was_quantified => self.output.push('?'),
            Some(quantifier @ ('*' | '+' | '?')) => {
                self.output.push(quantifier);
                self.quantified = true;
            }
            Some(')') => {
                self.output.push(')');
                self.part = self.open.pop().unwrap_or_default();
            }
            Some(first) => {
                self.part = self.here();
                match first {
                    '\\' => self.escape(),
                    '[' => self.open_class(),
                    '(' => self.group(),
                    '{' => self.output.push_str("\\{"),
                    other => self.output.push(other),
                }
            }
            None => {}
        }
    }

    /// Opens a group of a kind that the parser does not know.
    fn open(&mut self, kind: Kind) {
        self.output.push('(');
        self.kinds.push(kind);
    }

    /// A part without subparts that the parser does not know.
    fn placeholder(&mut self, kind: Kind) {
        self.output.push_str(PLACEHOLDER);
        self.kinds.push(kind);
    }

    /// Takes `text` if it comes next.
    fn skip(&mut self, text: &str) -> bool {
        let comes = text.chars().enumerate().all(|(ahead, character)| self.peek(ahead) == Some(character));
        if comes {
            self.at += text.chars().count();
        }
        comes
    }

    /// The name or number of a group up to `end`; relative numbers count from here.
    fn reference(&mut self, end: &str) -> Option<Reference> {
        let before = self.at;
        let mut name = String::new();
        while !self.skip(end) {
            match self.take() {
                Some(character) => name.push(character),
                None => {
                    self.at = before;
                    return None;
                }
            }
        }
        let so_far = self.kinds.iter().filter(|kind| **kind == Kind::Capture).count() as i64;
        let relative = name.starts_with(['-', '+']);
        let number = match name.parse::<i64>() {
            Ok(number) if relative && number < 0 => Some(so_far + 1 + number),
            Ok(number) if relative => Some(so_far + number),
            Ok(number) => Some(number),
            Err(_) => None,
        };
        Some(match number {
            Some(number) => Reference::Number(u16::try_from(number).unwrap_or(u16::MAX)),
            None => Reference::Name(name),
        })
    }

    /// A reference between one of these pairs of quotes.
    fn quoted_reference(&mut self, quotes: &[(&str, &str)]) -> Option<Reference> {
        let (_, end) = quotes.iter().find(|(start, _)| self.skip(start))?;
        self.reference(end)
    }

    /// True after a `{` that begins `{n}`, `{n,}` or `{n,m}`; any other is a plain character.
    fn is_repetition(&self) -> bool {
        let rest = self.input.get(self.at..).unwrap_or_default();
        let digits =
            |from: usize| from + rest[from..].iter().take_while(|next| next.is_ascii_digit()).count();
        let least = digits(0);
        let end = if rest.get(least) == Some(&',') { digits(least + 1) } else { least };
        least > 0 && rest.get(end) == Some(&'}')
    }

    /// Handles the text after an opening parenthesis.
    fn group(&mut self) {
        if self.skip("?#") {
            while !matches!(self.take(), Some(')') | None) {}
            return;
        }
        if self.skip("?P=") {
            return match self.reference(")") {
                Some(reference) => self.placeholder(Kind::Backreference(reference)),
                None => self.output.push_str("(?P="),
            };
        }
        self.open.push(self.here());
        let special = [
            ("?=", Kind::Around { ahead: true, negative: false }),
            ("?!", Kind::Around { ahead: true, negative: true }),
            ("?<=", Kind::Around { ahead: false, negative: false }),
            ("?<!", Kind::Around { ahead: false, negative: true }),
            ("?>", Kind::Atomic),
        ];
        if let Some((_, kind)) = special.into_iter().find(|(text, _)| self.skip(text)) {
            self.open(kind);
        } else if self.peek(0) == Some('?') && self.peek(1) == Some('(') {
            self.conditional();
        } else if self.peek(0) != Some('?') {
            self.open(Kind::Capture);
        } else {
            self.at += 1;
            self.output.push_str("(?");
            let named = self.peek(0) == Some('<') || self.peek(0) == Some('P') && self.peek(1) == Some('<');
            if named {
                self.kinds.push(Kind::Capture);
            }
            // No quantifier follows.
            if let Some(character @ ('<' | 'P')) = self.peek(0) {
                self.output.push(character);
                self.at += 1;
            } else {
                self.flags();
            }
        }
    }

    /// Copies flags up to `)` or `:`. Java's `U` is the parser's `u` (Unicode classes); the parser's `U` swaps greediness.
    fn flags(&mut self) {
        let mut has_unicode = false;
        while let Some(flag) = self.peek(0).filter(char::is_ascii_alphabetic) {
            self.at += 1;
            let is_unicode = matches!(flag, 'u' | 'U');
            if !(is_unicode && has_unicode) {
                self.output.push(if is_unicode { 'u' } else { flag });
            }
            has_unicode |= is_unicode;
        }
    }

    /// Handles `?(` after an opening parenthesis.
    fn conditional(&mut self) {
        if self.peek(2) == Some('?') {
            self.at += 1;
            self.open(Kind::IfMatches);
            return;
        }
        self.at += 2;
        let is_number = self.peek(0).is_some_and(|next| next.is_ascii_digit() || matches!(next, '+' | '-'));
        let reference =
            if is_number { self.reference(")") } else { self.quoted_reference(&[("<", ">)"), ("'", "')")]) };
        match reference {
            Some(reference) => self.open(Kind::IfGroup(reference)),
            // The parser will refuse it.
            None => self.output.push_str("(?("),
        }
    }

    /// Handles the text after an opening bracket.
    fn open_class(&mut self) {
        self.class += 1;
        self.output.push('[');
        if self.peek(0) == Some('^') {
            self.at += 1;
            self.output.push('^');
        }
        // A first bracket is a plain character.
        if self.peek(0) == Some(']') {
            self.at += 1;
            self.output.push_str("\\]");
        }
    }

    fn in_class(&mut self) {
        let was_class = std::mem::take(&mut self.after_class);
        match self.take() {
            Some('\\') => {
                self.after_class = self.peek(0).is_some_and(|letter| CLASS_LETTERS.contains(letter));
                self.escape();
            }
            Some('-') if was_class && self.peek(0) != Some(']') => self.output.push_str("\\-"),
            Some('[') if self.peek(0) == Some(':') => {
                self.output.push('[');
                self.copy_through(']');
            }
            Some('[') => self.open_class(),
            Some(']') => {
                self.class -= 1;
                self.output.push(']');
            }
            // A difference of classes in the parser's dialect, plain characters in ours.
            Some(sign @ ('-' | '~')) if self.peek(0) == Some(sign) => {
                self.output.push('\\');
                self.output.push(sign);
            }
            Some(other) => self.output.push(other),
            None => {}
        }
    }

    /// Handles the text after a backslash.
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
                self.open(Kind::Around { ahead: true, negative: false });
                self.output.push_str("\\n?\\z)");
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
            '1'..='9' if !in_class => {
                let mut number = character.to_digit(10).unwrap_or(0);
                while let Some(digit) = self.peek(0).and_then(|next| next.to_digit(10)) {
                    number = number.saturating_mul(10).saturating_add(digit);
                    self.at += 1;
                }
                let number = u16::try_from(number).unwrap_or(u16::MAX);
                self.placeholder(Kind::Backreference(Reference::Number(number)));
            }
            'K' if !in_class => self.placeholder(Kind::Keep),
            'G' if !in_class => self.placeholder(Kind::Continue),
            'k' if !in_class => match self.quoted_reference(&[("<", ">"), ("'", "'"), ("{", "}")]) {
                Some(reference) => self.placeholder(Kind::Backreference(reference)),
                None => self.output.push_str("\\k"),
            },
            'p' | 'P' if self.java_class(character == 'P') => {}
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

    /// Takes the name of a class of Java after `\p` or `\P`, if there is one.
    fn java_class(&mut self, negated: bool) -> bool {
        let is_named = |(name, ..): &&(&str, &str, &str)| {
            let braced = ["{", name, "}"].into_iter().flat_map(str::chars);
            braced.enumerate().all(|(ahead, character)| self.peek(ahead) == Some(character))
        };
        let Some((name, class, complement)) = JAVA_CLASSES.iter().find(is_named) else { return false };
        self.at += name.len() + 2;
        let items = if negated { complement } else { class };
        match self.class > 0 {
            true => self.output.push_str(items),
            false => self.output.extend(["[", items, "]"]),
        }
        true
    }

    fn code(&mut self, code: u32) {
        self.output.push_str(&format!("\\x{{{code:X}}}"));
    }

    /// Handles the text after `\Q`: plain characters up to `\E`.
    fn quoted(&mut self) {
        while let Some(character) = self.take() {
            if character == '\\' && self.peek(0) == Some('E') {
                self.at += 1;
                return;
            }
            self.part = self.here();
            if character.is_ascii_punctuation() && !matches!(character, '<' | '>') {
                self.output.push('\\');
            }
            self.output.push(character);
        }
    }
}
