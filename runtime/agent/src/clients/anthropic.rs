//! Encodes requests to a model as bodies of Anthropic's Messages API, and decodes its replies and streamed events.

use super::http::Partial;
use crate::llm::{LlmReply, LlmRequest, TokenUsage};
use serde_json::{Value as Json, json};

/// Value of the `anthropic-version` header.
pub(super) const VERSION: &str = "2023-06-01";

/// Token limit of a reply when the request sets none: the API requires a number.
const MOST_TOKENS: u32 = 4_096;

/// The body of a request.
pub(super) fn body(request: &LlmRequest<'_>, model: &str, stream: bool) -> Json {
    let messages: Vec<Json> = request
        .messages
        .iter()
        .map(|message| json!({"role": message.role, "content": message.text}))
        .collect();
    let most = request.max_output_tokens.unwrap_or(MOST_TOKENS);
    let mut body =
        json!({"model": model, "max_tokens": most, "system": request.system, "messages": messages});
    if stream {
        body["stream"] = true.into();
    }
    body
}

/// Parses a complete response; `None` if it is malformed.
pub(super) fn reply(answer: &Json) -> Option<LlmReply> {
    let blocks = answer.get("content")?.as_array()?;
    let text = blocks.iter().filter_map(|block| block.get("text")?.as_str()).collect();
    let mut usage = TokenUsage::default();
    count(&mut usage, answer.get("usage"));
    Some(LlmReply { text, usage, is_cut: is_cut(answer) })
}

/// Processes one event of a stream; true at the end of the stream.
pub(super) fn event(partial: &mut Partial, data: &Json) -> bool {
    let reply = &mut partial.reply;
    match data.get("type").and_then(Json::as_str).unwrap_or_default() {
        "message_start" => count(&mut reply.usage, data.pointer("/message/usage")),
        "content_block_delta" => {
            let text = data.pointer("/delta/text").and_then(Json::as_str);
            reply.text.push_str(text.unwrap_or_default());
        }
        "message_delta" => {
            count(&mut reply.usage, data.get("usage"));
            reply.is_cut |= data.get("delta").is_some_and(is_cut);
            partial.is_complete = true;
        }
        "message_stop" => {
            partial.is_complete = true;
            return true;
        }
        _ => {}
    }
    false
}

fn is_cut(message: &Json) -> bool {
    let reason = message.get("stop_reason").and_then(Json::as_str);
    matches!(reason, Some("max_tokens" | "model_context_window_exceeded" | "refusal"))
}

/// Adds token counts. Input includes tokens that were read from or written to a cache.
fn count(usage: &mut TokenUsage, given: Option<&Json>) {
    let Some(given) = given else { return };
    let number = |name| given.get(name).and_then(Json::as_u64);
    if let Some(input) = number("input_tokens") {
        let cached = ["cache_read_input_tokens", "cache_creation_input_tokens"];
        usage.input = Some(cached.into_iter().filter_map(number).fold(input, u64::saturating_add));
    }
    if let Some(output) = number("output_tokens") {
        usage.output = Some(output);
    }
}
