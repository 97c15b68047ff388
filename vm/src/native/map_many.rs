//! Runs `map` and `mapcat` over several collections, up to the end of the shortest, as a resumable state machine that
//! calls the function.

use super::Action;
use crate::context::Context;
use crate::fault::Result;
use crate::memory::List;
use crate::value::Value;
use crate::value::vector::VectorNode;
use std::rc::Rc;

/// The machine.
pub struct MapMany {
    function: Value,
    inputs: List<Rc<VectorNode>>,
    next: usize,
    len: usize,
    out: List<Value>,
    /// Join the results instead of collecting them.
    join: bool,
}

impl MapMany {
    /// A machine over several collections.
    pub fn new(function: Value, inputs: List<Rc<VectorNode>>, join: bool) -> MapMany {
        let len = inputs.iter().map(|input| input.len()).min().unwrap_or(0);
        MapMany { function, inputs, next: 0, len, out: List::default(), join }
    }

    pub(super) fn resume(&mut self, cx: &mut Context, returned: Option<Value>) -> Result<Action> {
        match returned {
            Some(value) if self.join => {
                let part = crate::collection::seq::to_vector(cx, value, "mapcat")?;
                self.out.extend(cx, part.iter())?;
            }
            Some(value) => self.out.push(cx, value)?,
            None => {}
        }
        if self.next == self.len {
            return Ok(Action::Return(self.out.take_vector()));
        }
        let arguments = cx.arguments(self.inputs.iter().filter_map(|input| input.get(self.next)))?;
        self.next += 1;
        Ok(Action::Call(self.function.clone(), arguments))
    }
}
