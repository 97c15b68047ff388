//! Builds the answer of the tool `lisp_task` from the outcome of a task, which a model has solved with programs.

use super::TaskSettings;
use super::request::TaskRequest;
use crate::answer::TaskSummary;
use crate::redact;
use ptc_agent::{AgentFailure, AgentReason, AgentStep, LlmErrorKind};
use ptc_base::secrets::Cut;
use ptc_calls::outcome::{CallFault, CallRecord, CallStatus};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// The answer to a call that failed before it asked the model.
pub(super) fn failed(reason: &str, message: &str) -> Value {
    json!({
        "status": "error", "reason": reason, "message": message, "feedback": message, "warnings": [],
        "planner": {}, "execution": {}, "upstream_calls": [],
    })
}

/// The answer to a task that has ended.
pub(super) fn from_step(
    step: &AgentStep,
    summary: &mut TaskSummary,
    settings: &TaskSettings,
    request: &TaskRequest,
) -> Value {
    let mut warnings: Vec<Value> = request
        .constraints
        .unsupported
        .iter()
        .map(|name| json!({ "code": "unsupported_constraint", "detail": name }))
        .collect();
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    let (mut result_bytes, mut truncated) = (0, false);
    match &step.result {
        Ok(value) => {
            let value = request.constraints.apply(value.clone());
            let text = match &value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            result_bytes = text.len();
            truncated = result_bytes > settings.result_bytes;
            if truncated {
                warnings.push(json!({ "code": "max_result_bytes", "detail": settings.result_bytes }));
            }
            put("status", "ok".into());
            let answer = Value::from(redact::excerpt(&text, Cut::Bytes(settings.result_bytes)));
            let structured = if truncated || value.is_string() { Value::Null } else { value };
            let shown = json!({ "answer": &answer, "structured_result": &structured });
            summary.planner.final_bytes = shown.to_string().len() as u64;
            put("answer", answer);
            put("structured_result", structured);
        }
        Err(failure) => {
            let message = message_of(failure);
            put("status", "error".into());
            put("reason", reason_of(failure).into());
            put("feedback", message.clone().into());
            put("message", message.into());
            if !failure.matched_calls.is_empty() {
                put("matched_calls", json!(failure.matched_calls));
            }
        }
    }
    put("warnings", warnings.into());
    let usage = &step.usage;
    put(
        "planner",
        json!({
            "model": summary.planner.model, "calls": usage.requests, "duration_ms": millis(usage.model_time),
            "prompt_bytes": usage.prompt_bytes, "output_bytes": usage.reply_bytes,
            "completion_bytes": usage.reply_bytes, "tokens": usage.tokens,
        }),
    );
    put(
        "execution",
        json!({
            "result_bytes": result_bytes, "truncated": truncated, "max_result_bytes": settings.result_bytes,
            "duration_ms": millis(summary.duration), "turn_count": step.turns.len(),
        }),
    );
    put("upstream_calls", step.calls.iter().map(call_json).collect());
    if settings.include_program {
        put("program", json!(step.program));
    }
    put("trace_id", summary.planner.trace_id.as_str().into());
    if usage.requests > 0 {
        put("ptc_metrics", summary.planner.metrics(&step.call_totals));
    }
    Value::Object(fields)
}

/// The reason that the answer names.
fn reason_of(failure: &AgentFailure) -> String {
    match (failure.reason, failure.model_error) {
        (AgentReason::Failed, _) => "agent_failed".to_owned(),
        (AgentReason::PartialSideEffects, _) => failure.reason.name().to_owned(),
        (AgentReason::Timeout, _) => "budget_exceeded".to_owned(),
        (AgentReason::LlmError, Some(LlmErrorKind::Configuration | LlmErrorKind::KeyMissing)) => {
            "agentic_config_error".to_owned()
        }
        (AgentReason::LlmError, Some(LlmErrorKind::Timeout)) => "planner_timeout".to_owned(),
        (AgentReason::LlmError, _) => "planner_error".to_owned(),
        (reason, _) => format!("ptc_{}", reason.name()),
    }
}

fn message_of(failure: &AgentFailure) -> String {
    match failure.reason {
        AgentReason::Timeout => "agentic task budget exceeded".to_owned(),
        _ => failure.message.clone(),
    }
}

fn call_json(call: &CallRecord) -> Value {
    let is_oversize = matches!(call.status, CallStatus::Error { reason: CallFault::ResponseTooLarge, .. });
    let mut entry = json!({
        "server": call.server, "tool": call.tool, "status": "ok", "duration_ms": millis(call.duration),
        "effect": call.effect.name(), "result_bytes": call.result_bytes, "oversize": is_oversize,
    });
    if let CallStatus::Error { reason, error } = &call.status {
        // The call was sent, but the task did not wait for its result.
        let is_open = *reason == CallFault::Cancelled;
        entry["status"] = if is_open { "attempted" } else { "error" }.into();
        entry["reason"] = reason.name().into();
        entry["error"] = error.as_str().into();
    }
    entry
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
