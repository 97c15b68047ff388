//! Runs `reduce`, `reduce-kv` and `reductions`, as a resumable state machine that calls the reducing function for each
//! item.

use super::forward::Forward;
use super::{Action, is_running, takes_exactly};
use crate::apply::{apply, is_direct};
use crate::bytecode::instruction::Src;
use crate::bytecode::{CombinatorKind, WINDOW};
use crate::context::Context;
use crate::fault::Result;
use crate::memory::List;
use crate::value::Value;
use crate::value::build::Arguments;
use crate::value::slot::{fill, fill_value};
use crate::value::vector::VectorNode;
use std::mem::take;
use std::rc::Rc;

/// The machine.
pub struct Reduce {
    function: Value,
    input: Rc<VectorNode>,
    next: usize,
    /// Held here only between calls, so that the function may update it in place.
    accumulator: Value,
    /// The items are [key value] pairs, passed as two arguments.
    pairs: bool,
    /// The function is one of the program that takes accumulator and item unchanged, and nothing else must be done
    /// between two calls.
    takes_window: bool,
    /// All accumulators so far, for `reductions`.
    trail: Option<List<Value>>,
    /// The function, if it only calls a builtin.
    forward: Option<Box<Forward>>,
}

impl Reduce {
    /// A machine that starts with `accumulator` at item `next`.
    pub fn new(
        cx: &Context,
        function: Value,
        input: Rc<VectorNode>,
        next: usize,
        accumulator: Value,
        pairs: bool,
    ) -> Reduce {
        let forward = Forward::from_function(cx, &function, if pairs { 3 } else { 2 });
        let takes_window = !pairs && takes_exactly(cx, &function, 2);
        Reduce { function, input, next, accumulator, pairs, takes_window, trail: None, forward }
    }

    /// The same machine, with all accumulators as its result.
    #[must_use]
    pub fn with_trail(mut self) -> Reduce {
        self.trail = Some(List::default());
        self.takes_window = false;
        self
    }

    pub(super) fn resume(&mut self, cx: &mut Context, returned: Option<Value>) -> Result<Action> {
        let accumulator = match returned {
            Some(value) => self.accept(value),
            None => take(&mut self.accumulator),
        };
        let accumulator = if self.forward.is_some() || is_direct(cx, &self.function) {
            match (self.run(cx, accumulator), &self.forward) {
                (Ok(Some(accumulator)), _) => accumulator,
                (Ok(None), _) => return Ok(Action::Pause),
                (Err(fault), Some(forward)) => return Ok(forward.failed(fault)),
                (Err(fault), None) => return Err(fault),
            }
        } else {
            accumulator
        };
        self.note(cx, &accumulator)?;
        let Some(item) = VectorNode::take_item(&mut self.input, self.next) else {
            return Ok(self.finish(accumulator));
        };
        self.next += 1;
        Ok(self.call(accumulator, item))
    }

    /// Makes the next call in the window of the last one, which returns the value in the register: the common case of
    /// [`Reduce::resume_in_window`]. False, and nothing changed, in other cases.
    #[inline(always)]
    pub(crate) fn next_call(&mut self, window: &mut [Value; WINDOW], returned: Src) -> bool {
        let from = usize::from(returned.reg);
        if !self.takes_window || !returned.last || !is_running(&self.function, window) {
            return false;
        }
        match window[from] {
            Value::Int(int) => {
                if !VectorNode::take_into(&mut self.input, self.next, &mut window[2]) {
                    return false;
                }
                fill(&mut window[1], Value::Int(int));
            }
            // It may be `reduced`.
            Value::Combinator(_) => return false,
            _ => {
                let accumulator = take(&mut window[from]);
                if !VectorNode::take_into(&mut self.input, self.next, &mut window[2]) {
                    window[from] = accumulator;
                    return false;
                }
                fill(&mut window[1], accumulator);
            }
        }
        self.next += 1;
        true
    }

    /// After a function of the program: see [`Native::resume_in_window`](super::Native::resume_in_window).
    #[inline]
    pub(super) fn resume_in_window(
        &mut self,
        cx: &mut Context,
        returned: Value,
        window: &mut [Value],
        action: &mut Option<Action>,
    ) -> Result<bool> {
        let accumulator = match returned {
            // Stays in a machine register.
            Value::Int(int) => Value::Int(int),
            returned => self.accept(returned),
        };
        if self.trail.is_some() {
            self.note(cx, &accumulator)?;
        } else if !self.pairs && is_running(&self.function, window) {
            if !VectorNode::take_into(&mut self.input, self.next, &mut window[2]) {
                *action = Some(self.finish(accumulator));
                return Ok(false);
            }
            self.next += 1;
            fill_value(&mut window[1], accumulator);
            return Ok(true);
        }
        let Some(item) = VectorNode::take_item(&mut self.input, self.next) else {
            *action = Some(self.finish(accumulator));
            return Ok(false);
        };
        self.next += 1;
        *action = Some(self.call(accumulator, item));
        Ok(false)
    }

    /// Calls a function that needs no frame for every item. `None` if the slice is used up.
    fn run(&mut self, cx: &mut Context, mut accumulator: Value) -> Result<Option<Value>> {
        loop {
            if self.next >= self.input.len() {
                return Ok(Some(accumulator));
            }
            if cx.fuel.slice < 0 {
                self.accumulator = accumulator;
                return Ok(None);
            }
            if let Some(forward) = &self.forward
                && self.trail.is_none()
                && let Some(item) = self.input.as_slice().and_then(|items| items.get(self.next))
                && forward.count(cx, &mut accumulator, item)?
            {
                if Rc::strong_count(&self.input) == 1 {
                    // As elsewhere, the last user of a collection frees it on the way.
                    drop(VectorNode::take_item(&mut self.input, self.next));
                }
                self.next += 1;
                continue;
            }
            self.note(cx, &accumulator)?;
            let Some(item) = VectorNode::take_item(&mut self.input, self.next) else {
                return Ok(Some(accumulator));
            };
            self.next += 1;
            let value = match &item {
                Value::Vector(pair) if self.pairs => {
                    let key = pair.get(0).unwrap_or_default();
                    let value = pair.get(1).unwrap_or_default();
                    self.apply(cx, &mut [accumulator, key, value])?
                }
                _ => self.apply(cx, &mut [accumulator, item])?,
            };
            accumulator = self.accept(value);
        }
    }

    #[inline]
    fn apply(&self, cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
        match &self.forward {
            Some(forward) => forward.call(cx, arguments),
            None => apply(cx, &self.function, arguments),
        }
    }

    /// Handles the accumulator that a call returned; the function may end the reduction.
    #[inline]
    fn accept(&mut self, returned: Value) -> Value {
        match returned {
            Value::Combinator(node) if node.kind == CombinatorKind::Reduced => {
                self.next = self.input.len();
                node.parts().first().cloned().unwrap_or_default()
            }
            value => value,
        }
    }

    #[inline]
    fn note(&mut self, cx: &mut Context, accumulator: &Value) -> Result<()> {
        match &mut self.trail {
            Some(trail) => trail.push(cx, accumulator.clone()),
            None => Ok(()),
        }
    }

    fn call(&self, accumulator: Value, item: Value) -> Action {
        let function = self.function.clone();
        match &item {
            Value::Vector(pair) if self.pairs => {
                let key = pair.get(0).unwrap_or_default();
                let value = pair.get(1).unwrap_or_default();
                Action::Call(function, Arguments::from_array([accumulator, key, value]))
            }
            _ => Action::Call2(function, accumulator, item),
        }
    }

    fn finish(&mut self, accumulator: Value) -> Action {
        Action::Return(match &mut self.trail {
            Some(trail) => trail.take_vector(),
            None => accumulator,
        })
    }
}
