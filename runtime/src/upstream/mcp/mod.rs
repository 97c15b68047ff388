//! The MCP client, over the [`Peer`](super::Peer) of any transport.
//!
//! - [`session`]: a server after the handshake. [`client`]: requests with deadlines.
//! - [`handshake`]: finds out the era. [`dialect`]: differences of the eras. [`listing`]: the list of tools.
//!   [`mirror`]: arguments that a transport sends in headers as well. [`features`]: resources and prompts.

mod client;
mod dialect;
mod features;
mod handshake;
mod listing;
mod mirror;
mod session;

pub(super) use handshake::Probe;
pub(super) use listing::Listing;
pub(super) use session::McpSession;
