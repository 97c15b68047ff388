//! The builtin `describe`: summarises a value in a map of bounded size, so that a program can learn the shape of data
//! without printing it.

mod field;
mod paths;

use super::{Builtin, Category, direct};
use crate::collection::seq;
use crate::context::Context;
use crate::fault::Result;
use crate::memory::List;
use crate::value::Value;
use crate::value::map::MapNode;
use crate::value::string::StringNode;
use field::{Field, Fields, example};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// The rows of this module.
pub(super) const TABLE: &[Builtin] = &[direct(
    "describe",
    Category::Core,
    "1-2",
    "(describe value {:paths true :depth 2 :sample 3})",
    "A bounded summary of the shape of a value: types, keys, examples, ranges.",
    describe,
)];

/// Items of a collection that are examined.
const MOST_ITEMS: usize = 1_000;
/// Keys, of one map or of all maps of a collection, that are listed separately.
const MOST_KEYS: usize = 100;
/// Examples of one field.
const MOST_EXAMPLES: i64 = 3;
/// Levels of maps that `:paths` follows.
const MOST_DEPTH: i64 = 5;

/// The second argument.
#[derive(Clone, Copy)]
struct Options {
    depth: usize,
    examples: usize,
    paths: bool,
}

/// Entries of a summary, by the names of keywords.
type Summary = List<(&'static str, Value)>;

/// The text of a key or of a path.
type Name = Rc<StringNode>;

/// The names of the limits that were hit.
type Caps = BTreeSet<&'static str>;

/// How often each type occurs.
type Types = BTreeMap<&'static str, i64>;

fn describe(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let options = options(cx, arguments.get(1))?;
    let value = &arguments[0];
    let mut caps = Caps::new();
    let kind = cx.copy_text(type_name(value))?;
    let mut summary = Summary::from_array([("type", kind)]);
    match value {
        Value::Map(map) => {
            summary.push(cx, ("count", Value::Int(map.len() as i64)))?;
            let mut fields = Fields::default();
            fields.add_entries(cx, map, 0, options, &mut caps)?;
            fields.finish(cx, None, &mut summary)?;
        }
        Value::Vector(_) | Value::Set(_) => {
            let items = seq::to_vector(cx, value.clone(), "describe")?;
            let scanned = items.len().min(MOST_ITEMS);
            if items.len() > MOST_ITEMS {
                caps.insert("max_items");
            }
            let (mut types, mut fields, mut maps) = (Types::new(), Fields::default(), 0);
            // From the last item to the first: the newest rows of a log come last and make the best examples.
            for owner in (0..scanned).rev() {
                let item = items.get(owner).unwrap_or_default();
                cx.tick(1)?;
                *types.entry(type_name(&item)).or_default() += 1;
                if let (Value::Map(map), Value::Vector(_)) = (&item, value) {
                    maps += 1;
                    fields.add_entries(cx, map, owner, options, &mut caps)?;
                }
            }
            summary.push(cx, ("count", Value::Int(items.len() as i64)))?;
            summary.push(cx, ("scanned", Value::Int(scanned as i64)))?;
            let item_types = histogram(cx, &types)?;
            summary.push(cx, ("item_types", item_types))?;
            if maps > 0 {
                fields.finish(cx, Some(scanned), &mut summary)?;
            }
        }
        scalar => {
            let mut field = Field::default();
            field.add(cx, scalar, 0, options.examples)?;
            let entries = field.finish(cx, None)?;
            summary.extend(cx, entries)?;
            let sample = example(cx, scalar)?;
            summary.push(cx, ("sample", sample))?;
        }
    }
    if options.paths {
        let paths = paths::paths(cx, value, options, &mut caps)?;
        summary.push(cx, ("paths", paths))?;
    }
    if !caps.is_empty() {
        summary.push(cx, ("truncated", Value::Bool(true)))?;
        let mut names = List::default();
        for cap in &caps {
            let name = cx.copy_text(cap)?;
            names.push(cx, name)?;
        }
        summary.push(cx, ("caps_hit", names.into_value()))?;
    }
    keyword_map(cx, summary)
}

fn options(cx: &mut Context, given: Option<&Value>) -> Result<Options> {
    let mut options = Options { depth: 1, examples: MOST_EXAMPLES as usize, paths: false };
    let Some(Value::Map(map)) = given else { return Ok(options) };
    let [depth, sample, paths] = ["depth", "sample", "paths"].map(|name| cx.keyword(name));
    if let Some(Value::Int(depth)) = map.get(cx, &depth)? {
        options.depth = (*depth).clamp(1, MOST_DEPTH) as usize;
    }
    if let Some(Value::Int(sample)) = map.get(cx, &sample)? {
        options.examples = (*sample).clamp(1, MOST_EXAMPLES) as usize;
    }
    options.paths = map.get(cx, &paths)?.is_some_and(Value::is_truthy);
    Ok(options)
}

/// The name of a value's type in summaries.
fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Int(_) | Value::BigInt(_) => "integer",
        Value::Float(_) => "float",
        Value::Vector(_) => "vector",
        other => other.type_word(),
    }
}

/// A map with keyword keys.
fn keyword_map(cx: &mut Context, entries: Summary) -> Result<Value> {
    let mut map: Rc<MapNode> = MapNode::with_capacity(entries.len());
    for (name, value) in entries {
        let key = cx.keyword(name);
        map = MapNode::insert(map, cx, key, value)?;
    }
    Ok(Value::Map(map))
}

/// A map with string keys.
fn text_map(cx: &mut Context, entries: List<(Name, Value)>) -> Result<Value> {
    let mut map: Rc<MapNode> = MapNode::empty();
    for (name, value) in entries {
        map = MapNode::insert(map, cx, Value::Str(name), value)?;
    }
    Ok(Value::Map(map))
}

fn histogram(cx: &mut Context, types: &Types) -> Result<Value> {
    let mut map: Rc<MapNode> = MapNode::empty();
    for (name, count) in types {
        let name = cx.copy_text(name)?;
        map = MapNode::insert(map, cx, name, Value::Int(*count))?;
    }
    Ok(Value::Map(map))
}
