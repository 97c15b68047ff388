//! `map` and `mapcat` over several collections: stops at the shortest.

use super::Action;
use super::items::Items;
use crate::context::Context;
use crate::fault::Result;
use crate::value::Value;
use crate::vector::VectorNode;
use std::rc::Rc;

/// The machine.
pub struct MapMany {
    function: Value,
    inputs: Vec<Rc<VectorNode>>,
    next: usize,
    len: usize,
    out: Items,
    /// Join the results instead of collecting them.
    join: bool,
}

impl MapMany {
    /// A machine over several collections.
    pub fn new(function: Value, inputs: Vec<Rc<VectorNode>>, join: bool) -> MapMany {
        let len = inputs.iter().map(|input| input.len()).min().unwrap_or(0);
        MapMany { function, inputs, next: 0, len, out: Items::default(), join }
    }

    pub(super) fn resume(&mut self, cx: &mut Context, returned: Option<Value>) -> Result<Action> {
        match returned {
            Some(value) if self.join => {
                let part = crate::builtins::seq::to_vector(cx, value, "mapcat")?;
                cx.tick(part.len() as u64)?;
                part.iter().for_each(|item| self.out.push(item));
            }
            Some(value) => self.out.push(value),
            None => {}
        }
        if self.next == self.len {
            return Ok(Action::Return(self.out.take_vector()));
        }
        let arguments = self.inputs.iter().filter_map(|input| input.get(self.next)).collect();
        self.next += 1;
        Ok(Action::Call(self.function.clone(), arguments))
    }
}
