//! Imports MCP servers from the configuration files of other MCP client applications (Claude Code, Cursor, VS Code …)
//! into the configuration of `ptc`.
//!
//! # Layout
//!
//! - [`hosts`]: the supported hosts and their files.
//! - [`source`]: parses a host's file to a list of entries.
//! - [`keys`]: the meaning of each key of a host's entry. [`convert`]: converts an entry to ours.
//! - [`switches`]: servers and tools that a host has disabled outside of their entries.
//! - [`edit`]: edits entries of JSON files, and leaves everything else as it is.
//! - [`own`]: recognizes commands that start this product.
//! - [`merge`]: merges the entries of all hosts.

pub mod convert;
pub mod edit;
pub mod hosts;
pub mod keys;
pub mod merge;
pub mod own;
pub mod source;
pub mod switches;
