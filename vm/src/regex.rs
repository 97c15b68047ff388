//! Regular expressions: compiled once per isolate and pattern.

use crate::fault::{Fault, Result};
use crate::heap;
use crate::reason::Reason;
use std::rc::Rc;

/// Longest pattern (language.md 4.7).
pub const LONGEST_PATTERN: usize = 256;

/// Compiled patterns kept per isolate.
const CACHED: usize = 32;

/// Logical bytes of a compiled pattern.
const REGEX_BYTES: usize = 256;

/// A compiled pattern.
pub struct RegexNode {
    pattern: Box<str>,
    matcher: regex::Regex,
}

impl RegexNode {
    /// The pattern as written.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// The compiled form.
    pub fn matcher(&self) -> &regex::Regex {
        &self.matcher
    }
}

impl Drop for RegexNode {
    fn drop(&mut self) {
        heap::release(REGEX_BYTES + self.pattern.len());
    }
}

/// The compiled patterns of an isolate.
#[derive(Default)]
pub struct RegexCache {
    rows: Vec<Rc<RegexNode>>,
}

impl RegexCache {
    /// The compiled form of a pattern.
    ///
    /// # Errors
    /// A pattern that is too long or does not compile.
    pub fn compile(&mut self, pattern: &str) -> Result<Rc<RegexNode>> {
        if let Some(row) = self.rows.iter().position(|row| &*row.pattern == pattern) {
            return Ok(self.rows[row].clone());
        }
        if pattern.len() > LONGEST_PATTERN {
            return Err(Fault::runtime(format!(
                "Regex pattern exceeds maximum length of {LONGEST_PATTERN} bytes"
            )));
        }
        let matcher = check_pattern(pattern).map_err(|detail| Fault::new(Reason::RuntimeError, detail))?;
        heap::charge(REGEX_BYTES + pattern.len());
        let node = Rc::new(RegexNode { pattern: pattern.into(), matcher });
        if self.rows.len() >= CACHED {
            self.rows.remove(0);
        }
        self.rows.push(node.clone());
        Ok(node)
    }
}

/// Compiles a pattern; the error is one line without the pattern's own rendering. The compiler calls
/// this for regex literals.
///
/// # Errors
/// What is wrong with the pattern.
pub fn check_pattern(pattern: &str) -> std::result::Result<regex::Regex, String> {
    const COMPILED_BYTES: usize = 1 << 20;
    regex::RegexBuilder::new(pattern).size_limit(COMPILED_BYTES).build().map_err(|error| {
        let text = error.to_string();
        let last = text.lines().last().unwrap_or("bad pattern").trim();
        format!("Invalid regex: {}", last.strip_prefix("error: ").unwrap_or(last))
    })
}
