//! Tests of the real binary: as an MCP server, and command by command.

mod commands;
mod configuration;
mod fairness;
mod hosts;
mod planted;
mod serve;
mod started;
mod support;
mod upstreams;
