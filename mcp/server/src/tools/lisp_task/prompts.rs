//! Records the prompts that a `lisp_task` call sends to its model, for traces of the call.

use async_trait::async_trait;
use ptc_agent::{Llm, LlmError, LlmReply, LlmRequest};
use ptc_base::sync::Locked;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// A model that records the prompt of each request.
pub(super) struct PromptRecorder {
    llm: Arc<dyn Llm>,
    prompts: Mutex<Vec<Value>>,
}

impl PromptRecorder {
    pub(super) fn new(llm: Arc<dyn Llm>) -> PromptRecorder {
        PromptRecorder { llm, prompts: Mutex::default() }
    }

    /// Takes the prompts recorded so far, in order.
    pub(super) fn take(&self) -> Vec<Value> {
        std::mem::take(&mut *self.prompts.locked())
    }
}

#[async_trait]
impl Llm for PromptRecorder {
    fn model(&self) -> &str {
        self.llm.model()
    }

    async fn complete(&self, request: LlmRequest<'_>) -> Result<LlmReply, LlmError> {
        let prompt = json!({ "system": request.system, "messages": request.messages });
        self.prompts.locked().push(prompt);
        self.llm.complete(request).await
    }
}
