//! MCP without a transport: frames in, [`Action`]s out.
//!
//! # Layout
//!
//! - [`frame`]: one line of JSON-RPC, classified.
//! - [`params`]: the parameters of every method we know, read in one pass.
//! - [`version`]: protocol revisions and the two eras.
//! - [`reply`]: the JSON-RPC envelope of an answer.
//! - [`handler`]: method dispatch.

pub mod frame;
pub mod handler;
pub mod params;
pub mod reply;
pub mod version;

pub use frame::{FrameError, Id, Message};
pub use handler::{Action, Handler, Session, Surface};
pub use reply::{ErrorCode, Reply};
pub use version::{Era, Version};
