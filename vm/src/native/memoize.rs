//! Calls of memoized functions. Values are immutable and functions keep nothing, so the results are kept by
//! the isolate, in a table for each `memoize`, until the program ends.

use super::Action;
use crate::context::Context;
use crate::fault::Result;
use crate::value::Value;
use crate::value::build::Arguments;
use crate::value::map::MapNode;
use std::mem::take;

/// The machine.
pub struct Memoize {
    function: Value,
    table: usize,
    /// The arguments.
    key: Value,
}

impl Memoize {
    /// A call of a memoized function.
    ///
    /// # Errors
    /// Fuel and memory.
    pub fn new(cx: &mut Context, function: Value, table: &Value, arguments: Arguments) -> Result<Memoize> {
        let table = match table {
            Value::Int(table) => usize::try_from(*table).unwrap_or(usize::MAX),
            _ => usize::MAX,
        };
        let key = cx.collect(arguments)?.into_value();
        Ok(Memoize { function, table, key })
    }

    pub(super) fn resume(&mut self, cx: &mut Context, returned: Option<Value>) -> Result<Action> {
        let table = cx.memos.0.get(self.table).cloned();
        let Some(result) = returned else {
            if let Some(table) = table
                && let Some(row) = table.find(cx, &self.key)?
            {
                return Ok(Action::Return(table.value(row).clone()));
            }
            let arguments = match &self.key {
                Value::Vector(arguments) => cx.arguments(arguments.iter())?,
                _ => Arguments::new(),
            };
            return Ok(Action::Call(take(&mut self.function), arguments));
        };
        drop(table);
        // Taken out and put back, so that the only holder changes it in place.
        if let Some(slot) = cx.memos.0.get_mut(self.table) {
            let table = std::mem::replace(slot, MapNode::empty());
            let table = MapNode::insert(table, cx, take(&mut self.key), result.clone())?;
            if let Some(slot) = cx.memos.0.get_mut(self.table) {
                *slot = table;
            }
        }
        Ok(Action::Return(result))
    }
}
