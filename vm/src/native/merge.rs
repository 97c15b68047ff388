//! Runs `merge-with`, as a resumable state machine that calls a function of the program to join the values of equal
//! keys.

use super::Action;
use crate::context::Context;
use crate::fault::Result;
use crate::memory::List;
use crate::value::Value;
use crate::value::map::MapNode;
use std::mem::take;
use std::rc::Rc;

/// The machine.
pub struct Merge {
    function: Value,
    /// The result so far.
    merged: Rc<MapNode>,
    /// Remaining entries, key and value alternating, last first.
    entries: List<Value>,
    /// Key of the running call.
    key: Value,
}

impl Merge {
    /// Merges `entries` (key and value alternating) into `merged`.
    pub fn new(function: Value, merged: Rc<MapNode>, mut entries: List<Value>) -> Merge {
        entries.reverse();
        Merge { function, merged, entries, key: Value::Nil }
    }

    pub(super) fn resume(&mut self, cx: &mut Context, returned: Option<Value>) -> Result<Action> {
        if let Some(value) = returned {
            let key = take(&mut self.key);
            self.insert(cx, key, value)?;
        }
        while let (Some(key), Some(value)) = (self.entries.pop(), self.entries.pop()) {
            cx.tick(1)?;
            match self.merged.find_written(cx, &key)? {
                Some(row) => {
                    let old = MapNode::take_or_copy(&mut self.merged, row);
                    self.key = key;
                    return Ok(Action::Call2(self.function.clone(), old, value));
                }
                None => self.insert(cx, key, value)?,
            }
        }
        Ok(Action::Return(Value::Map(std::mem::replace(&mut self.merged, MapNode::empty()))))
    }

    fn insert(&mut self, cx: &mut Context, key: Value, value: Value) -> Result<()> {
        let merged = std::mem::replace(&mut self.merged, MapNode::empty());
        self.merged = MapNode::write(merged, cx, key, value)?;
        Ok(())
    }
}
