//! Errors on their way up.

use crate::diagnostic::Diagnostic;
use crate::syntax::Special;
use ptc_vm::{Brief, Reason, Span};
use std::fmt::Display;

/// An error on its way up to the form that records it; boxed to keep frames small.
pub(crate) type Failed = Box<Diagnostic>;

pub(crate) fn error(reason: Reason, span: Span, message: impl Display) -> Failed {
    Box::new(Diagnostic::error(reason, span, message))
}

pub(crate) fn invalid_form(span: Span, message: impl Display) -> Failed {
    error(Reason::InvalidForm, span, message)
}

/// The error of a special form with the wrong number of parts.
pub(crate) fn wrong_shape(special: Special, span: Span) -> Failed {
    with_advice(error(Reason::InvalidArity, span, format!("expected {}", special.usage())), special)
}

/// Adds what to do about a form in a wrong shape.
pub(crate) fn with_advice(mut failed: Failed, special: Special) -> Failed {
    failed.hints.extend(special.advice().map(Brief::of));
    failed
}

pub(crate) fn too_many_locals(span: Span) -> Failed {
    error(Reason::CompileMemoryExceeded, span, "function needs too many registers; split it")
        .hint_boxed("At most about 200 names are in scope at once: move parts into functions with `defn`.")
}

/// Adds a hint to a boxed diagnostic.
pub(crate) trait HintBoxed {
    fn hint_boxed(self, hint: impl Display) -> Self;
}

impl HintBoxed for Failed {
    fn hint_boxed(mut self, hint: impl Display) -> Failed {
        self.hints.push(Brief::of(hint));
        self
    }
}
