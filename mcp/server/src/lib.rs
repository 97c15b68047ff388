//! The MCP server of `ptc`: transports, tools and their answers, records of calls, and a web page for people.
//!
//! # Layout
//!
//! Data flows from top to bottom for a request, and back up for its answer:
//!
//! - [`server`]: transports, connections, admission control, and one transport-neutral [`server::Handler`] that
//!   dispatches methods.
//! - [`ui`]: the page that people look at.
//! - [`tools`]: the tools on offer, a folder each, and their registry.
//! - [`files`]: files that callers may name, and tools that read and write them.
//! - [`observe`]: records of calls, for operators. [`drawing`]: pictures of them.
//! - [`answer`]: results of runs, and response profiles.
//! - [`protocol`]: MCP messages: JSON-RPC, and the two eras of the protocol.
//! - [`console`]: terminal output, exit codes, logs.
//! - [`redact`]: the standard streams, with secrets redacted.
//!
//! Architecture invariant: only this crate knows the server side of MCP, and nothing here knows how a program is
//! compiled or run.
//!
//! Architecture invariant: the runtime records a run in full; only [`answer::profile`] applies a response profile.

pub mod answer;
pub mod console;
pub mod drawing;
pub mod files;
pub mod observe;
pub mod protocol;
pub mod redact;
pub mod server;
pub mod tools;
pub mod ui;
