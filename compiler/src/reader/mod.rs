//! The parser: builds syntax trees (forms) from tokens, and continues after most errors, so that several are reported
//! at once, with hints.
//!
//! It has an explicit stack and does not recurse; the text may nest 64 levels.

mod codes;
mod numbers;
mod unreadable;

use crate::diagnostic::{Diagnostic, Lines, MAX_ERRORS, MAX_WARNINGS};
use crate::form::{Form, FormKind, Forms, form_text};
use crate::lexer::Token;
use crate::meter::{List, Meter};
use crate::names::{Name, Names, Special};
use bumpalo::Bump;
use logos::{Lexer, Logos};
use ptc_vm::bytecode::LONGEST_NAME;
use ptc_vm::{BoundedText, Reason, Span};
use std::fmt::Display;

/// Deepest nesting of brackets.
pub const MAX_NESTING: usize = 64;
/// Digits of an integer literal.
pub const MAX_DIGITS: usize = 100;

/// Heap bytes of the tables for one name.
const HELD_BY_NAME: usize = 64;

/// An open bracket.
struct Open {
    token: Token,
    span: Span,
    /// Start of its items in `Reader::items`.
    start: usize,
}

struct Reader<'a, 'n> {
    arena: &'a Bump,
    meter: &'n Meter<'a>,
    source: &'a str,
    names: &'n mut Names<'a>,
    max_names: usize,
    /// Names that count towards the limit.
    counted_names: usize,
    open: List<'a, Open>,
    items: List<'a, Form<'a>>,
    lines: Lines<'a>,
    findings: Findings,
    /// The first nested form that began in the first column: its span, and the number of open brackets. Probably a
    /// new form begins there, and a bracket before it was not closed.
    suspect: Option<(Span, usize)>,
}

/// The results of reading other than the forms.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Stray closing brackets between top-level forms, which are skipped.
    pub(crate) warnings: Vec<Diagnostic>,
    pub(crate) errors: Vec<Diagnostic>,
    /// The names after `def` and its relatives, at any depth.
    pub(crate) defined: Vec<Name>,
    /// After an error the forms may not be the intended ones: looking for more errors in them would find noise.
    pub(crate) in_doubt: bool,
}

/// Reads the whole text, continuing after errors as far as that makes sense.
pub(crate) fn read<'a>(
    arena: &'a Bump,
    meter: &Meter<'a>,
    source: &'a str,
    names: &mut Names<'a>,
    max_names: usize,
) -> (Forms<'a>, Findings) {
    let mut reader = Reader {
        arena,
        meter,
        source,
        names,
        max_names,
        counted_names: 0,
        open: List::with_capacity_in(16, arena),
        items: List::with_capacity_in((source.len() / 8).clamp(8, 256), arena),
        lines: Lines::new(source),
        findings: Findings::default(),
        suspect: None,
    };
    reader.run();
    let forms: &[Form<'a>] = match meter.reserve(size_of::<Form<'a>>() * reader.items.len()) {
        Ok(()) => arena.alloc_slice_copy(&reader.items),
        Err(_) => &[],
    };
    (forms, reader.findings)
}

/// How to continue after an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recovery {
    /// The forms are as intended except for a detail: continue, and look for errors in them too.
    Sound,
    /// Continue reading, but the forms may not be the intended ones.
    Doubt,
    /// The rest cannot be read.
    End,
}

/// An error of the text.
struct ReadError {
    error: Box<Diagnostic>,
    after: Recovery,
}

impl ReadError {
    #[cold]
    fn new(reason: Reason, after: Recovery, span: Span, message: impl Display) -> ReadError {
        ReadError { error: Box::new(Diagnostic::error(reason, span, message)), after }
    }

    fn hint(mut self, hint: impl Display) -> ReadError {
        self.error.hints.push(BoundedText::new(hint));
        self
    }
}

fn parse_error(after: Recovery, span: Span, message: impl Display) -> ReadError {
    ReadError::new(Reason::ParseError, after, span, message)
}

#[cold]
#[inline(never)]
fn long_name(span: Span, text: &str) -> ReadError {
    let message = format!("this name has {} bytes; the longest possible has {LONGEST_NAME}", text.len());
    parse_error(Recovery::Doubt, span, message).hint("Use a string for text that is data.")
}

/// The beginning of the message for text without a meaning.
const UNREADABLE: &str = "syntax error";

impl<'a> Reader<'a, '_> {
    fn run(&mut self) {
        // The lexer reads each byte once, whatever the tokens are.
        let _ = self.meter.text(self.source.len());
        let mut lexer = Token::lexer(self.source);
        while let Some(token) = lexer.next() {
            let span = place(&lexer);
            if self.meter.step().is_err() {
                return;
            }
            let read = match token {
                Err(()) => match self.unreadable(span) {
                    Some(broken) => Err(broken),
                    None => continue,
                },
                Ok(token @ (Token::Quote | Token::VarQuote)) => self.quote(token, span, &mut lexer),
                Ok(token) => self.token(token, span, lexer.slice()),
            };
            if let Err(broken) = read
                && self.note(broken)
            {
                return;
            }
        }
        if !self.open.is_empty() {
            let error = self.unclosed();
            self.findings.errors.push(error);
            self.findings.in_doubt = true;
        }
    }

    /// A quote and the form after it, if that can be quoted.
    #[cold]
    fn quote(&mut self, token: Token, span: Span, lexer: &mut Lexer<'a, Token>) -> Result<(), ReadError> {
        let mut ahead = lexer.clone();
        let next = ahead.next();
        let next_span = place(&ahead);
        let is_symbol = next == Some(Ok(Token::Symbol));
        let text = self.text(next_span);
        if !is_symbol || next_span.start != span.end || matches!(text, "nil" | "true" | "false") {
            let is_collection = matches!(
                next,
                Some(Ok(Token::OpenList | Token::OpenVector | Token::OpenMap | Token::OpenSet))
            );
            return Err(match token {
                Token::VarQuote => {
                    parse_error(Recovery::Doubt, span, "#' needs the name of a var, as in #'total")
                        .hint("Write the name alone: functions are values.")
                }
                _ if is_collection => {
                    let message =
                        "quoted collections are not supported; only quoted symbols like 'github are allowed";
                    let hint = match self.is_after(span, &["require", "use", "import"]) {
                        true => {
                            "Remove the whole form: everything is loaded. Use names such as str/join directly."
                        }
                        false => "Write a vector `[a b]` or `(list a b)` instead of a quoted list.",
                    };
                    parse_error(Recovery::Doubt, span, message).hint(hint)
                }
                _ => parse_error(
                    Recovery::Doubt,
                    span,
                    "a quote must stand before a symbol, as in 'server/tool",
                )
                .hint("Text stands in double quotes: \"…\"."),
            });
        }
        if text.ends_with('\'') {
            let whole = span.to(next_span);
            let words = text.trim_end_matches('\'');
            return Err(parse_error(Recovery::Doubt, whole, "text in single quotes is not supported")
                .hint(format!("Write it in double quotes: \"{words}\".")));
        }
        let name = self.intern(next_span, text)?;
        *lexer = ahead;
        let kind = if token == Token::VarQuote { FormKind::VarQuote(name) } else { FormKind::Quote(name) };
        self.push(span.to(next_span), kind)
    }

    /// Records an error; true if reading must end.
    #[cold]
    fn note(&mut self, broken: ReadError) -> bool {
        let ReadError { error, after } = broken;
        self.findings.in_doubt |= after != Recovery::Sound;
        let errors = &mut self.findings.errors;
        // A repeated mistake is reported once.
        let is_known = after == Recovery::Doubt && errors.iter().any(|known| known.hints == error.hints);
        if !is_known {
            errors.push(*error);
        }
        after == Recovery::End || errors.len() >= MAX_ERRORS
    }

    fn text(&self, span: Span) -> &'a str {
        self.source.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    fn token(&mut self, token: Token, span: Span, text: &'a str) -> Result<(), ReadError> {
        match token {
            Token::OpenList | Token::OpenVector | Token::OpenMap | Token::OpenSet | Token::OpenShortFn => {
                if self.open.len() >= MAX_NESTING {
                    let message = format!("nesting depth exceeds limit of {MAX_NESTING}");
                    return Err(parse_error(Recovery::End, span, message)
                        .hint("Split the program into functions with `defn`, or bind parts with `let`."));
                }
                if token == Token::OpenList && !self.open.is_empty() && self.is_in_first_column(span) {
                    self.suspect.get_or_insert((span, self.open.len()));
                }
                self.open.push(Open { token, span, start: self.items.len() });
                Ok(())
            }
            Token::CloseList | Token::CloseVector | Token::CloseMap => self.close(token, span),
            Token::Integer => self.integer(span, text),
            Token::Float => self.float(span),
            Token::SpecialFloat => self.special_float(span),
            Token::Str => {
                let body = self.unescape(text, 1, span);
                self.push(span, FormKind::Str(body))
            }
            Token::Regex => {
                let body = self.unescape(text, 2, span);
                self.push(span, FormKind::Regex(body))
            }
            Token::Char => self.character(span),
            Token::Keyword => {
                let name = self.intern(span, &text[1..])?;
                self.push(span, FormKind::Keyword(name))
            }
            Token::Symbol => self.symbol(span, text),
            Token::UnclosedStr => Err(self.unclosed_string(span)),
            Token::Discard => {
                let message = "reader discard syntax (#_) is not supported. Use ; for comments";
                Err(parse_error(Recovery::Doubt, span, message)
                    .hint("Delete the form behind #_, or write (comment …) around it."))
            }
            Token::Deref => {
                let message = "deref syntax (@var) is not supported. Atoms and refs are not available";
                Err(parse_error(Recovery::Sound, span, message).hint(
                    "Use the name without @; carry changing values through (reduce f init coll) or loop/recur.",
                ))
            }
            Token::SyntaxQuote if self.is_fence(span) => {
                Err(parse_error(Recovery::Doubt, span, "a fence of Markdown (```) is no part of a program")
                    .hint("Delete the lines with ```: the program is the text between them."))
            }
            Token::SyntaxQuote => {
                let message = "syntax quote (`) is not supported. There are no macros";
                Err(parse_error(Recovery::Doubt, span, message)
                    .hint("Write a function with `defn`; text is put together with (str a b)."))
            }
            Token::Unquote => {
                Err(parse_error(Recovery::Doubt, span, "unquote (~) is not supported. There are no macros")
                    .hint("Write a function with `defn`."))
            }
            Token::Metadata => Err(parse_error(Recovery::Doubt, span, "metadata (^) is not supported")
                .hint("Delete it: types are not declared, documentation is (defn f \"text\" [x] …).")),
            // Read with the form after it.
            Token::Quote | Token::VarQuote => Ok(()),
        }
    }

    fn push(&mut self, span: Span, kind: FormKind<'a>) -> Result<(), ReadError> {
        self.items.push(Form::new(span, kind));
        Ok(())
    }

    fn intern(&mut self, span: Span, text: &'a str) -> Result<Name, ReadError> {
        if text.len() > LONGEST_NAME {
            return Err(long_name(span, text));
        }
        let (name, is_new) = self.names.intern_noting(text);
        if is_new && self.names.special(name).is_none() {
            self.counted_names += 1;
            self.meter.hold(HELD_BY_NAME);
            if self.counted_names > self.max_names {
                let message =
                    format!("program has more than {} distinct symbols and keywords", self.max_names);
                return Err(ReadError::new(Reason::SymbolLimitExceeded, Recovery::End, span, message)
                    .hint("Use strings for keys that are data, or pass the data as context."));
            }
        }
        Ok(name)
    }

    fn symbol(&mut self, span: Span, text: &'a str) -> Result<(), ReadError> {
        let kind = match text {
            "nil" => FormKind::Nil,
            "true" => FormKind::Bool(true),
            "false" => FormKind::Bool(false),
            _ => FormKind::Symbol(self.intern(span, text)?),
        };
        self.push(span, kind)
    }

    fn close(&mut self, token: Token, span: Span) -> Result<(), ReadError> {
        let Some(open) = self.open.last() else {
            if self.findings.warnings.len() < MAX_WARNINGS {
                let message = format!("extra '{}' skipped", self.text(span));
                let warning = Diagnostic::warning(Reason::ParseError, span, message);
                self.findings
                    .warnings
                    .push(warning.hint("Delete it, or look for a form before it that is closed too early."));
            }
            return Ok(());
        };
        let (expected, closer) = closer(open.token);
        if expected != token {
            let (line, column) = self.lines.position(open.span.start);
            let message = format!(
                "unbalanced parentheses: '{}' at line {line}, column {column} is closed by '{}'",
                self.text(open.span),
                self.text(span)
            );
            let got = self.text(span);
            return Err(parse_error(Recovery::End, span, message)
                .hint(format!("Put '{closer}' before this '{got}', or delete the '{got}'.")));
        }
        let whole = open.span.to(span);
        let (start, opened) = (open.start, open.token);
        self.open.pop();
        let size = size_of::<Form<'a>>() * (self.items.len() - start);
        let items: Forms<'a> = match self.meter.reserve(size) {
            Ok(()) => self.arena.alloc_slice_copy(&self.items[start..]),
            Err(_) => &[],
        };
        self.items.truncate(start);
        let kind = match opened {
            Token::OpenVector => FormKind::Vector(items),
            Token::OpenSet => FormKind::Set(items),
            Token::OpenMap if items.len() % 2 == 1 => {
                let message = format!("Map literal requires even number of forms, got {}", items.len());
                let key =
                    items.iter().step_by(2).rev().find(|form| form.keyword().is_some()).or(items.last());
                let text = key.map_or("", |key| form_text(self.source, key.span));
                self.push(whole, FormKind::Map(&items[..items.len() - 1]))?;
                let hint = match key.map(|key| key.kind) {
                    Some(FormKind::List(_)) => {
                        format!("Braces are maps: several expressions stand in (do {text} …).")
                    }
                    _ => format!("Every key needs a value: look at {text}; a set is written #{{a b}}."),
                };
                return Err(parse_error(Recovery::Sound, whole, message).hint(hint));
            }
            Token::OpenMap => FormKind::Map(items),
            Token::OpenShortFn => FormKind::ShortFn(items),
            _ => {
                self.note_definition(items);
                FormKind::List(items)
            }
        };
        self.push(whole, kind)
    }

    /// `(-> 1 (def x))` and `(->> 1 (def x))` define x too, so only the name is needed.
    fn note_definition(&mut self, items: &[Form<'a>]) {
        if let [head, name, ..] = items
            && let (Some(head), Some(name)) = (head.symbol(), name.symbol())
            && let Some(Special::Def | Special::Defn | Special::DefnPrivate | Special::DefOnce) =
                self.names.special(head)
        {
            self.findings.defined.push(name);
        }
    }

    #[cold]
    fn unclosed(&mut self) -> Diagnostic {
        let depth = self.suspect.map_or(self.open.len(), |(_, depth)| depth.min(self.open.len()));
        let unclosed = &self.open[..depth];
        let Some(last) = unclosed.last() else {
            return Diagnostic::error(Reason::ParseError, Span::default(), "unbalanced parentheses");
        };
        let bracket = self.text(last.span);
        let message = format!("unbalanced parentheses: {} unclosed '{bracket}'", unclosed.len());
        let closers: String =
            unclosed.iter().rev().take(MAX_NESTING).map(|open| closer(open.token).1).collect();
        let hint = match self.suspect.map(|(next, _)| self.lines.position(next.start)) {
            Some((line, _)) => format!("Add {closers} before the form that begins on line {line}."),
            None => format!("Add {closers} at the end, or where the form that begins here ends."),
        };
        Diagnostic::error(Reason::ParseError, last.span, message).hint(hint)
    }

    /// Whether one of the words is right before the span.
    fn is_after(&self, span: Span, words: &[&str]) -> bool {
        let before = self.source.get(..span.start as usize).unwrap_or("").trim_end();
        words.iter().any(|word| before.ends_with(word))
    }

    fn is_in_first_column(&self, span: Span) -> bool {
        span.start == 0 || self.source.as_bytes().get(span.start as usize - 1) == Some(&b'\n')
    }

    /// Whether a backtick is one of three.
    #[cold]
    fn is_fence(&self, span: Span) -> bool {
        let at = span.start as usize;
        (at.saturating_sub(2)..=at).any(|start| self.source.get(start..start + 3) == Some("```"))
    }

    #[cold]
    fn unclosed_string(&mut self, span: Span) -> ReadError {
        let (line, column) = self.lines.position(span.start);
        parse_error(Recovery::End, span, format!("unclosed string at line {line}, column {column}"))
            .hint(match unreadable::breaks_line(self.source.get(span.end as usize..).unwrap_or_default()) {
                true => "A text may have several lines: delete the backslash at the end of the line, or write \\\\n.",
                false => "Close it with \"; inside of text a quote is written \\\" and a backslash \\\\.",
            })
    }

    /// The error for text without a meaning; `None` if it was reported before.
    #[cold]
    fn unreadable(&mut self, span: Span) -> Option<ReadError> {
        let rest = self.source.get(span.start as usize..).unwrap_or("");
        if rest.starts_with('\\') {
            let (line, column) = self.lines.position(span.start);
            let message = format!("invalid character literal at line {line}, column {column}");
            let broken = parse_error(Recovery::Doubt, span, message);
            return Some(
                broken.hint("Write one character as text: \"a\"; a backslash stands only inside of \"…\"."),
            );
        }
        let before = self.source.get(..span.start as usize).unwrap_or("");
        let hint = unreadable::hint(before, rest);
        let errors = &mut self.findings.errors;
        // Text in another script is one error, not one for each letter.
        if let Some(last) = errors.last_mut()
            && last.span.end == span.start
            && last.message.starts_with(UNREADABLE)
        {
            last.span.end = span.end;
            return None;
        }
        if errors.iter().any(|known| matches!(known.hints.as_slice(), [known] if *known == hint)) {
            return None;
        }
        let (line, column) = self.lines.position(span.start);
        let message = format!("{UNREADABLE}: could not parse expression at line {line}, column {column}");
        Some(parse_error(Recovery::Doubt, span, message).hint(hint))
    }

    fn character(&mut self, span: Span) -> Result<(), ReadError> {
        if self.text(span) == "\\u" {
            self.note_code(span.start, false);
        }
        let body = match &self.text(span)[1..] {
            "newline" => "\n",
            "space" => " ",
            "tab" => "\t",
            "return" => "\r",
            "backspace" => "\u{8}",
            "formfeed" => "\u{c}",
            one => one,
        };
        self.push(span, FormKind::Str(body))
    }

    /// The body of a string or regex token. Unknown escapes keep their backslash.
    fn unescape(&mut self, text: &'a str, prefix: usize, span: Span) -> &'a str {
        let body = &text[prefix..text.len() - 1];
        // Most texts are short: a loop over the bytes is faster than starting a search.
        if !body.bytes().any(|byte| byte == b'\\') {
            return body;
        }
        let mut out = bumpalo::collections::String::with_capacity_in(body.len(), self.arena);
        let mut chars = body.chars();
        while let Some(c) = chars.next() {
            if c != '\\' {
                out.push(c);
                continue;
            }
            match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some(same @ ('\\' | '"')) => out.push(same),
                Some(other) => {
                    // The code of a character has a meaning in patterns.
                    if other == 'u' && prefix == 1 {
                        self.note_code(span.end - 3 - chars.as_str().len() as u32, true);
                    }
                    out.push('\\');
                    out.push(other);
                }
                None => out.push('\\'),
            }
        }
        out.into_bump_str()
    }
}

/// Where the last token is.
fn place(lexer: &Lexer<'_, Token>) -> Span {
    let range = lexer.span();
    Span::new(range.start as u32, range.end as u32)
}

/// The matching closing bracket.
fn closer(open: Token) -> (Token, char) {
    match open {
        Token::OpenVector => (Token::CloseVector, ']'),
        Token::OpenMap | Token::OpenSet => (Token::CloseMap, '}'),
        _ => (Token::CloseList, ')'),
    }
}
