//! Builtins that make functions of functions.

use crate::builtins::functions::callbacks::callable;
use crate::builtins::{Builtin, Category, callback, direct};
use crate::bytecode::{CombinatorKind, Known};
use crate::context::{Context, Memos};
use crate::fault::{Fault, Result};
use crate::memory::List;
use crate::native::Step;
use crate::value::Value;
use crate::value::combinator::Combinator;
use std::mem::take;

/// The rows of this module.
pub(crate) const TABLE: &[Builtin] = &[
    direct(
        "comp",
        Category::Core,
        "0+",
        "(comp f …)",
        "A function that calls the functions right to left.",
        comp,
    )
    .makes(CombinatorKind::Comp),
    direct(
        "partial",
        Category::Core,
        "1+",
        "(partial f arg …)",
        "f with its first arguments given.",
        partial,
    )
    .makes(CombinatorKind::Partial),
    direct(
        "juxt",
        Category::Core,
        "1+",
        "(juxt f …)",
        "A function that gives a vector of all results.",
        juxt,
    )
    .form("(juxt f ...)")
    .makes(CombinatorKind::Juxt),
    direct("complement", Category::Core, "1", "(complement f)", "The logical opposite of f.", complement)
        .makes(CombinatorKind::Complement),
    direct(
        "constantly",
        Category::Core,
        "1",
        "(constantly v)",
        "A function that always gives v.",
        constantly,
    )
    .makes(CombinatorKind::Constantly)
    .total(),
    direct(
        "every-pred",
        Category::Core,
        "1+",
        "(every-pred p …)",
        "True when all predicates hold.",
        every_pred,
    )
    .makes(CombinatorKind::EveryPred),
    direct(
        "some-fn",
        Category::Core,
        "1+",
        "(some-fn p …)",
        "The first truthy result of the functions.",
        some_fn,
    )
    .makes(CombinatorKind::SomeFn),
    direct(
        "fnil",
        Category::Core,
        "2-4",
        "(fnil f default …)",
        "f with nil arguments replaced by defaults.",
        fnil,
    )
    .makes(CombinatorKind::Fnil),
    direct(
        "memoize",
        Category::Core,
        "1",
        "(memoize f)",
        "f, which is called once for the same arguments.",
        memoize,
    ),
    direct(
        "comparator",
        Category::Core,
        "1",
        "(comparator pred)",
        "pred itself: every comparator may be a predicate.",
        |cx, arguments| callable(cx, "comparator", take(&mut arguments[0])),
    ),
    callback(
        "apply",
        Category::Core,
        "2+",
        "(apply f arg … args)",
        "Calls f with the arguments and the items of args.",
        apply,
    )
    .known(Known::Apply),
];

fn combine(cx: &mut Context, kind: CombinatorKind, arguments: &mut [Value]) -> Result<Value> {
    let items = List::taken(cx, arguments)?;
    Ok(Value::Combinator(Combinator::new(cx, kind, items)?))
}

fn comp(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    combine(cx, CombinatorKind::Comp, arguments)
}

fn partial(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    combine(cx, CombinatorKind::Partial, arguments)
}

fn juxt(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    combine(cx, CombinatorKind::Juxt, arguments)
}

fn complement(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    combine(cx, CombinatorKind::Complement, arguments)
}

fn constantly(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    combine(cx, CombinatorKind::Constantly, arguments)
}

fn every_pred(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    combine(cx, CombinatorKind::EveryPred, arguments)
}

fn some_fn(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    combine(cx, CombinatorKind::SomeFn, arguments)
}

fn fnil(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    combine(cx, CombinatorKind::Fnil, arguments)
}

fn memoize(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let function = callable(cx, "memoize", take(&mut arguments[0]))?;
    let table = Value::Int(Memos::add(cx)?);
    Ok(Value::Combinator(Combinator::of(CombinatorKind::Memoize, [function, table])))
}

fn apply(cx: &mut Context, arguments: &mut [Value]) -> Result<Step> {
    let function = take(&mut arguments[0]);
    let last = arguments.len() - 1;
    let tail = take(&mut arguments[last]);
    if matches!(tail, Value::Int(_) | Value::Float(_) | Value::BigInt(_) | Value::Bool(_) | Value::Keyword(_))
        || tail.is_function()
    {
        return Err(Fault::type_error(format_args!(
            "apply expects collection as last argument, got {}",
            tail.type_word()
        )));
    }
    let tail = crate::collection::seq::to_vector(cx, tail, "apply")?;
    let all = cx.arguments(arguments[1..last].iter_mut().map(take).chain(tail.iter()))?;
    Ok(Step::TailCall(function, all))
}
