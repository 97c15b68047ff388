//! Native frames.

/// A native frame.
pub enum Native {}
