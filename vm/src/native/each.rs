//! One function over one collection: `map`, `filter`, `group-by`, `min-by` and their relatives differ
//! only in what they do with the results, so they are one machine with a closed set of kinds.

use super::items::Items;
use super::sort::{self, Sort};
use super::{Action, Native};
use crate::context::Context;
use crate::fault::{Fault, Result};
use crate::map::{MapNode, SetNode};
use crate::order;
use crate::value::Value;
use crate::vector::VectorNode;
use crate::{arith, equal};
use std::cmp::Ordering;
use std::mem::take;
use std::rc::Rc;

/// What is done with the result of each call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Keep all results.
    Map,
    /// Keep all results; the function gets the index first.
    MapIndexed,
    /// Join the results, which are collections.
    Mapcat,
    /// Keep items with a truthy result.
    Filter,
    /// Keep items with a falsy result.
    Remove,
    /// Keep results that are not nil.
    Keep,
    /// Keep results that are not nil; the function gets the index first.
    KeepIndexed,
    /// The first truthy result, else nil.
    Some,
    /// Whether all results are truthy.
    Every,
    /// Whether no result is truthy.
    NotAny,
    /// Whether some result is falsy.
    NotEvery,
    /// Items up to the first falsy result.
    TakeWhile,
    /// Items from the first falsy result on.
    DropWhile,
    /// Both, as a pair.
    SplitWith,
    /// Runs of items with equal results.
    PartitionBy,
    /// A map from result to the items that gave it.
    GroupBy,
    /// Items whose result has not come before.
    DistinctBy,
    /// The item with the smallest result.
    MinBy,
    /// The item with the largest result.
    MaxBy,
    /// The last item with the smallest result; nil counts.
    MinKey,
    /// The last item with the largest result; nil counts.
    MaxKey,
    /// The sum of the results that are not nil.
    SumBy,
    /// The mean of the results that are not nil.
    AvgBy,
    /// The items sorted by their results.
    SortBy,
    /// The map in `out` with these values changed.
    UpdateVals,
    /// The map in `out` with these keys changed.
    UpdateKeys,
    /// Keep items with a truthy result, as a set.
    Select,
    /// Nothing: `run!`.
    Run,
}

/// The machine.
pub struct Each {
    kind: Kind,
    function: Value,
    input: Rc<VectorNode>,
    /// Index of the next item.
    next: usize,
    /// The item that the running call is about.
    item: Value,
    out: Items,
    /// Items split off (`split-with`) or the run under way (`partition-by`).
    aside: Items,
    /// The accumulated map, set, sum or best item.
    state: Value,
    /// The best result so far, or the last one.
    mark: Option<Value>,
    /// Values counted by `avg-by`.
    counted: i64,
    /// Comparator of `sort-by`; nil for the natural order.
    comparator: Value,
}

impl Each {
    /// A machine over the items.
    ///
    /// # Errors
    /// Memory for the results.
    pub fn new(cx: &mut Context, kind: Kind, function: Value, input: Rc<VectorNode>) -> Result<Each> {
        let keeps_all = matches!(kind, Kind::Map | Kind::MapIndexed | Kind::SortBy);
        let out = if keeps_all {
            cx.reserve_items(input.len())?;
            Items::with_capacity(input.len())
        } else {
            Items::default()
        };
        let state = match kind {
            Kind::GroupBy | Kind::UpdateVals | Kind::UpdateKeys => Value::Map(MapNode::empty()),
            Kind::DistinctBy => Value::Set(SetNode::empty()),
            Kind::SumBy | Kind::AvgBy => Value::Int(0),
            _ => Value::Nil,
        };
        Ok(Each {
            kind,
            function,
            input,
            next: 0,
            item: Value::Nil,
            out,
            aside: Items::default(),
            state,
            mark: None,
            counted: 0,
            comparator: Value::Nil,
        })
    }

    /// `sort-by` with a comparator.
    #[must_use]
    pub fn with_comparator(mut self, comparator: Value) -> Each {
        self.comparator = comparator;
        self
    }

    pub(super) fn resume(&mut self, cx: &mut Context, returned: Option<Value>) -> Result<Action> {
        if let Some(value) = returned
            && let Some(end) = self.accept(cx, value)?
        {
            return Ok(end);
        }
        let Some(item) = self.input.get(self.next) else { return self.finish(cx) };
        let index = self.next;
        self.next += 1;
        let function = self.function.clone();
        Ok(match self.kind {
            Kind::MapIndexed | Kind::KeepIndexed => Action::Call2(function, Value::Int(index as i64), item),
            Kind::Map | Kind::Mapcat | Kind::Keep | Kind::Run | Kind::SortBy | Kind::SumBy | Kind::AvgBy => {
                Action::Call1(function, item)
            }
            Kind::Some | Kind::Every | Kind::NotAny | Kind::NotEvery => Action::Call1(function, item),
            Kind::UpdateVals | Kind::UpdateKeys => {
                // The items are [key value] pairs.
                let Value::Vector(pair) = &item else { return Ok(Action::Return(Value::Nil)) };
                let part = usize::from(self.kind == Kind::UpdateVals);
                let argument = pair.get(part).unwrap_or_default();
                self.item = pair.get(1 - part).unwrap_or_default();
                Action::Call1(function, argument)
            }
            _ => {
                self.item = item.clone();
                Action::Call1(function, item)
            }
        })
    }

    /// Takes the result of one call in; `Some` when the rest does not matter.
    fn accept(&mut self, cx: &mut Context, value: Value) -> Result<Option<Action>> {
        let truthy = value.is_truthy();
        match self.kind {
            Kind::Map | Kind::MapIndexed => self.out.push(value),
            Kind::SortBy => self.out.push(value),
            Kind::Keep | Kind::KeepIndexed => {
                if !value.is_nil() {
                    self.out.push(value);
                }
            }
            Kind::Filter | Kind::Remove | Kind::Select => {
                let item = take(&mut self.item);
                if truthy != (self.kind == Kind::Remove) {
                    self.out.push(item);
                }
            }
            Kind::Mapcat => {
                let part = crate::builtins::seq::to_vector(cx, value, "mapcat")?;
                cx.tick(part.len() as u64)?;
                for item in part.iter() {
                    self.out.push(item);
                }
            }
            Kind::Some if truthy => return Ok(Some(Action::Return(value))),
            Kind::Every if !truthy => return Ok(Some(Action::Return(Value::Bool(false)))),
            Kind::NotAny if truthy => return Ok(Some(Action::Return(Value::Bool(false)))),
            Kind::NotEvery if !truthy => return Ok(Some(Action::Return(Value::Bool(true)))),
            Kind::Some | Kind::Every | Kind::NotAny | Kind::NotEvery | Kind::Run => {}
            Kind::TakeWhile => {
                if !truthy {
                    return Ok(Some(Action::Return(self.out.take_vector())));
                }
                let item = take(&mut self.item);
                self.out.push(item);
            }
            Kind::DropWhile | Kind::SplitWith if !truthy => {
                let rest = VectorNode::slice(&self.input, self.next - 1, usize::MAX);
                return Ok(Some(Action::Return(match self.kind {
                    Kind::DropWhile => Value::Vector(rest),
                    _ => Value::vector(vec![self.out.take_vector(), Value::Vector(rest)]),
                })));
            }
            Kind::DropWhile => {}
            Kind::SplitWith => {
                let item = take(&mut self.item);
                self.out.push(item);
            }
            Kind::PartitionBy => self.partition(cx, value)?,
            Kind::GroupBy => self.group(cx, value)?,
            Kind::DistinctBy => {
                let item = take(&mut self.item);
                if let Value::Set(seen) = take(&mut self.state) {
                    let new = seen.find(cx, &value)?.is_none();
                    self.state = Value::Set(if new { SetNode::insert(seen, cx, value, ())? } else { seen });
                    if new {
                        self.out.push(item);
                    }
                }
            }
            Kind::MinBy | Kind::MaxBy | Kind::MinKey | Kind::MaxKey => self.best(cx, value)?,
            Kind::SumBy | Kind::AvgBy => {
                if !value.is_nil() {
                    self.counted += 1;
                    self.state = arith::add(cx, take(&mut self.state), value).map_err(sum_fault)?;
                }
            }
            Kind::UpdateVals | Kind::UpdateKeys => {
                let other = take(&mut self.item);
                if let Value::Map(map) = take(&mut self.state) {
                    let (key, value) =
                        if self.kind == Kind::UpdateVals { (other, value) } else { (value, other) };
                    self.state = Value::Map(MapNode::insert(map, cx, key, value)?);
                }
            }
        }
        Ok(None)
    }

    fn partition(&mut self, cx: &mut Context, value: Value) -> Result<()> {
        let same = match &self.mark {
            Some(mark) => equal::equal(cx, mark, &value)?,
            None => true,
        };
        if !same {
            let run = self.aside.take_vector();
            self.out.push(run);
        }
        self.mark = Some(value);
        let item = take(&mut self.item);
        self.aside.push(item);
        Ok(())
    }

    fn group(&mut self, cx: &mut Context, key: Value) -> Result<()> {
        let item = take(&mut self.item);
        if let Value::Map(mut groups) = take(&mut self.state) {
            groups = match groups.find(cx, &key)? {
                // Nobody else holds the map, so the group is taken out and grows in place.
                Some(row) => match MapNode::take_at(&mut groups, row) {
                    Some(Value::Vector(group)) => {
                        MapNode::replace_at(groups, row, Value::Vector(VectorNode::push(group, item)))
                    }
                    _ => groups,
                },
                None => MapNode::insert(groups, cx, key, Value::vector(vec![item]))?,
            };
            self.state = Value::Map(groups);
        }
        Ok(())
    }

    fn best(&mut self, cx: &mut Context, value: Value) -> Result<()> {
        let item = take(&mut self.item);
        if value.is_nil() && matches!(self.kind, Kind::MinBy | Kind::MaxBy) {
            return Ok(());
        }
        let better = match &self.mark {
            None => true,
            Some(mark) => match (order::compare(cx, &value, mark)?, self.kind) {
                (Ordering::Less, Kind::MinBy | Kind::MinKey) => true,
                (Ordering::Greater, Kind::MaxBy | Kind::MaxKey) => true,
                // On a tie the first wins by, the last wins key.
                (Ordering::Equal, Kind::MinKey | Kind::MaxKey) => true,
                _ => false,
            },
        };
        if better {
            self.mark = Some(value);
            self.state = item;
        }
        Ok(())
    }

    fn finish(&mut self, cx: &mut Context) -> Result<Action> {
        Ok(Action::Return(match self.kind {
            Kind::Some | Kind::Run => Value::Nil,
            Kind::Every | Kind::NotAny => Value::Bool(true),
            Kind::NotEvery => Value::Bool(false),
            Kind::DropWhile => Value::vector(Vec::new()),
            Kind::Select => {
                let mut set = SetNode::empty();
                for item in self.out.take() {
                    cx.tick(1)?;
                    set = SetNode::insert(set, cx, item, ())?;
                }
                Value::Set(set)
            }
            Kind::SplitWith => Value::vector(vec![self.out.take_vector(), Value::vector(Vec::new())]),
            Kind::PartitionBy => {
                if !self.aside.is_empty() {
                    let run = self.aside.take_vector();
                    self.out.push(run);
                }
                self.out.take_vector()
            }
            Kind::GroupBy
            | Kind::UpdateVals
            | Kind::UpdateKeys
            | Kind::MinBy
            | Kind::MaxBy
            | Kind::MinKey
            | Kind::MaxKey
            | Kind::SumBy => take(&mut self.state),
            Kind::AvgBy if self.counted == 0 => Value::Nil,
            Kind::AvgBy => arith::divide(cx, take(&mut self.state), Value::Int(self.counted))?,
            Kind::SortBy => {
                let keys = self.out.take();
                if self.comparator.is_nil() {
                    return Ok(Action::Return(sort::by_keys(cx, &self.input, &keys)?));
                }
                let comparator = take(&mut self.comparator);
                let machine = Sort::new(cx, comparator, self.input.clone(), Some(keys))?;
                return Ok(Action::Become(Native::Sort(machine)));
            }
            _ => self.out.take_vector(),
        }))
    }
}

/// Sums fault as arithmetic, whatever the operand was.
fn sum_fault(mut fault: Box<Fault>) -> Box<Fault> {
    if fault.reason == crate::Reason::TypeError {
        fault.reason = crate::Reason::ArithmeticError;
    }
    fault
}
