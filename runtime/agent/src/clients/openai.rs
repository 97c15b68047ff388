//! Encodes requests to a model, and decodes its replies, as bodies of OpenAI's chat completions API.

use super::http::Partial;
use crate::llm::{LlmReply, LlmRequest, TokenUsage};
use serde_json::{Value as Json, json};

/// The body of a request. `is_openai`: the provider is OpenAI, which names the token limit differently.
pub(super) fn body(request: &LlmRequest<'_>, model: &str, stream: bool, is_openai: bool) -> Json {
    let system = json!({"role": "system", "content": request.system});
    let others =
        request.messages.iter().map(|message| json!({"role": message.role, "content": message.text}));
    let messages: Vec<Json> = std::iter::once(system).chain(others).collect();
    let mut body = json!({"model": model, "messages": messages});
    if let Some(most) = request.max_output_tokens {
        body[if is_openai { "max_completion_tokens" } else { "max_tokens" }] = most.into();
    }
    if stream {
        body["stream"] = true.into();
        body["stream_options"] = json!({"include_usage": true});
    }
    body
}

/// Parses a complete response; `None` if it is malformed.
pub(super) fn reply(answer: &Json) -> Option<LlmReply> {
    let choice = answer.get("choices")?.get(0)?;
    let content = choice.get("message")?.get("content");
    let text = match content {
        Some(Json::String(text)) => text.clone(),
        // Some providers send a list of parts.
        Some(Json::Array(parts)) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
        // The text with which a model refuses.
        _ => choice.pointer("/message/refusal").and_then(Json::as_str).unwrap_or_default().to_owned(),
    };
    Some(LlmReply { text, usage: usage(answer).unwrap_or_default(), is_cut: is_cut(choice) })
}

/// Processes one event of a stream; true at the end of the stream.
pub(super) fn event(partial: &mut Partial, data: &Json) -> bool {
    let usage = usage(data);
    let has_usage = usage.is_some();
    if let Some(usage) = usage {
        partial.reply.usage = usage;
    }
    if let Some(choice) = data.get("choices").and_then(|choices| choices.get(0)) {
        for name in ["content", "refusal"] {
            let delta = choice.get("delta").and_then(|delta| delta.get(name)).and_then(Json::as_str);
            partial.reply.text.push_str(delta.unwrap_or_default());
        }
        partial.is_complete |= choice.get("finish_reason").is_some_and(|reason| !reason.is_null());
        partial.reply.is_cut |= is_cut(choice);
        // An event with a finish reason and usage is not certainly the last: some providers send both with
        // each piece.
        return false;
    }
    // An event that holds only usage after the finish reason is the last one.
    partial.is_complete && has_usage
}

fn is_cut(choice: &Json) -> bool {
    matches!(choice.get("finish_reason").and_then(Json::as_str), Some("length" | "content_filter"))
}

fn usage(answer: &Json) -> Option<TokenUsage> {
    let usage = answer.get("usage").filter(|usage| usage.is_object())?;
    let count = |name| usage.get(name).and_then(Json::as_u64);
    Some(TokenUsage { input: count("prompt_tokens"), output: count("completion_tokens") })
}
