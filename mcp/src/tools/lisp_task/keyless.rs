//! A model that cannot be asked, because its key is not there: a server is of use without it, and says so to whoever asks.

use async_trait::async_trait;
use ptc_runtime::agent::{Llm, LlmError, LlmReply, LlmRequest};

/// A model without its key.
pub struct KeylessModel {
    model: String,
    error: LlmError,
}

impl KeylessModel {
    /// Whoever asks this model is told this.
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
