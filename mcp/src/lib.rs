//! The edge of the product: the server side of MCP and the command line.
//!
//! # Layout
//!
//! Data flows from top to bottom for a request, and back up for its answer:
//!
//! - [`server`]: transports. `stdio` frames lines, admits, queues, cancels and drains.
//! - [`protocol`]: one transport-neutral [`protocol::Handler`]: JSON-RPC frames, the two eras of the
//!   protocol, method dispatch.
//! - [`tool`]: what `lisp_eval` promises: description, arguments, output schemas, response profiles.
//! - [`edge`]: the standard streams, which let no secret through.
//! - [`engine`]: the one thing all of these need from the runtime, so that tests can replace it.
//! - [`import`]: the servers of other hosts as a configuration of ours.
//! - [`cli`]: the commands of the `ptc` binary, one file each.
//! - [`mod@bench`]: what `ptc bench` measures.
//! - [`demo`]: the two sample servers and the program behind `ptc demo`.
//!
//! Architecture invariant: only this crate knows the server side of MCP and the command line, and
//! nothing here knows how a program is compiled or run.
//! Architecture invariant: a run is recorded in full by the runtime; a response profile is applied in
//! [`tool::profile`] and nowhere else.

pub mod bench;
pub mod cli;
pub mod demo;
pub mod edge;
pub mod engine;
pub mod import;
pub mod protocol;
pub mod server;
pub mod tool;
