//! Compiles regular expressions to immutable data that searches share: instructions, character sets, and the bytes with
//! which a match can begin.
//!
//! ```text
//! text --translate--> parser's dialect --syntax--> tree with sets --program--> instructions
//! ```
//!
//! `class` makes the sets of characters, `look` the assertions, `flags` says how both read the pattern. `first_bytes`
//! is what a match can begin with.

pub(crate) mod class;
pub(crate) mod first_bytes;
mod flags;
pub(crate) mod look;
pub(crate) mod program;
mod syntax;
mod translate;

use crate::error::PatternError;
use class::Set;
use first_bytes::FirstBytes;
use program::{Direction, Program};
use std::convert::Infallible;
use syntax::{Node, Syntax};
use translate::translate;

pub use translate::translated;

/// Longest pattern in bytes.
pub const LONGEST_PATTERN: usize = 256;

/// Deepest nesting of groups, since the compiler recurses over it.
const MOST_NESTED: u32 = 32;

/// Logical bytes of a compiled pattern in addition to its tree, sets and programs.
const PATTERN_BYTES: usize = 768;

/// Logical bytes of a node of the tree for each byte of the pattern.
const TREE_BYTES: usize = 64;

/// A compiled pattern: plain data, shared by the programs and isolates that use it.
#[derive(Debug)]
pub struct Pattern {
    text: Box<str>,
    pub(crate) syntax: Syntax,
    pub(crate) program: Program,
    pub(crate) first: FirstBytes,
    /// The text that the pattern matches, if it is a single text.
    pub(crate) literal: Option<memchr::memmem::Finder<'static>>,
    /// The cost of compiling it.
    units: u64,
}

/// Patterns are equal if their notation is.
impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.text == other.text
    }
}

impl Pattern {
    /// Compiles a pattern. `pay` is called with the work as it is done: a unit is some nanoseconds, and there are
    /// never more than a few thousand between two payments.
    ///
    /// # Errors
    /// A pattern that is too long or malformed; the error of `pay`.
    pub fn new<E>(
        text: &str,
        pay: &mut impl FnMut(u64) -> Result<(), E>,
    ) -> Result<Pattern, PatternError<E>> {
        if text.len() > LONGEST_PATTERN {
            return Err(PatternError::Pattern(format!(
                "Regex pattern exceeds maximum length of {LONGEST_PATTERN} bytes"
            )));
        }
        if nesting(text) > MOST_NESTED + 1 {
            return Err(PatternError::invalid(format_args!("groups nest deeper than {MOST_NESTED} levels")));
        }
        let mut units = 0;
        let mut pay = |more: u64| {
            units += more;
            pay(more).map_err(PatternError::Stopped)
        };
        let syntax = syntax::parse(&translate(text), 4 * MOST_NESTED, &mut pay)?;
        let program = Program::new(&syntax, Direction::Forward, &mut pay)?;
        pay(program.code.len() as u64 / 4)?;
        let first = FirstBytes::new(&program, &syntax.sets);
        let mut plain = String::new();
        let literal = (is_plain(&syntax.root, &mut plain) && syntax.groups == 0)
            .then(|| memchr::memmem::Finder::new(&plain).into_owned());
        Ok(Pattern { text: text.into(), syntax, program, first, literal, units })
    }

    /// The pattern as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Logical bytes.
    pub fn bytes(&self) -> usize {
        PATTERN_BYTES
            + self.text.len() * TREE_BYTES
            + self.program.bytes()
            + self.syntax.sets.iter().map(Set::bytes).sum::<usize>()
    }

    /// The cost of compiling it, in units of fuel.
    pub fn units(&self) -> u64 {
        self.units
    }

    /// Whether it contains look-around, back-references or atomic groups, which only the backtracking search
    /// supports.
    pub fn is_backtracking(&self) -> bool {
        self.syntax.backtracking
    }

    /// Number of capturing groups.
    pub fn groups(&self) -> usize {
        usize::from(self.syntax.groups)
    }

    /// The number of a named group.
    pub fn group_number(&self, name: &str) -> Option<usize> {
        let row = self.syntax.names.iter().find(|(known, _)| **known == *name);
        row.map(|&(_, number)| usize::from(number))
    }
}

/// Checks a pattern, without metering; the error is one line without the pattern's own rendering.
///
/// # Errors
/// What is wrong with the pattern.
pub fn check_pattern(pattern: &str) -> Result<(), String> {
    match Pattern::new(pattern, &mut |_| Ok::<(), Infallible>(())) {
        Ok(_) => Ok(()),
        Err(PatternError::Pattern(message)) => Err(message),
        Err(PatternError::Stopped(never)) => match never {},
    }
}

/// Collects the characters of a tree that consists only of characters.
fn is_plain(node: &Node, plain: &mut String) -> bool {
    match node {
        Node::Char(character) => {
            plain.push(*character);
            true
        }
        Node::Concat(parts) => parts.iter().all(|part| is_plain(part, plain)),
        _ => false,
    }
}

/// An upper bound on how deep groups and classes nest.
fn nesting(pattern: &str) -> u32 {
    let (mut depth, mut deepest) = (0u32, 0);
    for byte in pattern.bytes() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}
