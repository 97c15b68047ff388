//! Faults: why a program stopped. Plain data, no values of the isolate.

use crate::reason::Reason;
use crate::span::Span;
use crate::value::UnitId;

/// What evaluation gives.
pub type Result<T, E = Box<Fault>> = std::result::Result<T, E>;

/// Why a program stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The raw reason.
    pub reason: Reason,
    /// One line that says what is wrong.
    pub message: String,
    /// The call that failed and the program it is in; set by the interpreter.
    pub place: Option<(UnitId, Span)>,
    /// What to change.
    pub hints: Vec<String>,
}

impl Fault {
    /// A fault.
    #[cold]
    pub fn new(reason: Reason, message: impl Into<String>) -> Box<Fault> {
        Box::new(Fault { reason, message: message.into(), place: None, hints: Vec::new() })
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self: Box<Fault>, hint: impl Into<String>) -> Box<Fault> {
        self.hints.push(hint.into());
        self
    }

    /// `type_error: …`.
    #[cold]
    pub fn type_error(message: impl std::fmt::Display) -> Box<Fault> {
        Fault::new(Reason::TypeError, message.to_string())
    }

    /// `arithmetic_error: …`.
    #[cold]
    pub fn arithmetic(message: impl std::fmt::Display) -> Box<Fault> {
        Fault::new(Reason::ArithmeticError, message.to_string())
    }

    /// `runtime_error: …`.
    #[cold]
    pub fn runtime(message: impl std::fmt::Display) -> Box<Fault> {
        Fault::new(Reason::RuntimeError, message.to_string())
    }

    /// The memory limit is passed.
    #[cold]
    pub(crate) fn memory(live: u64, limit: u64) -> Box<Fault> {
        Fault::new(
            Reason::MemoryExceeded,
            format!("memory limit exceeded: the program needs {live} bytes, the limit is {limit} bytes"),
        )
        .hint("Work on smaller parts, keep only the fields you need, or use reduce instead of building collections.")
    }
}
