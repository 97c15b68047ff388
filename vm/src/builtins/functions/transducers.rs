//! Implements transducers: those that `map`, `filter`, `take` and others return, and the builtins that apply them
//! (`transduce`, `into`, `sequence` and others).

use crate::builtins::collections::partitions::positive;
use crate::builtins::functions::callbacks::{callable, collection, key_function};
use crate::builtins::{Builtin, Category, callback, direct};
use crate::bytecode::{CombinatorKind, Known, StageKind};
use crate::collection::seq;
use crate::collection::seq::{count_argument, expected};
use crate::context::Context;
use crate::fault::{Fault, Result};
use crate::memory::List;
use crate::native::pipeline::stage::Stage;
use crate::native::pipeline::transduce::Transduce;
use crate::native::pipeline::{Finish, Pipeline, Sink};
use crate::native::{Native, Step};
use crate::value::Value;
use crate::value::build::Arguments;
use crate::value::combinator::{Combinator, unbounded};
use std::mem::take;
use std::rc::Rc;

const CORE: Category = Category::Core;

/// The rows of this module.
#[rustfmt::skip]
pub(crate) const TABLE: &[Builtin] = &[
    callback("transduce", CORE, "3-4", "(transduce xform f init? coll)", "Folds with f what a transducer makes of the items.", transduce),
    callback("sequence", CORE, "1-2", "(sequence xform? coll)", "The items, or what a transducer makes of them.", sequence),
    callback("eduction", CORE, "1+", "(eduction xform … coll)", "What the transducers, one after another, make of the items.", eduction),
    direct("completing", CORE, "1-2", "(completing f finish?)", "f as a reducing function whose result goes through finish.", completing),
    direct("cat", CORE, "1", "cat", "The transducer that sends on the items of its items: (into [] cat [[1] [2 3]]).", cat).known(Known::Cat),
    direct("reduced", CORE, "1", "(reduced x)", "Ends the reduce around it with x.", reduced).known(Known::Reduced),
    direct("ensure-reduced", CORE, "1", "(ensure-reduced x)", "x when it is reduced already, else (reduced x).", ensure_reduced).known(Known::EnsureReduced),
    direct("reduced?", CORE, "1", "(reduced? x)", "Whether x was made by `reduced`.", is_reduced).total(),
    direct("unreduced", CORE, "1", "(unreduced x)", "What `reduced` was given, or x itself.", unreduced),
];

fn combinator<const N: usize>(kind: CombinatorKind, parts: [Value; N]) -> Value {
    Value::Combinator(Combinator::from_parts(kind, parts))
}

/// The transducer of a sequence function without its sequence; `argument` is its other argument.
pub(crate) fn transducer(
    cx: &mut Context,
    name: &'static str,
    kind: StageKind,
    argument: Option<&mut Value>,
) -> Result<Value> {
    let kind_of = CombinatorKind::Transducer(kind);
    let Some(argument) = argument else { return Ok(combinator(kind_of, [])) };
    let part = match kind {
        StageKind::Take | StageKind::Drop => Value::Int(count_argument(argument, name, 1)?.max(0)),
        StageKind::TakeNth | StageKind::PartitionAll => {
            Value::Int(i64::try_from(positive(argument, name, "n")?).unwrap_or(i64::MAX))
        }
        StageKind::Interpose => take(argument),
        StageKind::Replace => match take(argument) {
            replacements @ (Value::Map(_) | Value::Vector(_)) => replacements,
            other => return Err(expected(name, 1, "map or list", &other)),
        },
        StageKind::PartitionBy | StageKind::DistinctBy => key_function(cx, name, take(argument))?,
        _ => callable(cx, name, take(argument))?,
    };
    Ok(combinator(kind_of, [part]))
}

/// The result of a function of one argument and a collection that need not run yet: a transducer if the collection is
/// missing, another endless sequence for an endless one.
pub(crate) fn short_of_items(
    cx: &mut Context,
    name: &'static str,
    kind: StageKind,
    arguments: &mut [Value],
) -> Result<Option<Value>> {
    match arguments {
        [argument] => transducer(cx, name, kind, Some(argument)).map(Some),
        [argument, sequence] if sequence.endless().is_some() => {
            let transducer = transducer(cx, name, kind, Some(argument))?;
            Ok(Some(crate::builtins::functions::endless::through(take(sequence), transducer)))
        }
        _ => Ok(None),
    }
}

/// The same for a function of only a collection.
pub(crate) fn short_of_all(kind: StageKind, arguments: &mut [Value]) -> Option<Value> {
    match arguments {
        [] => Some(combinator(CombinatorKind::Transducer(kind), [])),
        [sequence] if sequence.endless().is_some() => {
            Some(crate::builtins::functions::endless::staged(take(sequence), kind, []))
        }
        _ => None,
    }
}

/// The reducing function that a transducer makes of another one.
///
/// # Errors
/// A stateful transducer cannot become a function, since functions have no state.
pub(crate) fn reducer(transducer: &Rc<Combinator>, function: Value) -> Result<Value> {
    if let CombinatorKind::Transducer(kind) = transducer.kind
        && !kind.is_stateless()
    {
        return Err(Fault::type_error(
            "a transducer that counts or remembers items cannot be applied to a reducing function by hand",
        )
        .hint("Give it to (transduce xform f init coll), (into to xform coll) or (sequence xform coll)."));
    }
    let parts = [Value::Combinator(transducer.clone()), function];
    Ok(combinator(CombinatorKind::Reducer, parts))
}

fn cat(_cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    reducer(&Combinator::from_parts(CombinatorKind::Transducer(StageKind::Cat), []), take(&mut arguments[0]))
}

/// One step of a reducing function that a transducer made.
///
/// # Errors
/// Fuel.
pub(crate) fn reducer_step(cx: &mut Context, reducer: &Combinator, mut arguments: Arguments) -> Result<Step> {
    let [transducer, function] = reducer.parts() else { return Ok(Step::Return(Value::Nil)) };
    let (Some(item), Some(accumulator)) = (arguments.pop(), arguments.pop()) else {
        return Ok(Step::Return(Value::Nil));
    };
    let sink = Sink::Fold { function: function.clone(), accumulator, finish: Finish::Step };
    let stages = Stage::from_transducer(cx, transducer)?.unwrap_or_default();
    let item = List::from_array([item]).into_vector();
    Ok(Step::Enter(Native::Pipeline(Box::new(Pipeline::over_items(item, stages, sink)))))
}

/// Checks that a value is a transducer.
fn check(name: &'static str, position: usize, value: &Value) -> Result<()> {
    let data = matches!(value, Value::Builtin(_)) || !value.is_function();
    if !data {
        return Ok(());
    }
    Err(expected(name, position, "transducer", value)
        .hint("A transducer is (map f), (filter pred), (take n) … without a collection, or a comp of them."))
}

/// Whether a function accepts `count` arguments, as far as its declared arity tells.
///
/// # Errors
/// Fuel: a `partial` of a `partial` may be any number deep.
fn accepts(cx: &mut Context, mut function: &Value, mut count: usize) -> Result<bool> {
    loop {
        return Ok(match function {
            Value::Closure(closure) => cx.arities(closure).any(|proto| proto.accepts(count)),
            Value::Builtin(builtin) => builtin.info().arity.accepts(count),
            Value::Combinator(node) if node.kind == CombinatorKind::Partial => {
                let Some((inner, given)) = node.parts().split_first() else { return Ok(true) };
                cx.tick(1)?;
                (function, count) = (inner, count + given.len());
                continue;
            }
            _ => true,
        });
    }
}

/// A machine that sends the items of any collection through stages.
fn pipeline(
    cx: &mut Context,
    name: &'static str,
    source: Value,
    stages: List<Stage>,
    sink: Sink,
) -> Result<Step> {
    let machine = if source.endless().is_some() {
        Pipeline::over_endless(cx, &source, stages, sink)?
    } else {
        Pipeline::over_items(collection(cx, name, source)?, stages, sink)
    };
    Ok(Step::Enter(Native::Pipeline(Box::new(machine))))
}

fn is_bounding(stages: &List<Stage>) -> bool {
    stages.iter().any(Stage::is_bounding)
}

fn transduce(cx: &mut Context, arguments: &mut [Value]) -> Result<Step> {
    let last = arguments.len() - 1;
    let source = take(&mut arguments[last]);
    let init = (last == 3).then(|| take(&mut arguments[2]));
    let function = callable(cx, "transduce", take(&mut arguments[1]))?;
    let transducer = take(&mut arguments[0]);
    let stages = Stage::from_transducer(cx, &transducer)?;
    // A function that takes only two arguments works like `(completing f)`.
    let completes = accepts(cx, &function, 1)?;
    let Some(stages) = stages else {
        check("transduce", 1, &transducer)?;
        let source = collection(cx, "transduce", source)?;
        let function = if completes { function } else { combinator(CombinatorKind::Completing, [function]) };
        return Ok(Step::Enter(Native::Transduce(Transduce::new(transducer, function, init, source))));
    };
    if source.endless().is_some()
        && !is_bounding(&stages)
        && !crate::builtins::functions::endless::may_stop(cx, &function)?
    {
        return Err(unbounded("transduce"));
    }
    let finish = if completes { Finish::Complete } else { Finish::Plain };
    let sink = match init {
        Some(accumulator) => Sink::Fold { function, accumulator, finish },
        // The machine starts without an accumulator and calls the function for one.
        None => Sink::Start { function, finish },
    };
    pipeline(cx, "transduce", source, stages, sink)
}

/// `(into to xform from)`.
pub(crate) fn into(cx: &mut Context, arguments: &mut [Value]) -> Result<Step> {
    let source = take(&mut arguments[2]);
    let transducer = take(&mut arguments[1]);
    let target = match take(&mut arguments[0]) {
        Value::Nil => Value::row([]),
        target @ (Value::Vector(_) | Value::Set(_) | Value::Map(_)) => target,
        other => return Err(expected("into", 1, "collection", &other)),
    };
    let Some(stages) = Stage::from_transducer(cx, &transducer)? else {
        check("into", 2, &transducer)?;
        let source = collection(cx, "into", source)?;
        let conj = Value::Builtin(Known::Conj.id());
        let machine = Transduce::new(transducer, conj, Some(target), source);
        return Ok(Step::Enter(Native::Transduce(machine)));
    };
    if source.endless().is_some() && !is_bounding(&stages) {
        return Err(unbounded("into"));
    }
    let sink = match target {
        Value::Vector(vector) if vector.is_empty() => Sink::Vector,
        target => Sink::Into(target),
    };
    pipeline(cx, "into", source, stages, sink)
}

fn sequence(cx: &mut Context, arguments: &mut [Value]) -> Result<Step> {
    let last = arguments.len() - 1;
    let source = take(&mut arguments[last]);
    match last {
        0 if source.endless().is_some() => Ok(Step::Return(source)),
        0 => Ok(Step::Return(Value::Vector(seq::argument(cx, source, "sequence", 1)?))),
        _ => through(cx, "sequence", take(&mut arguments[0]), source),
    }
}

fn eduction(cx: &mut Context, arguments: &mut [Value]) -> Result<Step> {
    let last = arguments.len() - 1;
    let source = take(&mut arguments[last]);
    let transducers = List::taken(cx, &mut arguments[..last])?;
    let transducer = Value::Combinator(Combinator::new(cx, CombinatorKind::Comp, transducers)?);
    through(cx, "eduction", transducer, source)
}

/// The items after a transducer, as a vector; for an endless sequence another one.
fn through(cx: &mut Context, name: &'static str, transducer: Value, source: Value) -> Result<Step> {
    let Some(stages) = Stage::from_transducer(cx, &transducer)? else {
        check(name, 1, &transducer)?;
        return into(cx, &mut [Value::Nil, transducer, source]);
    };
    if source.endless().is_some() && !is_bounding(&stages) {
        return Ok(Step::Return(crate::builtins::functions::endless::through(source, transducer)));
    }
    pipeline(cx, name, source, stages, Sink::Vector)
}

fn completing(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    for argument in arguments.iter() {
        callable(cx, "completing", argument.clone())?;
    }
    let parts = List::taken(cx, arguments)?;
    Ok(Value::Combinator(Combinator::new(cx, CombinatorKind::Completing, parts)?))
}

fn reduced(_cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    Ok(combinator(CombinatorKind::Reduced, [take(&mut arguments[0])]))
}

/// The content of a reduced value.
fn held(value: &Value) -> Option<Value> {
    match value {
        Value::Combinator(node) if node.kind == CombinatorKind::Reduced => node.parts().first().cloned(),
        _ => None,
    }
}

fn ensure_reduced(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    if held(&arguments[0]).is_some() { Ok(take(&mut arguments[0])) } else { reduced(cx, arguments) }
}

fn is_reduced(_cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    Ok(Value::Bool(held(&arguments[0]).is_some()))
}

fn unreduced(_cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    Ok(held(&arguments[0]).unwrap_or_else(|| take(&mut arguments[0])))
}
