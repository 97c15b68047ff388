//! Finds exactly which servers' data (sources) a result depends on, for builtins such as `get` and `assoc` that use
//! only a part of their arguments. The results of all other builtins depend on everything that they got.

use super::state::{Calls, Each};
use crate::builtins::{Builtin, Category};
use crate::context::Context;
use crate::sources::{MOST_PARTS, Shadow, Sources, key_name};
use crate::value::Value;
use std::rc::Rc;

/// A key.
pub(super) enum Keyed {
    /// A text or name.
    Name(Rc<str>, Sources),
    /// A place in a vector.
    Index(usize, Sources),
    /// Something else.
    Unknown(Sources),
}

/// The key that a value is.
pub(super) fn keyed(cx: &Context, key: &Value, sources: Sources) -> Keyed {
    match key {
        Value::Keyword(_) | Value::Str(_) => match cx.name(key) {
            Some(name) => Keyed::Name(key_name(name), sources),
            None => Keyed::Unknown(sources),
        },
        Value::Int(index) => match usize::try_from(*index) {
            Ok(index) => Keyed::Index(index, sources),
            Err(_) => Keyed::Unknown(sources),
        },
        _ => Keyed::Unknown(sources),
    }
}

/// What a key finds in a value.
pub(super) fn found(value: &Value, shadow: &Shadow, key: Keyed) -> Shadow {
    match (value, key) {
        (Value::Map(_), Keyed::Name(name, sources)) => shadow.key(&name).marked(sources),
        (Value::Vector(_), Keyed::Index(index, sources)) => shadow.item(index).marked(sources),
        // Only maps have keys: whether it is one is all that is found out.
        (Value::Nil | Value::Bool(_) | Value::Int(_) | Value::Float(_), Keyed::Name(_, sources)) => {
            Shadow::flat(shadow.own.union(sources))
        }
        (_, Keyed::Name(_, sources) | Keyed::Index(_, sources) | Keyed::Unknown(sources)) => {
            Shadow::flat(shadow.deep().union(sources))
        }
    }
}

/// A map with another entry. `map` is the value before, and `key` its key there.
pub(super) fn with_entry(
    cx: &Context,
    map: Option<&Value>,
    shadow: &Shadow,
    keyed: Keyed,
    key: Option<&Value>,
    value: Shadow,
) -> Shadow {
    let own = shadow.own;
    let (name, sources) = match keyed {
        Keyed::Name(name, sources) => (name, sources),
        Keyed::Index(_, sources) | Keyed::Unknown(sources) => {
            let rest = shadow.rest().union(sources).union(value.deep());
            // It may replace any entry, but adds to each: keys of other kinds have no names.
            return Shadow::of_keys(
                own.union(sources),
                shadow.keys().to_vec(),
                rest.union(all_items(shadow)),
            );
        }
    };
    // A name covers all keys of its text, so another one must not be there.
    let is_only = match (map, key) {
        (Some(Value::Map(map)), Some(key)) if map.len() <= MOST_PARTS => !map.keys().iter().any(|known| {
            let is_same = matches!((known, key), (Value::Keyword(a), Value::Keyword(b)) if a == b)
                || matches!((known, key), (Value::Str(a), Value::Str(b)) if a.as_str() == b.as_str());
            !is_same && cx.name(known).is_some_and(|text| key_name(text) == name)
        }),
        (Some(Value::Nil), _) => true,
        _ => false,
    };
    let value = value.marked(sources);
    let value = match is_only || map.is_none() && !shadow.has_key(&name) && shadow.rest().is_within(own) {
        true => value,
        false => value.join(&shadow.key(&name)),
    };
    let mut entries = shadow.keys().to_vec();
    match entries.iter_mut().find(|(known, _)| *known == name) {
        Some((_, part)) => *part = value,
        None => entries.push((name, value)),
    }
    Shadow::of_keys(own.union(sources), entries, shadow.rest().union(all_items(shadow)))
}

fn all_items(shadow: &Shadow) -> Sources {
    shadow.known_items().iter().fold(Sources::NONE, |all, item| all.union(item.deep()))
}

/// A vector with further items.
pub(super) fn appended(value: &Value, shadow: &Shadow, more: Vec<Shadow>) -> Shadow {
    match items(value, shadow) {
        Some(mut items) => {
            items.extend(more);
            Shadow::of_items(shadow.own, items, Sources::NONE)
        }
        None => {
            let deep = more.iter().fold(shadow.deep(), |all, item| all.union(item.deep()));
            Shadow::of_rest(shadow.own, deep)
        }
    }
}

/// The length of a vector.
fn length(value: &Value) -> Option<usize> {
    match value {
        Value::Vector(vector) => Some(vector.len()),
        Value::Nil => Some(0),
        _ => None,
    }
}

/// The known items of a vector.
fn items(value: &Value, shadow: &Shadow) -> Option<Vec<Shadow>> {
    shadow.items(length(value).filter(|length| *length <= MOST_PARTS)?)
}

/// The result of a builtin that calls no function.
pub(super) fn direct(
    cx: &Context,
    info: &Builtin,
    arguments: &[Shadow],
    values: &[&Value],
) -> Option<Shadow> {
    if !matches!(info.category, Category::Core | Category::Internal | Category::Set) {
        return None;
    }
    let first = arguments.first()?;
    let value = *values.first()?;
    Some(match (info.name, arguments) {
        ("get" | "%get" | "%nth" | "%lookup" | "nth" | "%nth-item", [from, key]) => {
            found(value, from, keyed(cx, values[1], key.deep()))
        }
        ("get" | "%get-or" | "%lookup", [from, key, default]) => {
            let found = found(value, from, keyed(cx, values[1], key.deep()));
            let own = found.own;
            found.join(default).marked(own)
        }
        ("get-in" | "%get-path", [from, path]) => in_path(cx, (value, from), (values[1], path))?,
        ("assoc", [map, pairs @ ..]) if pairs.len() == 2 && matches!(value, Value::Map(_) | Value::Nil) => {
            let key = keyed(cx, values[1], pairs[0].deep());
            with_entry(cx, Some(value), map, key, Some(values[1]), pairs[1].clone())
        }
        ("dissoc", [map, keys @ ..]) => {
            map.clone().marked(keys.iter().fold(Sources::NONE, |all, key| all.union(key.deep())))
        }
        // The entries of the second map replace those of the first.
        ("merge", [a, b]) if matches!((value, values[1]), (Value::Map(_), Value::Map(_))) => {
            a.join(b).marked(a.own.union(b.own))
        }
        ("select-keys", [map, keys]) if keys.deep().is_within(map.own) => map.clone(),
        ("identity" | "%map-pattern" | "%vector-pattern" | "doall", [_]) => first.clone(),
        ("vector" | "list", items) => Shadow::of_items(Sources::NONE, items.to_vec(), Sources::NONE),
        ("first" | "%first", [list]) if length(value).is_some() => list.item(0),
        ("second" | "%second", [list]) if length(value).is_some() => list.item(1),
        ("last" | "peek", [list]) => list.item(length(value)?.saturating_sub(1)),
        ("seq" | "vec" | "%seq", [list]) if length(value).is_some() => list.clone(),
        ("rest" | "next" | "butlast" | "reverse", [list]) => {
            let mut items = items(value, list)?;
            match info.name {
                "reverse" => items.reverse(),
                "butlast" => drop(items.pop()),
                _ => drop(items.drain(..items.len().min(1))),
            }
            Shadow::of_items(list.own, items, Sources::NONE)
        }
        ("take" | "drop", [count, list]) => {
            let Value::Int(number) = value else { return None };
            let number = usize::try_from(*number).unwrap_or(0);
            let items = items(values[1], list)?;
            let own = list.own.union(count.deep());
            let (kept, left) = items.split_at(number.min(items.len()));
            let items = if info.name == "take" { kept } else { left };
            Shadow::of_items(own, items.to_vec(), Sources::NONE)
        }
        ("concat" | "into", lists) => {
            if info.name == "into" && (lists.len() != 2 || length(value).is_none()) {
                return None;
            }
            let mut all = Vec::new();
            let mut own = Sources::NONE;
            for (value, list) in values.iter().zip(lists) {
                all.extend(items(value, list)?);
                own = own.union(list.own);
            }
            Shadow::of_items(own, all, Sources::NONE)
        }
        ("conj", [list, more @ ..]) if matches!(value, Value::Vector(_)) => {
            appended(value, list, more.to_vec())
        }
        (
            "count" | "empty?" | "nil?" | "some?" | "not" | "boolean" | "map?" | "vector?" | "string?"
            | "number?" | "coll?" | "sequential?" | "seq?" | "fn?" | "keyword?" | "set?" | "boolean?"
            | "true?" | "false?",
            [_],
        ) => match value {
            // Which entries an answer has depends on more than that it is there.
            Value::Map(_) if matches!(info.name, "count" | "empty?") => Shadow::flat(first.deep()),
            _ => Shadow::flat(first.own),
        },
        _ => return None,
    })
}

/// The part under a path of keys.
fn in_path(cx: &Context, from: (&Value, &Shadow), path: (&Value, &Shadow)) -> Option<Shadow> {
    let Value::Vector(keys) = path.0 else { return None };
    let mut shadow = from.1.clone();
    let mut value = from.0.clone();
    for index in 0..keys.len() {
        let key = keys.get(index)?;
        shadow = found(&value, &shadow, keyed(cx, &key, path.1.deep()));
        value = match &value {
            Value::Map(map) => {
                let name = cx.name(&key)?;
                let row = map
                    .keys()
                    .iter()
                    .position(|known| cx.name(known).is_some_and(|known| key_name(known) == key_name(name)));
                row.map_or(Value::Nil, |row| map.value(row).clone())
            }
            Value::Vector(vector) => match key {
                Value::Int(index) => {
                    usize::try_from(index).ok().and_then(|index| vector.get(index)).unwrap_or_default()
                }
                _ => return None,
            },
            _ => Value::Nil,
        };
    }
    Some(shadow)
}

/// How a builtin calls a function of the program for the items of one collection.
pub(super) fn each(info: &Builtin, arguments: &[Shadow], values: &[&Value]) -> Option<Calls> {
    let ([function, list], [Value::Closure(_), collection]) = (arguments, values) else { return None };
    if info.category != Category::Core {
        return None;
    }
    let kind = match info.name {
        "map" | "mapv" | "pmap" => Each::Map,
        "filter" | "filterv" => Each::Filter(true),
        "remove" => Each::Filter(false),
        "keep" => Each::Keep,
        "some" | "every?" | "not-any?" | "not-every?" => Each::Search,
        "run!" => Each::Run,
        _ => return None,
    };
    length(collection)?;
    Some(Calls {
        // What decides how often it is called.
        machine: function.own.union(list.own),
        each: kind,
        function: Some(function.clone()),
        items: items(collection, list),
        any_item: Some(list.any_item()),
        ..Calls::default()
    })
}
