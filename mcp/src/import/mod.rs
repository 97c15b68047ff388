//! Takes over the MCP servers that other hosts have in their configuration.
//!
//! # Layout
//!
//! - [`hosts`]: which hosts there are, and where each keeps its servers.
//! - [`source`]: a host's file as a list of entries, whatever it is written in.
//! - [`keys`]: what becomes of each key of a host's entry. [`convert`]: a host's entry as one of ours.
//! - [`switches`]: servers and tools that a host has switched off outside of their entries.
//! - [`edit`]: entries of JSON files set and removed, with everything else left as it is.
//! - [`own`]: whether a command is this product.
//! - [`merge`]: entries of all hosts as one file.

pub mod convert;
pub mod edit;
pub mod hosts;
pub mod keys;
pub mod merge;
pub mod own;
pub mod source;
pub mod switches;
