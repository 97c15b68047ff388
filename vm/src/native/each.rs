//! Runs builtins that call one function on each item of a collection (`map`, `filter`, `group-by`, `min-by`), as one
//! resumable state machine. They differ only in the use of the results.

use super::forward::Forward;
use super::sort::{self, Sort};
use super::{Action, Native, is_running, takes_exactly};
use crate::apply::{apply, is_direct};
use crate::arith;
use crate::bytecode::WINDOW;
use crate::bytecode::instruction::Src;
use crate::context::Context;
use crate::fault::{Fault, Result};
use crate::memory::{List, account};
use crate::value::Value;
use crate::value::map::MapNode;
use crate::value::relation::{equal, order};
use crate::value::set::SetNode;
use crate::value::slot::{clear, fill_copy, fill_value};
use crate::value::vector::VectorNode;
use std::cmp::Ordering;
use std::mem::take;
use std::rc::Rc;

/// How the result of each call is used.
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
    /// A map from each result to the items with that result.
    GroupBy,
    /// Items with a result that no earlier item had.
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
    /// The same, largest result first.
    SortByDescending,
    /// The map in `out` with these values changed.
    UpdateVals,
    /// The map in `out` with these keys changed.
    UpdateKeys,
    /// Keep items with a truthy result, as a set.
    Select,
    /// Nothing: `run!`.
    Run,
}

impl Kind {
    /// The function gives a key, so a key or a path may replace it.
    pub(crate) const fn takes_key(self) -> bool {
        matches!(
            self,
            Kind::PartitionBy
                | Kind::GroupBy
                | Kind::DistinctBy
                | Kind::MinBy
                | Kind::MaxBy
                | Kind::SumBy
                | Kind::AvgBy
                | Kind::SortBy
                | Kind::SortByDescending
        )
    }
}

/// The machine.
pub struct Each {
    kind: Kind,
    function: Value,
    input: Rc<VectorNode>,
    /// Index of the next item.
    next: usize,
    /// The item of the running call.
    item: Value,
    out: List<Value>,
    /// The function is one of the program and takes the item unchanged.
    takes_window: bool,
    /// The function, if it only calls a builtin.
    forward: Option<Box<Forward>>,
    /// State that only some kinds need.
    extra: Option<Box<Extra>>,
}

#[derive(Default)]
struct Extra {
    /// Items split off (`split-with`), or the current run (`partition-by`).
    aside: List<Value>,
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
        let keeps_all = matches!(kind, Kind::Map | Kind::MapIndexed | Kind::SortBy | Kind::SortByDescending);
        let out = if keeps_all { List::with_capacity(cx, input.len())? } else { List::default() };
        let state = match kind {
            Kind::GroupBy | Kind::UpdateVals | Kind::UpdateKeys => Value::Map(MapNode::empty()),
            Kind::DistinctBy => Value::Set(SetNode::empty()),
            Kind::SumBy | Kind::AvgBy => Value::Int(0),
            _ => Value::Nil,
        };
        let extra = (!state.is_nil()).then(|| Box::new(Extra { state, ..Extra::default() }));
        let arguments = if matches!(kind, Kind::MapIndexed | Kind::KeepIndexed) { 2 } else { 1 };
        let forward = Forward::from_function(cx, &function, arguments);
        let takes_window = takes_exactly(cx, &function, 1);
        Ok(Each { kind, function, input, next: 0, item: Value::Nil, out, takes_window, forward, extra })
    }

    #[inline]
    fn extra(&mut self) -> &mut Extra {
        self.extra.get_or_insert_default()
    }

    /// `sort-by` with a comparator.
    #[must_use]
    pub fn with_comparator(mut self, comparator: Value) -> Each {
        if !comparator.is_nil() {
            self.extra().comparator = comparator;
        }
        self
    }

    pub(super) fn resume(&mut self, cx: &mut Context, returned: Option<Value>) -> Result<Action> {
        if let Some(value) = returned
            && let Some(end) = self.accept(cx, value)?
        {
            return Ok(end);
        }
        if matches!((&self.function, self.kind), (Value::Keyword(_), Kind::Map | Kind::GroupBy)) {
            return self.run_keyword(cx);
        }
        if self.forward.is_some() || is_direct(cx, &self.function) {
            return self.run(cx);
        }
        let function = self.function.clone();
        Ok(match self.next_arguments() {
            None => return self.finish(cx),
            Some((argument, None)) => Action::Call1(function, argument),
            Some((index, Some(item))) => Action::Call2(function, index, item),
        })
    }

    /// Makes the next call in the window of the last one, which returns the value in the register: the common case of
    /// [`Each::resume_in_window`], for the most frequent kinds. False, and nothing changed, in other cases.
    #[inline(always)]
    pub(crate) fn next_call(&mut self, window: &mut [Value; WINDOW], returned: Src) -> bool {
        let from = usize::from(returned.reg);
        if !self.takes_window
            || !returned.last
            || self.next >= self.input.len()
            || !self.out.has_room()
            || !is_running(&self.function, window)
        {
            return false;
        }
        let is_test = match self.kind {
            Kind::Map => {
                self.out.push_taken(&mut window[from]);
                false
            }
            Kind::Filter | Kind::Remove => {
                let keep = window[from].is_truthy() == (self.kind == Kind::Filter);
                clear(&mut window[from]);
                if keep {
                    self.out.push_taken(&mut self.item);
                } else {
                    clear(&mut self.item);
                }
                true
            }
            _ => return false,
        };
        VectorNode::take_into(&mut self.input, self.next, &mut window[1]);
        self.next += 1;
        if is_test {
            fill_copy(&mut self.item, &window[1]);
        }
        true
    }

    /// After a function of the program: see [`Native::resume_in_window`](super::Native::resume_in_window).
    #[inline(never)]
    pub(super) fn resume_in_window(
        &mut self,
        cx: &mut Context,
        returned: Value,
        window: &mut [Value],
        action: &mut Option<Action>,
    ) -> Result<bool> {
        *action = match self.accept(cx, returned)? {
            Some(end) => Some(end),
            None => {
                let running = is_running(&self.function, window);
                match self.next_arguments() {
                    None => Some(self.finish(cx)?),
                    Some((argument, second)) if running => {
                        fill_value(&mut window[1], argument);
                        if let Some(second) = second {
                            fill_value(&mut window[2], second);
                        }
                        return Ok(true);
                    }
                    Some((argument, None)) => Some(Action::Call1(self.function.clone(), argument)),
                    Some((index, Some(item))) => Some(Action::Call2(self.function.clone(), index, item)),
                }
            }
        };
        Ok(false)
    }

    /// Calls a function that needs no frame for every item.
    fn run(&mut self, cx: &mut Context) -> Result<Action> {
        loop {
            if cx.fuel.slice < 0 {
                return Ok(Action::Pause);
            }
            let result = match (self.next_arguments(), &self.forward) {
                (None, _) => return self.finish(cx),
                (Some((argument, None)), None) => apply(cx, &self.function, &mut [argument]),
                (Some((index, Some(item))), None) => apply(cx, &self.function, &mut [index, item]),
                (Some((argument, None)), Some(forward)) => forward.call(cx, &mut [argument]),
                (Some((index, Some(item))), Some(forward)) => forward.call(cx, &mut [index, item]),
            };
            let value = match (result, &self.forward) {
                (Ok(value), _) => value,
                (Err(fault), Some(forward)) => return Ok(forward.failed(fault)),
                (Err(fault), None) => return Err(fault),
            };
            if let Some(end) = self.accept(cx, value)? {
                return Ok(end);
            }
        }
    }

    /// [`Each::run`] for `(map :key rows)` and `(group-by :key rows)`: reads rows in place.
    fn run_keyword(&mut self, cx: &mut Context) -> Result<Action> {
        let Value::Keyword(symbol) = self.function else { return self.run(cx) };
        loop {
            if cx.fuel.slice < 0 {
                return Ok(Action::Pause);
            }
            clear(&mut self.item);
            if !VectorNode::take_into(&mut self.input, self.next, &mut self.item) {
                return self.finish(cx);
            }
            self.next += 1;
            let other;
            let value = match &self.item {
                Value::Map(map) => {
                    cx.tick(1)?;
                    map.find_named(cx, symbol).map_or(&Value::Nil, |row| map.value(row))
                }
                item => {
                    other = apply(cx, &self.function, &mut [item.clone()])?;
                    &other
                }
            };
            if account::attention() {
                cx.attend()?;
            }
            if self.kind == Kind::Map {
                self.out.push_copy(cx, value)?;
            } else if let Some(Extra { state, .. }) = self.extra.as_deref_mut() {
                let row = find_group(cx, state, value)?;
                let key = if row.is_none() { value.clone() } else { Value::Nil };
                add_to_group(cx, state, row, key, take(&mut self.item))?;
            }
        }
    }

    /// Arguments of the next call; `None` after the last item.
    #[inline]
    fn next_arguments(&mut self) -> Option<(Value, Option<Value>)> {
        let item = match self.kind {
            // These kinds need the items again at the end.
            Kind::DropWhile | Kind::SplitWith | Kind::SortBy | Kind::SortByDescending => {
                self.input.get(self.next)
            }
            // The last user of a collection takes it apart, which frees it on the way.
            _ => VectorNode::take_item(&mut self.input, self.next),
        }?;
        let index = self.next;
        self.next += 1;
        Some(match self.kind {
            Kind::MapIndexed | Kind::KeepIndexed => (Value::Int(index as i64), Some(item)),
            Kind::Map | Kind::Mapcat | Kind::Keep | Kind::Run | Kind::SumBy | Kind::AvgBy => (item, None),
            Kind::SortBy | Kind::SortByDescending => (item, None),
            Kind::Some | Kind::Every | Kind::NotAny | Kind::NotEvery => (item, None),
            Kind::UpdateVals | Kind::UpdateKeys => {
                // The items are [key value] pairs.
                let part = usize::from(self.kind == Kind::UpdateVals);
                let (argument, other) = match &item {
                    Value::Vector(pair) => (pair.get(part), pair.get(1 - part)),
                    _ => (None, None),
                };
                self.item = other.unwrap_or_default();
                (argument.unwrap_or_default(), None)
            }
            _ => {
                self.item = item.clone();
                (item, None)
            }
        })
    }

    /// Uses the result of one call; `Some` if the machine is finished.
    fn accept(&mut self, cx: &mut Context, value: Value) -> Result<Option<Action>> {
        let truthy = value.is_truthy();
        match self.kind {
            Kind::Map | Kind::MapIndexed => self.out.push(cx, value)?,
            Kind::SortBy | Kind::SortByDescending => self.out.push(cx, value)?,
            Kind::Keep | Kind::KeepIndexed => {
                if !value.is_nil() {
                    self.out.push(cx, value)?;
                }
            }
            Kind::Filter | Kind::Remove | Kind::Select => {
                let item = take(&mut self.item);
                if truthy != (self.kind == Kind::Remove) {
                    self.out.push(cx, item)?;
                }
            }
            Kind::Mapcat => {
                let mut part = crate::collection::seq::to_vector(cx, value, "mapcat")?;
                for index in 0..part.len() {
                    cx.tick(1)?;
                    if let Some(item) = VectorNode::take_item(&mut part, index) {
                        self.out.push(cx, item)?;
                    }
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
                self.out.push(cx, item)?;
            }
            Kind::DropWhile | Kind::SplitWith if !truthy => {
                let rest = VectorNode::slice(&self.input, self.next - 1, usize::MAX);
                return Ok(Some(Action::Return(match self.kind {
                    Kind::DropWhile => Value::Vector(rest),
                    _ => Value::row([self.out.take_vector(), Value::Vector(rest)]),
                })));
            }
            Kind::DropWhile => {}
            Kind::SplitWith => {
                let item = take(&mut self.item);
                self.out.push(cx, item)?;
            }
            Kind::PartitionBy => self.partition(cx, value)?,
            Kind::GroupBy => self.group(cx, value)?,
            Kind::DistinctBy => {
                let item = take(&mut self.item);
                if let Value::Set(seen) = take(&mut self.extra().state) {
                    let new = seen.find(cx, &value)?.is_none();
                    self.extra().state =
                        Value::Set(if new { SetNode::insert(seen, cx, value)? } else { seen });
                    if new {
                        self.out.push(cx, item)?;
                    }
                }
            }
            Kind::MinBy | Kind::MaxBy | Kind::MinKey | Kind::MaxKey => self.best(cx, value)?,
            Kind::SumBy | Kind::AvgBy => {
                if !value.is_nil() {
                    self.extra().counted += 1;
                    self.extra().state =
                        arith::add(cx, take(&mut self.extra().state), value).map_err(sum_fault)?;
                }
            }
            Kind::UpdateVals | Kind::UpdateKeys => {
                let other = take(&mut self.item);
                if let Value::Map(map) = take(&mut self.extra().state) {
                    let (key, value) =
                        if self.kind == Kind::UpdateVals { (other, value) } else { (value, other) };
                    self.extra().state = Value::Map(MapNode::insert(map, cx, key, value)?);
                }
            }
        }
        Ok(None)
    }

    fn partition(&mut self, cx: &mut Context, value: Value) -> Result<()> {
        let same = match &self.extra().mark {
            Some(mark) => equal::equal(cx, mark, &value)?,
            None => true,
        };
        if !same {
            let run = self.extra().aside.take_vector();
            self.out.push(cx, run)?;
        }
        self.extra().mark = Some(value);
        let item = take(&mut self.item);
        self.extra().aside.push(cx, item)
    }

    fn group(&mut self, cx: &mut Context, key: Value) -> Result<()> {
        let item = take(&mut self.item);
        let state = &mut self.extra().state;
        let row = find_group(cx, state, &key)?;
        add_to_group(cx, state, row, key, item)
    }

    fn best(&mut self, cx: &mut Context, value: Value) -> Result<()> {
        let item = take(&mut self.item);
        if value.is_nil() && matches!(self.kind, Kind::MinBy | Kind::MaxBy) {
            return Ok(());
        }
        let better = match &self.extra().mark {
            None => true,
            Some(mark) => match (order::compare(cx, &value, mark)?, self.kind) {
                (Ordering::Less, Kind::MinBy | Kind::MinKey) => true,
                (Ordering::Greater, Kind::MaxBy | Kind::MaxKey) => true,
                // On a tie the first item wins for `min-by`, the last for `min-key`.
                (Ordering::Equal, Kind::MinKey | Kind::MaxKey) => true,
                _ => false,
            },
        };
        if better {
            self.extra().mark = Some(value);
            self.extra().state = item;
        }
        Ok(())
    }

    fn finish(&mut self, cx: &mut Context) -> Result<Action> {
        Ok(Action::Return(match self.kind {
            Kind::Some | Kind::Run => Value::Nil,
            Kind::Every | Kind::NotAny => Value::Bool(true),
            Kind::NotEvery => Value::Bool(false),
            Kind::DropWhile => Value::row([]),
            Kind::Select => {
                let mut set = SetNode::empty();
                for item in take(&mut self.out) {
                    cx.tick(1)?;
                    set = SetNode::insert(set, cx, item)?;
                }
                Value::Set(set)
            }
            Kind::SplitWith => {
                let none = Value::row([]);
                Value::row([self.out.take_vector(), none])
            }
            Kind::PartitionBy => {
                if !self.extra().aside.is_empty() {
                    let run = self.extra().aside.take_vector();
                    self.out.push(cx, run)?;
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
            | Kind::SumBy => take(&mut self.extra().state),
            Kind::AvgBy => match self.extra().counted {
                0 => Value::Nil,
                counted => arith::divide(cx, take(&mut self.extra().state), Value::Int(counted))?,
            },
            Kind::SortBy | Kind::SortByDescending => {
                let keys = take(&mut self.out);
                if self.extra().comparator.is_nil() {
                    let descending = self.kind == Kind::SortByDescending;
                    return Ok(Action::Return(sort::by_keys(cx, &self.input, &keys, descending)?));
                }
                let comparator = take(&mut self.extra().comparator);
                let machine = Sort::new(cx, comparator, self.input.clone(), Some(keys))?;
                return Ok(Action::Become(Native::Sort(Box::new(machine))));
            }
            _ => self.out.take_vector(),
        }))
    }
}

/// Faults of sums are arithmetic errors, whatever the operand.
fn sum_fault(mut fault: Box<Fault>) -> Box<Fault> {
    if fault.reason == crate::Reason::TypeError {
        fault.reason = crate::Reason::ArithmeticError;
    }
    fault
}

/// The index of the group with this key.
#[inline]
fn find_group(cx: &mut Context, groups: &Value, key: &Value) -> Result<Option<usize>> {
    match groups {
        Value::Map(groups) => groups.find(cx, key),
        _ => Ok(None),
    }
}

/// Adds an item to the group found, or to a new one. Neither the map nor the group is shared, so the group grows in
/// place.
#[inline]
fn add_to_group(
    cx: &mut Context,
    groups: &mut Value,
    row: Option<usize>,
    key: Value,
    item: Value,
) -> Result<()> {
    let Value::Map(map) = groups else { return Ok(()) };
    if let Some(row) = row {
        if let Some(Value::Vector(group)) = MapNode::value_mut(map, row) {
            VectorNode::append(group, cx, item)?;
        }
    } else if let Value::Map(map) = take(groups) {
        let group = Value::row([item]);
        *groups = Value::Map(MapNode::insert(map, cx, key, group)?);
    }
    Ok(())
}
