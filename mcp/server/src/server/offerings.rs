//! The trait for what a server offers other than tools: resources, prompts and completions.

use crate::protocol::params::Params;
use crate::protocol::{Era, RpcError};
use serde_json::{Map, Value};
use std::fmt::Debug;

/// Methods other than those of the handler. They are answered at once, on the connection's thread.
pub trait Offerings: Debug + Send + Sync {
    /// Capabilities to declare to clients.
    fn capabilities(&self) -> Map<String, Value>;

    /// True if this era has this method.
    fn has(&self, method: &str, era: Era) -> bool;

    /// The result of such a method. The handler adds the members that every stateless result has.
    ///
    /// # Errors
    /// What is wrong with the request.
    fn answer(&self, method: &str, params: &Params<'_>, era: Era) -> Result<Map<String, Value>, RpcError>;
}
