//! The edge of the product: the server side of MCP and the command line.
//!
//! # Layout
//!
//! Data flows from top to bottom for a request, and back up for its answer:
//!
//! - [`server`]: transports, connections, the gate that admits, and one transport-neutral
//!   [`server::Handler`] that dispatches methods.
//! - [`tools`]: the tools on offer, a folder each, and their registry.
//! - [`files`]: files that callers may name, and tools that look into them.
//! - [`observe`]: records of calls, for operators.
//! - [`answer`]: what came of a run, and response profiles.
//! - [`protocol`]: the wire of MCP: JSON-RPC messages, the two eras of the protocol.
//! - [`console`]: what people see on a terminal, exit codes, logs.
//! - [`edge`]: the standard streams, which let no secret through.
//! - [`import`]: the servers of other hosts as a configuration of ours.
//! - [`cli`]: the commands of the `ptc` binary; `ptc bench` is handed in by the binary.
//! - [`demo`]: the two sample servers and the program behind `ptc demo`.
//!
//! Code depends one way: `cli` -> `server` -> `tools` -> `answer` -> `protocol`.
//!
//! Architecture invariant: only this crate knows the server side of MCP and the command line, and
//! nothing here knows how a program is compiled or run.
//! Architecture invariant: a run is recorded in full by the runtime; a response profile is applied in
//! [`answer::profile`] and nowhere else.

pub mod answer;
pub mod cli;
pub mod console;
pub mod demo;
pub mod edge;
pub mod files;
pub mod import;
pub mod observe;
pub mod protocol;
pub mod server;
pub mod tools;
