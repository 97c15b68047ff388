//! Promises of the server side of MCP, without the binary; `binary` holds those of the binary.

mod binary;
mod connection;
mod eras;
mod files;
mod profiles;
mod second_tool;
mod tasks;
