#![doc = include_str!("../README.md")]
//! Searches untrusted texts with untrusted regular expressions: the application counts the work and memory of each
//! search, and can stop it.
//!
//! # Layout
//! The modules from bottom to top; each uses only those before it.
//!
//! - `error`: why a pattern does not compile, why a search is refused
//! - `meter`: the trait that searches pay through
//! - `pattern`: patterns, compiled to instructions
//! - `search`: four kinds of searches with one program, and the choice between them
//! - `testing`: unit tests across modules

#![forbid(unsafe_code)]

mod error;
mod meter;
mod pattern;
mod search;
#[cfg(test)]
mod testing;

pub use error::{LONGEST_BACKTRACKED, PatternError, SearchError};
pub use meter::Meter;
#[doc(hidden)]
pub use pattern::translated;
pub use pattern::{LONGEST_PATTERN, Pattern, check_pattern};
pub use search::{Regex, Searches, Spans, after};
