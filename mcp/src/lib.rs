//! The server side of MCP, and the command line of `ptc`.
//!
//! # Layout
//!
//! Data flows from top to bottom for a request, and back up for its answer:
//!
//! - [`server`]: transports, connections, admission control, and one transport-neutral [`server::Handler`] that
//!   dispatches methods.
//! - [`ui`]: the page that people look at.
//! - [`tools`]: the tools on offer, a folder each, and their registry.
//! - [`files`]: files that callers may name, and tools that read them.
//! - [`observe`]: records of calls, for operators. `drawing`: pictures of them.
//! - [`answer`]: results of runs, and response profiles.
//! - [`protocol`]: MCP messages: JSON-RPC, and the two eras of the protocol.
//! - [`console`]: terminal output, exit codes, logs.
//! - [`redact`]: the standard streams, with secrets redacted.
//! - [`import`]: converts the configurations of other hosts to ours.
//! - [`cli`]: the commands of the `ptc` binary.
//! - [`demo`]: the two sample servers and the program of `ptc demo`.
//!
//! Code depends one way: `cli` -> `server` -> `tools` -> `answer` -> `protocol`.
//!
//! Architecture invariant: only this crate knows the server side of MCP and the command line, and nothing here
//! knows how a program is compiled or run.
//!
//! Architecture invariant: the runtime records a run in full; only [`answer::profile`] applies a response profile.

pub mod answer;
pub mod cli;
pub mod console;
pub mod demo;
mod drawing;
pub mod files;
pub mod import;
pub mod observe;
pub mod protocol;
pub mod redact;
pub mod server;
pub mod tools;
pub mod ui;
