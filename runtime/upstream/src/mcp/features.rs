//! Requests the complete list of the resources, resource templates or prompts of an MCP server, by fetching and joining
//! all pages. It also converts requests for one prompt (`prompts/get`): arguments to the texts that the protocol
//! requires, and the result to the JSON that programs get.

use super::client::{Question, RpcClient};
use super::dialect::Dialect;
use crate::jsonrpc::error::METHOD_NOT_FOUND;
use crate::listing::{CURSOR_BYTES, PAGES};
use crate::{CallResult, RawAnswer, ServerRequest, UpstreamFault};
use ptc_calls::tools::ListKind;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use tokio::time::Instant;

/// The members of a result.
type Members<'a> = HashMap<Cow<'a, str>, &'a RawValue>;

/// Lists everything of one kind; a server that does not know the method has nothing of it. All pages together
/// are limited to the size of one answer.
pub(super) async fn list(
    client: &RpcClient,
    dialect: &Dialect,
    kind: ListKind,
    request: ServerRequest,
) -> Result<CallResult, UpstreamFault> {
    let (method, member) = kind.parts();
    let ServerRequest { target, timeout, deadline, sink, trace, .. } = request;
    let cap = sink.max_bytes;
    let mut all = String::from("[");
    let (mut page, mut cursors) = (String::new(), HashSet::new());
    for _ in 0..PAGES {
        let question = Question {
            target: target.clone(),
            params: dialect.params_within(&page, trace.as_ref()),
            era: dialect.era(),
            max_bytes: cap.saturating_sub(all.len()),
            trace: trace.as_ref(),
        };
        let answer = match client.ask(question, deadline.duration_since(Instant::now())).await {
            Err(UpstreamFault::Rpc(error)) if cursors.is_empty() && error.code == METHOD_NOT_FOUND => {
                return Ok(json("[]".to_owned()));
            }
            Err(UpstreamFault::Timeout(_)) => return Err(UpstreamFault::Timeout(timeout)),
            Err(UpstreamFault::TooLarge { bytes, .. }) => {
                return Err(sink.too_large(bytes.saturating_add(all.len() as u64)));
            }
            answer => answer?,
        };
        let members = members(&answer, method)?;
        let items = members.get(member).map(|items| items.get().trim()).unwrap_or_default();
        let items = items.strip_prefix('[').and_then(|items| items.strip_suffix(']'));
        let items = items.ok_or_else(|| unexpected(method, &format!("no list of {member}")))?.trim();
        if !items.is_empty() {
            if all.len() > 1 {
                all.push(',');
            }
            all.push_str(items);
        }
        let cursor = members.get("nextCursor").map(|cursor| cursor.get());
        let Some(cursor) = cursor.filter(|cursor| *cursor != "null") else {
            all.push(']');
            return Ok(json(all));
        };
        if !cursor.starts_with('"') || cursor.len() > CURSOR_BYTES || !cursors.insert(cursor.to_owned()) {
            return Err(unexpected(method, "a cursor that leads nowhere"));
        }
        page = format!("\"cursor\":{cursor}");
    }
    Err(unexpected(method, &format!("more than {PAGES} pages")))
}

/// The result of a filled-in prompt: its description and its messages.
pub(super) fn prompt(answer: &RawAnswer) -> Result<CallResult, UpstreamFault> {
    const METHOD: &str = "prompts/get";
    let members = members(answer, METHOD)?;
    let Some(messages) = members.get("messages").filter(|messages| messages.get().starts_with('[')) else {
        return Err(unexpected(METHOD, "no list of messages"));
    };
    let description = members.get("description").map(|text| format!("\"description\":{text},"));
    Ok(json(format!("{{{}\"messages\":{messages}}}", description.unwrap_or_default())))
}

/// The arguments of a prompt as texts, which the protocol requires.
pub(super) fn texts(arguments: &str) -> Result<String, UpstreamFault> {
    let given: Map<String, Value> = serde_json::from_str(arguments)
        .map_err(|error| UpstreamFault::Protocol(format!("the arguments cannot be sent: {error}")))?;
    let texts = given.into_iter().filter_map(|(name, value)| {
        let text = match value {
            Value::Null => return None,
            Value::String(text) => text,
            other => other.to_string(),
        };
        Some((name, Value::String(text)))
    });
    Ok(Value::Object(texts.collect()).to_string())
}

fn members<'a>(answer: &'a RawAnswer, method: &str) -> Result<Members<'a>, UpstreamFault> {
    let members: Members<'_> =
        serde_json::from_slice(answer.bytes()).map_err(|error| unexpected(method, &error.to_string()))?;
    match members.get("resultType") {
        Some(kind) if kind.get() != "\"complete\"" => Err(UpstreamFault::Protocol(
            "the server asks for more input, which a program cannot give".to_owned(),
        )),
        _ => Ok(members),
    }
}

fn unexpected(method: &str, why: &str) -> UpstreamFault {
    UpstreamFault::Protocol(format!("{method} returned unexpected payload: {why}"))
}

fn json(text: String) -> CallResult {
    CallResult::Json(RawAnswer::from_bytes(text))
}
