//! `ptc bench`: speed that a user can check with the binary alone.
//!
//! # Layout
//! - [`pmap`]: calls in flight at the same time, against a bare client; [`delay_server`]: what both call
//! - [`overhead`]: what a `tool/call` costs beyond its server
//! - [`tool_list`]: bytes of the tool list beside those of the upstreams
//! - [`workload`]: programs of the peer benchmark, timed by CPU; [`clock`]: CPU time

pub mod clock;
pub mod delay_server;
pub mod overhead;
pub mod pmap;
pub mod tool_list;
pub mod workload;
