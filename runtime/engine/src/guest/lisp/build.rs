//! Builds the Lisp maps and integers by which the runtime gives a program structured information, such as the outcome
//! of a tool call or the remaining call budget. The memory of the maps counts against the memory limit of the program.

use ptc_vm::value::map::MapNode;
use ptc_vm::{Context, Fault, Value};

/// A map with keyword keys; entries without a value are left out.
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

/// A count as an integer value.
pub(super) fn count(number: u64) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}
