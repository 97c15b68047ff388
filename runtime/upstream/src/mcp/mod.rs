//! Implements the client side of the MCP protocol over a [`Connection`](super::transport::Connection) of any transport.
//!
//! - [`session`]: the connection that wraps another one and speaks MCP over it. [`client`]: questions with deadlines.
//! - [`handshake`]: finding out the era. [`dialect`]: what differs between the eras.
//! - [`task`]: calls that are answered with a task. [`created`]: their answers. [`schedule`]: when servers are asked for
//!   tasks. [`asked`]: what a server asks in an answer.
//! - [`mirror`]: arguments that are repeated in headers. [`features`]: resources and prompts.

mod asked;
mod client;
mod created;
mod dialect;
mod features;
mod handshake;
mod mirror;
mod schedule;
mod session;
mod task;

pub(super) use session::McpSession;
