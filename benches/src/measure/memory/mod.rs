//! Memory: what waits, what is kept, and what values take.
//!
//! # Layout
//! - [`suspended`]: programs that wait; [`sessions`]: sessions, and what one costs beside a program on its own
//! - [`values`]: values of each kind; `resident`: the process

mod resident;
pub mod sessions;
pub mod suspended;
pub mod values;
