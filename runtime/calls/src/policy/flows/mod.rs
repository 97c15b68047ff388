//! Enforces the data-flow rules of policies: labels data by where it comes from, and decides into which tool calls it
//! may go.
//!
//! A program in PTC-Lisp has a plan ([`ptc_compiler::flows`]), made before it runs: a call that no rule is about is
//! made as if there were no labels. A call with a flow that a rule denies or asks about is decided by the plan and by
//! what has been answered so far. Calls that stand in no plan (of Python, a direct call, of a function of a prelude or
//! an earlier program, of a program that is too large) are decided by where their arguments come from, in a run with
//! labels on values, else by what has been answered alone: an answer that came before counts as part of every argument.
//!
//! Each policy file has labels of its own and decides for itself; the strictest answer counts.
//!
//! # Layout
//! - `file`: reads `[labels]`, `[[flow]]` and `flows`; `labels`: labels of answers and other sources; `standard`: the
//!   arguments of the usual rules; `rules`: what a file says of a flow
//! - `decide`: the flows into a call; `origins`: where its arguments come from, in a run with labels on values
//! - `marks`: what has been answered and shown so far, in a run and in its session

mod decide;
mod file;
mod labels;
mod marks;
mod origins;
mod rules;
mod standard;
#[cfg(test)]
mod tests;

pub(super) use decide::{FlowFinding, Tainted};
pub(super) use file::{FlowSwitch, FlowText, FlowsText};
pub(super) use labels::UNKNOWN_SOURCE;
pub(super) use marks::FlowMarks;
pub use marks::{SessionAnswers, ShownAnswer};
pub use origins::{CallOrigins, Origin, STATUS_PARTS};
pub(super) use rules::FlowRules;
