//! Runs the branches of `pmap` and `pcalls`, each as a fiber (a thread of control in the same program), so that their
//! calls to the host overlap. The isolate's scheduler starts the branches and stores the results.

use super::Action;
use crate::context::{Context, Prints};
use crate::fault::{Fault, Reason, Result};
use crate::memory::List;
use crate::value::Value;
use crate::value::build::Arguments;
use crate::value::vector::VectorNode;
use std::rc::Rc;

/// The machine.
pub struct Parallel {
    /// The function of `pmap`; `None` for `pcalls`, where the input holds the functions.
    function: Option<Value>,
    inputs: List<Rc<VectorNode>>,
    total: usize,
    /// Branches started so far.
    pub(crate) started: usize,
    /// Branches started and not finished.
    pub(crate) running: usize,
    results: List<Value>,
    /// Lines printed by each branch, in index order.
    prints: List<Option<Prints>>,
}

impl Parallel {
    /// `(pmap function inputs …)`, or `(pcalls functions …)` without a function.
    pub fn new(function: Option<Value>, inputs: List<Rc<VectorNode>>) -> Parallel {
        let total = inputs.iter().map(|input| input.len()).min().unwrap_or(0);
        let (results, prints) = (List::default(), List::default());
        Parallel { function, inputs, total, started: 0, running: 0, results, prints }
    }

    /// The name of the form, for messages.
    pub(crate) fn name(&self) -> &'static str {
        if self.function.is_some() { "pmap" } else { "pcalls" }
    }

    pub(super) fn resume(&mut self, cx: &mut Context, returned: Option<Value>) -> Result<Action> {
        if let Some(value) = returned {
            return Ok(Action::Return(value));
        }
        self.results.extend(cx, std::iter::repeat_n(Value::Nil, self.total))?;
        if self.total == 0 { Ok(Action::Return(self.results.take_vector())) } else { Ok(Action::Fork) }
    }

    /// The call of the next branch to start, with its index.
    ///
    /// # Errors
    /// Fuel and memory; deadline and cancellation, since making a fiber takes far longer than the fuel of a tiny
    /// branch suggests.
    pub(crate) fn next_branch(&mut self, cx: &mut Context) -> Result<Option<(usize, Value, Arguments)>> {
        if self.started == self.total {
            return Ok(None);
        }
        cx.fuel.poll()?;
        let index = self.started;
        self.started += 1;
        self.running += 1;
        let mut arguments = cx.arguments(self.inputs.iter().filter_map(|input| input.get(index)))?;
        Ok(Some(match &self.function {
            Some(function) => (index, function.clone(), arguments),
            None => (index, arguments.pop().unwrap_or_default(), Arguments::new()),
        }))
    }

    /// Handles the return of a branch. True if all have returned.
    ///
    /// # Errors
    /// Fuel and memory.
    pub(crate) fn finish_branch(
        &mut self,
        cx: &mut Context,
        index: usize,
        value: Value,
        prints: Option<Prints>,
    ) -> Result<bool> {
        self.results[index] = value;
        if prints.as_ref().is_some_and(|prints| !prints.lines().is_empty()) {
            let missing = self.total - self.prints.len();
            self.prints.extend(cx, std::iter::repeat_with(|| None).take(missing))?;
            self.prints[index] = prints;
        }
        self.running -= 1;
        Ok(self.running == 0 && self.started == self.total)
    }

    /// The results, and the printed lines in index order.
    pub(crate) fn finish(&mut self) -> (Value, impl Iterator<Item = Prints> + use<>) {
        (self.results.take_vector(), std::mem::take(&mut self.prints).into_iter().flatten())
    }

    /// The fault of the whole form after a failed branch.
    pub(crate) fn branch_fault(&self, index: usize, cause: Box<Fault>) -> Box<Fault> {
        let reason = match cause.reason {
            // Limits of the program end the program, not the branch.
            Reason::Timeout | Reason::Cancelled | Reason::FuelExceeded | Reason::MemoryExceeded => {
                return cause;
            }
            _ if self.function.is_some() => Reason::PmapError,
            _ => Reason::PcallsError,
        };
        let raw = if matches!(cause.reason, Reason::PmapError | Reason::PcallsError) {
            ""
        } else {
            cause.reason.raw()
        };
        let separator = if raw.is_empty() { "" } else { ": " };
        let whole = format_args!("{} branch {index} failed: {raw}{separator}{}", self.name(), cause.message);
        let Fault { message, .. } = *Fault::new(reason, whole);
        Box::new(Fault { reason, message, ..*cause })
    }
}
