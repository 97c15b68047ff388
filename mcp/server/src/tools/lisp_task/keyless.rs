//! Stands in for the model of `lisp_task` when its API key is missing: the server starts all the same, and each request
//! to the model returns the error.

use async_trait::async_trait;
use ptc_agent::{Llm, LlmError, LlmReply, LlmRequest};

/// A model without its API key.
pub struct KeylessModel {
    model: String,
    error: LlmError,
}

impl KeylessModel {
    /// Makes a model that answers every request with this error.
    pub fn new(model: String, error: LlmError) -> KeylessModel {
        KeylessModel { model, error }
    }
}

#[async_trait]
impl Llm for KeylessModel {
    fn model(&self) -> &str {
        &self.model
    }

    async fn complete(&self, _: LlmRequest<'_>) -> Result<LlmReply, LlmError> {
        Err(self.error.clone())
    }
}
