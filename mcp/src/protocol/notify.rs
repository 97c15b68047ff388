//! Notifications we send: progress, log messages, changes of the tool list.

use super::frame::Id;
use super::log_level::LogLevel;
use super::reply::Reply;
use ptc_runtime::outcome::{CallStatus, Outcome};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Key of the subscription in the `_meta` of what is sent for it.
pub const META_SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// A request's wish to hear of progress: a string or an integer, to be echoed.
#[derive(Clone, Debug)]
pub struct ProgressToken(Box<RawValue>);

impl ProgressToken {
    /// Reads a token; `None` when the value is neither a string nor an integer.
    pub fn from_raw(raw: &RawValue) -> Option<ProgressToken> {
        let text = raw.get();
        let is_token = match text.as_bytes().first()? {
            b'"' => true,
            b'-' | b'0'..=b'9' => !text.contains(['.', 'e', 'E']),
            _ => false,
        };
        is_token.then(|| ProgressToken(raw.to_owned()))
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Progress<'a> {
    progress_token: &'a RawValue,
    progress: u64,
    message: String,
}

/// `notifications/progress`: upstream calls that have ended.
pub fn progress(token: &ProgressToken, calls_ended: u64) -> Reply {
    let plural = if calls_ended == 1 { "" } else { "s" };
    let message = format!("{calls_ended} upstream call{plural} done");
    let params = Progress { progress_token: &token.0, progress: calls_ended, message };
    Reply::notification("notifications/progress", &params)
}

/// `notifications/tools/list_changed`, for a subscription or for the whole connection.
pub fn tools_list_changed(subscription: Option<&Id>) -> Reply {
    let params = subscription.map_or_else(|| json!({}), |id| json!({ "_meta": meta(id) }));
    Reply::notification("notifications/tools/list_changed", &params)
}

/// The first message of a subscription: what it will hear of.
pub fn subscription_acknowledged(id: &Id, tools_list_changed: bool) -> Reply {
    let mut kinds = json!({});
    if tools_list_changed {
        kinds["toolsListChanged"] = true.into();
    }
    let params = json!({ "_meta": meta(id), "notifications": kinds });
    Reply::notification("notifications/subscriptions/acknowledged", &params)
}

/// The answer that ends a subscription.
pub fn subscription_ended(id: &Id) -> Reply {
    Reply::result(id, &json!({ "resultType": "complete", "_meta": meta(id) }))
}

fn meta(id: &Id) -> Value {
    // An id is JSON text by construction.
    let value: Value = serde_json::from_str(id.as_json()).unwrap_or_default();
    json!({ META_SUBSCRIPTION: value })
}

fn log_message(level: LogLevel, logger: &str, data: Value) -> Reply {
    let params = json!({ "level": level.name(), "logger": logger, "data": data });
    Reply::notification("notifications/message", &params)
}

/// What a run has to tell at `level` and above: each upstream call, then the end. The outcome has been
/// scrubbed already.
pub fn log_of_run(level: LogLevel, outcome: &Outcome) -> Vec<Reply> {
    /// A program may make many calls; a client that wants them all looks at a debug answer.
    const MOST: usize = 50;
    let mut messages = Vec::new();
    for call in &outcome.upstream_calls {
        let (severity, reason, error) = match &call.status {
            CallStatus::Ok => (LogLevel::Debug, None, None),
            CallStatus::Error { reason, error } => (LogLevel::Warning, Some(reason.name()), Some(error)),
        };
        if severity < level || messages.len() >= MOST {
            continue;
        }
        let data = json!({
            "server": call.server, "tool": call.tool, "duration_ms": call.duration.as_millis() as u64,
            "result_bytes": call.result_bytes, "reason": reason, "error": error,
        });
        messages.push(log_message(severity, "upstream", data));
    }
    let (severity, status, message) = match &outcome.result {
        // The answer says the same, so this is for who wants to know everything.
        Ok(_) => (LogLevel::Debug, "ok", None),
        Err(failure) => (LogLevel::Info, failure.reason.raw(), Some(&failure.message)),
    };
    if severity >= level {
        let data = json!({
            "status": status, "message": message, "duration_ms": outcome.usage.duration.as_millis() as u64,
            "fuel": outcome.usage.fuel, "upstream_calls": outcome.usage.upstream_calls,
        });
        messages.push(log_message(severity, "program", data));
    }
    messages
}
