//! Tokens to forms, with an explicit stack: the text may nest 64 levels, the reader does not recurse.

use crate::diagnostic::{Diagnostic, MAX_WARNINGS, line_column};
use crate::form::{Form, FormKind};
use crate::lexer::{Token, is_symbol_char};
use crate::names::Names;
use crate::syntax::Special;
use bumpalo::Bump;
use logos::Logos;
use ptc_vm::{Reason, Span};

/// Brackets inside brackets.
const MAX_NESTING: usize = 64;
/// Digits of an integer literal.
const MAX_DIGITS: usize = 100;

/// An open bracket.
struct Open {
    token: Token,
    span: Span,
    /// Where its items start in `Reader::items`.
    start: usize,
}

struct Reader<'a, 'n> {
    arena: &'a Bump,
    source: &'a str,
    names: &'n mut Names<'a>,
    max_names: usize,
    /// Names that count towards the limit.
    counted_names: usize,
    open: Vec<Open>,
    items: Vec<Form<'a>>,
    warnings: Vec<Diagnostic>,
}

/// Reads the whole text. Stray closing brackets between top-level forms are skipped with a warning.
pub(crate) fn read<'a>(
    arena: &'a Bump,
    source: &'a str,
    names: &mut Names<'a>,
    max_names: usize,
    warnings: &mut Vec<Diagnostic>,
) -> Result<&'a [Form<'a>], Diagnostic> {
    let mut reader = Reader {
        arena,
        source,
        names,
        max_names,
        counted_names: 0,
        open: Vec::new(),
        items: Vec::new(),
        warnings: Vec::new(),
    };
    reader.run()?;
    warnings.append(&mut reader.warnings);
    Ok(arena.alloc_slice_copy(&reader.items))
}

fn parse_error(span: Span, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(Reason::ParseError, span, message)
}

impl<'a> Reader<'a, '_> {
    fn run(&mut self) -> Result<(), Diagnostic> {
        let mut lexer = Token::lexer(self.source);
        while let Some(token) = lexer.next() {
            let range = lexer.span();
            let span = Span::new(range.start as u32, range.end as u32);
            let Ok(token) = token else { return Err(self.unreadable(span)) };
            match token {
                Token::Quote | Token::VarQuote => {
                    let next = lexer.next();
                    let range = lexer.span();
                    let next_span = Span::new(range.start as u32, range.end as u32);
                    self.quoted(token, span, next, next_span)?;
                }
                _ => self.token(token, span)?,
            }
        }
        match self.open.last() {
            None => Ok(()),
            Some(_) => Err(self.unclosed()),
        }
    }

    fn text(&self, span: Span) -> &'a str {
        self.source.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    fn token(&mut self, token: Token, span: Span) -> Result<(), Diagnostic> {
        match token {
            Token::OpenList | Token::OpenVector | Token::OpenMap | Token::OpenSet | Token::OpenShortFn => {
                if self.open.len() >= MAX_NESTING {
                    let message = format!("nesting depth exceeds limit of {MAX_NESTING}");
                    return Err(
                        parse_error(span, message).hint("Split the program into functions with `defn`.")
                    );
                }
                self.open.push(Open { token, span, start: self.items.len() });
                Ok(())
            }
            Token::CloseList | Token::CloseVector | Token::CloseMap => self.close(token, span),
            Token::Integer => self.integer(span),
            Token::Float => self.float(span),
            Token::SpecialFloat => self.special_float(span),
            Token::Str => {
                let body = self.unescape(span, 1);
                self.push(span, FormKind::Str(body))
            }
            Token::Regex => {
                let body = self.unescape(span, 2);
                self.push(span, FormKind::Regex(body))
            }
            Token::Char => self.character(span),
            Token::Keyword => {
                let name = self.intern(span, &self.text(span)[1..])?;
                self.push(span, FormKind::Keyword(name))
            }
            Token::Symbol => self.symbol(span),
            Token::UnclosedStr => Err(self.unclosed_string(span)),
            Token::Discard => {
                Err(parse_error(span, "reader discard syntax (#_) is not supported. Use ; for comments"))
            }
            Token::Deref => Err(parse_error(
                span,
                "deref syntax (@var) is not supported. Atoms and refs are not available",
            )),
            Token::SyntaxQuote => {
                Err(parse_error(span, "syntax quote (`) is not supported. There are no macros"))
            }
            Token::Unquote => Err(parse_error(span, "unquote (~) is not supported. There are no macros")),
            Token::Metadata => Err(parse_error(span, "metadata (^) is not supported")),
            Token::Quote | Token::VarQuote => self.quoted(token, span, None, span),
        }
    }

    fn push(&mut self, span: Span, kind: FormKind<'a>) -> Result<(), Diagnostic> {
        self.items.push(Form::new(span, kind));
        Ok(())
    }

    fn intern(&mut self, span: Span, text: &'a str) -> Result<crate::names::Name, Diagnostic> {
        let before = self.names.len();
        let name = self.names.intern(text);
        if self.names.len() > before && Special::lookup(text).is_none() {
            self.counted_names += 1;
            if self.counted_names > self.max_names {
                let message =
                    format!("program has more than {} distinct symbols and keywords", self.max_names);
                return Err(Diagnostic::error(Reason::SymbolLimitExceeded, span, message)
                    .hint("Use strings for keys that are data."));
            }
        }
        Ok(name)
    }

    fn symbol(&mut self, span: Span) -> Result<(), Diagnostic> {
        let text = self.text(span);
        let kind = match text {
            "nil" => FormKind::Nil,
            "true" => FormKind::Bool(true),
            "false" => FormKind::Bool(false),
            _ => FormKind::Symbol(self.intern(span, text)?),
        };
        self.push(span, kind)
    }

    fn quoted(
        &mut self,
        token: Token,
        span: Span,
        next: Option<Result<Token, ()>>,
        next_span: Span,
    ) -> Result<(), Diagnostic> {
        let is_symbol = next == Some(Ok(Token::Symbol));
        let text = self.text(next_span);
        if !is_symbol || next_span.start != span.end || matches!(text, "nil" | "true" | "false") {
            return Err(match token {
                Token::VarQuote => {
                    parse_error(span.to(next_span), "#' needs the name of a var, as in #'total")
                }
                _ => parse_error(
                    span,
                    "quoted collections are not supported; only quoted symbols like 'github are allowed",
                )
                .hint("Write a vector `[a b]` or `(list a b)` instead of a quoted list."),
            });
        }
        let name = self.intern(next_span, text)?;
        let kind = if token == Token::VarQuote { FormKind::VarQuote(name) } else { FormKind::Quote(name) };
        self.push(span.to(next_span), kind)
    }

    fn close(&mut self, token: Token, span: Span) -> Result<(), Diagnostic> {
        let Some(open) = self.open.last() else {
            if self.warnings.len() < MAX_WARNINGS {
                let message = format!("extra '{}' skipped", self.text(span));
                self.warnings.push(Diagnostic::warning(Reason::ParseError, span, message));
            }
            return Ok(());
        };
        let expected = match open.token {
            Token::OpenVector => Token::CloseVector,
            Token::OpenMap | Token::OpenSet => Token::CloseMap,
            _ => Token::CloseList,
        };
        if expected != token {
            let (line, column) = line_column(self.source, open.span.start);
            let message = format!(
                "unbalanced parentheses: '{}' at line {line}, column {column} is closed by '{}'",
                self.text(open.span),
                self.text(span)
            );
            return Err(parse_error(span, message));
        }
        let whole = open.span.to(span);
        let (start, opened) = (open.start, open.token);
        self.open.pop();
        let items: &'a [Form<'a>] = self.arena.alloc_slice_copy(&self.items[start..]);
        self.items.truncate(start);
        let kind = match opened {
            Token::OpenVector => FormKind::Vector(items),
            Token::OpenSet => FormKind::Set(items),
            Token::OpenShortFn => FormKind::ShortFn(items),
            Token::OpenMap if items.len() % 2 == 1 => {
                let message = format!("Map literal requires even number of forms, got {}", items.len());
                return Err(parse_error(whole, message));
            }
            Token::OpenMap => FormKind::Map(items),
            _ => FormKind::List(items),
        };
        self.push(whole, kind)
    }

    fn unclosed(&self) -> Diagnostic {
        let Some(last) = self.open.last() else {
            return parse_error(Span::default(), "unbalanced parentheses");
        };
        let bracket = self.text(last.span);
        let message = format!("unbalanced parentheses: {} unclosed '{bracket}'", self.open.len());
        let mut diagnostic = parse_error(last.span, message);
        if let [first, _, ..] = self.open.as_slice() {
            let (line, column) = line_column(self.source, first.span.start);
            let text = self.text(first.span);
            diagnostic =
                diagnostic.hint(format!("The outermost one is '{text}' at line {line}, column {column}."));
        }
        diagnostic
    }

    fn unclosed_string(&self, span: Span) -> Diagnostic {
        let (line, column) = line_column(self.source, span.start);
        parse_error(span, format!("unclosed string at line {line}, column {column}"))
    }

    fn unreadable(&self, span: Span) -> Diagnostic {
        let (line, column) = line_column(self.source, span.start);
        let rest = self.source.get(span.start as usize..).unwrap_or("");
        if rest.starts_with('\\') {
            return parse_error(span, format!("invalid character literal at line {line}, column {column}"));
        }
        let message = format!("syntax error: could not parse expression at line {line}, column {column}");
        let diagnostic = parse_error(span, message);
        match rest.as_bytes() {
            [b':', ..] => diagnostic.hint("A keyword is one colon and letters, digits or - + * < > = ? ! _."),
            [b'#', b'i', ..] | [b'#', b'?', ..] => diagnostic.hint("Tagged literals are not supported."),
            [b'#', ..] => diagnostic.hint("After # only { ( \" ' and ##Inf, ##-Inf, ##NaN are known."),
            [first, ..] if !first.is_ascii() => {
                diagnostic.hint("Names are ASCII; other characters belong in strings.")
            }
            _ => diagnostic,
        }
    }

    fn integer(&mut self, span: Span) -> Result<(), Diagnostic> {
        let text = self.text(span);
        let digits = text.trim_start_matches('-');
        if digits.len() > MAX_DIGITS {
            return Err(parse_error(span, format!("integer literal exceeds {MAX_DIGITS} digit limit")));
        }
        let kind = match text.parse::<i64>() {
            Ok(value) => FormKind::Int(value),
            Err(_) => {
                let sign = if text.starts_with('-') { "-" } else { "" };
                let digits = digits.trim_start_matches('0');
                FormKind::BigInt(self.arena.alloc_str(&format!("{sign}{digits}")))
            }
        };
        self.push(span, kind)
    }

    fn float(&mut self, span: Span) -> Result<(), Diagnostic> {
        match self.text(span).parse::<f64>() {
            Ok(value) if value.is_finite() => self.push(span, FormKind::Float(value)),
            _ => Err(parse_error(span, "float literal is out of range")),
        }
    }

    fn special_float(&mut self, span: Span) -> Result<(), Diagnostic> {
        let after = self.source.get(span.end as usize..).and_then(|rest| rest.chars().next());
        if after.is_some_and(is_symbol_char) {
            return Err(self.unreadable(span));
        }
        let value = match self.text(span) {
            "##Inf" => f64::INFINITY,
            "##-Inf" => f64::NEG_INFINITY,
            _ => f64::NAN,
        };
        self.push(span, FormKind::Float(value))
    }

    fn character(&mut self, span: Span) -> Result<(), Diagnostic> {
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
    fn unescape(&self, span: Span, prefix: usize) -> &'a str {
        let text = self.text(span);
        let body = &text[prefix..text.len() - 1];
        if !body.contains('\\') {
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
                    out.push('\\');
                    out.push(other);
                }
                None => out.push('\\'),
            }
        }
        out.into_bump_str()
    }
}
