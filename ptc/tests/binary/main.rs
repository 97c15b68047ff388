//! The real binary: as an MCP server, and command by command.

mod commands;
mod configuration;
mod fairness;
mod hosts;
mod serve;
mod support;
mod upstreams;
