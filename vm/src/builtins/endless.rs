//! Sequences without an end: `iterate`, `repeat`, `cycle`, `repeatedly`, and what becomes of them.
//!
//! Nothing is computed until a consumer that needs a bounded number of items pulls them: `take`,
//! `take-while`, `first`, `nth`, `some` … Every other consumer is an error that says how to bound the
//! sequence.

use super::callbacks::callable;
use super::seq::{self, count_argument, length};
use super::{Builtin, Category, Step, callback, plain};
use crate::combinator::{Combinator, CombinatorKind, Endless};
use crate::context::Context;
use crate::fault::{Fault, Result};
use crate::native::Native;
use crate::native::each::Kind;
use crate::native::pull::{Consumer, Pull};
use crate::value::Value;
use crate::vector::VectorNode;

const CORE: Category = Category::Core;

/// The rows of this module. `%first` and its relatives stand for the plain builtins in programs that make
/// endless sequences.
#[rustfmt::skip]
pub(super) const TABLE: &[Builtin] = &[
    plain("repeat", CORE, "1-2", "(repeat n x)", "x, n times; without n endlessly.", repeat),
    plain("cycle", CORE, "1", "(cycle coll)", "The items again and again, endlessly.", cycle),
    plain("iterate", CORE, "2", "(iterate f x)", "x, (f x), (f (f x)) … endlessly: take a part.", iterate),
    callback("repeatedly", CORE, "1-2", "(repeatedly n f)", "The results of n calls of f; without n endlessly.", repeatedly),
    callback("%first", Category::Internal, "1", "(first coll)", "The first item, or nil.", |cx, a| positional(cx, "first", Some(0), a)),
    callback("%second", Category::Internal, "1", "(second coll)", "The second item, or nil.", |cx, a| positional(cx, "second", Some(1), a)),
    callback("%nth-item", Category::Internal, "2-3", "(nth coll index default?)", "The item at an index.", |cx, a| positional(cx, "nth", None, a)),
];

/// The fault of a consumer that needs all items.
#[cold]
pub(crate) fn unbounded(name: &str) -> Box<Fault> {
    Fault::type_error(format_args!("{name}: the sequence never ends"))
        .hint("Take a bounded part of it first: (take n coll) or (take-while pred coll).")
}

fn endless(kind: Endless, parts: Vec<Value>) -> Value {
    Value::Combinator(Combinator::new(CombinatorKind::Endless(kind), parts))
}

fn repeat(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let [count, item] = arguments else {
        return Ok(endless(Endless::Repeat, arguments.iter_mut().map(std::mem::take).collect()));
    };
    let count = length(count_argument(count, "repeat", 1)?);
    cx.reserve_items(count)?;
    cx.tick(count as u64)?;
    Ok(Value::vector(vec![std::mem::take(item); count]))
}

fn cycle(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let items = seq::argument(cx, std::mem::take(&mut arguments[0]), "cycle", 1)?;
    Ok(match items.is_empty() {
        true => Value::Vector(items),
        false => endless(Endless::Cycle, vec![Value::Vector(items)]),
    })
}

fn iterate(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let function = callable(cx, "iterate", std::mem::take(&mut arguments[0]))?;
    Ok(endless(Endless::Iterate, vec![function, std::mem::take(&mut arguments[1])]))
}

fn repeatedly(cx: &mut Context, arguments: &mut [Value]) -> Result<Step> {
    let last = arguments.len() - 1;
    let function = callable(cx, "repeatedly", std::mem::take(&mut arguments[last]))?;
    let sequence = endless(Endless::Repeatedly, vec![function]);
    match last {
        0 => Ok(Step::Return(sequence)),
        _ => pull(cx, &sequence, Consumer::Take(length(count_argument(&arguments[0], "repeatedly", 1)?))),
    }
}

fn pull(cx: &mut Context, sequence: &Value, consumer: Consumer) -> Result<Step> {
    Ok(Step::Enter(Native::Pull(Pull::new(cx, sequence, consumer)?)))
}

/// `(take n sequence)`.
pub(super) fn take(cx: &mut Context, arguments: &mut [Value]) -> Result<Step> {
    let count = length(count_argument(&arguments[0], "take", 1)?);
    pull(cx, &arguments[1], Consumer::Take(count))
}

/// `(drop n sequence)`.
pub(super) fn drop_first(count: i64, sequence: Value) -> Value {
    endless(Endless::Drop, vec![sequence, Value::Int(count.max(0))])
}

/// `first`, `second` and `nth`, whatever the sequence is.
fn positional(
    cx: &mut Context,
    name: &'static str,
    index: Option<usize>,
    arguments: &mut [Value],
) -> Result<Step> {
    if arguments[0].endless().is_none() {
        return Ok(match super::lookup(None, name).map(|builtin| builtin.info().implementation) {
            Some(super::Implementation::Plain(run)) => Step::Return(run(cx, arguments)?),
            _ => Step::Return(Value::Nil),
        });
    }
    let index = match index {
        Some(index) => index,
        None => match usize::try_from(count_argument(&arguments[1], name, 2)?) {
            Ok(index) => index,
            Err(_) => return Ok(Step::Return(arguments.get_mut(2).map(std::mem::take).unwrap_or_default())),
        },
    };
    pull(cx, &arguments[0], Consumer::Nth(index))
}

/// A function over one endless sequence: a part of it, or another endless sequence.
pub(super) fn each(
    cx: &mut Context,
    name: &'static str,
    kind: Kind,
    arguments: &mut [Value],
) -> Result<Step> {
    let function = callable(cx, name, std::mem::take(&mut arguments[0]))?;
    let sequence = std::mem::take(&mut arguments[1]);
    let stage = match kind {
        Kind::Map => Endless::Map,
        Kind::Filter => Endless::Filter,
        Kind::Remove => Endless::Remove,
        Kind::Keep => Endless::Keep,
        Kind::DropWhile => Endless::DropWhile,
        Kind::TakeWhile => return pull(cx, &sequence, Consumer::TakeWhile(function)),
        Kind::Some => return pull(cx, &sequence, Consumer::Some(function)),
        Kind::Every => return pull(cx, &sequence, Consumer::Every(function)),
        _ => return Err(unbounded(name)),
    };
    Ok(Step::Return(endless(stage, vec![sequence, function])))
}

/// Among collections that are walked side by side, cuts `repeat` and `cycle` to the shortest that ends.
pub(super) fn bound(cx: &mut Context, name: &'static str, arguments: &mut [Value]) -> Result<()> {
    if !arguments.iter().any(|argument| argument.endless().is_some()) {
        return Ok(());
    }
    let mut shortest: Option<usize> = None;
    for argument in arguments.iter_mut().filter(|argument| argument.endless().is_none()) {
        let items = seq::to_vector(cx, std::mem::take(argument), name)?;
        shortest = Some(shortest.map_or(items.len(), |shortest| shortest.min(items.len())));
        *argument = Value::Vector(items);
    }
    let Some(count) = shortest else { return Err(unbounded(name)) };
    for argument in arguments {
        let bounded = match argument.endless() {
            None => continue,
            Some((Endless::Repeat, [item])) => {
                cx.reserve_items(count)?;
                vec![item.clone(); count]
            }
            Some((Endless::Cycle, [Value::Vector(items)])) => {
                cx.reserve_items(count)?;
                let len = items.len().max(1);
                (0..count).map(|index| items.get(index % len).unwrap_or_default()).collect()
            }
            Some(_) => return Err(unbounded(name)),
        };
        cx.tick(count as u64)?;
        *argument = Value::Vector(VectorNode::new(bounded));
    }
    Ok(())
}
