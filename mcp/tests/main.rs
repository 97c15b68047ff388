//! Promises of the server side of MCP, spoken to without the binary.

mod connection;
mod eras;
mod files;
mod profiles;
mod second_tool;
