//! Measures memory of suspended programs, of sessions and of values.
//!
//! # Layout
//! - [`suspended`]: programs that wait in a call; [`sessions`]: sessions, compared with programs without one
//! - [`values`]: values of each kind; `resident`: memory of the process

mod resident;
pub mod sessions;
pub mod suspended;
pub mod values;
