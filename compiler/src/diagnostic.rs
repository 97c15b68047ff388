//! The one shape of a compile-time finding, and its rendering.
//!
//! A diagnostic is data (reason, message, span, hints); text for people and models is made from it
//! here and nowhere else.

use ptc_vm::{Reason, Span};
use std::fmt::Write as _;

/// Warnings kept of one kind of check: a text of brackets only would yield a million.
pub(crate) const MAX_WARNINGS: usize = 50;

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The program does not run.
    Error,
    /// `ptc check` shows it; the program runs.
    Warning,
}

/// One finding of the compiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// The raw reason.
    pub reason: Reason,
    /// One line that says what is wrong.
    pub message: String,
    /// Where.
    pub span: Span,
    /// What to change, the most likely first.
    pub hints: Vec<String>,
}

impl Diagnostic {
    /// An error.
    pub fn error(reason: Reason, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Error, reason, message: message.into(), span, hints: Vec::new() }
    }

    /// A warning.
    pub fn warning(reason: Reason, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(reason, span, message) }
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Diagnostic {
        self.hints.push(hint.into());
        self
    }
}

/// Line and column of a byte offset, both from 1; the column counts characters.
pub fn line_column(source: &str, offset: u32) -> (u32, u32) {
    let mut offset = (offset as usize).min(source.len());
    while !source.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &source[..offset];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.bytes().filter(|&byte| byte == b'\n').count() as u32 + 1;
    (line, before[line_start..].chars().count() as u32 + 1)
}

/// Renders a message with its place, snippet, caret and hints. No trailing newline.
///
/// ```text
/// unbound_var: Undefined variable: fooo
///  --> program:1:4
///   |
/// 1 | (+ fooo 1)
///   |    ^^^^
/// hint: Did you mean `foo`?
/// ```
pub fn render(
    source: &str,
    source_name: &str,
    reason: Reason,
    message: &str,
    span: Option<Span>,
    hints: &[String],
) -> String {
    const WIDEST_LINE: usize = 160;
    let mut out = String::new();
    if message.starts_with(&format!("{}:", reason.raw())) {
        out.push_str(message);
    } else {
        let _ = write!(out, "{}: {message}", reason.raw());
    }
    if let Some(span) = span {
        let (line, column) = line_column(source, span.start);
        let text = source.lines().nth(line as usize - 1).unwrap_or("");
        let width = line.to_string().len();
        let skip = (column as usize).saturating_sub(WIDEST_LINE / 2);
        let shown: String =
            text.chars().skip(skip).take(WIDEST_LINE).map(|c| if c == '\t' { ' ' } else { c }).collect();
        let covered = source
            .get(span.start as usize..span.end as usize)
            .map_or(1, |covered| covered.lines().next().unwrap_or("").chars().count());
        let room = shown.chars().count().saturating_sub(column as usize - 1 - skip).max(1);
        let carets = covered.clamp(1, room);
        let _ = write!(out, "\n{:width$}--> {source_name}:{line}:{column}", " ");
        let _ = write!(out, "\n{:width$} |\n{line} | {shown}", "");
        let _ =
            write!(out, "\n{:width$} | {}{}", "", " ".repeat(column as usize - 1 - skip), "^".repeat(carets));
    }
    for hint in hints {
        let _ = write!(out, "\nhint: {hint}");
    }
    out
}
