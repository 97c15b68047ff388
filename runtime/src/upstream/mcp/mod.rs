//! MCP as a client speaks it, over the [`Connection`](super::transport::Connection) of any transport.
//!
//! - [`session`]: the connection that wraps another one and speaks MCP over it. [`client`]: questions with deadlines.
//! - [`handshake`]: finding out the era. [`dialect`]: what differs between the eras.
//! - [`mirror`]: arguments that are repeated in headers. [`features`]: resources and prompts.

mod client;
mod dialect;
mod features;
mod handshake;
mod mirror;
mod session;

pub(super) use session::McpSession;
