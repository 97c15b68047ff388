//! A scripted model for tests.

use async_trait::async_trait;
use ptc_agent::{
    Agent, AgentFailure, AgentStep, AttemptStatus, Llm, LlmError, LlmErrorKind, LlmMessage, LlmReply,
    LlmRequest, TokenUsage,
};
use ptc_calls::{Effect, HostTool, NoArguments};
use ptc_engine::Runtime;
use serde_json::json;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

/// A model with scripted replies that records its prompts.
#[derive(Default)]
pub(crate) struct Script {
    pub(crate) replies: Mutex<VecDeque<Result<LlmReply, LlmError>>>,
    /// System prompt and messages of each request.
    pub(crate) told: Mutex<Vec<(String, Vec<LlmMessage>)>>,
}

#[async_trait]
impl Llm for Script {
    fn model(&self) -> &str {
        "script"
    }

    async fn complete(&self, request: LlmRequest<'_>) -> Result<LlmReply, LlmError> {
        self.told.lock().expect("a whole list").push((request.system.to_owned(), request.messages.to_vec()));
        let next = self.replies.lock().expect("a whole list").pop_front();
        next.unwrap_or_else(|| Err(LlmError::new(LlmErrorKind::Unavailable, "the script is over")))
    }
}

impl Script {
    pub(crate) fn with_replies(replies: &[&str]) -> Arc<Script> {
        let usage = TokenUsage { input: Some(100), output: Some(10) };
        let reply = |text: &&str| Ok(LlmReply { usage, ..LlmReply::from(*text) });
        Arc::new(Script { replies: Mutex::new(replies.iter().map(reply).collect()), ..Script::default() })
    }

    /// The last message of each request.
    pub(crate) fn last_messages(&self) -> Vec<String> {
        let told = self.told.lock().expect("a whole list");
        told.iter().map(|(_, messages)| messages.last().expect("a message").text.clone()).collect()
    }

    /// The system prompt of the first request.
    pub(crate) fn first_system(&self) -> String {
        let told = self.told.lock().expect("a whole list");
        told.first().map(|(system, _)| system.clone()).unwrap_or_default()
    }

    pub(crate) fn requests(&self) -> usize {
        self.told.lock().expect("a whole list").len()
    }
}

pub(crate) async fn runtime() -> Runtime {
    Runtime::builder().workers(1).start().await.expect("a runtime")
}

pub(crate) async fn run(agent: &Agent, script: &Arc<Script>) -> AgentStep {
    agent.run(&runtime().await, script.clone(), &json!({})).await
}

pub(crate) fn failure(step: &AgentStep) -> &AgentFailure {
    step.result.as_ref().expect_err("no answer")
}

pub(crate) fn statuses(step: &AgentStep) -> Vec<AttemptStatus> {
    step.turns.iter().map(|turn| turn.status).collect()
}

pub(crate) fn tool(name: &str, effect: Effect) -> HostTool {
    HostTool::new(name, |_: NoArguments| async { Ok::<_, Infallible>(7) }).effect(effect)
}
