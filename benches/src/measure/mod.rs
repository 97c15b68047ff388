//! `ptc bench`: speed that a user can check with the binary alone.
//!
//! # Layout
//! - [`pmap`]: calls in flight at the same time, against a bare client; [`delay_server`]: what both call, and
//!   [`delay_http`]: the same over HTTP
//! - [`overhead`]: what a `tool/call` costs beyond its server
//! - [`serve`]: requests a second, against a bare loop; [`text_block`]: a large answer, from frame to values
//! - [`http_load`]: the same over HTTP, a quiet client beside one that floods, memory of idle connections
//! - [`fairness`]: new programs beside long ones, and more of them than the server takes at once
//! - [`prelude`]: what attaching a prelude costs, and calling it
//! - [`spill`]: a result that is too large to be carried
//! - [`tool_list`]: bytes of the tool list beside those of the upstreams
//! - [`workload`]: programs of the peer benchmark, timed by CPU; [`clock`]: CPU time
//! - [`latency`]: small programs from text to value; [`memory`]: of programs that wait, sessions and values

pub mod clock;
pub mod delay_http;
pub mod delay_server;
pub mod fairness;
pub mod http_load;
pub mod latency;
pub mod memory;
pub mod overhead;
pub mod pmap;
pub mod prelude;
pub mod python;
pub mod serve;
pub mod spill;
pub mod text_block;
pub mod tool_list;
pub mod workload;
