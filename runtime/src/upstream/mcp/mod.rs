//! MCP as a client speaks it, over the [`Peer`](super::Peer) of any transport.
//!
//! - [`session`]: a server that was greeted, in its era. [`client`]: requests with deadlines.
//! - [`handshake`]: finding out the era. [`dialect`]: what differs between the eras. [`listing`]: the list of tools.
//!   [`mirror`]: arguments that a transport shows beside the text. [`features`]: resources and prompts.

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
