//! Values that are made for a program of what we know, under its budget.

use ptc_vm::value::map::MapNode;
use ptc_vm::{Context, Fault, Value};

/// A map with keyword keys of the entries that have a value.
pub(super) fn record<'n, V: Into<Option<Value>>>(
    cx: &mut Context,
    entries: impl IntoIterator<IntoIter: ExactSizeIterator, Item = (&'n str, V)>,
) -> Result<Value, Box<Fault>> {
    let entries = entries.into_iter();
    let mut map = MapNode::with_capacity(entries.len());
    for (name, value) in entries {
        if let Some(value) = value.into() {
            let key = cx.keyword(name);
            map = MapNode::insert(map, cx, key, value)?;
        }
    }
    Ok(Value::Map(map))
}

/// How many there are of something.
pub(super) fn count(number: u64) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}
