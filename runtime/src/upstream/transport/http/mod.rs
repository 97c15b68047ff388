//! Remote servers: Streamable HTTP in every revision, and HTTP with one stream of events, as it was before.
//!
//! - [`spec`]: what is configured, and the transport. [`link`]: a server that was reached; which of the two it speaks.
//! - [`streamable`]: a POST for each request, and its answer. [`session`]: the session that the server keeps for us,
//!   and a new one when it has lost it. [`listener`]: the stream of what it says unasked.
//! - [`legacy`]: one stream of events for all answers.
//! - [`wire`]: requests with our headers. [`metadata`]: what stands in them beside the text. [`life`]: whether the link may be used. [`events`]: reading a
//!   stream of events. [`incoming`]: what to do about a message in it. [`refusal`]: what a status means.

mod events;
mod incoming;
mod legacy;
mod life;
mod link;
mod listener;
mod metadata;
mod refusal;
mod session;
mod spec;
mod streamable;
mod wire;

#[cfg(feature = "agent")]
pub(crate) use events::{EventParser, ServerSentEvent};
pub(crate) use spec::HttpTransport;
pub use spec::{HttpProtocol, HttpSpec};
