//! Collects the tables of symbols, constants and globals of a program while it is compiled, with one row for each
//! distinct entry.

use super::patterns::Patterns;
use crate::diagnostic::Diagnostic;
use crate::ir::Literal;
use crate::meter::Meter;
use crate::names::{HashState, Index, Name};
use compact_str::CompactString;
use ptc_vm::bytecode::{Const, GlobalName};
use ptc_vm::{Reason, Span};
use std::hash::{BuildHasher, Hash, Hasher};

/// Rows that belong to a name.
#[derive(Clone, Copy, Debug)]
struct NameRows {
    symbol: u32,
    keyword: u32,
    global: u32,
}

/// No row yet; there are never this many.
const NONE: u32 = u32::MAX;

/// The tables under construction.
#[derive(Debug)]
pub(crate) struct Tables<'m> {
    pub(super) meter: &'m Meter<'m>,
    pub(crate) constants: Vec<Const>,
    pub(crate) symbols: Vec<CompactString>,
    pub(crate) globals: Vec<GlobalName>,
    /// Rows of `constants` by content.
    rows: Index,
    /// By the numbers of names.
    of_names: Vec<NameRows>,
    hash: HashState,
    pub(super) patterns: Patterns,
}

/// The error of a table that has no more room.
pub(super) fn full(span: Span, what: &str) -> Diagnostic {
    let message = format!("program has too many different {what}; split it");
    Diagnostic::error(Reason::CompileMemoryExceeded, span, message)
}

/// Floats are equal if their bits are. Only called for rows of one hash, which are nearly always equal.
#[inline(never)]
fn is_same(a: &Const, b: &Const) -> bool {
    match (a, b) {
        (Const::Float(a), Const::Float(b)) => a.to_bits() == b.to_bits(),
        _ => a == b,
    }
}

/// Bytes of the tables for one row: the row itself, its slot in the index, and room to grow.
const HELD_BY_ROW: usize = 2 * size_of::<Const>() + 24;

/// Bytes of a constant in addition to its row.
fn bytes_of(constant: &Const) -> usize {
    match constant {
        Const::Str(text) => text.len(),
        Const::BigInt(text) => text.len(),
        Const::Vector(items) | Const::Map(items) | Const::Set(items) | Const::Combinator(_, items) => {
            items.len() * size_of::<u16>()
        }
        _ => 0,
    }
}

fn hash_of(state: &HashState, constant: &Const) -> u64 {
    let mut hasher = state.build_hasher();
    std::mem::discriminant(constant).hash(&mut hasher);
    match constant {
        Const::Nil => {}
        Const::Bool(value) => value.hash(&mut hasher),
        Const::Int(value) => value.hash(&mut hasher),
        Const::Float(value) => value.to_bits().hash(&mut hasher),
        Const::Str(text) => text.hash(&mut hasher),
        Const::BigInt(text) => text.hash(&mut hasher),
        Const::Regex(pattern) => pattern.text().hash(&mut hasher),
        Const::Keyword(symbol) | Const::Symbol(symbol) | Const::Var(symbol) | Const::Tool(symbol) => {
            symbol.hash(&mut hasher);
        }
        Const::Builtin(builtin) => builtin.hash(&mut hasher),
        Const::Vector(items) | Const::Map(items) | Const::Set(items) => items.hash(&mut hasher),
        Const::Combinator(kind, items) => (kind, items).hash(&mut hasher),
    }
    hasher.finish()
}

impl<'m> Tables<'m> {
    /// Empty tables, with room for a program with this many names.
    pub(crate) fn with_names(meter: &'m Meter<'m>, names: usize) -> Tables<'m> {
        // A few names may well need no rows.
        let room = if names < 8 { 0 } else { names.min(256) };
        Tables {
            meter,
            constants: Vec::with_capacity(room),
            symbols: Vec::with_capacity(room),
            globals: Vec::new(),
            rows: if room == 0 { Index::default() } else { Index::with_room(room * 2) },
            of_names: Vec::with_capacity(room + room / 4),
            hash: HashState::default(),
            patterns: Patterns::default(),
        }
    }

    fn of_name(&mut self, name: Name) -> &mut NameRows {
        let at = name.number() as usize;
        if at >= self.of_names.len() {
            self.of_names.resize(at + 1, NameRows { symbol: NONE, keyword: NONE, global: NONE });
        }
        &mut self.of_names[at]
    }

    pub(crate) fn symbol(&mut self, name: Name, text: &str) -> u32 {
        let next = self.symbols.len() as u32;
        let row = &mut self.of_name(name).symbol;
        if *row != NONE {
            return *row;
        }
        *row = next;
        self.symbols.push(text.into());
        self.meter.hold(HELD_BY_ROW + text.len());
        next
    }

    pub(crate) fn constant(&mut self, span: Span, constant: Const) -> Result<u16, Diagnostic> {
        let Tables { constants, rows, hash, meter, .. } = self;
        let is_it = |row: usize| constants.get(row).is_some_and(|known| is_same(known, &constant));
        let hashed = hash_of(hash, &constant);
        let Ok(new) = u16::try_from(constants.len()) else {
            return rows.find(hashed, is_it).map(|row| row as u16).ok_or_else(|| full(span, "constants"));
        };
        if let Some(row) = rows.find_or_insert(hashed, usize::from(new), is_it) {
            return Ok(row as u16);
        }
        meter.hold(HELD_BY_ROW + bytes_of(&constant));
        constants.push(constant);
        Ok(new)
    }

    /// The row of a literal that did not need one before.
    pub(crate) fn literal(&mut self, span: Span, literal: Literal) -> Result<u16, Diagnostic> {
        match literal {
            Literal::Nil => self.constant(span, Const::Nil),
            Literal::Bool(value) => self.constant(span, Const::Bool(value)),
            Literal::Int(value) => self.constant(span, Const::Int(value)),
            Literal::Row(row) => Ok(row),
        }
    }

    /// The row of a keyword that has one.
    #[inline]
    pub(crate) fn known_keyword(&self, name: Name) -> Option<u16> {
        self.of_names.get(name.number() as usize).and_then(|rows| u16::try_from(rows.keyword).ok())
    }

    pub(crate) fn keyword(&mut self, span: Span, name: Name, text: &str) -> Result<u16, Diagnostic> {
        if let Some(row) = self.known_keyword(name) {
            return Ok(row);
        }
        let symbol = self.symbol(name, text);
        let row = self.constant(span, Const::Keyword(symbol))?;
        self.of_name(name).keyword = u32::from(row);
        Ok(row)
    }

    /// The row of a global that has one.
    pub(crate) fn known_global(&self, name: Name) -> Option<u16> {
        self.of_names.get(name.number() as usize).and_then(|rows| u16::try_from(rows.global).ok())
    }

    /// A row for a global that has none.
    pub(crate) fn global(&mut self, span: Span, name: Name, global: GlobalName) -> Result<u16, Diagnostic> {
        let row = u16::try_from(self.globals.len()).map_err(|_| full(span, "global names"))?;
        self.meter.hold(HELD_BY_ROW);
        self.globals.push(global);
        self.of_name(name).global = u32::from(row);
        Ok(row)
    }
}
