//! Makes the errors for malformed special forms: the expected syntax, with a hint.

use crate::diagnostic::{Failed, error};
use crate::names::Special;
use ptc_vm::{BoundedText, Reason, Span};

/// The error of a special form with the wrong number of parts.
pub(crate) fn wrong_shape(special: Special, span: Span) -> Failed {
    with_advice(error(Reason::InvalidArity, span, format!("expected {}", special.usage())), special)
}

/// Adds advice about a form of a wrong shape.
pub(crate) fn with_advice(mut failed: Failed, special: Special) -> Failed {
    failed.hints.extend(special.advice().map(BoundedText::new));
    failed
}
