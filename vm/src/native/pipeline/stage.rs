//! Implements the stages of a transducer, such as `filter`, `take` and `partition`, each of which decides for an item
//! what it passes on to the next stage.

use crate::bytecode::{CombinatorKind, Known, StageKind};
use crate::collection::lookup::element;
use crate::collection::seq::to_vector;
use crate::context::Context;
use crate::fault::Result;
use crate::memory::{List, items};
use crate::value::Value;
use crate::value::relation::equal::{equal, same_key};
use crate::value::set::SetNode;
use crate::value::vector::VectorNode;
use std::mem::take;
use std::rc::Rc;

/// One stage with its state.
pub struct Stage {
    kind: StageKind,
    /// Function, separator or replacements.
    part: Value,
    /// The count of `take`, `drop`, `take-nth` and `partition`.
    size: usize,
    /// `partition`: the distance between the starts of two parts.
    step: usize,
    /// Number of items so far, as far as the stage needs it.
    count: usize,
    /// Number of items to skip before the next part.
    skip: usize,
    /// The previous item or key, or the set of all previous ones.
    memory: Option<Value>,
    /// The current part.
    buffer: List<Value>,
}

items!(in_steps: Stage);

/// A stage's outcome for an item.
pub(crate) enum Outcome {
    /// Passes this to the next stage.
    Pass(Value),
    /// Passes this on, and accepts no more items.
    Last(Value),
    /// Passes nothing on.
    Drop,
    /// Passes nothing on, and accepts no more items.
    Close,
    /// Passes these on one by one.
    Spread(Rc<VectorNode>),
    /// The stage's function must be called first, with this argument, for this item.
    Call1(Value, Value),
    /// The same with two arguments.
    Call2(Value, Value),
}

impl Stage {
    /// The stage of a transducer.
    fn new(kind: StageKind, parts: &[Value]) -> Stage {
        let part = parts.first().cloned().unwrap_or_default();
        let number = |value: Option<&Value>| match value {
            Some(Value::Int(number)) => usize::try_from(*number).unwrap_or(0),
            _ => 0,
        };
        let size = number(parts.first());
        let step = if parts.len() > 1 { number(parts.get(1)) } else { size };
        let memory = matches!(kind, StageKind::Distinct | StageKind::DistinctBy);
        Stage {
            kind,
            part,
            size,
            step,
            count: 0,
            skip: 0,
            memory: memory.then(|| Value::Set(SetNode::empty())),
            buffer: List::default(),
        }
    }

    /// The stages of a transducer, first to last; `comp` of transducers has those of all. `None` if it contains a
    /// function of the program, which may do anything.
    ///
    /// # Errors
    /// Fuel.
    pub(crate) fn from_transducer(cx: &mut Context, transducer: &Value) -> Result<Option<List<Stage>>> {
        let mut stages = List::default();
        let mut waiting: List<Value> = List::default();
        waiting.push(cx, transducer.clone())?;
        while let Some(value) = waiting.pop() {
            cx.tick(1)?;
            match &value {
                Value::Combinator(node) => match node.kind {
                    CombinatorKind::Transducer(kind) => stages.push(cx, Stage::new(kind, node.parts()))?,
                    CombinatorKind::Comp => waiting.extend(cx, node.parts().iter().rev().cloned())?,
                    _ => return Ok(None),
                },
                Value::Builtin(builtin) if cx.builtins.facts(*builtin).known == Some(Known::Cat) => {
                    stages.push(cx, Stage::new(StageKind::Cat, &[]))?;
                }
                Value::Builtin(builtin) if cx.builtins.facts(*builtin).known == Some(Known::Identity) => {}
                _ => return Ok(None),
            }
        }
        Ok(Some(stages))
    }

    /// The stage can end the pipeline.
    pub(crate) fn is_bounding(&self) -> bool {
        self.kind.is_bounding()
    }

    /// The function for [`Outcome::Call1`] and [`Outcome::Call2`].
    pub(crate) fn function(&self) -> Value {
        self.part.clone()
    }

    /// The stage accepts no items from the start.
    pub(crate) fn is_closed(&self) -> bool {
        self.kind == StageKind::Take && self.size == 0
    }

    /// Handles an item.
    pub(crate) fn enter(&mut self, cx: &mut Context, item: Value) -> Result<Outcome> {
        let count = self.count;
        Ok(match self.kind {
            StageKind::Map | StageKind::Mapcat | StageKind::Keep => Outcome::Call1(item, Value::Nil),
            StageKind::MapIndexed | StageKind::KeepIndexed => {
                self.count += 1;
                let index = Value::Int(i64::try_from(count).unwrap_or(i64::MAX));
                Outcome::Call2(index, item)
            }
            StageKind::DropWhile if count > 0 => Outcome::Pass(item),
            StageKind::Filter
            | StageKind::Remove
            | StageKind::TakeWhile
            | StageKind::DropWhile
            | StageKind::DistinctBy
            | StageKind::PartitionBy => Outcome::Call1(item.clone(), item),
            StageKind::Cat => Outcome::Spread(to_vector(cx, item, "cat")?),
            StageKind::Take if count >= self.size => Outcome::Close,
            StageKind::Take => {
                self.count += 1;
                if self.count == self.size { Outcome::Last(item) } else { Outcome::Pass(item) }
            }
            StageKind::Drop if count >= self.size => Outcome::Pass(item),
            StageKind::Drop => {
                self.count += 1;
                Outcome::Drop
            }
            StageKind::TakeNth => {
                self.count = (count + 1) % self.size.max(1);
                if count == 0 { Outcome::Pass(item) } else { Outcome::Drop }
            }
            StageKind::Distinct => self.admit(cx, item.clone(), item)?,
            StageKind::Dedupe => {
                if let Some(before) = &self.memory
                    && same_key(cx, before, &item)?
                {
                    return Ok(Outcome::Drop);
                }
                self.memory = Some(item.clone());
                Outcome::Pass(item)
            }
            StageKind::Partition | StageKind::PartitionAll => self.collect(cx, item)?,
            StageKind::Interpose => {
                self.count = 1;
                match count {
                    0 => Outcome::Pass(item),
                    _ => Outcome::Spread(List::from_array([self.part.clone(), item]).into_vector()),
                }
            }
            StageKind::Replace => Outcome::Pass(element(cx, &self.part, &item)?.unwrap_or(item)),
        })
    }

    /// Continues with the result of the call that [`Stage::enter`] requested for this item.
    pub(crate) fn decide(&mut self, cx: &mut Context, item: Value, result: Value) -> Result<Outcome> {
        let truthy = result.is_truthy();
        Ok(match self.kind {
            StageKind::Mapcat => Outcome::Spread(to_vector(cx, result, "mapcat")?),
            StageKind::Keep | StageKind::KeepIndexed if result.is_nil() => Outcome::Drop,
            StageKind::Filter if truthy => Outcome::Pass(item),
            StageKind::Remove if !truthy => Outcome::Pass(item),
            StageKind::Filter | StageKind::Remove => Outcome::Drop,
            StageKind::TakeWhile if truthy => Outcome::Pass(item),
            StageKind::TakeWhile => Outcome::Close,
            StageKind::DropWhile if truthy => Outcome::Drop,
            StageKind::DropWhile => {
                self.count = 1;
                Outcome::Pass(item)
            }
            StageKind::DistinctBy => self.admit(cx, result, item)?,
            StageKind::PartitionBy => {
                let same = match &self.memory {
                    Some(before) => equal(cx, before, &result)?,
                    None => true,
                };
                self.memory = Some(result);
                let run = if same { None } else { Some(self.buffer.take_vector()) };
                self.buffer.push(cx, item)?;
                run.map_or(Outcome::Drop, Outcome::Pass)
            }
            _ => Outcome::Pass(result),
        })
    }

    /// The remaining items, when no more come.
    pub(crate) fn rest(&mut self) -> Option<Value> {
        let keeps = matches!(self.kind, StageKind::PartitionAll | StageKind::PartitionBy);
        (keeps && !self.buffer.is_empty()).then(|| self.buffer.take_vector())
    }

    /// Passes the item on if its key is new.
    fn admit(&mut self, cx: &mut Context, key: Value, item: Value) -> Result<Outcome> {
        let Some(Value::Set(seen)) = self.memory.take() else { return Ok(Outcome::Pass(item)) };
        let before = seen.len();
        let seen = SetNode::insert(seen, cx, key)?;
        let new = seen.len() > before;
        self.memory = Some(Value::Set(seen));
        Ok(if new { Outcome::Pass(item) } else { Outcome::Drop })
    }

    /// Adds an item to the current part.
    fn collect(&mut self, cx: &mut Context, item: Value) -> Result<Outcome> {
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(Outcome::Drop);
        }
        self.buffer.push(cx, item)?;
        if self.buffer.len() < self.size {
            return Ok(Outcome::Drop);
        }
        let part = take(&mut self.buffer);
        // The next part begins inside this one, or after a gap.
        self.buffer.extend(cx, part.iter().skip(self.step).cloned())?;
        self.skip = self.step.saturating_sub(self.size);
        Ok(Outcome::Pass(part.into_value()))
    }
}
