//! Defines the errors of patterns that do not compile, and of searches that are refused because of a long text or too
//! many steps.

use std::fmt;

/// Longest text for a pattern that backtracks, in bytes.
pub const LONGEST_BACKTRACKED: usize = 32_768;

/// Why there is no compiled pattern.
#[derive(Debug)]
pub enum PatternError<E> {
    /// The error in the pattern, in one line.
    Pattern(String),
    /// `pay` refused.
    Stopped(E),
}

impl<E> PatternError<E> {
    pub(crate) fn invalid(what: impl fmt::Display) -> PatternError<E> {
        PatternError::Pattern(format!("Invalid regex: {what}"))
    }
}

impl<E: fmt::Display> fmt::Display for PatternError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PatternError::Pattern(message) => f.write_str(message),
            PatternError::Stopped(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for PatternError<E> {}

/// Why a search is refused, other than by its meter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchError {
    /// The text, of this many bytes, is too long for a pattern with look-around, back-references or atomic groups.
    TextTooLong(usize),
    /// A pattern of that kind takes too many steps.
    TooManySteps,
    /// The pattern has no automaton, for this reason.
    NoAutomaton(String),
}

impl fmt::Display for SearchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SearchError::TextTooLong(bytes) => write!(
                f,
                "text of {bytes} bytes is too long for a regex with look-around, back-references or possessive \
                 quantifiers: the limit is {LONGEST_BACKTRACKED} bytes"
            ),
            SearchError::TooManySteps => f.write_str("Regex complexity limit exceeded (ReDoS protection)"),
            SearchError::NoAutomaton(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for SearchError {}
