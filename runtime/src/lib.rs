//! Runs PTC-Lisp programs next to MCP tools.
//!
//! # Layout
//!
//! - [`options`], [`limits`], [`outcome`], [`metrics`]: what goes into a run and what comes out, plain data.
//! - [`config`]: the file that names upstream servers. [`secrets`]: the one registry of secret values.
//! - [`upstream`]: MCP servers as clients see them: processes, connections, restarts, tool lists.

pub mod config;
pub mod limits;
pub mod metrics;
pub mod options;
pub mod outcome;
pub mod secrets;
pub mod upstream;
