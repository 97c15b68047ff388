//! Exposes internals of the compiler to tests and benchmarks: the tokens of a text, its forms printed again, and the
//! number of steps that compiling it takes. No stage depends on this.

use crate::diagnostic::Diagnostic;
use crate::externals::{CompileOptions, Externals};
use crate::form::{Form, FormKind};
use crate::lexer::Token;
use crate::meter::{CompileBudget, Meter};
use crate::names::Names;
use crate::reader;
use bumpalo::Bump;
use logos::Logos;
use ptc_vm::Span;

/// The tokens of a text with their spans; the kind is `None` for invalid text.
pub fn tokens(source: &str) -> Vec<(Span, Option<String>)> {
    let place = |range: std::ops::Range<usize>| Span::new(range.start as u32, range.end as u32);
    Token::lexer(source)
        .spanned()
        .map(|(token, range)| (place(range), token.ok().map(|token| format!("{token:?}"))))
        .collect()
}

/// The number of steps of compiling a text, whether it compiles or not.
pub fn steps(source: &str, externals: &Externals<'_>, options: &CompileOptions) -> u64 {
    crate::pipeline::compile_counting(source, externals, options).1
}

/// The number of tokens of a text.
pub fn count_tokens(source: &str) -> usize {
    Token::lexer(source).count()
}

/// The number of top-level forms of a text.
pub fn count_forms(source: &str) -> usize {
    let budget = CompileBudget::default();
    let arena = Bump::new();
    let mut names = Names::for_text(&arena, source);
    let meter = Meter::new(&arena, &budget, source);
    reader::read(&arena, &meter, source, &mut names, usize::MAX).0.len()
}

/// The forms of a text, printed one a line so that they read as the same forms; and the warnings of the reader.
///
/// # Errors
/// What makes the text unreadable.
pub fn reprint(source: &str, max_symbols: usize) -> Result<(String, Vec<Diagnostic>), Box<Diagnostic>> {
    let budget = CompileBudget::default();
    let arena = Bump::new();
    let mut names = Names::for_text(&arena, source);
    let meter = Meter::new(&arena, &budget, source);
    let (forms, mut found) = reader::read(&arena, &meter, source, &mut names, max_symbols);
    meter.verdict()?;
    if !found.errors.is_empty() {
        return Err(Box::new(found.errors.swap_remove(0)));
    }
    let mut out = String::new();
    for form in forms {
        write(&mut out, &names, form);
        out.push('\n');
    }
    Ok((out, found.warnings))
}

/// Recursion is bounded: forms nest only as deep as the reader allows.
fn write(out: &mut String, names: &Names<'_>, form: &Form<'_>) {
    let mut all = |open: &str, items: &[Form<'_>], close: char| {
        out.push_str(open);
        for item in items {
            write(out, names, item);
            out.push(' ');
        }
        out.push(close);
    };
    match form.kind {
        FormKind::List(items) | FormKind::Thread { items, .. } => all("(", items, ')'),
        FormKind::Vector(items) => all("[", items, ']'),
        FormKind::Map(items) => all("{", items, '}'),
        FormKind::Set(items) => all("#{", items, '}'),
        FormKind::ShortFn(items) => all("#(", items, ')'),
        FormKind::Nil => out.push_str("nil"),
        FormKind::Bool(value) => out.push_str(if value { "true" } else { "false" }),
        FormKind::Int(value) => out.push_str(&value.to_string()),
        FormKind::BigInt(digits) => out.push_str(digits),
        FormKind::Float(value) if value.is_nan() => out.push_str("##NaN"),
        FormKind::Float(value) if value.is_infinite() => {
            out.push_str(if value > 0.0 { "##Inf" } else { "##-Inf" })
        }
        FormKind::Float(value) => out.push_str(&format!("{value:?}")),
        FormKind::Str(text) => quote(out, "\"", text),
        FormKind::Regex(text) => quote(out, "#\"", text),
        FormKind::Keyword(name) => out.extend([":", names.text(name)]),
        FormKind::Symbol(name) => out.push_str(names.text(name)),
        FormKind::Quote(name) => out.extend(["'", names.text(name)]),
        FormKind::VarQuote(name) => out.extend(["#'", names.text(name)]),
    }
}

fn quote(out: &mut String, open: &str, text: &str) {
    out.push_str(open);
    for character in text.chars() {
        match character {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '"' | '\\' => out.extend(['\\', character]),
            other => out.push(other),
        }
    }
    out.push('"');
}
