//! Implements endless sequences: the builtins that make them (`iterate`, `repeat`, `cycle`, `repeatedly`), and how
//! builtins such as `take` and `first` read a finite part of them.
//!
//! Nothing is computed until a consumer that needs a bounded number of items pulls them: `take`,
//! `take-while`, `first`, `nth`, `some` … Every other consumer is an error that says how to bound the
//! sequence.

use crate::builtins::collections::sequences;
use crate::builtins::functions::callbacks::{callable, function_of};
use crate::builtins::{Builtin, Category, callback, direct};
use crate::bytecode::{CombinatorKind, Endless, Known, StageKind};
use crate::collection::seq;
use crate::collection::seq::{count_argument, length};
use crate::context::{Context, DirectFunction, Function};
use crate::fault::Result;
use crate::memory::List;
use crate::native::each::Kind;
use crate::native::pipeline::bounded::Bounded;
use crate::native::pipeline::{Finish, Pipeline, Sink};
use crate::native::{Native, Step};
use crate::value::Value;
use crate::value::combinator::{Combinator, unbounded};
use crate::value::vector::VectorNode;
use std::rc::Rc;

const CORE: Category = Category::Core;

/// The rows of this module. `%first` and its relatives replace the usual builtins in programs that make endless
/// sequences.
#[rustfmt::skip]
pub(crate) const TABLE: &[Builtin] = &[
    direct("repeat", CORE, "1-2", "(repeat n x)", "x, n times; without n endlessly.", repeat).known(Known::Repeat),
    direct("cycle", CORE, "1", "(cycle coll)", "The items again and again, endlessly.", cycle).known(Known::Cycle),
    direct("iterate", CORE, "2", "(iterate f x)", "x, (f x), (f (f x)) … endlessly: take a part.", iterate).known(Known::Iterate),
    callback("repeatedly", CORE, "1-2", "(repeatedly n f)", "The results of n calls of f; without n endlessly.", repeatedly).known(Known::Repeatedly),
    callback("%first", Category::Internal, "1", "(first coll)", "The first item, or nil.", |cx, a| positional(cx, sequences::first, Some(0), a)).known(Known::EndlessFirst),
    callback("%second", Category::Internal, "1", "(second coll)", "The second item, or nil.", |cx, a| positional(cx, sequences::second, Some(1), a)).known(Known::EndlessSecond),
    callback("%pattern-items", Category::Internal, "2", "(%pattern-items x n)", "The source of a sequential pattern of n items.", pattern_items).known(Known::PatternItems),
    callback("%while-items", Category::Internal, "2", "(%while-items pred coll)", "The collection, cut where pred first fails when it is endless.", |cx, a| match a[1].endless() {
        Some(_) => each(cx, "for", Kind::TakeWhile, true, a),
        None => Ok(Step::Return(std::mem::take(&mut a[1]))),
    }).known(Known::WhileItems),
    callback("%nth-item", Category::Internal, "2-3", "(nth coll index default?)", "The item at an index.", |cx, a| positional(cx, sequences::nth, None, a)).known(Known::EndlessNth),
];

fn endless<const N: usize>(kind: Endless, parts: [Value; N]) -> Value {
    Value::Combinator(Combinator::from_parts(CombinatorKind::Endless(kind), parts))
}

fn repeat(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let [count, item] = arguments else {
        return Ok(endless(Endless::Repeat, [arguments.first_mut().map(std::mem::take).unwrap_or_default()]));
    };
    let count = length(count_argument(count, "repeat", 1)?);
    Ok(cx.collect(std::iter::repeat_n(std::mem::take(item), count))?.into_value())
}

fn cycle(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let items = seq::argument(cx, std::mem::take(&mut arguments[0]), "cycle", 1)?;
    Ok(match items.is_empty() {
        true => Value::Vector(items),
        false => endless(Endless::Cycle, [Value::Vector(items)]),
    })
}

fn iterate(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let function = callable(cx, "iterate", std::mem::take(&mut arguments[0]))?;
    Ok(endless(Endless::Iterate, [function, std::mem::take(&mut arguments[1])]))
}

/// 0, 1, 2 …
pub(crate) fn counting() -> Value {
    endless(Endless::Iterate, [Value::Builtin(Known::Increment.id()), Value::Int(0)])
}

fn repeatedly(cx: &mut Context, arguments: &mut [Value]) -> Result<Step> {
    let last = arguments.len() - 1;
    let function = callable(cx, "repeatedly", std::mem::take(&mut arguments[last]))?;
    let sequence = endless(Endless::Repeatedly, [function]);
    match last {
        0 => Ok(Step::Return(sequence)),
        _ => {
            let count = count_argument(&arguments[0], "repeatedly", 1)?;
            first_items(cx, &sequence, count)
        }
    }
}

/// Sends the items of an endless sequence into a sink.
fn pull(cx: &mut Context, sequence: &Value, sink: Sink) -> Result<Step> {
    Ok(Step::Enter(Native::Pipeline(Box::new(Pipeline::over_endless(cx, sequence, List::default(), sink)?))))
}

/// The same, through one more stage.
fn pull_through(cx: &mut Context, sequence: Value, kind: StageKind, part: Value, sink: Sink) -> Result<Step> {
    pull(cx, &staged(sequence, kind, [part]), sink)
}

fn first_items(cx: &mut Context, sequence: &Value, count: i64) -> Result<Step> {
    pull_through(cx, sequence.clone(), StageKind::Take, Value::Int(count.max(0)), Sink::Vector)
}

/// An endless sequence behind a transducer.
pub(crate) fn through(sequence: Value, transducer: Value) -> Value {
    endless(Endless::Through, [sequence, transducer])
}

/// An endless sequence behind one stage.
pub(crate) fn staged<const N: usize>(sequence: Value, kind: StageKind, parts: [Value; N]) -> Value {
    through(sequence, Value::Combinator(Combinator::from_parts(CombinatorKind::Transducer(kind), parts)))
}

/// A vector in front of an endless sequence.
pub(crate) fn after(front: Rc<VectorNode>, sequence: Value) -> Value {
    if front.is_empty() { sequence } else { endless(Endless::Concat, [Value::Vector(front), sequence]) }
}

/// `(take n sequence)`.
pub(crate) fn take(cx: &mut Context, arguments: &mut [Value]) -> Result<Step> {
    let count = count_argument(&arguments[0], "take", 1)?;
    first_items(cx, &arguments[1], count)
}

/// `(drop n sequence)`.
pub(crate) fn drop_first(count: i64, sequence: Value) -> Value {
    staged(sequence, StageKind::Drop, [Value::Int(count.max(0))])
}

/// Whether folding with this function can end before the items do. Only `reduced` ends it, so neither a builtin can
/// end it nor a program that does not mention `reduced`.
///
/// # Errors
/// Fuel for reading the programs.
pub(crate) fn may_stop(cx: &mut Context, function: &Value) -> Result<bool> {
    if matches!(function, Value::Builtin(_)) {
        return Ok(false);
    }
    let enders = [Known::Reduced, Known::EnsureReduced].map(Known::id);
    let functions = cx.functions.clone();
    for unit in Function::programs(&functions) {
        cx.tick(unit.program.instructions() as u64)?;
        if enders.iter().any(|&ender| unit.program.mentions(ender)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// `(reduce f init? sequence)`.
pub(crate) fn reduce(
    cx: &mut Context,
    function: Value,
    init: Option<Value>,
    sequence: Value,
) -> Result<Step> {
    if !may_stop(cx, &function)? {
        return Err(unbounded("reduce"));
    }
    let finish = Finish::Plain;
    match init {
        Some(accumulator) => pull(cx, &sequence, Sink::Fold { function, accumulator, finish }),
        None => pull(cx, &sequence, Sink::Fold1 { function }),
    }
}

/// `first`, `second` and `nth` of any sequence.
fn positional(
    cx: &mut Context,
    run: DirectFunction,
    index: Option<usize>,
    arguments: &mut [Value],
) -> Result<Step> {
    if arguments[0].endless().is_none() {
        return run(cx, arguments).map(Step::Return);
    }
    let index = match index {
        Some(index) => index,
        None => match usize::try_from(count_argument(&arguments[1], Known::Nth.name(), 2)?) {
            Ok(index) => index,
            Err(_) => return Ok(Step::Return(arguments.get_mut(2).map(std::mem::take).unwrap_or_default())),
        },
    };
    let count = Value::Int(i64::try_from(index).unwrap_or(i64::MAX));
    pull_through(cx, arguments[0].clone(), StageKind::Drop, count, Sink::First)
}

/// The items that a sequential pattern destructures: of an endless sequence as many as the pattern names. A pattern
/// with a rest asks for all of them (-1).
fn pattern_items(cx: &mut Context, arguments: &mut [Value]) -> Result<Step> {
    match (&arguments[0], &arguments[1]) {
        (source, Value::Int(count)) if source.endless().is_some() => match *count {
            count if count < 0 => Err(unbounded("destructuring")),
            count => first_items(cx, source, count),
        },
        _ => crate::builtins::internal::vector_pattern(cx, &mut arguments[..1]).map(Step::Return),
    }
}

/// A function over one endless sequence: a part of it, or another endless sequence.
pub(crate) fn each(
    cx: &mut Context,
    name: &'static str,
    kind: Kind,
    has_transducer: bool,
    arguments: &mut [Value],
) -> Result<Step> {
    let function = function_of(cx, name, kind, std::mem::take(&mut arguments[0]))?;
    let sequence = std::mem::take(&mut arguments[1]);
    let until = |truthy, found: Option<bool>, otherwise| Sink::Until {
        function: function.clone(),
        truthy,
        found: found.map(Value::Bool),
        otherwise,
    };
    match kind {
        Kind::TakeWhile => pull_through(cx, sequence, StageKind::TakeWhile, function, Sink::Vector),
        Kind::Some => pull(cx, &sequence, until(true, None, Value::Nil)),
        Kind::Every => pull(cx, &sequence, until(false, Some(false), Value::Bool(true))),
        Kind::NotAny => pull(cx, &sequence, until(true, Some(false), Value::Bool(true))),
        Kind::NotEvery => pull(cx, &sequence, until(false, Some(true), Value::Bool(false))),
        kind => match stage_of(kind) {
            Some(stage) if has_transducer => Ok(Step::Return(staged(sequence, stage, [function]))),
            _ => Err(unbounded(name)),
        },
    }
}

/// The stage that corresponds to a function over collections.
pub(crate) fn stage_of(kind: Kind) -> Option<StageKind> {
    Some(match kind {
        Kind::Map => StageKind::Map,
        Kind::MapIndexed => StageKind::MapIndexed,
        Kind::Mapcat => StageKind::Mapcat,
        Kind::Filter => StageKind::Filter,
        Kind::Remove => StageKind::Remove,
        Kind::Keep => StageKind::Keep,
        Kind::KeepIndexed => StageKind::KeepIndexed,
        Kind::TakeWhile => StageKind::TakeWhile,
        Kind::DropWhile => StageKind::DropWhile,
        Kind::PartitionBy => StageKind::PartitionBy,
        Kind::DistinctBy => StageKind::DistinctBy,
        _ => return None,
    })
}

/// Among collections that are walked in parallel, cuts the endless ones to the length of the shortest finite one and
/// calls the builtin again. `None` if all are finite. The collections are the arguments from `from` on.
pub(crate) fn bounded(
    cx: &mut Context,
    which: Known,
    arguments: &mut [Value],
    from: usize,
) -> Result<Option<Step>> {
    let name = which.name();
    if !arguments[from..].iter().any(|argument| argument.endless().is_some()) {
        return Ok(None);
    }
    let mut shortest: Option<usize> = None;
    for argument in arguments[from..].iter_mut().filter(|argument| argument.endless().is_none()) {
        let items = seq::to_vector(cx, std::mem::take(argument), name)?;
        shortest = Some(shortest.map_or(items.len(), |shortest| shortest.min(items.len())));
        *argument = Value::Vector(items);
    }
    let Some(count) = shortest else { return Err(unbounded(name)) };
    let arguments = cx.arguments(arguments.iter_mut().map(std::mem::take))?;
    Ok(Some(Step::Enter(Native::Bounded(Bounded::new(which.id(), Known::Take.id(), arguments, count)))))
}
