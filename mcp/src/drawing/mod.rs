//! Draws recorded calls.
//!
//! - [`trace`]: a recorded call; `outcome` makes one of a run that has just ended.
//! - [`chart`]: its upstream calls as SVG. [`html`]: escapes text. [`units`]: numbers in readable units.

pub(crate) mod chart;
pub(crate) mod html;
mod outcome;
pub(crate) mod trace;
pub(crate) mod units;
