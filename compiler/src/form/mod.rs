//! The syntax trees (forms) that the reader builds from tokens. They live in the arena of one compilation.

pub(crate) mod duplicate;
mod text;
mod walk;

use crate::names::Name;
use ptc_vm::Span;
pub(crate) use text::form_text;
pub(crate) use walk::walk;

/// A form with its span.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Form<'a> {
    pub(crate) span: Span,
    pub(crate) kind: FormKind<'a>,
}

/// The kinds of forms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum FormKind<'a> {
    Nil,
    Bool(bool),
    Int(i64),
    /// Decimal digits without leading zeros, possibly with a minus.
    BigInt(&'a str),
    Float(f64),
    /// Also a character literal: characters are strings of one character.
    Str(&'a str),
    Regex(&'a str),
    Keyword(Name),
    Symbol(Name),
    /// `'name`
    Quote(Name),
    /// `#'name`
    VarQuote(Name),
    List(Forms<'a>),
    Vector(Forms<'a>),
    /// Keys and values alternate.
    Map(Forms<'a>),
    Set(Forms<'a>),
    /// `#( … )`
    ShortFn(Forms<'a>),
    /// The steps of a threading form before a special form; never read from text.
    Thread {
        last: bool,
        items: Forms<'a>,
    },
}

/// Forms one after another.
pub(crate) type Forms<'a> = &'a [Form<'a>];

impl<'a> Form<'a> {
    pub(crate) fn new(span: Span, kind: FormKind<'a>) -> Form<'a> {
        Form { span, kind }
    }

    pub(crate) fn symbol(&self) -> Option<Name> {
        match self.kind {
            FormKind::Symbol(name) => Some(name),
            _ => None,
        }
    }

    pub(crate) fn keyword(&self) -> Option<Name> {
        match self.kind {
            FormKind::Keyword(name) => Some(name),
            _ => None,
        }
    }

    pub(crate) fn vector(&self) -> Option<Forms<'a>> {
        match self.kind {
            FormKind::Vector(items) => Some(items),
            _ => None,
        }
    }

    /// The forms inside, for walks over all forms.
    pub(crate) fn children(&self) -> Forms<'a> {
        match self.kind {
            FormKind::List(items)
            | FormKind::Vector(items)
            | FormKind::Map(items)
            | FormKind::Set(items)
            | FormKind::ShortFn(items)
            | FormKind::Thread { items, .. } => items,
            _ => &[],
        }
    }

    /// The name of this kind in messages.
    pub(crate) fn kind_name(&self) -> &'static str {
        match self.kind {
            FormKind::Nil => "nil",
            FormKind::Bool(_) => "boolean",
            FormKind::Int(_) | FormKind::BigInt(_) | FormKind::Float(_) => "number",
            FormKind::Str(_) => "string",
            FormKind::Regex(_) => "regex",
            FormKind::Keyword(_) => "keyword",
            FormKind::Symbol(_) => "symbol",
            FormKind::Quote(_) => "quoted symbol",
            FormKind::VarQuote(_) => "var",
            FormKind::List(_) | FormKind::Thread { .. } => "list",
            FormKind::Vector(_) => "vector",
            FormKind::Map(_) => "map",
            FormKind::Set(_) => "set",
            FormKind::ShortFn(_) => "function",
        }
    }
}
