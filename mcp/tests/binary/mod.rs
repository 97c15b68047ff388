//! Tests of the real binary: as an MCP server, and command by command.
#![allow(clippy::disallowed_methods, reason = "tests write files as they need them")]

mod commands;
mod configuration;
mod fairness;
mod hosts;
mod planted;
mod serve;
mod started;
mod support;
mod upstreams;
