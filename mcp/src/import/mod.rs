//! Takes over the MCP servers that other hosts have in their configuration.
//!
//! # Layout
//!
//! - [`hosts`]: which hosts there are, and where each keeps its servers.
//! - [`source`]: a host's file as a list of entries, whatever it is written in.
//! - [`convert`]: a host's entry as one of ours.
//! - [`edit`]: entries of JSON files set and removed, with everything else left as it is.
//! - [`merge`]: entries of all hosts as one file.

pub mod convert;
pub mod edit;
pub mod hosts;
pub mod merge;
pub mod source;
