//! Connects to remote MCP servers over Streamable HTTP, in every protocol version, or over the older HTTP transport
//! with one stream of events (SSE).
//!
//! - [`spec`]: what is configured, and the transport. [`connection`]: a server that was reached; which of the two it
//!   speaks.
//! - [`streamable`]: a POST for each request, and its answer. [`session`]: the session that the server has with us, and
//!   a new one when it has lost it. [`listener`]: the stream of what the server says unasked.
//! - [`sse`]: one stream of events for all answers.
//! - [`gate`]: requests that wait until the server is ready for them.
//! - [`wire`]: requests with the configured headers. [`metadata`]: headers of a message. [`events`]: reading a
//!   stream of events. [`incoming`]: what to do about a message in it.
//!   [`refusal`]: what a status means.

mod connection;
mod events;
mod gate;
mod incoming;
mod listener;
mod metadata;
mod refusal;
mod session;
mod spec;
mod sse;
mod streamable;
mod wire;

pub use events::{EventParser, ServerSentEvent};
pub use spec::{HttpProtocol, HttpSpec};
