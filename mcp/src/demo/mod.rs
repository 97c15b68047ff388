//! The parts of `ptc demo`: two sample MCP servers and a program that joins their data.
//!
//! # Layout
//!
//! - [`data`]: the sample data, made from a fixed seed: customers and orders of a shop, tickets of a help desk.
//! - [`sample`]: the tools of the two servers. They run in processes of their own (`sample_server`), so the demo goes
//!   through the same pipes, limits and accounting as any other server.
//! - [`report`]: the printed report.

pub mod data;
pub mod report;
pub mod sample;

/// The program of the demo.
pub const PROGRAM: &str = include_str!("program.ptc");

pub use sample::Sample;
