//! Builtins that programs cannot name: the compiler emits calls of them to implement forms such as destructuring,
//! `doseq`, `dotimes` and `task`.

use crate::builtins::{Builtin, Category, direct};
use crate::bytecode::Known;
use crate::collection::lookup::{element, index};
use crate::collection::seq;
use crate::context::Context;
use crate::fault::{Fault, Reason, Result, Wanted};
use crate::memory::List;
use crate::value::Value;
use crate::value::build::Text;
use crate::value::map::MapNode;
use crate::value::vector::VectorNode;
use std::mem::take;
use std::rc::Rc;

/// The rows of this module.
#[rustfmt::skip]
pub(crate) const TABLE: &[Builtin] = &[
    row("%seq", "1", "(%seq coll)", "The vector that for and doseq iterate.", iterated).known(Known::Items),
    row("%times", "1", "(%times n)", "The integers that dotimes counts through.", times).known(Known::Times),
    row("%vector-pattern", "1", "(%vector-pattern x)", "The source of a sequential pattern as a vector.", vector_pattern).known(Known::VectorPattern),
    row("%nth", "2", "(%nth v i)", "One item of such a vector, or nil.", nth).known(Known::Element).total(),
    row("%rest-from", "2", "(%rest-from v i)", "The items of such a vector from an index on.", rest_from).known(Known::RestFrom),
    row("%map-pattern", "1", "(%map-pattern x)", "The source of a map pattern: a map or nil.", map_pattern).known(Known::MapPattern),
    row("%kwargs", "1", "(%kwargs v)", "The map that keyword arguments make.", kwargs).known(Known::KeywordArguments),
    row("%get", "2", "(%get x k)", "What a key finds, nil in any other value.", get).known(Known::Entry),
    row("%get-or", "3", "(%get-or x k default)", "What a key finds, or the default.", get_or).known(Known::EntryOr),
    row("%lookup", "3", "(%lookup x k default)", "(k x default) of a keyword k.", get_or).known(Known::LookUp),
    row("%take-range", "4", "(%take-range n start end step)", "(take n (range start end step)), where the step may be 0.", take_range).known(Known::TakeRange),
    row("%endless?", "1", "(%endless? x)", "Whether x is a sequence without an end.", is_endless).known(Known::IsEndless),
    row("%task-id", "1", "(task id expr)", "Checks the id of a task.", |cx, a| journal_text(cx, "task", "id", &a[0])).known(Known::TaskId),
    row("%task-reset", "1", "(task-reset id)", "Forgets a task.", |cx, a| journal_text(cx, "task-reset", "id", &a[0]).map(|_| Value::Nil)).known(Known::TaskReset),
    row("%step-done", "2", "(step-done id summary)", "Reports a step.", |cx, a| {
        journal_text(cx, "step-done", "id", &a[0])?;
        journal_text(cx, "step-done", "summary", &a[1])?;
        Ok(take(&mut a[1]))
    }).known(Known::StepDone),
];

pub(super) const fn row(
    name: &'static str,
    arity: &str,
    usage: &'static str,
    doc: &'static str,
    run: fn(&mut Context, &mut [Value]) -> Result<Value>,
) -> Builtin {
    direct(name, Category::Internal, arity, usage, doc, run)
}

fn iterated(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    Ok(Value::Vector(seq::to_vector(cx, take(&mut arguments[0]), "for")?))
}

fn is_endless(_cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    Ok(Value::Bool(arguments[0].endless().is_some()))
}

/// An id or summary of the journal: a scalar that is shown as text.
fn journal_text(cx: &mut Context, form: &str, what: &str, value: &Value) -> Result<Value> {
    let text = matches!(
        value,
        Value::Str(_)
            | Value::Keyword(_)
            | Value::Symbol(_)
            | Value::Int(_)
            | Value::BigInt(_)
            | Value::Bool(_)
    );
    if !text {
        return Err(value.mistyped(format_args!("({form}) {what} must be a string")));
    }
    let mut text = Text::new();
    crate::print::write_display(cx, &mut text, value)?;
    Ok(text.into_value())
}

fn times(_cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let count = seq::length(seq::count_argument(&arguments[0], "dotimes", 1)?);
    Ok(Value::Vector(VectorNode::range(0, 1, count)))
}

/// A value that does not fit its pattern: `expected …, got …`.
fn mismatch(expected: &str, got: &Value) -> Box<Fault> {
    let word = got.type_word();
    Fault::new(Reason::DestructureError, format_args!("expected {expected}, got {word}"))
        .mismatch(Wanted::Pattern, &[word])
}

pub(crate) fn vector_pattern(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    match take(&mut arguments[0]) {
        value @ (Value::Vector(_) | Value::Nil | Value::Str(_)) => {
            Ok(Value::Vector(seq::to_vector(cx, value, "destructuring")?))
        }
        other => Err(mismatch("list or nil", &other)),
    }
}

fn nth(_cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let item = match &arguments[0] {
        Value::Vector(vector) => index(&arguments[1]).and_then(|index| vector.get(index)),
        _ => None,
    };
    Ok(item.unwrap_or_default())
}

fn rest_from(_cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let start = index(&arguments[1]).unwrap_or(0);
    Ok(Value::Vector(match take(&mut arguments[0]) {
        // Dropping the first item in place keeps `[h & t]` recursion free of allocation.
        Value::Vector(vector) if start == 1 => VectorNode::rest(vector),
        Value::Vector(vector) => VectorNode::slice(&vector, start, usize::MAX),
        _ => List::default().into_vector(),
    }))
}

fn map_pattern(_cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    match take(&mut arguments[0]) {
        map @ (Value::Map(_) | Value::Nil) => Ok(map),
        other => Err(mismatch("map or nil", &other)),
    }
}

fn kwargs(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    match take(&mut arguments[0]) {
        map @ (Value::Map(_) | Value::Nil) => Ok(map),
        Value::Vector(pairs) => keyword_arguments(cx, &pairs),
        other => Err(mismatch("keyword args", &other)),
    }
}

/// Keys and values in turn; a map may stand at the end, as in Clojure 1.11.
fn keyword_arguments(cx: &mut Context, pairs: &VectorNode) -> Result<Value> {
    let (count, trailing) = match pairs.len().checked_sub(1).and_then(|last| pairs.get(last)) {
        Some(Value::Map(map)) if pairs.len() % 2 == 1 => (pairs.len() - 1, Some(map)),
        _ => (pairs.len(), None),
    };
    if count % 2 == 1 {
        let message = format_args!("keyword args must be even, got odd count: {count}");
        return Err(Fault::new(Reason::DestructureError, message)
            .hint("Pass each name with its value, as in (f x :limit 10)."));
    }
    let mut map: Rc<MapNode> = MapNode::empty();
    for at in (0..count).step_by(2) {
        cx.tick(1)?;
        let (key, value) = (pairs.get(at).unwrap_or_default(), pairs.get(at + 1).unwrap_or_default());
        map = MapNode::insert(map, cx, key, value)?;
    }
    if let Some(trailing) = trailing {
        map = crate::collection::adding::merge(cx, map, &trailing)?;
    }
    Ok(Value::Map(map))
}

fn get(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    Ok(keyed(cx, &arguments[0], &arguments[1])?.unwrap_or_default())
}

fn get_or(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    Ok(keyed(cx, &arguments[0], &arguments[1])?.unwrap_or_else(|| take(&mut arguments[2])))
}

/// The value of a key in a map or set; other values have no keys.
pub(super) fn keyed(cx: &mut Context, coll: &Value, key: &Value) -> Result<Option<Value>> {
    match coll {
        Value::Map(_) | Value::Set(_) => element(cx, coll, key),
        _ => Ok(None),
    }
}

/// With step 0 the range never ends, so only its first items are available.
fn take_range(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let count = seq::length(seq::count_argument(&arguments[0], "take", 1)?);
    let endless = match arguments {
        [_, Value::Int(start), Value::Int(end), Value::Int(0)] => start != end,
        _ => false,
    };
    if endless {
        return Ok(cx.collect(std::iter::repeat_n(take(&mut arguments[1]), count))?.into_value());
    }
    let whole = crate::builtins::collections::construction::range(cx, &mut arguments[1..])?;
    let vector = seq::to_vector(cx, whole, "take")?;
    Ok(Value::Vector(VectorNode::slice(&vector, 0, count)))
}
