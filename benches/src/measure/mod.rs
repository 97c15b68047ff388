//! Measurements of `ptc-bench`.
//!
//! # Layout
//! - [`pmap`]: calls in flight at the same time, against a bare client; [`delay_server`]: the server that
//!   both call, and
//!   [`delay_http`]: the same over HTTP
//! - [`overhead`]: the cost of a `tool/call` beyond its server
//! - [`serve`]: requests a second, against a bare loop; [`text_block`]: a large answer, from frame to values
//! - [`http_load`]: the same over HTTP, a quiet client during a flood, memory of idle connections
//! - [`fairness`]: new programs while long ones run, and more of them than the server accepts at once
//! - [`programs`]: the programs that measurements start
//! - [`prelude`]: the cost of attaching a prelude and of calling it
//! - [`python`]: scripts end to end, and calls in flight
//! - [`spill`]: a result that is written to a file because of its size
//! - [`tool_list`]: bytes of the tool list, compared with those of the upstreams
//! - [`workload`]: programs of the peer benchmark, timed by CPU; [`clock`]: CPU time
//! - [`latency`]: small programs from text to value; [`memory`]: of suspended programs, sessions and values

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
pub mod programs;
pub mod python;
pub mod serve;
pub mod spill;
pub mod text_block;
pub mod tool_list;
pub mod workload;
