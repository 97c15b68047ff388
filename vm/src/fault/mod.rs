//! Faults: the reason, message, location and hints of an error that ends a program. Plain data, no values of the
//! isolate.

pub mod bounded_text;
pub(crate) mod hint;
mod nearest;
mod reason;
mod span;

pub use bounded_text::BoundedText;
pub(crate) use hint::Wanted;
pub use nearest::nearest;
pub use reason::{Class, Reason};
pub use span::Span;
use std::fmt::Display;

/// Number of a program loaded into an isolate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UnitId(pub u32);

/// The result of an evaluation.
pub type Result<T, E = Box<Fault>> = std::result::Result<T, E>;

/// Why a program stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The raw reason.
    pub reason: Reason,
    /// One line that says what is wrong.
    pub message: BoundedText,
    /// The types of the wrong values, if types are the problem.
    pub types: Vec<&'static str>,
    /// The failing call and its program; set by the interpreter.
    pub location: Option<(UnitId, Span)>,
    /// Calls of program functions that led there: the innermost two and the outermost.
    pub calls: Vec<CallSite>,
    /// What to change.
    pub hints: Vec<BoundedText>,
}

/// A call of a function of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSite {
    /// The name of the function; empty for one without.
    pub function: Box<str>,
    /// The program that the call is in.
    pub unit: UnitId,
    /// The call.
    pub span: Span,
}

impl Fault {
    /// A fault.
    #[cold]
    pub fn new(reason: Reason, message: impl Display) -> Box<Fault> {
        Box::new(Fault {
            reason,
            message: BoundedText::new(message),
            types: Vec::new(),
            location: None,
            calls: Vec::new(),
            hints: Vec::new(),
        })
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self: Box<Fault>, hint: impl Display) -> Box<Fault> {
        self.hints.push(BoundedText::new(hint));
        self
    }

    /// Notes the types of wrong values.
    #[must_use]
    pub fn types(mut self: Box<Fault>, types: &[&'static str]) -> Box<Fault> {
        self.types.extend_from_slice(types);
        self
    }

    /// `type_error: …`.
    #[cold]
    pub fn type_error(message: impl Display) -> Box<Fault> {
        Fault::new(Reason::TypeError, message)
    }

    /// `arithmetic_error: …`.
    #[cold]
    pub fn arithmetic(message: impl Display) -> Box<Fault> {
        Fault::new(Reason::ArithmeticError, message)
    }

    /// `runtime_error: …`.
    #[cold]
    pub fn runtime(message: impl Display) -> Box<Fault> {
        Fault::new(Reason::RuntimeError, message)
    }

    /// The memory limit is passed.
    #[cold]
    pub(crate) fn memory(live: u64, limit: u64) -> Box<Fault> {
        Fault::new(
            Reason::MemoryExceeded,
            format_args!("memory limit exceeded: the program needs {live} bytes, the limit is {limit} bytes"),
        )
    }
}
