//! Builtins that pick items or a part of a sequence by position. Parts share the items of the whole.

use crate::builtins::functions::transducers::{short_of_items, transducer};
use crate::builtins::{Builtin, Category, callback, direct};
use crate::bytecode::{Known, StageKind};
use crate::collection::lookup::grapheme;
use crate::collection::seq;
use crate::collection::seq::{count_argument, length};
use crate::context::Context;
use crate::fault::Result;
use crate::native::Step;
use crate::value::Value;
use crate::value::vector::VectorNode;
use std::mem::take;
use std::rc::Rc;

const CORE: Category = Category::Core;

/// The rows of this module.
#[rustfmt::skip]
pub(crate) const TABLE: &[Builtin] = &[
    direct("first", CORE, "1", "(first coll)", "The first item, or nil.", first).where_endless(Known::EndlessFirst).known(Known::First),
    direct("second", CORE, "1", "(second coll)", "The second item, or nil.", second).where_endless(Known::EndlessSecond).known(Known::Second),
    direct("last", CORE, "1", "(last coll)", "The last item, or nil.", last),
    direct("nth", CORE, "2-3", "(nth coll index default?)", "The item at an index, nil when out of range.", nth).where_endless(Known::EndlessNth).known(Known::Nth),
    direct("rest", CORE, "1", "(rest coll)", "Everything but the first item; [] when nothing is left.", rest).known(Known::Rest),
    direct("next", CORE, "1", "(next coll)", "Everything but the first item; nil when nothing is left.", next),
    direct("butlast", CORE, "1", "(butlast coll)", "Everything but the last item; nil when nothing is left.", butlast),
    direct("ffirst", CORE, "1", "(ffirst coll)", "The first item of the first item.", ffirst),
    direct("fnext", CORE, "1", "(fnext coll)", "The first item of what follows: the second item.", fnext),
    direct("nfirst", CORE, "1", "(nfirst coll)", "What follows in the first item; nil when nothing is left.", nfirst),
    direct("nnext", CORE, "1", "(nnext coll)", "Everything but the first two items, or nil.", nnext),
    callback("take", CORE, "1-2", "(take n coll?)", "The first n items.", |cx, a| match a {
        [count] => transducer(cx, "take", StageKind::Take, Some(count)).map(Step::Return),
        [_, coll] if coll.endless().is_some() => crate::builtins::functions::endless::take(cx, a),
        _ => take_first(cx, a).map(Step::Return),
    }).known(Known::Take),
    direct("drop", CORE, "1-2", "(drop n coll?)", "Everything but the first n items.", drop_first),
    direct("take-last", CORE, "2", "(take-last n coll)", "The last n items; nil when the collection is empty.", take_last),
    direct("drop-last", CORE, "1-2", "(drop-last n? coll)", "Everything but the last n items (one by default).", drop_last),
    direct("nthrest", CORE, "2", "(nthrest coll n)", "Everything but the first n items.", nthrest),
    direct("nthnext", CORE, "2", "(nthnext coll n)", "Everything but the first n items; nil when nothing is left.", nthnext),
    direct("split-at", CORE, "2", "(split-at n coll)", "[(take n coll) (drop n coll)].", split_at),
    direct("splitv-at", CORE, "2", "(splitv-at n coll)", "The same as `split-at`.", split_at),
    direct("subvec", CORE, "2-3", "(subvec v start end?)", "The items from start up to end; indexes are clamped.", subvec),
    direct("peek", CORE, "1", "(peek v)", "The last item of a vector, or nil.", peek),
    direct("pop", CORE, "1", "(pop v)", "A vector without its last item; nil when there is none.", pop),
    direct("rseq", CORE, "1", "(rseq v)", "The items in the opposite order; nil when there are none.", |cx, a| match reverse(cx, a)? {
        Value::Vector(vector) => Ok(or_nil(vector)),
        other => Ok(other),
    }),
    direct("doall", CORE, "1-2", "(doall coll)", "The collection itself: everything is eager.", |_cx, a| Ok(a.last_mut().map(take).unwrap_or_default())),
    direct("dorun", CORE, "1-2", "(dorun coll)", "nil: everything is eager.", |_cx, _a| Ok(Value::Nil)),
    direct("reverse", CORE, "1", "(reverse coll)", "The items in the opposite order.", reverse),
];

/// One item; maps and sets have theirs in key order.
fn item(cx: &mut Context, coll: &Value, index: usize, name: &'static str) -> Result<Option<Value>> {
    match coll {
        Value::Vector(node) => Ok(node.get(index)),
        Value::Nil => Ok(None),
        Value::Str(node) => grapheme(cx, node, index),
        Value::Map(map) => {
            let row = map.order(cx)?.get(index).copied();
            Ok(row.map(|row| seq::entry(map, row as usize)))
        }
        Value::Set(set) => {
            let row = set.order(cx)?.get(index).copied();
            Ok(row.map(|row| set.member(row as usize).clone()))
        }
        other => Err(seq::invalid(name, other)),
    }
}

pub(crate) fn first(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    Ok(item(cx, &arguments[0], 0, "first")?.unwrap_or_default())
}

pub(crate) fn second(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    Ok(item(cx, &arguments[0], 1, "second")?.unwrap_or_default())
}

fn last(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    if let Value::Str(node) = &arguments[0] {
        cx.tick(1)?;
        let last = cx.last_grapheme(node)?;
        return last.map_or(Ok(Value::Nil), |last| cx.copy_text(last));
    }
    let end = match &arguments[0] {
        Value::Vector(node) => node.len(),
        Value::Map(map) => map.len(),
        Value::Set(set) => set.len(),
        _ => 1,
    };
    match end.checked_sub(1) {
        Some(index) => Ok(item(cx, &arguments[0], index, "last")?.unwrap_or_default()),
        None => Ok(Value::Nil),
    }
}

pub(crate) fn nth(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let index = count_argument(&arguments[1], "nth", 2)?;
    // A negative index is out of range, but the collection is checked all the same.
    let index = usize::try_from(index).unwrap_or(usize::MAX);
    let item = item(cx, &arguments[0], index, "nth")?;
    Ok(item.unwrap_or_else(|| arguments.get_mut(2).map(take).unwrap_or_default()))
}

/// The sequence without its first item; in place if it is not shared.
fn tail(cx: &mut Context, coll: Value, name: &'static str) -> Result<Rc<VectorNode>> {
    Ok(VectorNode::rest(seq::positional(cx, coll, name)?))
}

/// nil instead of an empty sequence.
fn or_nil(vector: Rc<VectorNode>) -> Value {
    if vector.is_empty() { Value::Nil } else { Value::Vector(vector) }
}

fn rest(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    if arguments[0].endless().is_some() {
        return Ok(crate::builtins::functions::endless::drop_first(1, take(&mut arguments[0])));
    }
    Ok(Value::Vector(tail(cx, take(&mut arguments[0]), "rest")?))
}

fn next(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    if arguments[0].endless().is_some() {
        return rest(cx, arguments);
    }
    Ok(or_nil(tail(cx, take(&mut arguments[0]), "next")?))
}

fn butlast(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let vector = seq::positional(cx, take(&mut arguments[0]), "butlast")?;
    Ok(or_nil(without_last(vector, 1)))
}

fn ffirst(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let head = item(cx, &arguments[0], 0, "ffirst")?.unwrap_or_default();
    Ok(item(cx, &head, 0, "ffirst")?.unwrap_or_default())
}

fn fnext(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    Ok(item(cx, &arguments[0], 1, "fnext")?.unwrap_or_default())
}

fn nfirst(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let head = item(cx, &arguments[0], 0, "nfirst")?.unwrap_or_default();
    Ok(or_nil(tail(cx, head, "nfirst")?))
}

fn nnext(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let vector = seq::positional(cx, take(&mut arguments[0]), "nnext")?;
    Ok(or_nil(VectorNode::slice(&vector, 2, usize::MAX)))
}

fn take_first(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let count = length(count_argument(&arguments[0], "take", 1)?);
    let vector = seq::argument(cx, take(&mut arguments[1]), "take", 2)?;
    Ok(Value::Vector(VectorNode::slice(&vector, 0, count)))
}

fn drop_first(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    if let Some(value) = short_of_items(cx, "drop", StageKind::Drop, arguments)? {
        return Ok(value);
    }
    let count = length(count_argument(&arguments[0], "drop", 1)?);
    let vector = seq::argument(cx, take(&mut arguments[1]), "drop", 2)?;
    Ok(Value::Vector(VectorNode::slice(&vector, count, usize::MAX)))
}

fn take_last(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let count = count_argument(&arguments[0], "take-last", 1)?;
    let vector = seq::argument(cx, take(&mut arguments[1]), "take-last", 2)?;
    if count < 0 || vector.is_empty() {
        return Ok(Value::Nil);
    }
    let start = vector.len().saturating_sub(length(count));
    Ok(Value::Vector(VectorNode::slice(&vector, start, usize::MAX)))
}

/// Everything but the last `count` items.
fn without_last(vector: Rc<VectorNode>, count: usize) -> Rc<VectorNode> {
    VectorNode::slice(&vector, 0, vector.len().saturating_sub(count))
}

fn drop_last(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let (count, at) = match arguments.len() {
        1 => (1, 0),
        _ => (length(count_argument(&arguments[0], "drop-last", 1)?), 1),
    };
    let vector = seq::argument(cx, take(&mut arguments[at]), "drop-last", at + 1)?;
    Ok(Value::Vector(without_last(vector, count)))
}

fn nthrest(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    behind(cx, "nthrest", arguments)
}

fn nthnext(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    match behind(cx, "nthnext", arguments)? {
        Value::Vector(vector) => Ok(or_nil(vector)),
        endless => Ok(endless),
    }
}

/// Everything but the first items of `(coll n)`.
fn behind(cx: &mut Context, name: &'static str, arguments: &mut [Value]) -> Result<Value> {
    let count = count_argument(&arguments[1], name, 2)?;
    if arguments[0].endless().is_some() {
        return Ok(crate::builtins::functions::endless::drop_first(count, take(&mut arguments[0])));
    }
    let vector = seq::argument(cx, take(&mut arguments[0]), name, 1)?;
    Ok(Value::Vector(VectorNode::slice(&vector, length(count), usize::MAX)))
}

fn split_at(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let count = length(count_argument(&arguments[0], "split-at", 1)?);
    let vector = seq::argument(cx, take(&mut arguments[1]), "split-at", 2)?;
    let left = VectorNode::slice(&vector, 0, count);
    let right = VectorNode::slice(&vector, count, usize::MAX);
    Ok(seq::pair(Value::Vector(left), Value::Vector(right)))
}

fn subvec(_cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let start = length(count_argument(&arguments[1], "subvec", 2)?);
    let end = match arguments.get(2) {
        Some(end) => length(count_argument(end, "subvec", 3)?),
        None => usize::MAX,
    };
    match &arguments[0] {
        Value::Vector(vector) => Ok(Value::Vector(VectorNode::slice(vector, start, end))),
        other => Err(seq::expected("subvec", 1, "list", other)),
    }
}

fn peek(_cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    match &arguments[0] {
        Value::Nil => Ok(Value::Nil),
        Value::Vector(node) => {
            Ok(node.len().checked_sub(1).and_then(|index| node.get(index)).unwrap_or_default())
        }
        other => Err(seq::invalid("peek", other)),
    }
}

fn pop(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    match take(&mut arguments[0]) {
        Value::Nil => Ok(Value::Nil),
        Value::Vector(node) if node.is_empty() => Ok(Value::Nil),
        Value::Vector(mut node) => {
            let in_place = Rc::strong_count(&node) == 1 && node.as_slice().is_some();
            Ok(Value::Vector(if in_place {
                drop(VectorNode::exclusive(&mut node, cx, 0)?.pop());
                node
            } else {
                without_last(node, 1)
            }))
        }
        other => Err(seq::invalid("pop", &other)),
    }
}

fn reverse(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let mut vector = seq::positional(cx, take(&mut arguments[0]), "reverse")?;
    let items = VectorNode::exclusive(&mut vector, cx, 0)?;
    let len = items.len();
    for at in 0..len / 2 {
        cx.tick(2)?;
        items.swap(at, len - 1 - at);
    }
    cx.tick((len % 2) as u64)?;
    Ok(Value::Vector(vector))
}
