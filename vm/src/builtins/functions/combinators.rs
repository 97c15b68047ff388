//! Builtins on functions as values: `comp`, `partial`, `memoize`, `apply`, `identity` and others.

use crate::builtins::functions::callbacks::callable;
use crate::builtins::{Builtin, Category, callback, direct};
use crate::bytecode::{CombinatorKind, Known};
use crate::context::{Context, Memos};
use crate::fault::Result;
use crate::memory::List;
use crate::native::Step;
use crate::value::Value;
use crate::value::combinator::Combinator;
use std::mem::take;

/// A row for a builtin that makes a combinator of any arguments.
macro_rules! combinator {
    ($name:literal $arity:literal $kind:ident $usage:literal $doc:literal) => {
        direct($name, Category::Core, $arity, $usage, $doc, |cx, a| combine(cx, CombinatorKind::$kind, a))
            .makes(CombinatorKind::$kind)
    };
}

/// The rows of this module.
#[rustfmt::skip]
pub(crate) const TABLE: &[Builtin] = &[
    combinator!("comp" "0+" Comp "(comp f …)" "A function that calls the functions right to left."),
    combinator!("partial" "1+" Partial "(partial f arg …)" "f with its first arguments given."),
    combinator!("juxt" "1+" Juxt "(juxt f …)" "A function that gives a vector of all results.").form("(juxt f ...)"),
    combinator!("complement" "1" Complement "(complement f)" "The logical opposite of f."),
    combinator!("constantly" "1" Constantly "(constantly v)" "A function that always gives v.").total(),
    combinator!("every-pred" "1+" EveryPred "(every-pred p …)" "True when all predicates hold."),
    combinator!("some-fn" "1+" SomeFn "(some-fn p …)" "The first truthy result of the functions."),
    combinator!("fnil" "2-4" Fnil "(fnil f default …)" "f with nil arguments replaced by defaults."),
    direct("memoize", Category::Core, "1", "(memoize f)", "f, which is called once for the same arguments.", memoize),
    direct("comparator", Category::Core, "1", "(comparator pred)", "pred itself: every comparator may be a predicate.", |cx, arguments| callable(cx, "comparator", take(&mut arguments[0]))),
    callback("apply", Category::Core, "2+", "(apply f arg … args)", "Calls f with the arguments and the items of args.", apply).known(Known::Apply),
    direct("identity", Category::Core, "1", "(identity x)", "Its argument.", identity).total().known(Known::Identity),
];

fn identity(_cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    Ok(take(&mut arguments[0]))
}

fn combine(cx: &mut Context, kind: CombinatorKind, arguments: &mut [Value]) -> Result<Value> {
    let items = List::taken(cx, arguments)?;
    Ok(Value::Combinator(Combinator::new(cx, kind, items)?))
}

fn memoize(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let function = callable(cx, "memoize", take(&mut arguments[0]))?;
    let table = Value::Int(Memos::add(cx)?);
    Ok(Value::Combinator(Combinator::from_parts(CombinatorKind::Memoize, [function, table])))
}

fn apply(cx: &mut Context, arguments: &mut [Value]) -> Result<Step> {
    let function = take(&mut arguments[0]);
    let last = arguments.len() - 1;
    let tail = take(&mut arguments[last]);
    if matches!(tail, Value::Int(_) | Value::Float(_) | Value::BigInt(_) | Value::Bool(_) | Value::Keyword(_))
        || tail.is_function()
    {
        return Err(tail.mistyped("apply expects collection as last argument"));
    }
    let tail = crate::collection::seq::to_vector(cx, tail, "apply")?;
    let all = cx.arguments(arguments[1..last].iter_mut().map(take).chain(tail.iter()))?;
    Ok(Step::TailCall(function, all))
}
