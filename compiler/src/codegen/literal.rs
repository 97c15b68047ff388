//! Generates bytecode that loads literals and builds vectors, maps and sets.

use super::emitter::{Emitter, Target, take};
use crate::diagnostic::{Done, Fallible};
use crate::ir::{Kind, Literal, Ref, Refs};
use ptc_vm::Span;
use ptc_vm::bytecode::instruction::{Entries, Small};
use ptc_vm::bytecode::{Args, Const, Constant, Dst, Instruction, Last};

/// Number of items that are gathered in registers before they are appended; even, for maps.
const CHUNK: usize = 32;

/// The kind of collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Collection {
    Vector,
    Map,
    Set,
}

impl Emitter<'_, '_> {
    /// Loads a literal into an empty register.
    pub(super) fn load(&mut self, span: Span, literal: Literal, register: u8) -> Done {
        let dst = Dst(register);
        let instruction = match literal {
            Literal::Nil => Instruction::LoadNil { dst },
            Literal::Bool(value) => Instruction::LoadBool { value, dst },
            Literal::Int(value) => match i16::try_from(value) {
                Ok(value) => Instruction::LoadInt { value: Small(value), dst },
                Err(_) => {
                    let row = self.generator.tables.literal(span, literal)?;
                    Instruction::LoadConst { constant: Constant(row), dst }
                }
            },
            Literal::Row(row) => Instruction::LoadConst { constant: Constant(row), dst },
        };
        self.emit(span, instruction);
        Ok(())
    }

    pub(super) fn literal(&mut self, span: Span, literal: Literal, target: Target) -> Done {
        if target == Target::Ignore {
            return Ok(());
        }
        let register = self.destination(span, target)?;
        self.load(span, literal, register)?;
        self.finish(span, take(register), target)
    }

    /// Evaluates expressions into consecutive new registers.
    pub(super) fn gather(&mut self, span: Span, items: Refs<'_>) -> Fallible<Args> {
        let at = self.top;
        for item in items {
            let register = self.register(span)?;
            self.value(item, Target::Fresh(register))?;
        }
        Ok(Args { at, count: items.len() as u8 })
    }

    /// The constant set of a map's keys, if they are distinct keywords and strings.
    fn record_keys(&mut self, span: Span, items: Refs<'_>) -> Fallible<Option<u16>> {
        let mut rows = Vec::with_capacity(items.len() / 2);
        for key in items.iter().step_by(2) {
            let Kind::Literal(Literal::Row(row)) = key.kind else { return Ok(None) };
            let constant = self.generator.tables.constants.get(usize::from(row));
            if !matches!(constant, Some(Const::Keyword(_) | Const::Str(_))) || rows.contains(&row) {
                return Ok(None);
            }
            rows.push(row);
        }
        if rows.is_empty() {
            return Ok(None);
        }
        Ok(Some(self.generator.tables.constant(span, Const::Set(rows))?))
    }

    #[inline(never)]
    pub(super) fn build(&mut self, span: Span, kind: Collection, items: Refs<'_>, target: Target) -> Done {
        let saved = self.top;
        let (first, rest) = items.split_at(items.len().min(CHUNK));
        if kind == Collection::Map
            && rest.is_empty()
            && let Some(keys) = self.record_keys(span, items)?
        {
            let values: Vec<Ref<'_>> = items.iter().skip(1).step_by(2).copied().collect();
            let entries = Entries { keys, items: self.gather(span, &values)? };
            return self.make(span, saved, target, |dst| Instruction::MakeRecord { entries, dst });
        }
        if rest.is_empty() {
            let items = self.gather(span, first)?;
            return self.make(span, saved, target, |dst| match kind {
                Collection::Vector => Instruction::MakeVector { items, dst },
                Collection::Map => Instruction::MakeMap { items, dst },
                Collection::Set => Instruction::MakeSet { items, dst },
            });
        }
        let whole = self.fresh(span, target)?;
        self.build(span, kind, first, Target::Fresh(whole))?;
        for chunk in rest.chunks(CHUNK) {
            let top = self.top;
            let items = self.gather(span, chunk)?;
            self.top = top;
            let (src, dst) = (Last(whole), Dst(whole));
            self.emit(
                span,
                match kind {
                    Collection::Vector => Instruction::AppendVector { src, items, dst },
                    Collection::Map => Instruction::AppendMap { src, items, dst },
                    Collection::Set => Instruction::AppendSet { src, items, dst },
                },
            );
        }
        self.top = saved;
        self.finish(span, take(whole), target)
    }
}
