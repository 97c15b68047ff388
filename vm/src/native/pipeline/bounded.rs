//! Lets builtins such as `map` take endless sequences together with finite collections: cuts the endless ones to the
//! length of the shortest finite collection, then calls the builtin.

use crate::bytecode::BuiltinId;
use crate::fault::Result;
use crate::native::Action;
use crate::value::Value;
use crate::value::build::Arguments;
use std::mem::take;

/// The machine.
pub struct Bounded {
    builtin: BuiltinId,
    /// `take`.
    take: BuiltinId,
    arguments: Arguments,
    /// Number of items that remain of each endless argument.
    count: i64,
    /// The argument that is being cut.
    at: Option<usize>,
}

impl Bounded {
    /// Calls the builtin with its endless arguments cut to `count` items.
    pub fn new(builtin: BuiltinId, take: BuiltinId, arguments: Arguments, count: usize) -> Bounded {
        Bounded { builtin, take, arguments, count: i64::try_from(count).unwrap_or(i64::MAX), at: None }
    }

    pub(crate) fn resume(&mut self, returned: Option<Value>) -> Result<Action> {
        if let (Some(value), Some(slot)) = (returned, self.at.and_then(|at| self.arguments.get_mut(at))) {
            *slot = value;
        }
        self.at = self.arguments.iter().position(|argument| argument.endless().is_some());
        match self.at {
            Some(at) => {
                let sequence = take(&mut self.arguments[at]);
                Ok(Action::Call2(Value::Builtin(self.take), Value::Int(self.count), sequence))
            }
            None => Ok(Action::TailCall(Value::Builtin(self.builtin), take(&mut self.arguments))),
        }
    }
}
