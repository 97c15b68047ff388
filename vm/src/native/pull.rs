//! Items pulled out of an endless sequence, one by one, until the consumer has enough.

use super::Action;
use super::items::Items;
use crate::combinator::Endless;
use crate::context::Context;
use crate::fault::Result;
use crate::value::Value;
use std::mem::take;

/// What is done with the items.
pub enum Consumer {
    /// The first so many, as a vector.
    Take(usize),
    /// The item at this index.
    Nth(usize),
    /// Those before the first for which the function fails.
    TakeWhile(Value),
    /// The first truthy result of the function.
    Some(Value),
    /// Whether the function holds, which only a failure can answer.
    Every(Value),
}

/// A function that items pass on their way, or a count.
struct Stage {
    kind: Endless,
    part: Value,
    /// `drop`: items still to drop. `drop-while`: 0 when it lets everything through.
    left: u64,
}

/// Where an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// It is asked for.
    Source,
    /// The call of this stage is under way.
    Stage(usize),
    /// The consumer's call is under way.
    Consumer,
}

/// The machine.
pub struct Pull {
    source: Endless,
    /// The parts of the source: see [`Endless`].
    function: Value,
    seed: Value,
    /// Items the source has given.
    given: usize,
    /// In the order that items pass them.
    stages: Items<Stage>,
    consumer: Consumer,
    place: Place,
    /// The item that the running call is about.
    item: Value,
    out: Items,
}

impl Pull {
    /// A machine over an endless sequence.
    ///
    /// # Errors
    /// Fuel: a sequence may have passed through any number of functions.
    pub fn new(cx: &mut Context, sequence: &Value, consumer: Consumer) -> Result<Pull> {
        let mut stages = Items::default();
        let mut here = sequence.clone();
        let (source, function, seed) = loop {
            cx.tick(1)?;
            let Some((kind, parts)) = here.endless() else { break (Endless::Repeat, Value::Nil, Value::Nil) };
            let part = |index: usize| parts.get(index).cloned().unwrap_or_default();
            match kind {
                Endless::Repeat | Endless::Cycle => break (kind, Value::Nil, part(0)),
                Endless::Iterate => break (kind, part(0), part(1)),
                Endless::Repeatedly => break (kind, part(0), Value::Nil),
                _ => {
                    let left = match (kind, part(1)) {
                        (Endless::Drop, Value::Int(count)) => u64::try_from(count).unwrap_or(0),
                        (kind, _) => u64::from(kind == Endless::DropWhile),
                    };
                    stages.push(Stage { kind, part: part(1), left });
                    let inner = part(0);
                    here = inner;
                }
            }
        };
        stages.as_mut_slice().reverse();
        let (place, item, out) = (Place::Source, Value::Nil, Items::default());
        Ok(Pull { source, function, seed, given: 0, stages, consumer, place, item, out })
    }

    pub(super) fn resume(&mut self, cx: &mut Context, returned: Option<Value>) -> Result<Action> {
        let mut returned = returned;
        loop {
            cx.tick(1)?;
            let step = match (self.place, returned.take()) {
                (Place::Source, None) => match self.ask() {
                    Some(action) => Some(action),
                    None => {
                        let item = take(&mut self.item);
                        self.pass(0, item)
                    }
                },
                (Place::Source, Some(item)) => {
                    self.given += 1;
                    if self.source == Endless::Iterate {
                        self.seed = item.clone();
                    }
                    self.pass(0, item)
                }
                (Place::Stage(at), Some(result)) => self.decide(at, result),
                (Place::Consumer, Some(result)) => self.consume(result),
                // A call always comes back with a value.
                (_, None) => Some(Action::Return(Value::Nil)),
            };
            if let Some(action) = step {
                return Ok(action);
            }
            crate::builtins::seq::check_memory(cx)?;
            self.place = Place::Source;
        }
    }

    /// Puts the next item of the source into `item`, or says what to do to get it.
    fn ask(&mut self) -> Option<Action> {
        if matches!(self.consumer, Consumer::Take(count) if count == self.out.len()) {
            return Some(Action::Return(self.out.take_vector()));
        }
        match self.source {
            Endless::Iterate if self.given > 0 => {
                Some(Action::Call1(self.function.clone(), take(&mut self.seed)))
            }
            Endless::Repeatedly => Some(Action::Call(self.function.clone(), Vec::new())),
            _ => {
                self.given += 1;
                self.item = match &self.seed {
                    Value::Vector(items) if self.source == Endless::Cycle => {
                        items.get((self.given - 1) % items.len().max(1)).unwrap_or_default()
                    }
                    seed => seed.clone(),
                };
                None
            }
        }
    }

    /// Hands an item to the stages from `at` on, then to the consumer. `None`: on to the next item.
    fn pass(&mut self, at: usize, item: Value) -> Option<Action> {
        for (index, stage) in self.stages.as_mut_slice().iter_mut().enumerate().skip(at) {
            match stage.kind {
                Endless::Drop if stage.left > 0 => {
                    stage.left -= 1;
                    return None;
                }
                Endless::Drop => {}
                Endless::DropWhile if stage.left == 0 => {}
                _ => {
                    self.item = item.clone();
                    self.place = Place::Stage(index);
                    return Some(Action::Call1(stage.part.clone(), item));
                }
            }
        }
        match &mut self.consumer {
            Consumer::Take(count) => {
                self.out.push(item);
                (self.out.len() == *count).then(|| Action::Return(self.out.take_vector()))
            }
            Consumer::Nth(0) => Some(Action::Return(item)),
            Consumer::Nth(left) => {
                *left -= 1;
                None
            }
            Consumer::TakeWhile(function) | Consumer::Some(function) | Consumer::Every(function) => {
                self.item = item.clone();
                self.place = Place::Consumer;
                Some(Action::Call1(function.clone(), item))
            }
        }
    }

    /// Goes on with the result of a stage's function.
    fn decide(&mut self, at: usize, result: Value) -> Option<Action> {
        let item = take(&mut self.item);
        let stage = self.stages.as_mut_slice().get_mut(at)?;
        let passed = match stage.kind {
            Endless::Map => Some(result),
            Endless::Keep => (!result.is_nil()).then_some(result),
            Endless::Filter => result.is_truthy().then_some(item),
            Endless::Remove => (!result.is_truthy()).then_some(item),
            _ if result.is_truthy() => None,
            _ => {
                stage.left = 0;
                Some(item)
            }
        };
        self.pass(at + 1, passed?)
    }

    fn consume(&mut self, result: Value) -> Option<Action> {
        match &self.consumer {
            Consumer::TakeWhile(_) if result.is_truthy() => {
                let item = take(&mut self.item);
                self.out.push(item);
                None
            }
            Consumer::TakeWhile(_) => Some(Action::Return(self.out.take_vector())),
            Consumer::Some(_) if result.is_truthy() => Some(Action::Return(result)),
            Consumer::Every(_) if !result.is_truthy() => Some(Action::Return(Value::Bool(false))),
            _ => None,
        }
    }
}
