//! Literal tool calls, for a host that knows which tools there are: what a call says without being run.
//!
//! The compiler knows neither servers nor schemas. It shows each `tool/call` that names its server to the
//! host's [`ToolCatalog`], which answers with findings.

use crate::diagnostic::Diagnostic;
use crate::meter::Meter;
use ptc_vm::Span;
use std::fmt;

/// What a host knows about the tools that `tool/call` reaches.
pub trait ToolCatalog: fmt::Debug {
    /// Judges a call. An error says that the call is wrong whenever it is made: the program is refused,
    /// unless the call stands in a branch of a program that looks at the servers itself.
    /// `meter` bounds the work: a step for each literal that is looked at.
    fn findings(&self, call: &LiteralCall<'_>, meter: &Meter<'_>) -> Vec<Diagnostic>;
}

/// A `tool/call` whose server is a literal.
#[derive(Clone, Debug)]
pub struct LiteralCall<'a> {
    /// The whole call.
    pub span: Span,
    /// Its server.
    pub server: (&'a str, Span),
    /// Its tool; `None` when it is computed.
    pub tool: Option<(&'a str, Span)>,
    /// Its arguments; an empty map when there are none.
    pub arguments: Literal<'a>,
}

/// An expression as far as it is literal.
#[derive(Clone, Debug)]
pub struct Literal<'a> {
    /// Where.
    pub span: Span,
    /// What.
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
        /// Entries whose key is a keyword or a string.
        entries: Vec<LiteralEntry<'a>>,
        /// There are other keys, so that nothing is known to be missing.
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
