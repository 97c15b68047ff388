//! `reduce`, `reduce-kv` and `reductions`.

use super::Action;
use super::items::Items;
use crate::combinator::CombinatorKind;
use crate::context::Context;
use crate::fault::Result;
use crate::value::Value;
use crate::vector::VectorNode;
use std::rc::Rc;

/// The machine.
pub struct Reduce {
    function: Value,
    input: Rc<VectorNode>,
    next: usize,
    accumulator: Value,
    /// The items are [key value] pairs, passed as two arguments.
    pairs: bool,
    /// Every accumulator so far, for `reductions`.
    trail: Option<Items>,
}

impl Reduce {
    /// A machine that starts with `accumulator` at item `next`.
    pub fn new(
        function: Value,
        input: Rc<VectorNode>,
        next: usize,
        accumulator: Value,
        pairs: bool,
    ) -> Reduce {
        Reduce { function, input, next, accumulator, pairs, trail: None }
    }

    /// The same machine, whose result is all accumulators.
    #[must_use]
    pub fn with_trail(mut self) -> Reduce {
        self.trail = Some(Items::default());
        self
    }

    pub(super) fn resume(&mut self, _cx: &mut Context, returned: Option<Value>) -> Result<Action> {
        // The accumulator is held here only between calls, so that the function may update it in place.
        let accumulator = match returned {
            Some(Value::Combinator(node)) if node.kind == CombinatorKind::Reduced => {
                self.next = usize::MAX;
                node.parts().first().cloned().unwrap_or_default()
            }
            Some(value) => value,
            None => std::mem::take(&mut self.accumulator),
        };
        if let Some(trail) = &mut self.trail {
            trail.push(accumulator.clone());
        }
        let Some(item) = self.input.get(self.next) else {
            return Ok(Action::Return(match &mut self.trail {
                Some(trail) => trail.take_vector(),
                None => accumulator,
            }));
        };
        self.next += 1;
        let function = self.function.clone();
        Ok(match &item {
            Value::Vector(pair) if self.pairs => {
                let key = pair.get(0).unwrap_or_default();
                let value = pair.get(1).unwrap_or_default();
                Action::Call(function, vec![accumulator, key, value])
            }
            _ => Action::Call2(function, accumulator, item),
        })
    }
}
