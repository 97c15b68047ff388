//! Calls memoized functions, as a resumable state machine: it returns the cached result, or calls the function and
//! caches what it returns. Values are immutable and functions have no state, so the isolate caches the results, in one
//! table for each `memoize`.

use super::Action;
use crate::context::{Context, Memos};
use crate::fault::Result;
use crate::value::Value;
use crate::value::build::Arguments;
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
        let Some(result) = returned else {
            if let Some(result) = Memos::find(cx, self.table, &self.key)? {
                return Ok(Action::Return(result));
            }
            let arguments = match &self.key {
                Value::Vector(arguments) => cx.arguments(arguments.iter())?,
                _ => Arguments::new(),
            };
            return Ok(Action::Call(take(&mut self.function), arguments));
        };
        Memos::insert(cx, self.table, take(&mut self.key), result.clone())?;
        Ok(Action::Return(result))
    }
}
