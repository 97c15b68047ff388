//! Runs transducers and endless sequences, as a resumable state machine that sends items from a source through stages
//! into a sink, one by one. It serves `transduce`, `into` and `sequence` with a transducer, and everything that pulls
//! items from an endless sequence.
//!
//! Nothing is buffered between the stages, so a stage that has enough items (`take`) ends the work of all stages
//! before it, and an endless source is no special case.

pub mod bounded;
pub mod stage;
pub mod transduce;

use crate::bytecode::{CombinatorKind, Endless};
use crate::collection::adding::add;
use crate::collection::seq::check_memory;
use crate::context::Context;
use crate::fault::Result;
use crate::memory::{List, items};
use crate::native::Action;
use crate::native::pipeline::stage::{Outcome, Stage};
use crate::value::Value;
use crate::value::build::Arguments;
use crate::value::combinator::Combinator;
use crate::value::vector::VectorNode;
use std::mem::take;
use std::rc::Rc;

/// The source of items.
enum Source {
    /// A collection, and the index of its next item.
    Items(Rc<VectorNode>, usize),
    /// An endless sequence of its own: see [`Endless`] for function and seed.
    Endless { kind: Endless, function: Value, seed: Value, given: usize },
}

/// How a fold ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// With the function's result for the accumulator alone.
    Complete,
    /// With the accumulator.
    Plain,
    /// With the accumulator, marked if the fold must stop: one step of an outer fold.
    Step,
}

/// The destination of items.
pub enum Sink {
    /// Into a vector.
    Vector,
    /// Into a collection, as `conj` adds them.
    Into(Value),
    /// Through a reducing function.
    Fold {
        /// The function.
        function: Value,
        /// The accumulator so far.
        accumulator: Value,
        /// How it ends.
        finish: Finish,
    },
    /// The same; a call of the function without arguments gives the first accumulator.
    Start {
        /// The function.
        function: Value,
        /// How it ends.
        finish: Finish,
    },
    /// The same; the first item is the first accumulator. Without items, the function gives the result.
    Fold1 {
        /// The function.
        function: Value,
    },
    /// The first item is the result.
    First,
    /// Through a function until its result is truthy, or falsy.
    Until {
        /// The function.
        function: Value,
        /// The truth value that stops it.
        truthy: bool,
        /// The result then; `None` for the function's result.
        found: Option<Value>,
        /// The result if it never stops.
        otherwise: Value,
    },
}

/// Items that continue one by one at this stage.
struct Spread {
    items: Rc<VectorNode>,
    next: usize,
    to: usize,
}

items!(in_steps: Spread);

/// What the running call computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunningCall {
    /// No call is running.
    None,
    /// The next item of the source.
    Source,
    /// The result of this stage for its item.
    Stage(usize),
    /// The sink.
    Sink,
}

/// The machine.
pub struct Pipeline {
    source: Source,
    stages: List<Stage>,
    sink: Sink,
    running: RunningCall,
    /// The item of the running call.
    item: Value,
    spreads: List<Spread>,
    /// Stages before this one accept no more items.
    closed: usize,
    /// Stages before this one have released their remaining items.
    flushed: usize,
    out: List<Value>,
}

impl Pipeline {
    /// A machine over the items of a collection.
    pub fn over_items(items: Rc<VectorNode>, stages: List<Stage>, sink: Sink) -> Pipeline {
        Pipeline::new(Source::Items(items, 0), stages, sink)
    }

    /// A machine over an endless sequence, which may have stages of its own.
    ///
    /// # Errors
    /// Fuel: there may be any number of stages.
    pub fn over_endless(
        cx: &mut Context,
        sequence: &Value,
        more: List<Stage>,
        sink: Sink,
    ) -> Result<Pipeline> {
        let mut own: List<Stage> = List::default();
        // Leading vectors, each with the number of stages around it; the outermost first.
        let mut fronts: List<(Rc<VectorNode>, usize)> = List::default();
        let mut here = sequence.clone();
        let source = loop {
            cx.tick(1)?;
            let (kind, parts) = here.endless().unwrap_or((Endless::Repeat, &[]));
            let part = |index: usize| parts.get(index).cloned().unwrap_or_default();
            let (function, seed) = match kind {
                Endless::Through => {
                    if let Some(mut stages) = Stage::from_transducer(cx, &part(1))? {
                        stages.reverse();
                        own.extend(cx, stages)?;
                    }
                    let inner = part(0);
                    here = inner;
                    continue;
                }
                Endless::Concat => {
                    if let Value::Vector(front) = part(0) {
                        fronts.push(cx, (front, own.len()))?;
                    }
                    let inner = part(1);
                    here = inner;
                    continue;
                }
                Endless::Repeat | Endless::Cycle => (Value::Nil, part(0)),
                Endless::Iterate => (part(0), part(1)),
                Endless::Repeatedly => (part(0), Value::Nil),
            };
            break Source::Endless { kind, function, seed, given: 0 };
        };
        let count = own.len();
        own.reverse();
        own.extend(cx, more)?;
        let mut machine = Pipeline::new(source, own, sink);
        fronts.reverse();
        let spreads =
            fronts.into_iter().map(|(items, outside)| Spread { items, next: 0, to: count - outside });
        machine.spreads.extend(cx, spreads)?;
        Ok(machine)
    }

    fn new(source: Source, stages: List<Stage>, sink: Sink) -> Pipeline {
        let closed = stages.iter().rposition(Stage::is_closed).map_or(0, |at| at + 1);
        Pipeline {
            source,
            stages,
            sink,
            running: RunningCall::None,
            item: Value::Nil,
            spreads: List::default(),
            closed,
            flushed: 0,
            out: List::default(),
        }
    }

    pub(crate) fn resume(&mut self, cx: &mut Context, returned: Option<Value>) -> Result<Action> {
        let mut step = match (self.running, returned) {
            (RunningCall::Source, Some(item)) => {
                if let Source::Endless { kind: Endless::Iterate, seed, .. } = &mut self.source {
                    *seed = item.clone();
                }
                self.pass(cx, 0, item)?
            }
            (RunningCall::Stage(at), Some(result)) => {
                let item = take(&mut self.item);
                match self.stages.get_mut(at) {
                    Some(stage) => {
                        let outcome = stage.decide(cx, item, result)?;
                        self.follow(cx, at, outcome)?
                    }
                    None => None,
                }
            }
            (RunningCall::Sink, Some(result)) => self.absorb(result),
            (_, None) => match &self.sink {
                Sink::Start { function, .. } => {
                    self.running = RunningCall::Sink;
                    Some(Action::Call(function.clone(), Arguments::new()))
                }
                _ => None,
            },
            _ => None,
        };
        loop {
            if let Some(action) = step {
                return Ok(action);
            }
            self.running = RunningCall::None;
            cx.tick(1)?;
            check_memory(cx)?;
            step = self.advance(cx)?;
        }
    }

    /// Sends the next item on its way, wherever it comes from.
    fn advance(&mut self, cx: &mut Context) -> Result<Option<Action>> {
        if let Some(spread) = self.spreads.last_mut() {
            let to = spread.to;
            match spread.items.get(spread.next) {
                Some(item) if to >= self.closed => {
                    spread.next += 1;
                    return self.pass(cx, to, item);
                }
                _ => drop(self.spreads.pop()),
            }
            return Ok(None);
        }
        if self.closed == 0 {
            match &mut self.source {
                Source::Items(items, next) => {
                    if let Some(item) = items.get(*next) {
                        *next += 1;
                        return self.pass(cx, 0, item);
                    }
                }
                Source::Endless { kind, function, seed, given } => {
                    let before = *given;
                    *given += 1;
                    let item = match (*kind, &*seed) {
                        (Endless::Iterate, _) if before > 0 => {
                            self.running = RunningCall::Source;
                            return Ok(Some(Action::Call1(function.clone(), take(seed))));
                        }
                        (Endless::Repeatedly, _) => {
                            self.running = RunningCall::Source;
                            return Ok(Some(Action::Call(function.clone(), Arguments::new())));
                        }
                        (Endless::Cycle, Value::Vector(items)) => {
                            items.get(before % items.len().max(1)).unwrap_or_default()
                        }
                        (_, seed) => seed.clone(),
                    };
                    return self.pass(cx, 0, item);
                }
            }
        }
        self.flushed = self.flushed.max(self.closed);
        while let Some(stage) = self.stages.get_mut(self.flushed) {
            self.flushed += 1;
            if let Some(rest) = stage.rest() {
                return self.pass(cx, self.flushed, rest);
            }
        }
        Ok(Some(self.finish()))
    }

    /// Passes an item to the stages from `to` on, then to the sink. `None`: continue with the next item.
    fn pass(&mut self, cx: &mut Context, to: usize, item: Value) -> Result<Option<Action>> {
        match self.stages.get_mut(to) {
            Some(stage) => {
                let outcome = stage.enter(cx, item)?;
                self.follow(cx, to, outcome)
            }
            None => self.give(cx, item),
        }
    }

    /// Continues with a stage's outcome for its item.
    fn follow(&mut self, cx: &mut Context, mut at: usize, mut outcome: Outcome) -> Result<Option<Action>> {
        loop {
            let item = match outcome {
                Outcome::Pass(item) => item,
                Outcome::Last(item) => {
                    self.closed = self.closed.max(at + 1);
                    item
                }
                Outcome::Drop => return Ok(None),
                Outcome::Close => {
                    self.closed = self.closed.max(at + 1);
                    return Ok(None);
                }
                Outcome::Spread(items) => {
                    self.spreads.push(cx, Spread { items, next: 0, to: at + 1 })?;
                    return Ok(None);
                }
                Outcome::Call1(argument, item) => {
                    self.item = item;
                    self.running = RunningCall::Stage(at);
                    return Ok(Some(Action::Call1(self.function(at), argument)));
                }
                Outcome::Call2(index, item) => {
                    self.running = RunningCall::Stage(at);
                    return Ok(Some(Action::Call2(self.function(at), index, item)));
                }
            };
            at += 1;
            match self.stages.get_mut(at) {
                Some(stage) => {
                    cx.tick(1)?;
                    outcome = stage.enter(cx, item)?;
                }
                None => return self.give(cx, item),
            }
        }
    }

    fn function(&self, at: usize) -> Value {
        self.stages.get(at).map(Stage::function).unwrap_or_default()
    }

    /// Passes an item to the sink.
    fn give(&mut self, cx: &mut Context, item: Value) -> Result<Option<Action>> {
        match &mut self.sink {
            Sink::Vector => self.out.push(cx, item)?,
            Sink::Into(collection) => *collection = add(cx, take(collection), item, "into")?,
            Sink::Fold { function, accumulator, .. } => {
                self.running = RunningCall::Sink;
                return Ok(Some(Action::Call2(function.clone(), take(accumulator), item)));
            }
            Sink::First => return Ok(Some(Action::Return(item))),
            // A start becomes a fold before the first item.
            Sink::Start { .. } => {}
            Sink::Fold1 { function } => {
                let function = take(function);
                self.sink = Sink::Fold { function, accumulator: item, finish: Finish::Plain };
            }
            Sink::Until { function, .. } => {
                self.running = RunningCall::Sink;
                return Ok(Some(Action::Call1(function.clone(), item)));
            }
        }
        Ok(None)
    }

    /// Handles the result of the sink's call.
    fn absorb(&mut self, result: Value) -> Option<Action> {
        match &mut self.sink {
            Sink::Start { function, finish } => {
                let (function, finish) = (take(function), *finish);
                self.sink = Sink::Fold { function, accumulator: result, finish };
                None
            }
            Sink::Fold { accumulator, finish, .. } => match &result {
                Value::Combinator(node) if node.kind == CombinatorKind::Reduced => {
                    if *finish == Finish::Step {
                        return Some(Action::Return(result));
                    }
                    *accumulator = node.parts().first().cloned().unwrap_or_default();
                    drop(result);
                    Some(self.finish())
                }
                _ => {
                    *accumulator = result;
                    None
                }
            },
            Sink::Until { truthy, found, .. } if result.is_truthy() == *truthy => {
                Some(Action::Return(found.take().unwrap_or(result)))
            }
            _ => None,
        }
    }

    fn finish(&mut self) -> Action {
        match &mut self.sink {
            Sink::Vector => Action::Return(self.out.take_vector()),
            Sink::Into(collection) => Action::Return(take(collection)),
            Sink::Fold { function, accumulator, finish: Finish::Complete } => {
                Action::TailCall(take(function), Arguments::from_array([take(accumulator)]))
            }
            Sink::Fold { accumulator, finish: Finish::Step, .. } if self.closed > 0 => Action::Return(
                Value::Combinator(Combinator::from_parts(CombinatorKind::Reduced, [take(accumulator)])),
            ),
            Sink::Fold { accumulator, .. } => Action::Return(take(accumulator)),
            Sink::Fold1 { function } => Action::TailCall(take(function), Arguments::new()),
            Sink::First | Sink::Start { .. } => Action::Return(Value::Nil),
            Sink::Until { otherwise, .. } => Action::Return(take(otherwise)),
        }
    }
}
