//! Writes model answers in the format of each provider: whole and as streams, errors among them.

use super::http::{HttpServer, Reply};
use ptc_agent::{Llm, ModelOptions, model};
use ptc_base::secrets::{Credential, SecretRegistry};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// The API key of models in tests.
pub(crate) const KEY: &str = "sk-test-0123456789abcdef";

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Provider {
    OpenAi,
    Anthropic,
}

pub(crate) const BOTH: [Provider; 2] = [Provider::OpenAi, Provider::Anthropic];

/// How a text ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TextEnd {
    /// With its last word.
    Complete,
    /// At the token limit.
    Cut,
    /// A filter of the provider cut it.
    Filtered,
    /// The model refuses.
    Declined,
}

impl Provider {
    /// A model of this provider at a server; its errors are redacted with these secrets.
    pub(crate) fn model(self, server: &HttpServer, stream: bool, secrets: &SecretRegistry) -> Arc<dyn Llm> {
        let (name, base) = match self {
            Provider::OpenAi => ("openai:gpt-test", server.url("/v1")),
            Provider::Anthropic => ("anthropic:claude-test", server.url("")),
        };
        let key = Some(Credential::secret(KEY, secrets).0);
        let pause = Duration::from_millis(1);
        let options = ModelOptions { base_url: Some(base), key, stream, pause, ..ModelOptions::new(name) };
        model(options, secrets).expect("a client")
    }

    /// A whole answer as the provider writes it.
    pub(crate) fn answer(self, text: &str) -> Value {
        self.answer_that_ends(text, TextEnd::Complete)
    }

    pub(crate) fn answer_that_ends(self, text: &str, end: TextEnd) -> Value {
        match self {
            Provider::OpenAi => {
                let (content, refusal) = match end {
                    TextEnd::Declined => (Value::Null, json!(text)),
                    TextEnd::Complete | TextEnd::Cut | TextEnd::Filtered => (json!(text), Value::Null),
                };
                json!({
                    "id": "chatcmpl-1", "object": "chat.completion", "created": 1_763_000_000, "model": "gpt-test",
                    "choices": [{"index": 0, "finish_reason": self.reason(end), "logprobs": null,
                        "message": {"role": "assistant", "content": content, "refusal": refusal, "annotations": []}}],
                    "usage": {"prompt_tokens": 21, "completion_tokens": 7, "total_tokens": 28,
                        "prompt_tokens_details": {"cached_tokens": 0}}, "service_tier": "default",
                })
            }
            Provider::Anthropic => json!({
                "id": "msg_01", "type": "message", "role": "assistant", "model": "claude-test",
                "content": [{"type": "text", "text": text}], "stop_reason": self.reason(end), "stop_sequence": null,
                "usage": {"input_tokens": 16, "cache_read_input_tokens": 5, "output_tokens": 7},
            }),
        }
    }

    /// The provider's word for an end.
    fn reason(self, end: TextEnd) -> &'static str {
        match (self, end) {
            (Provider::OpenAi, TextEnd::Complete | TextEnd::Declined) => "stop",
            (Provider::OpenAi, TextEnd::Cut) => "length",
            (Provider::OpenAi, TextEnd::Filtered) => "content_filter",
            (Provider::Anthropic, TextEnd::Complete) => "end_turn",
            (Provider::Anthropic, TextEnd::Cut) => "max_tokens",
            (Provider::Anthropic, TextEnd::Declined | TextEnd::Filtered) => "refusal",
        }
    }

    /// [`Provider::answer`] as a stream.
    pub(crate) fn events(self, text: &str) -> Vec<String> {
        self.events_that_end(text, TextEnd::Complete)
    }

    pub(crate) fn events_that_end(self, text: &str, end: TextEnd) -> Vec<String> {
        let (first, rest) = text.split_at(text.floor_char_boundary(text.len() / 2));
        match self {
            Provider::OpenAi => {
                let chunk = |choices: Value, usage: Value| {
                    let event = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": choices, "usage": usage});
                    format!("data: {event}\n\n")
                };
                let delta = |delta: Value, reason: Value| json!([{"index": 0, "delta": delta, "finish_reason": reason}]);
                let name = if end == TextEnd::Declined { "refusal" } else { "content" };
                let part = |text: &str| chunk(delta(json!({name: text}), Value::Null), Value::Null);
                vec![
                    chunk(delta(json!({"role": "assistant", "content": ""}), Value::Null), Value::Null),
                    part(first),
                    ": keep-alive\n\n".to_owned(),
                    part(rest),
                    chunk(delta(json!({}), json!(self.reason(end))), Value::Null),
                    chunk(json!([]), json!({"prompt_tokens": 21, "completion_tokens": 7})),
                    "data: [DONE]\n\n".to_owned(),
                ]
            }
            Provider::Anthropic => {
                let event = |event: Value| {
                    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().expect("a type"))
                };
                let delta = |text: &str| {
                    event(
                        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
                    )
                };
                let ended = json!({"stop_reason": self.reason(end)});
                vec![
                    event(
                        json!({"type": "message_start", "message": {"id": "msg_01", "usage": {"input_tokens": 21, "output_tokens": 1}}}),
                    ),
                    event(
                        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
                    ),
                    event(json!({"type": "ping"})),
                    delta(first),
                    delta(rest),
                    event(json!({"type": "content_block_stop", "index": 0})),
                    event(json!({"type": "message_delta", "delta": ended, "usage": {"output_tokens": 7}})),
                    event(json!({"type": "message_stop"})),
                ]
            }
        }
    }

    pub(crate) fn error(self, kind: &str, message: &str) -> Value {
        match self {
            Provider::OpenAi => {
                json!({"error": {"message": message, "type": kind, "param": null, "code": kind}})
            }
            Provider::Anthropic => json!({"type": "error", "error": {"type": kind, "message": message}}),
        }
    }

    pub(crate) fn reply(self, text: &str, stream: bool) -> Reply {
        self.reply_that_ends(text, TextEnd::Complete, stream)
    }

    pub(crate) fn reply_that_ends(self, text: &str, end: TextEnd, stream: bool) -> Reply {
        match stream {
            false => Reply::json(&self.answer_that_ends(text, end)),
            true => self.events_that_end(text, end).iter().fold(Reply::events(), Reply::chunk).end(),
        }
    }
}

/// An answer with a failure status.
pub(crate) fn failing(error: &Value, status: u16, headers: &[(&str, &str)]) -> Reply {
    let mut all = vec![("content-type", "application/json")];
    all.extend(headers);
    Reply::new(status, &all, error.to_string())
}
