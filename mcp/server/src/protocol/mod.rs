//! Parses the MCP messages that clients send, and serializes those that the server sends, for all supported protocol
//! versions. Nothing here depends on a transport or handles a message.
//!
//! # Layout
//!
//! - [`frame`]: parses and classifies a client's message.
//! - [`params`]: the parameters of every known method. [`borrowed`]: JSON types that borrow.
//! - [`version`]: protocol versions and the two eras.
//! - [`message`]: the JSON-RPC messages that we send.
//! - [`log_level`], [`notify`]: notifications that a client asked for.

pub mod borrowed;
pub mod frame;
pub mod log_level;
pub mod message;
pub mod notify;
pub mod params;
pub mod version;

pub use borrowed::Raw;
pub use frame::{Frame, FrameError, Id, Message};
pub use message::{ErrorCode, RpcError, ServerMessage};
pub use notify::LogMessage;
pub use version::{Era, Version};
