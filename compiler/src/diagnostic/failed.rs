//! Defines the error type of the compiler's passes, a diagnostic in a box (to keep stack frames small), with
//! constructors for common errors.

use super::Diagnostic;
use ptc_vm::{BoundedText, Reason, Span};
use std::fmt::Display;

/// An error on its way up to the form that records it; boxed to keep frames small.
pub(crate) type Failed = Box<Diagnostic>;

/// A result, or the error instead.
pub(crate) type Fallible<T> = Result<T, Failed>;

/// The result of what is done for its effect.
pub(crate) type Done = Fallible<()>;

pub(crate) fn error(reason: Reason, span: Span, message: impl Display) -> Failed {
    Box::new(Diagnostic::error(reason, span, message))
}

pub(crate) fn invalid_form(span: Span, message: impl Display) -> Failed {
    error(Reason::InvalidForm, span, message)
}

pub(crate) fn too_many_locals(span: Span) -> Failed {
    error(Reason::CompileMemoryExceeded, span, "function needs too many registers; split it")
        .hint("At most about 200 names are in scope at once: move parts into functions with `defn`.")
}

/// Adds a hint to a boxed diagnostic.
pub(crate) trait Hint {
    fn hint(self, hint: impl Display) -> Self;
}

impl Hint for Failed {
    fn hint(mut self, hint: impl Display) -> Failed {
        self.hints.push(BoundedText::new(hint));
        self
    }
}
