//! Regex matches as values.

use super::Value;
use crate::fault::Result;
use crate::memory::Meter;
use crate::regex::{RegexNode, Spans};

impl RegexNode {
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
