//! Checks of tool calls against tool lists and input schemas, before anything is sent.
//!
//! # Layout
//! - `expectation`: what a schema expects of one value and of the names of a map
//! - `literal`: calls that say everything literally, checked when a program is compiled
//! - `message`: what is wrong, in words; the same for both
//!
//! Arguments that are computed are checked by [`crate::tool_call`] while they are encoded, with the same
//! expectations and the same words.

mod expectation;
mod literal;
mod message;

pub(crate) use expectation::{Names, Shape, Verdict, below, items, mismatch};
pub(crate) use literal::StaticCheck;
pub(crate) use message::{Path, Problem, no_such_server, no_such_tool, undeclared_note};
