//! The wire of MCP, without a transport and without what is done about a message.
//!
//! # Layout
//!
//! - [`frame`]: a message of the client, classified.
//! - [`params`]: the parameters of every method we know, read in the same pass. [`borrowed`]: without copies.
//!   [`arguments`]: those of a call, with their members.
//! - `usual`: the same for messages of the usual shape, with less work. `scan`: what it scans with. [`known_meta`]: what a client repeats.
//! - [`version`]: protocol revisions and the two eras.
//! - [`message`]: the JSON-RPC messages that we send.
//! - [`log_level`], [`notify`]: what we send unasked, because a client wished for it.

pub mod arguments;
pub mod borrowed;
pub mod frame;
pub mod known_meta;
pub mod log_level;
pub mod message;
pub mod notify;
pub mod params;
pub(crate) mod scan;
mod usual;
pub mod version;

pub use borrowed::Raw;
pub use frame::{Frame, FrameError, Id, Message};
pub use message::{ErrorCode, RpcError, ServerMessage};
pub use notify::LogMessage;
pub use version::{Era, Version};
