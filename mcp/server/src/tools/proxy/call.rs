//! The action `call` of the tool `proxy-dispatch`: finds the server that has a tool, calls the tool under the same
//! policy and limits as programs, and answers with its result.

use super::answer::{ProxyAnswer, estimated_tokens};
use super::connection::{self, Connection};
use super::fields::CallFields;
use super::retained::Caller;
use super::storage::ProxyStorage;
use crate::answer::RefusalReason;
use ptc_calls::run::account::RunAccount;
use ptc_calls::tools::{Notation, nearest};
use ptc_engine::Runtime;
use ptc_engine::broker::{CallError, CallPayload, PayloadValue, ToolCall};
use ptc_vm::Class;
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) async fn call(
    runtime: &Runtime,
    account: &Arc<RunAccount>,
    (storage, caller): (&ProxyStorage, Caller),
    given: &CallFields,
) -> Result<ProxyAnswer, String> {
    let tool = given.text("tool").unwrap_or_default();
    let connection = connection_of(runtime, account, given.text("connection"), &tool).await?;
    let server = connection.status.name.to_string();
    let file = given.text("argumentsFile");
    let arguments = match &file {
        Some(file) => storage.arguments(caller, file, account.limits().max_context_bytes).await?,
        None => given.raw("arguments").unwrap_or("{}").to_owned(),
    };
    // A message is one line, and a line break between JSON tokens is whitespace.
    let arguments =
        if arguments.contains(['\n', '\r']) { arguments.replace(['\n', '\r'], " ") } else { arguments };
    let store = storage.store.clone();
    let about = storage.results.named_in(caller, &arguments);
    note_answers(runtime, account, (storage, caller), file.as_deref(), &arguments);
    let call = ToolCall { server, tool: tool.clone(), arguments, notation: Notation::Json };
    let answer = match runtime.broker().call_spilling(account, call, Some(store)).await {
        Ok(payload) => storage.answer(caller, payload, given, about, account.flows().answered()).await?,
        Err(CallError::Wrong(wrong)) => {
            let lines = std::iter::once(wrong.message).chain(wrong.hints);
            ProxyAnswer::error(RefusalReason::ArgsError.name(), lines.collect::<Vec<_>>().join("\n"))
        }
        Err(CallError::World(fault)) => {
            let reason = fault.reason.name();
            let text = match fault.message.strip_prefix(reason) {
                Some("") => limit_of(account),
                Some(_) => fault.message,
                None => format!("{reason}: {}", fault.message),
            };
            ProxyAnswer::error(reason, text)
        }
        Err(CallError::OverMemory { bytes }) => {
            let text = format!("the result has {bytes} bytes, more than fit beside others");
            ProxyAnswer::error(Class::MemoryLimit.name(), text)
        }
    };
    let answer = match file {
        Some(file) => answer.with("arguments", json!({ "_fromFile": file })),
        None => answer,
    };
    Ok(answer.with("action", "call").with("tool", tool).with("connection", connection.alias))
}

/// Notes in the run of a call which answers of earlier calls may be in its arguments: those in retained results that it
/// names. Of another file nothing is known, so it may hold any.
fn note_answers(
    runtime: &Runtime,
    account: &Arc<RunAccount>,
    (storage, caller): (&ProxyStorage, Caller),
    file: Option<&str>,
    arguments: &str,
) {
    let policy = runtime.broker().policy();
    let mut answers = storage.results.answers_named_in(caller, arguments);
    if let Some(file) = file {
        match storage.results.answers_in(caller, file) {
            Some(of_file) => answers.extend(of_file),
            None => policy.looked_up(account),
        }
    }
    answers.iter().for_each(|(server, target)| policy.note_answer(account, server, target));
}

/// The message about a call that exceeds its budget.
fn limit_of(account: &Arc<RunAccount>) -> String {
    format!(
        "cap_exhausted: a call may make {} calls (--max-upstream-calls)",
        account.limits().max_upstream_calls
    )
}

/// Finds the connection that has the tool.
async fn connection_of(
    runtime: &Runtime,
    account: &Arc<RunAccount>,
    word: Option<String>,
    tool: &str,
) -> Result<Connection, String> {
    let mut all = Connection::all(runtime);
    if let Some(word) = word {
        let name = connection::find(&all, &word)?.alias.clone();
        all.retain(|one| one.alias == name);
        return all.pop().ok_or(word);
    }
    let has = |one: &Connection| one.status.tools.iter().any(|known| *known.name == *tool);
    if !all.iter().any(has) && all.iter().any(|one| !one.status.tools_loaded) {
        runtime.broker().start(account, |_| true).await;
        all = Connection::all(runtime);
    }
    let unknown: Vec<String> = all
        .iter()
        .filter(|one| !one.status.tools_loaded)
        .map(|one| {
            format!("{}: {}", one.label(), one.status.error.as_deref().unwrap_or(one.status.state.name()))
        })
        .collect();
    let near = suggestion(&all, tool);
    all.retain(has);
    let several: Vec<String> = all.iter().map(Connection::label).collect();
    match (all.pop(), several.len()) {
        (Some(only), 1) => Ok(only),
        (Some(_), _) => {
            Err(format!("several connections have a tool {tool:?}: {}; say which", several.join(", ")))
        }
        (None, _) if unknown.is_empty() => Err(format!(
            "no connection has a tool {tool:?}{near}; {{\"action\":\"search\",\"query\":…}} finds tools"
        )),
        (None, _) => {
            let unknown = unknown.join("; ");
            Err(format!(
                "no connection has a tool {tool:?}{near}; the tools of these are not known: {unknown}"
            ))
        }
    }
}

/// The tool that was probably meant, for a message.
fn suggestion(all: &[Connection], tool: &str) -> String {
    let mut names: Vec<&str> =
        all.iter().flat_map(|one| &one.status.tools).map(|known| &*known.name).collect();
    names.sort_unstable();
    nearest(tool, &names).map(|near| format!(" (did you mean {near:?}?)")).unwrap_or_default()
}

/// An answer that contains the result itself. `toon` is its text in TOON, if it has one.
pub(super) fn inline(payload: &CallPayload, toon: Option<String>) -> ProxyAnswer {
    let bytes = toon.as_ref().map_or(payload.bytes(), |toon| toon.len() as u64);
    let failure = payload.failure();
    let mut answer = match (toon, payload.blocks()) {
        (Some(toon), _) => ProxyAnswer::text(toon),
        (None, Some(blocks)) => ProxyAnswer::blocks(all_blocks(payload, blocks)),
        (None, None) => ProxyAnswer::text(match (payload.value(), failure) {
            (PayloadValue::Json(json), Some((_, message))) if !message.is_empty() => {
                format!("{message}\n{}", String::from_utf8_lossy(json))
            }
            (PayloadValue::Json(json), _) => String::from_utf8_lossy(json).into_owned(),
            (PayloadValue::Text(text), _) => text.to_owned(),
            (PayloadValue::Nothing, failure) => failure.map_or("", |(_, message)| message).to_owned(),
        }),
    };
    if let Some((reason, _)) = failure {
        answer = answer.failed(reason.name());
    }
    answer.with("estimatedTokens", estimated_tokens(bytes))
}

/// The content blocks with what they do not say: data first, or after the message of a failure.
fn all_blocks(payload: &CallPayload, blocks: &[u8]) -> Vec<Value> {
    let text = |text: &str| json!({ "type": "text", "text": text });
    let mut blocks: Vec<Value> = serde_json::from_slice(blocks).unwrap_or_default();
    let has_text = blocks.iter().any(|block| block["type"] == "text");
    if let PayloadValue::Json(json) = payload.value() {
        let at = if payload.failure().is_some() { blocks.len() } else { 0 };
        blocks.insert(at, text(&String::from_utf8_lossy(json)));
    }
    if let Some((_, message)) = payload.failure().filter(|(_, message)| !has_text && !message.is_empty()) {
        blocks.insert(0, text(message));
    }
    blocks
}
