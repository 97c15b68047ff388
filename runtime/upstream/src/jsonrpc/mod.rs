//! Parses and writes JSON-RPC messages, independently of the transport that carries them.
//!
//! - [`message`]: writes requests and notifications, and parses incoming texts.
//! - [`answer`]: the raw bytes of a result. [`error`]: errors, including malformed ones.
//! - [`scan`]: the structure of texts that no JSON parser accepts.

pub(crate) mod answer;
pub(crate) mod error;
pub(crate) mod message;
pub(crate) mod scan;

pub use answer::RawAnswer;
pub use error::ErrorObject;
