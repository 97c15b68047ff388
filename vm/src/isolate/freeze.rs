//! Copies the result of a program out of its isolate (heap and state of one program) as plain data, which an
//! application can store.

use super::Isolate;
use crate::bytecode::{CombinatorKind, Const, PlainData};
use crate::context::Context;
use crate::value::Value;
use crate::value::symbol::Symbol;
use compact_str::ToCompactString;
use std::collections::HashMap;

/// Why a value cannot be data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotData {
    /// It contains a value of this type, which exists in an isolate only.
    Holds(&'static str),
    /// It has more parts or more text than data may have.
    TooLarge,
}

/// Most bytes of texts in data. Shared texts count once for each occurrence, since data has a copy for each.
const MOST_BYTES: usize = 10 << 20;

/// Bits of an integer in data, about 10,000 digits: the time to read them grows faster than their number.
const MOST_BITS: u64 = 1 << 15;

impl Isolate {
    /// The result after `Done` as data.
    ///
    /// # Errors
    /// The result cannot be data.
    pub fn result_data(&mut self) -> Result<PlainData, NotData> {
        self.result(|cx, value| Freezing::default().freeze(cx, value.clone()))
    }
}

/// A value in conversion to data.
struct Freezing {
    data: PlainData,
    symbols: HashMap<Symbol, u32>,
    /// Collections that contain the next value.
    open: Vec<OpenCollection>,
}

impl Default for Freezing {
    fn default() -> Freezing {
        let data = PlainData { symbols: Vec::new(), rows: Vec::new(), text_bytes: 0 };
        Freezing { data, symbols: HashMap::new(), open: Vec::new() }
    }
}

struct OpenCollection {
    make: fn(Vec<u16>, Option<CombinatorKind>) -> Const,
    combinator: Option<CombinatorKind>,
    /// Its remaining parts, the next one last.
    left: Vec<Value>,
    rows: Vec<u16>,
}

impl Freezing {
    /// Rows for the parts precede the row of the whole, without recursion.
    fn freeze(mut self, cx: &Context, value: Value) -> Result<PlainData, NotData> {
        let mut next = Some(value);
        loop {
            let mut row = match next.take() {
                Some(value) => self.enter(cx, &value)?,
                None => None,
            };
            loop {
                let Some(open) = self.open.last_mut() else { return Ok(self.data) };
                open.rows.extend(row.take());
                if let Some(value) = open.left.pop() {
                    next = Some(value);
                    break;
                }
                let Some(OpenCollection { make, combinator, rows, .. }) = self.open.pop() else {
                    return Ok(self.data);
                };
                row = Some(self.push(make(rows, combinator))?);
            }
        }
    }

    /// The row of a value without parts; a value with parts is opened.
    fn enter(&mut self, cx: &Context, value: &Value) -> Result<Option<u16>, NotData> {
        let row = match value {
            Value::Nil => Const::Nil,
            Value::Bool(value) => Const::Bool(*value),
            Value::Int(value) => Const::Int(*value),
            Value::Float(value) => Const::Float(*value),
            Value::BigInt(node) if node.get().bits() > MOST_BITS => return Err(NotData::TooLarge),
            Value::BigInt(node) => {
                let digits = node.get().to_string();
                self.count(digits.len())?;
                Const::BigInt(digits.into())
            }
            Value::Str(node) => {
                self.count(node.len())?;
                Const::Str(node.as_str().into())
            }
            Value::Keyword(symbol) => Const::Keyword(self.symbol(cx, *symbol)),
            Value::Symbol(symbol) => Const::Symbol(self.symbol(cx, *symbol)),
            Value::Var(symbol) => Const::Var(self.symbol(cx, *symbol)),
            Value::Tool(symbol) => Const::Tool(self.symbol(cx, *symbol)),
            Value::Builtin(builtin) => Const::Builtin(*builtin),
            Value::Regex(node) => Const::Regex(node.compiled().clone()),
            Value::Vector(node) => {
                return self.begin(node.len(), node.iter(), |rows, _| Const::Vector(rows), None);
            }
            Value::Set(node) => {
                return self.begin(
                    node.members().len(),
                    node.members().iter().cloned(),
                    |rows, _| Const::Set(rows),
                    None,
                );
            }
            Value::Map(node) => {
                let parts = node.entries().flat_map(|entry| [entry.key.clone(), entry.value.clone()]);
                return self.begin(node.len().saturating_mul(2), parts, |rows, _| Const::Map(rows), None);
            }
            Value::Combinator(node) if is_stateless(node.kind) => {
                let make = |rows, kind: Option<CombinatorKind>| match kind {
                    Some(kind) => Const::Combinator(kind, rows),
                    None => Const::Vector(rows),
                };
                return self.begin(node.parts().len(), node.parts().iter().cloned(), make, Some(node.kind));
            }
            Value::Closure(_)
            | Value::Combinator(_)
            | Value::LocalDate(_)
            | Value::DateTime(_)
            | Value::Duration(_) => return Err(NotData::Holds(value.type_word())),
        };
        self.push(row).map(Some)
    }

    fn begin(
        &mut self,
        count: usize,
        parts: impl Iterator<Item = Value>,
        make: fn(Vec<u16>, Option<CombinatorKind>) -> Const,
        combinator: Option<CombinatorKind>,
    ) -> Result<Option<u16>, NotData> {
        // Checked before anything is copied: a range weighs nothing, whatever its length.
        if count > usize::from(u16::MAX) {
            return Err(NotData::TooLarge);
        }
        let mut left: Vec<Value> = parts.collect();
        left.reverse();
        let rows = Vec::with_capacity(left.len());
        self.open.push(OpenCollection { make, combinator, left, rows });
        Ok(None)
    }

    fn count(&mut self, text: usize) -> Result<(), NotData> {
        self.data.text_bytes = self.data.text_bytes.saturating_add(text);
        if self.data.text_bytes > MOST_BYTES { Err(NotData::TooLarge) } else { Ok(()) }
    }

    fn push(&mut self, row: Const) -> Result<u16, NotData> {
        let number = u16::try_from(self.data.rows.len()).map_err(|_| NotData::TooLarge)?;
        self.data.rows.push(row);
        Ok(number)
    }

    fn symbol(&mut self, cx: &Context, symbol: Symbol) -> u32 {
        let texts = &mut self.data.symbols;
        *self.symbols.entry(symbol).or_insert_with(|| {
            texts.push(cx.symbols.text(symbol).to_compact_string());
            texts.len() as u32 - 1
        })
    }
}

/// Whether it is the same for every owner: it has no state and is not endless.
fn is_stateless(kind: CombinatorKind) -> bool {
    matches!(
        kind,
        CombinatorKind::Constantly
            | CombinatorKind::Partial
            | CombinatorKind::Fnil
            | CombinatorKind::Comp
            | CombinatorKind::Juxt
            | CombinatorKind::Complement
            | CombinatorKind::EveryPred
            | CombinatorKind::SomeFn
    )
}
