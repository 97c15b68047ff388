//! Regular expressions as values, and an isolate's cache of compiled patterns. A program pays for compiling and
//! searching, and its account has their memory.

use super::Value;
use crate::fault::{Fault, Result};
use crate::memory::{Meter, account};
use ptc_regex::{Pattern, PatternError, Regex, SearchError, Searches, Spans};
use std::rc::Rc;
use std::sync::Arc;

/// Number of compiled patterns cached per isolate.
const CACHED: usize = 32;

/// Logical bytes of a pattern in an isolate.
const REGEX_BYTES: usize = 128;

/// Memory of searches on the account of the isolate.
#[derive(Default)]
pub struct SearchMemory(usize);

impl Drop for SearchMemory {
    fn drop(&mut self) {
        account::release(self.0);
    }
}

/// Architecture invariant: all that searches do and allocate passes here.
impl ptc_regex::Meter for Meter {
    type Error = Box<Fault>;
    type Memory = SearchMemory;

    #[inline]
    fn pay(&mut self, units: u64) -> Result<()> {
        self.tick(units)
    }

    fn hold(&mut self, memory: &mut SearchMemory, bytes: usize) -> Result<()> {
        if bytes > memory.0 {
            self.reserve(bytes - memory.0)?;
            account::charge(bytes - memory.0);
            memory.0 = bytes;
        }
        Ok(())
    }
}

impl From<SearchError> for Box<Fault> {
    #[cold]
    fn from(error: SearchError) -> Box<Fault> {
        match error {
            SearchError::TextTooLong(_) => Fault::type_error(error)
                .hint("Split the text first, or write the pattern without look-around and back-references."),
            SearchError::TooManySteps => Fault::type_error(error),
            SearchError::NoAutomaton(_) => Fault::runtime(error),
        }
    }
}

/// A pattern in an isolate.
pub struct RegexNode {
    regex: Regex<Meter>,
    bytes: usize,
}

impl RegexNode {
    /// A node for a compiled pattern, paid for as if it was compiled here: the cost must not depend on where it was
    /// compiled.
    ///
    /// # Errors
    /// Fuel and memory.
    pub(crate) fn new(meter: &mut Meter, pattern: Arc<Pattern>) -> Result<Rc<RegexNode>> {
        meter.tick(pattern.units())?;
        RegexNode::paid(meter, pattern)
    }

    fn paid(meter: &mut Meter, pattern: Arc<Pattern>) -> Result<Rc<RegexNode>> {
        let bytes = REGEX_BYTES + pattern.bytes();
        meter.reserve(bytes)?;
        account::charge(bytes);
        Ok(Rc::new(RegexNode { regex: Regex::new(pattern), bytes }))
    }

    /// The pattern as written.
    pub fn pattern(&self) -> &str {
        self.compiled().text()
    }

    /// The pattern, compiled.
    pub(crate) fn compiled(&self) -> &Arc<Pattern> {
        self.regex.pattern()
    }

    /// Number of groups that the pattern captures.
    pub(crate) fn groups(&self) -> usize {
        self.compiled().groups()
    }

    /// The number of a named group.
    pub(crate) fn group_number(&self, name: &str) -> Option<usize> {
        self.compiled().group_number(name)
    }

    /// The first match that begins at byte `at` or later.
    ///
    /// # Errors
    /// Fuel for each step, memory, deadline, cancellation; a pattern that takes too many steps.
    pub(crate) fn find(
        &self,
        meter: &mut Meter,
        cache: &mut RegexCache,
        text: &str,
        at: usize,
    ) -> Result<Option<Spans>> {
        self.regex.find(meter, &mut cache.searches, text, at)
    }

    /// The match of the whole text.
    ///
    /// # Errors
    /// As [`RegexNode::find`].
    pub(crate) fn match_whole(
        &self,
        meter: &mut Meter,
        cache: &mut RegexCache,
        text: &str,
    ) -> Result<Option<Spans>> {
        self.regex.match_whole(meter, &mut cache.searches, text)
    }

    /// A match as a value: its text, or a vector of its text and those of all groups.
    ///
    /// # Errors
    /// Fuel and memory.
    pub(crate) fn match_value(&self, cx: &mut Meter, text: &str, spans: &Spans) -> Result<Value> {
        let mut part = |span: Option<(usize, usize)>| match span {
            Some((start, end)) => {
                cx.tick((end - start) as u64 + 1)?;
                cx.reserve(end - start)?;
                Ok(Value::string(&text[start..end]))
            }
            None => Ok(Value::Nil),
        };
        if self.groups() == 0 {
            return part(spans.first().copied().flatten());
        }
        let groups: Result<Vec<Value>> = spans.iter().map(|&span| part(span)).collect();
        groups.map(Value::vector)
    }
}

impl Drop for RegexNode {
    fn drop(&mut self) {
        account::release(self.bytes);
    }
}

/// The compiled patterns of an isolate, the most recently used last.
#[derive(Default)]
pub struct RegexCache {
    rows: Vec<Rc<RegexNode>>,
    /// Those of this run.
    searches: Searches<Meter>,
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
