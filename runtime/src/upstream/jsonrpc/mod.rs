//! JSON-RPC as text, the same for every transport.
//!
//! - [`message`]: requests and notifications as they are written, and what an incoming text is.
//! - [`answer`]: the raw bytes of a result. [`error`]: what an error says, however oddly it is written.
//! - [`scan`]: brackets, strings and commas of a text that no parser accepts.

pub(crate) mod answer;
pub(crate) mod error;
pub(crate) mod message;
pub(crate) mod scan;

pub use answer::RawAnswer;
pub use error::ErrorObject;
