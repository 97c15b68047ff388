//! MCP without a transport: frames in, [`Action`]s out.
//!
//! # Layout
//!
//! - [`frame`]: one line of JSON-RPC, classified.
//! - [`plain`]: the most frequent request, read in one pass.
//! - [`params`]: the parameters of every method we know, read in one pass.
//! - [`version`]: protocol revisions and the two eras.
//! - [`reply`]: the JSON-RPC envelope of an answer.
//! - [`surface`]: what the server offers, and the lists made of it.
//! - [`log_level`], [`notify`]: what we send unasked, because a client wished for it.
//! - [`handler`]: method dispatch.

pub mod frame;
pub mod handler;
pub mod log_level;
pub mod notify;
pub mod params;
pub mod plain;
pub mod reply;
pub mod surface;
pub mod version;

pub use frame::{FrameError, Id, Message};
pub use handler::{Action, Handler, Session};
pub use reply::{ErrorCode, Reply};
pub use surface::Surface;
pub use version::{Era, Version};
