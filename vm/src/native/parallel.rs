//! `pmap` and `pcalls`: each branch is a fiber of the same isolate, so that the host calls of all branches
//! overlap. The isolate's scheduler starts the branches and fills the results in (decision 9).

use super::Action;
use super::items::Items;
use crate::fault::{Fault, Result};
use crate::prints::Prints;
use crate::reason::Reason;
use crate::value::Value;
use crate::vector::VectorNode;
use std::rc::Rc;

/// The machine.
pub struct Parallel {
    /// The function of `pmap`; `None` for `pcalls`, whose input holds the functions.
    function: Option<Value>,
    inputs: Vec<Rc<VectorNode>>,
    total: usize,
    /// Branches started so far.
    pub(crate) started: usize,
    /// Branches started and not finished.
    pub(crate) running: usize,
    results: Items,
    /// Lines printed by each branch, kept in index order.
    prints: Vec<Option<Prints>>,
}

impl Parallel {
    /// `(pmap function inputs …)`.
    pub fn map(function: Value, inputs: Vec<Rc<VectorNode>>) -> Parallel {
        let total = inputs.iter().map(|input| input.len()).min().unwrap_or(0);
        Parallel {
            function: Some(function),
            inputs,
            total,
            started: 0,
            running: 0,
            results: Items::default(),
            prints: Vec::new(),
        }
    }

    /// `(pcalls functions …)`.
    pub fn calls(functions: Rc<VectorNode>) -> Parallel {
        let total = functions.len();
        Parallel {
            function: None,
            inputs: vec![functions],
            total,
            started: 0,
            running: 0,
            results: Items::default(),
            prints: Vec::new(),
        }
    }

    /// The name of the form, for messages.
    pub(crate) fn name(&self) -> &'static str {
        if self.function.is_some() { "pmap" } else { "pcalls" }
    }

    pub(super) fn resume(&mut self, returned: Option<Value>) -> Result<Action> {
        if let Some(value) = returned {
            return Ok(Action::Return(value));
        }
        for _ in 0..self.total {
            self.results.push(Value::Nil);
        }
        if self.total == 0 { Ok(Action::Return(self.results.take_vector())) } else { Ok(Action::Fork) }
    }

    /// The call of the next branch to start, with its index.
    pub(crate) fn next_branch(&mut self) -> Option<(usize, Value, Vec<Value>)> {
        if self.started == self.total {
            return None;
        }
        let index = self.started;
        self.started += 1;
        self.running += 1;
        let mut arguments: Vec<Value> = self.inputs.iter().filter_map(|input| input.get(index)).collect();
        Some(match &self.function {
            Some(function) => (index, function.clone(), arguments),
            None => (index, arguments.pop().unwrap_or_default(), Vec::new()),
        })
    }

    /// A branch has returned. True when all have.
    pub(crate) fn finish_branch(&mut self, index: usize, value: Value, prints: Option<Prints>) -> bool {
        self.results.as_mut_slice()[index] = value;
        if prints.as_ref().is_some_and(|prints| !prints.lines().is_empty()) {
            self.prints.resize_with(self.total, || None);
            self.prints[index] = prints;
        }
        self.running -= 1;
        self.running == 0 && self.started == self.total
    }

    /// The results, and the printed lines in index order.
    pub(crate) fn finish(&mut self) -> (Value, Vec<Prints>) {
        (self.results.take_vector(), self.prints.drain(..).flatten().collect())
    }

    /// The fault of the whole form when a branch has failed.
    pub(crate) fn branch_fault(&self, index: usize, cause: Box<Fault>) -> Box<Fault> {
        let reason = match cause.reason {
            // The program's own limits end the program, not the branch.
            Reason::Timeout | Reason::Cancelled | Reason::FuelExceeded | Reason::MemoryExceeded => {
                return cause;
            }
            _ if self.function.is_some() => Reason::PmapError,
            _ => Reason::PcallsError,
        };
        let cause_reason = cause.reason.raw();
        let nested = matches!(cause.reason, Reason::PmapError | Reason::PcallsError);
        let message = if nested {
            format!("{} branch {index} failed: {}", self.name(), cause.message)
        } else {
            format!("{} branch {index} failed: {cause_reason}: {}", self.name(), cause.message)
        };
        Box::new(Fault { reason, message, ..*cause })
    }
}
