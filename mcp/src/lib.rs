//! Implements the commands of the `ptc` binary, with the sample servers of its demo and the import of MCP
//! configurations from client applications.
//!
//! # Layout
//!
//! - [`cli`]: the commands of the `ptc` binary.
//! - [`demo`]: the two sample servers and the program of `ptc demo`.
//! - [`import`]: converts the configurations of other hosts to ours.
//! - `sample_server`: a small MCP server for sample or recorded tools.
//!
//! The server itself is the crate `ptc-server` (`mcp/server`).

pub mod cli;
pub mod demo;
pub mod import;
mod sample_server;
