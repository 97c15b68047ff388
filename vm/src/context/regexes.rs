//! Caches the regular expressions that a program compiles at run time, until its run ends.

use crate::fault::{Fault, Result};
use crate::memory::Meter;
use crate::value::regex::RegexNode;
use ptc_regex::{Pattern, PatternError, Searches};
use std::rc::Rc;
use std::sync::Arc;

/// Number of compiled patterns that a run caches.
const CACHED: usize = 32;

/// The compiled patterns of a run, the most recently used last.
#[derive(Default)]
pub(crate) struct RegexCache {
    rows: Vec<Rc<RegexNode>>,
    /// Those of this run.
    pub(super) searches: Searches<Meter>,
}

impl RegexCache {
    /// The regex of a pattern made at run time. The cost is the same whether it is cached or not.
    ///
    /// # Errors
    /// A pattern that is too long or does not compile; fuel, memory, deadline, cancellation.
    pub(crate) fn compile(&mut self, meter: &mut Meter, pattern: &str) -> Result<Rc<RegexNode>> {
        let rows = &mut self.rows;
        if let Some(row) = rows.iter().rposition(|row| row.pattern() == pattern) {
            rows[row..].rotate_left(1);
            let node = rows[rows.len() - 1].clone();
            meter.tick(node.compiled().units())?;
            return Ok(node);
        }
        let compiled = Pattern::new(pattern, &mut |units| meter.tick(units)).map_err(fault)?;
        let node = RegexNode::paid(meter, Arc::new(compiled))?;
        if rows.len() >= CACHED {
            rows.remove(0);
        }
        rows.push(node.clone());
        Ok(node)
    }

    /// Drops the run's search state, so that neither fuel nor memory of the next run depends on it.
    pub(crate) fn end_run(&mut self) {
        self.rows.clear();
        self.searches.end();
    }
}

fn fault(error: PatternError<Box<Fault>>) -> Box<Fault> {
    match error {
        PatternError::Pattern(message) => Fault::runtime(message),
        PatternError::Stopped(fault) => fault,
    }
}
