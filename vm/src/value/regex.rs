//! Represents regular expressions as values of the language, so that compiling and searching them counts against the
//! program's limits of work and memory.

use super::Value;
use crate::fault::{Fault, Result};
use crate::memory::{Meter, account};
use ptc_regex::{Pattern, Regex, SearchError, Spans};
use std::rc::Rc;
use std::sync::Arc;

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
    pub(crate) regex: Regex<Meter>,
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

    /// A node for a pattern whose compiling was paid for.
    ///
    /// # Errors
    /// Memory.
    pub(crate) fn paid(meter: &mut Meter, pattern: Arc<Pattern>) -> Result<Rc<RegexNode>> {
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
        if self.compiled().groups() == 0 {
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
