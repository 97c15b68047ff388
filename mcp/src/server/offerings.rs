//! What a server offers beside tools: resources, prompts, completions.

use crate::protocol::params::Params;
use crate::protocol::{Era, RpcError};
use serde_json::{Map, Value};
use std::fmt::Debug;

/// Methods beside those of the handler. They are answered at once, on the thread that serves the connection.
pub trait Offerings: Debug + Send + Sync {
    /// What is said of them when a client asks what the server can do.
    fn capabilities(&self) -> Map<String, Value>;

    /// True for a method that there is in this era.
    fn has(&self, method: &str, era: Era) -> bool;

    /// The result of such a method. What every result of the stateless era has is added to it.
    ///
    /// # Errors
    /// What is wrong with the request.
    fn answer(&self, method: &str, params: &Params<'_>, era: Era) -> Result<Map<String, Value>, RpcError>;
}
