//! Builtins that walk nested collections: `walk`, `prewalk`, `postwalk`, `tree-seq`, and the conversion of all map keys
//! to keywords or strings.

use crate::builtins::functions::callbacks::callable;
use crate::builtins::{Builtin, Category, callback, direct};
use crate::bytecode::Known;
use crate::context::Context;
use crate::fault::Result;
use crate::native::tree::Tree;
use crate::native::walk::{Direction, Walk};
use crate::native::{Native, Step};
use crate::value::Value;
use crate::value::map::{ENTRY_BYTES, MapNode};
use std::mem::take;

const WALK: Category = Category::Walk;

/// The rows of this module.
#[rustfmt::skip]
pub(crate) const TABLE: &[Builtin] = &[
    callback("walk", WALK, "3", "(walk inner outer form)", "inner on every item of form, then outer on the collection they make.", walk),
    callback("prewalk", WALK, "2", "(prewalk f form)", "f on every part of form, a collection before its items.", |cx, a| deep(cx, "prewalk", Direction::Pre, a)),
    callback("postwalk", WALK, "2", "(postwalk f form)", "f on every part of form, a collection after its items.", |cx, a| deep(cx, "postwalk", Direction::Post, a)),
    callback("keywordize-keys", WALK, "1", "(keywordize-keys form)", "form with the string keys of all its maps turned into keywords.", |_, a| Ok(keys(Known::KeywordKeys, a))),
    callback("stringify-keys", WALK, "1", "(stringify-keys form)", "form with the keyword keys of all its maps turned into strings.", |_, a| Ok(keys(Known::StringKeys, a))),
    direct("%keyword-keys", Category::Internal, "1", "(%keyword-keys x)", "A map with its string keys turned into keywords.", keyword_keys).known(Known::KeywordKeys),
    direct("%string-keys", Category::Internal, "1", "(%string-keys x)", "A map with its keyword keys turned into strings.", string_keys).known(Known::StringKeys),
    callback("tree-seq", Category::Core, "3", "(tree-seq branch? children root)", "The nodes of a tree, parents before their children.", tree_seq),
];

fn walk(cx: &mut Context, arguments: &mut [Value]) -> Result<Step> {
    let inner = callable(cx, "walk", take(&mut arguments[0]))?;
    let outer = callable(cx, "walk", take(&mut arguments[1]))?;
    Ok(Step::Enter(Native::Walk(Walk::once(inner, outer, take(&mut arguments[2])))))
}

fn deep(cx: &mut Context, name: &'static str, direction: Direction, arguments: &mut [Value]) -> Result<Step> {
    let function = callable(cx, name, take(&mut arguments[0]))?;
    Ok(Step::Enter(Native::Walk(Walk::deep(direction, function, take(&mut arguments[1])))))
}

/// A walk with a function that changes the keys of one map.
fn keys(function: Known, arguments: &mut [Value]) -> Step {
    let (function, form) = (Value::Builtin(function.id()), take(&mut arguments[0]));
    Step::Enter(Native::Walk(Walk::deep(Direction::Post, function, form)))
}

fn keyword_keys(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    change_keys(cx, take(&mut arguments[0]), |cx, key| match key {
        // Texts that an isolate does not intern stay strings; lookups treat both alike.
        Value::Str(text) => {
            let text = cx.read(text)?;
            Ok(cx.symbols.intern_dynamic(text).map(Value::Keyword))
        }
        _ => Ok(None),
    })
}

fn string_keys(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    change_keys(cx, take(&mut arguments[0]), |cx, key| match key {
        Value::Keyword(symbol) => Ok(Some(Value::Str(cx.symbols.string(*symbol).clone()))),
        _ => Ok(None),
    })
}

/// A map with the keys replaced for which `change` has an answer; any other value unchanged.
fn change_keys(
    cx: &mut Context,
    value: Value,
    change: impl Fn(&mut Context, &Value) -> Result<Option<Value>>,
) -> Result<Value> {
    let Value::Map(map) = value else { return Ok(value) };
    cx.reserve(map.len().saturating_mul(ENTRY_BYTES))?;
    let mut changed = MapNode::with_capacity(map.len());
    for &row in map.order(cx)? {
        cx.tick(1)?;
        let entry = map.entry(row as usize);
        let key = change(cx, entry.key)?.unwrap_or_else(|| entry.key.clone());
        changed = MapNode::insert(changed, cx, key, entry.value.clone())?;
    }
    Ok(Value::Map(changed))
}

fn tree_seq(cx: &mut Context, arguments: &mut [Value]) -> Result<Step> {
    let branch = callable(cx, "tree-seq", take(&mut arguments[0]))?;
    let children = callable(cx, "tree-seq", take(&mut arguments[1]))?;
    Ok(Step::Enter(Native::Tree(Tree::new(branch, children, take(&mut arguments[2])))))
}
