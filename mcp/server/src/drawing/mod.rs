//! Draws the calls that a run made to other servers as SVG, from a recorded trace or from a run that has just ended.
//!
//! - [`trace`]: a recorded call; `outcome` makes one of a run that has just ended, `read` one of a trace file.
//! - [`chart`]: its upstream calls as SVG. [`html`]: escapes text. [`units`]: numbers in readable units.

pub mod chart;
pub mod html;
mod outcome;
mod read;
pub mod trace;
pub mod units;
