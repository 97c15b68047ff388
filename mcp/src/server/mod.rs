//! Transports of the server side.
//!
//! # Layout
//!
//! - [`lines`]: bytes to lines, bounded; a thread that reads them.
//! - [`output`]: a thread that writes, and how much it is behind.
//! - [`mailbox`]: what running programs tell. [`admission`]: running, waiting, refused; cancellation.
//!   [`progress`]: what a client is told meanwhile.
//! - [`connection`]: one connection without its transport.
//! - [`stdio`]: the loop that gives it standard input and output.

pub mod admission;
pub mod connection;
pub mod lines;
pub mod mailbox;
pub mod output;
pub mod progress;
pub mod stdio;
