//! Errors and warnings of the compiler: what is wrong, where, and what to change.
//!
//! # Layout
//! - this file: [`Diagnostic`], a finding of the compiler with a span of its source
//! - `location`: a span of a source text as line, column and snippet
//! - `report`: [`Report`], a diagnostic or a fault with resolved locations; its renderings for people and for models
//!   (JSON is written from the same fields at the edge)
//! - `notation`: hints about notations of other languages; `failed`: boxed errors and how they are made

mod failed;
mod location;
mod notation;
mod report;

pub(crate) use failed::{Done, Failed, Fallible, Hint, error, invalid_form, too_many_locals};
pub(crate) use location::Lines;
pub use location::{Location, Position, line_column};
pub(crate) use notation::is_digits;
pub use report::{Call, Palette, Report};

use ptc_vm::{BoundedText, Reason, Span};
use std::fmt::Display;

/// Most errors of one program.
pub(crate) const MAX_ERRORS: usize = 20;

/// Most warnings of one kind of check: a text of brackets only would cause a million.
pub(crate) const MAX_WARNINGS: usize = 50;

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The program does not run.
    Error,
    /// `ptc check` shows it; the program runs.
    Warning,
}

impl Severity {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

/// One finding of the compiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// The raw reason.
    pub reason: Reason,
    /// One line that says what is wrong.
    pub message: BoundedText,
    /// The location.
    pub span: Span,
    /// What to change, the most likely first.
    pub hints: Vec<BoundedText>,
}

impl Diagnostic {
    /// An error.
    pub fn error(reason: Reason, span: Span, message: impl Display) -> Diagnostic {
        let message = BoundedText::new(message);
        Diagnostic { severity: Severity::Error, reason, message, span, hints: Vec::new() }
    }

    /// A warning.
    pub fn warning(reason: Reason, span: Span, message: impl Display) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(reason, span, message) }
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Display) -> Diagnostic {
        self.hints.push(BoundedText::new(hint));
        self
    }
}
