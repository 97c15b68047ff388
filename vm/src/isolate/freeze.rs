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
#[derive(Default)]
struct Freezing {
    data: PlainData,
    symbols: HashMap<Symbol, u32>,
    /// Collections that contain the next value.
    open: Vec<OpenCollection>,
}

struct OpenCollection {
    /// The row of the collection, with those of its parts that are converted.
    whole: Const,
    /// Its remaining parts, the next one last.
    left: Vec<Value>,
}

impl OpenCollection {
    fn add(&mut self, part: u16) {
        match &mut self.whole {
            Const::Vector(rows) | Const::Map(rows) | Const::Set(rows) | Const::Combinator(_, rows) => {
                rows.push(part);
            }
            // Only collections are opened.
            _ => {}
        }
    }
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
                row.take().into_iter().for_each(|part| open.add(part));
                if let Some(value) = open.left.pop() {
                    next = Some(value);
                    break;
                }
                let Some(OpenCollection { whole, .. }) = self.open.pop() else { return Ok(self.data) };
                row = Some(self.push(whole)?);
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
            Value::Vector(node) => return self.begin(Const::Vector(Vec::new()), node.len(), node.iter()),
            Value::Set(node) => {
                let members = node.members();
                return self.begin(Const::Set(Vec::new()), members.len(), members.iter().cloned());
            }
            Value::Map(node) => {
                let parts = node.entries().flat_map(|entry| [entry.key.clone(), entry.value.clone()]);
                return self.begin(Const::Map(Vec::new()), node.len().saturating_mul(2), parts);
            }
            Value::Combinator(node) if is_stateless(node.kind) => {
                let (whole, parts) = (Const::Combinator(node.kind, Vec::new()), node.parts());
                return self.begin(whole, parts.len(), parts.iter().cloned());
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
        whole: Const,
        count: usize,
        parts: impl Iterator<Item = Value>,
    ) -> Result<Option<u16>, NotData> {
        // Checked before anything is copied: a range weighs nothing, whatever its length.
        if count > usize::from(u16::MAX) {
            return Err(NotData::TooLarge);
        }
        let mut left: Vec<Value> = parts.collect();
        left.reverse();
        self.open.push(OpenCollection { whole, left });
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
