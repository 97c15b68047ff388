//! The tables of a program: symbols, constants and globals, each row once.

use crate::diagnostic::Diagnostic;
use crate::ir::Literal;
use crate::names::NameMap;
use ptc_vm::builtins::BuiltinId;
use ptc_vm::bytecode::{Const, GlobalName};
use ptc_vm::combinator::CombinatorKind;
use ptc_vm::{Reason, Span};

/// A constant as a map key: floats by their bits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Nil,
    Bool(bool),
    Int(i64),
    BigInt(Box<str>),
    Float(u64),
    Str(Box<str>),
    Keyword(u32),
    Symbol(u32),
    Var(u32),
    Builtin(BuiltinId),
    Tool(u32),
    Regex(Box<str>),
    Vector(Vec<u16>),
    Map(Vec<u16>),
    Set(Vec<u16>),
    Combinator(CombinatorKind, Vec<u16>),
}

impl Key {
    fn of(constant: &Const) -> Key {
        match constant {
            Const::Nil => Key::Nil,
            Const::Bool(value) => Key::Bool(*value),
            Const::Int(value) => Key::Int(*value),
            Const::BigInt(digits) => Key::BigInt(digits.clone()),
            Const::Float(value) => Key::Float(value.to_bits()),
            Const::Str(text) => Key::Str(text.clone()),
            Const::Keyword(symbol) => Key::Keyword(*symbol),
            Const::Symbol(symbol) => Key::Symbol(*symbol),
            Const::Var(symbol) => Key::Var(*symbol),
            Const::Builtin(builtin) => Key::Builtin(*builtin),
            Const::Tool(symbol) => Key::Tool(*symbol),
            Const::Regex(pattern) => Key::Regex(pattern.clone()),
            Const::Vector(items) => Key::Vector(items.clone()),
            Const::Map(items) => Key::Map(items.clone()),
            Const::Set(items) => Key::Set(items.clone()),
            Const::Combinator(kind, items) => Key::Combinator(*kind, items.clone()),
        }
    }
}

/// The tables under construction.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    pub(crate) constants: Vec<Const>,
    pub(crate) symbols: Vec<Box<str>>,
    pub(crate) globals: Vec<GlobalName>,
    rows: NameMap<Key, u16>,
    symbol_rows: NameMap<Box<str>, u32>,
    global_rows: NameMap<u32, u16>,
}

fn full(span: Span, what: &str) -> Diagnostic {
    Diagnostic::error(
        Reason::CompileMemoryExceeded,
        span,
        format!("program has too many different {what}; split it"),
    )
}

impl Tables {
    pub(crate) fn symbol(&mut self, text: &str) -> u32 {
        if let Some(&row) = self.symbol_rows.get(text) {
            return row;
        }
        let row = self.symbols.len() as u32;
        self.symbols.push(text.into());
        self.symbol_rows.insert(text.into(), row);
        row
    }

    pub(crate) fn constant(&mut self, span: Span, constant: Const) -> Result<u16, Diagnostic> {
        let key = Key::of(&constant);
        if let Some(&row) = self.rows.get(&key) {
            return Ok(row);
        }
        let row = u16::try_from(self.constants.len()).map_err(|_| full(span, "constants"))?;
        self.constants.push(constant);
        self.rows.insert(key, row);
        Ok(row)
    }

    /// The row of a literal that so far needed none.
    pub(crate) fn literal(&mut self, span: Span, literal: Literal) -> Result<u16, Diagnostic> {
        match literal {
            Literal::Nil => self.constant(span, Const::Nil),
            Literal::Bool(value) => self.constant(span, Const::Bool(value)),
            Literal::Int(value) => self.constant(span, Const::Int(value)),
            Literal::Row(row) => Ok(row),
        }
    }

    pub(crate) fn keyword(&mut self, span: Span, text: &str) -> Result<u16, Diagnostic> {
        let symbol = self.symbol(text);
        self.constant(span, Const::Keyword(symbol))
    }

    pub(crate) fn global(
        &mut self,
        span: Span,
        text: &str,
        builtin: Option<BuiltinId>,
    ) -> Result<u16, Diagnostic> {
        let symbol = self.symbol(text);
        if let Some(&row) = self.global_rows.get(&symbol) {
            return Ok(row);
        }
        let row = u16::try_from(self.globals.len()).map_err(|_| full(span, "global names"))?;
        self.globals.push(GlobalName { symbol, builtin });
        self.global_rows.insert(symbol, row);
        Ok(row)
    }
}
