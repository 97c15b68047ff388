//! Defines the interface by which the application that embeds the compiler checks a program's tool calls at compile
//! time, as far as servers, tools and arguments are literals.
//!
//! The compiler knows neither servers nor schemas. It passes each call with a literal server to the host's
//! [`ToolCatalog`], which returns findings.

use crate::diagnostic::Diagnostic;
use crate::meter::Meter;
use ptc_vm::Span;
use ptc_vm::builtins::ToolForm;
use std::fmt;

/// A host's knowledge about the tools of upstreams.
pub trait ToolCatalog: fmt::Debug {
    /// Checks a call. An error means that the call is wrong at any time: the program is refused, unless the call is
    /// in a branch of a program that looks up the servers itself. `meter` bounds the work: a step for each literal
    /// that is read.
    fn findings(&self, call: &LiteralCall<'_>, meter: &Meter<'_>) -> Vec<Diagnostic>;
}

/// A `tool/call` or `tool/call!` with a literal server.
#[derive(Clone, Debug)]
pub struct LiteralCall<'a> {
    /// The whole call.
    pub span: Span,
    /// The form that calls.
    pub form: ToolForm,
    /// Its server.
    pub server: (&'a str, Span),
    /// Its tool; `None` if it is computed.
    pub tool: Option<(&'a str, Span)>,
    /// Its arguments; an empty map if there are none.
    pub arguments: Literal<'a>,
}

/// The literal parts of an expression.
#[derive(Clone, Debug)]
pub struct Literal<'a> {
    /// Its span.
    pub span: Span,
    /// Its kind.
    pub kind: LiteralKind<'a>,
}

/// The kinds of literals.
#[derive(Clone, Debug)]
pub enum LiteralKind<'a> {
    /// nil.
    Nil,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer beyond 64 bits: its digits.
    BigInt(&'a str),
    /// A float.
    Float(f64),
    /// A string, or the name of a keyword or quoted symbol.
    Text(&'a str),
    /// A vector or set.
    List(Vec<Literal<'a>>),
    /// A map.
    Map {
        /// Entries with a keyword or a string as key.
        entries: Vec<LiteralEntry<'a>>,
        /// There are other keys, so no key is known to be missing.
        open: bool,
    },
    /// Not known before the program runs.
    Computed,
}

/// An entry of a literal map.
#[derive(Clone, Debug)]
pub struct LiteralEntry<'a> {
    /// The text of the key.
    pub key: &'a str,
    /// The key is a keyword.
    pub is_keyword: bool,
    /// Where the key is.
    pub key_span: Span,
    /// The value.
    pub value: Literal<'a>,
}
