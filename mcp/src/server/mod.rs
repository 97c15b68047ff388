//! Transports of the server side.
//!
//! # Layout
//!
//! - [`lines`]: bytes to lines, bounded; a thread that reads them.
//! - [`output`]: a thread that writes, and how much it is behind.
//! - [`admission`]: running, queued, refused; cancellation.
//! - [`stdio`]: the loop that owns one connection.

pub mod admission;
pub mod lines;
pub mod output;
pub mod stdio;
