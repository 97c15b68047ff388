//! Records conversations as readable text. A request is the JSON that was sent. Its texts are listed separately, once
//! each, under numbers in the order of their use. System prompts have a file of their own.

use crate::common::golden;
use crate::common::provider::KEY;
use crate::conversations::scenario::{Conversation, runtime, with_server};
use async_trait::async_trait;
use ptc_agent::{Agent, AgentStep, Llm, LlmError, LlmErrorKind, LlmReply, LlmRequest};
use ptc_engine::Runtime;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

/// System prompts by name.
pub(crate) type Systems = Vec<(&'static str, String)>;

/// Records the system prompt.
#[derive(Default)]
struct Listener(Mutex<String>);

#[async_trait]
impl Llm for Listener {
    fn model(&self) -> &str {
        "listener"
    }

    async fn complete(&self, request: LlmRequest<'_>) -> Result<LlmReply, LlmError> {
        request.system.clone_into(&mut self.0.lock().expect("whole"));
        Err(LlmError::new(LlmErrorKind::Refused, "it only listens"))
    }
}

async fn system_of(agent: &Agent, runtime: &Runtime) -> String {
    let listener = Arc::new(Listener::default());
    let _ = agent.run(runtime, listener.clone(), &json!({})).await;
    listener.0.lock().expect("whole").clone()
}

/// The system prompts of agents that add nothing of their own.
pub(crate) async fn systems() -> Systems {
    let (bare, served) = (runtime().await, with_server().await);
    let (turns, single) = (Agent::new("?"), Agent::new("?").single_shot());
    vec![
        ("loop", system_of(&turns, &bare).await),
        ("single shot", system_of(&single, &bare).await),
        ("loop with servers", system_of(&turns, &served).await),
    ]
}

#[tokio::test]
async fn system_prompts_are_as_they_were_looked_at() {
    let systems = systems().await;
    let text: String = systems.iter().map(|(name, text)| format!("=== {name}\n{text}\n")).collect();
    golden("conversations", "system_prompts.txt", &text);
}

/// Texts by number.
#[derive(Default)]
struct Texts(Vec<(String, &'static str)>);

impl Texts {
    fn name(&mut self, text: &str, said_by: &'static str) -> String {
        let at = self.0.iter().position(|(known, _)| known == text).unwrap_or_else(|| {
            self.0.push((text.to_owned(), said_by));
            self.0.len() - 1
        });
        format!("@{}", at + 1)
    }
}

/// The conversations of a scenario.
pub(crate) fn render(conversations: &[Conversation], systems: &Systems) -> String {
    let (mut texts, mut told) = (Texts::default(), String::new());
    for Conversation { provider, stream, turns, outcome } in conversations {
        let way = if *stream { "as a stream" } else { "whole" };
        let _ = writeln!(told, "\n=== {provider:?}, {way}");
        for (got, answer) in turns {
            let _ = writeln!(told, "> {} {}", got.method, got.path);
            for name in ["content-type", "authorization", "x-api-key", "anthropic-version"] {
                if let Some(value) = got.header(name) {
                    let _ = writeln!(told, "> {name}: {}", value.replace(KEY, "(key)"));
                }
            }
            let mut body = got.json();
            name_texts(&mut body, &mut texts, systems);
            let _ = writeln!(told, "> {body}");
            let _ = writeln!(told, "< {}", answer.label(|text| texts.name(text, "model")));
        }
        let _ = writeln!(told, "= {outcome}");
    }
    let texts: String = texts
        .0
        .iter()
        .enumerate()
        .map(|(at, (text, by))| format!("--- @{} {by}\n{text}\n", at + 1))
        .collect();
    format!("=== texts\n{texts}{told}")
}

/// Replaces texts by their names.
fn name_texts(body: &mut Value, texts: &mut Texts, systems: &Systems) {
    let mut replace = |value: &mut Value, by: &'static str| {
        let Some(text) = value.as_str() else { return };
        let known = systems.iter().find(|(_, system)| system == text);
        *value = match known {
            Some((name, _)) => format!("@system prompt: {name}"),
            None => texts.name(text, by),
        }
        .into();
    };
    if let Some(system) = body.get_mut("system") {
        replace(system, "system");
    }
    for message in body["messages"].as_array_mut().into_iter().flatten() {
        let by = match message["role"].as_str() {
            Some("assistant") => "model",
            Some("user") => "user",
            _ => "system",
        };
        replace(&mut message["content"], by);
    }
}

/// The outcome of an agent, without values that differ from run to run.
pub(crate) fn step(step: &AgentStep) -> String {
    let mut told = match &step.result {
        Ok(answer) => answer.to_string(),
        Err(failure) => failure.to_string(),
    };
    if let Err(failure) = &step.result {
        for call in &failure.matched_calls {
            let _ = write!(told, "\n  because of {}/{}, {}", call.server, call.tool, call.effect);
        }
        if let Some(kind) = failure.model_error {
            let _ = write!(told, "\n  of the model: {kind:?}");
        }
    }
    let usage = &step.usage;
    let tokens = (usage.tokens.input.unwrap_or(0), usage.tokens.output.unwrap_or(0));
    let _ = write!(told, "\n  {} requests, tokens {} + {}", usage.requests, tokens.0, tokens.1);
    for turn in &step.turns {
        let turn = serde_json::to_value(turn).unwrap_or_default();
        let calls: Vec<String> = turn["calls"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|call| format!("{}/{} {} {}", call["server"], call["tool"], call["effect"], call["status"]))
            .map(|call| call.replace('"', ""))
            .collect();
        let word = |name: &str| turn[name].as_str().unwrap_or_default().to_owned();
        let _ = write!(told, "\n  turn {}, {}: {}", turn["number"], word("kind"), word("status"));
        if !calls.is_empty() {
            let _ = write!(told, "; called {}", calls.join(", "));
        }
    }
    for (name, child) in &step.children {
        let _ = write!(told, "\n  child {name}: {}", self::step(child).replace('\n', "\n  "));
    }
    told
}
