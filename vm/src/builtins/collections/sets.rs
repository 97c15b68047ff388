//! Builtins that make and combine sets, such as `hash-set`, `union`, `difference` and `disj`. `contains?`, which tests
//! any collection, is here as well.

use crate::builtins::{Builtin, Category, direct};
use crate::collection::adding::add_members;
use crate::collection::lookup::{element, index, position};
use crate::collection::seq;
use crate::collection::seq::expected;
use crate::context::Context;
use crate::fault::Result;
use crate::value::Value;
use crate::value::set::SetNode;
use std::mem::take;
use std::rc::Rc;

/// The rows of this module.
#[rustfmt::skip]
pub(crate) const TABLE: &[Builtin] = &[
    direct("set", Category::Set, "1", "(set coll)", "A set of the items of any collection.", set),
    direct("hash-set", Category::Set, "0+", "(hash-set item …)", "A set of the arguments.", hash_set),
    direct("sorted-set", Category::Set, "0+", "(sorted-set item …)", "A set of the arguments; every set is in key order.", hash_set),
    direct("contains?", Category::Core, "2", "(contains? coll key)", "True when a map has the key, a set the member, a vector the value.", contains),
    direct("disj", Category::Set, "1+", "(disj s item …)", "The set without these members.", disj),
    direct("union", Category::Set, "0+", "(union s …)", "The members of any of the sets.", union),
    direct("intersection", Category::Set, "1+", "(intersection s …)", "The members of the first set that are in all others.", intersection),
    direct("difference", Category::Set, "1+", "(difference s …)", "The members of the first set that are in no other.", difference),
];

fn set(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    add_members(cx, SetNode::empty(), take(&mut arguments[0]), "set", 1).map(Value::Set)
}

fn hash_set(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    cx.reserve_items(arguments.len())?;
    let mut set: Rc<SetNode> = SetNode::with_capacity(arguments.len());
    for item in arguments {
        cx.tick(1)?;
        set = SetNode::insert(set, cx, take(item))?;
    }
    Ok(Value::Set(set))
}

fn contains(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let (coll, key) = (&arguments[0], &arguments[1]);
    let found = match coll {
        Value::Nil => false,
        Value::Map(map) => map.find_flexible(cx, key)?.is_some(),
        Value::Set(set) => set.find(cx, key)?.is_some(),
        // By value, not by index as in Clojure.
        Value::Vector(vector) => position(cx, vector, key)?.is_some(),
        Value::Str(_) => element(cx, coll, key)?.is_some(),
        other => return Err(expected("contains?", 1, "collection", other)),
    };
    Ok(Value::Bool(found))
}

/// The set that is the first argument; `None` for nil.
fn first_set(arguments: &mut [Value], name: &str) -> Result<Option<Rc<SetNode>>> {
    match take(&mut arguments[0]) {
        Value::Nil => Ok(None),
        Value::Set(set) => Ok(Some(set)),
        other => Err(expected(name, 1, "set", &other)),
    }
}

fn disj(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let Some(mut set) = first_set(arguments, "disj")? else { return Ok(Value::Nil) };
    for item in &arguments[1..] {
        cx.tick(1)?;
        set = SetNode::remove(set, cx, item)?;
    }
    Ok(Value::Set(set))
}

fn union(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    if let [Value::Nil] = arguments {
        return Ok(Value::Nil);
    }
    let mut all: Rc<SetNode> = SetNode::empty();
    for (at, coll) in arguments.iter_mut().enumerate() {
        all = add_members(cx, all, take(coll), "union", at + 1)?;
    }
    Ok(Value::Set(all))
}

fn intersection(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let Some(mut common) = first_set(arguments, "intersection")? else { return Ok(Value::Nil) };
    for (at, other) in arguments.iter().enumerate().skip(1) {
        if other.is_nil() {
            return Ok(Value::Nil);
        }
        let mut kept: Rc<SetNode> = SetNode::empty();
        for member in common.members() {
            cx.tick(1)?;
            let inside = match other {
                Value::Set(other) => other.find(cx, member)?.is_some(),
                Value::Map(other) => other.find(cx, member)?.is_some(),
                // As in Clojure, a vector contains its indexes.
                Value::Vector(other) => index(member).is_some_and(|index| index < other.len()),
                other => return Err(expected("intersection", at + 1, "set", other)),
            };
            if inside {
                kept = SetNode::insert(kept, cx, member.clone())?;
            }
        }
        common = kept;
    }
    Ok(Value::Set(common))
}

fn difference(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let Some(mut left) = first_set(arguments, "difference")? else { return Ok(Value::Nil) };
    for (at, removed) in arguments.iter_mut().enumerate().skip(1) {
        if let Value::Set(removed) = removed {
            for member in removed.members() {
                cx.tick(1)?;
                left = SetNode::remove(left, cx, member)?;
            }
            continue;
        }
        for item in seq::argument(cx, take(removed), "difference", at + 1)?.iter() {
            cx.tick(1)?;
            left = SetNode::remove(left, cx, &item)?;
        }
    }
    Ok(Value::Set(left))
}
