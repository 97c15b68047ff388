//! Builds the server's notifications to a client (progress, log messages, tool list changes, cancellations), and the
//! messages that open and close a subscription to them.

use super::borrowed::Raw;
use super::frame::Id;
use super::log_level::LogLevel;
use super::message::ServerMessage;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Key of the subscription id in the `_meta` of its messages.
pub const META_SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// Token of a request that wants progress notifications: a string or an integer, to be echoed.
#[derive(Clone, Debug)]
pub struct ProgressToken(Box<RawValue>);

impl ProgressToken {
    /// Reads a token; `None` when the value is neither a string nor an integer.
    pub fn from_raw(raw: Raw<'_>) -> Option<ProgressToken> {
        let text = raw.get();
        let is_token = match text.as_bytes().first()? {
            b'"' => true,
            b'-' | b'0'..=b'9' => !text.contains(['.', 'e', 'E']),
            _ => false,
        };
        if !is_token {
            return None;
        }
        RawValue::from_string(text.to_owned()).ok().map(ProgressToken)
    }
}

// The token is echoed as text: a large integer would lose digits if it were parsed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProgressParams<'a> {
    progress_token: &'a RawValue,
    progress: u64,
    message: &'a str,
}

/// `notifications/progress`.
pub fn progress(token: &ProgressToken, progress: u64, message: &str) -> ServerMessage {
    let params = ProgressParams { progress_token: &token.0, progress, message };
    ServerMessage::notification("notifications/progress", &params)
}

/// `notifications/tools/list_changed`, for a subscription or for the whole connection.
pub fn tools_list_changed(subscription: Option<&Id<'_>>) -> ServerMessage {
    let params = subscription.map_or_else(|| json!({}), |id| json!({ "_meta": meta(id) }));
    ServerMessage::notification("notifications/tools/list_changed", &params)
}

/// The first message of a subscription: the kinds of notifications that it will get.
pub fn subscription_acknowledged(
    id: &Id<'_>,
    tools_list_changed: bool,
    tasks: Option<&[String]>,
) -> ServerMessage {
    let mut kinds = json!({});
    if tools_list_changed {
        kinds["toolsListChanged"] = true.into();
    }
    if let Some(tasks) = tasks {
        kinds["taskIds"] = json!(tasks);
    }
    let params = json!({ "_meta": meta(id), "notifications": kinds });
    ServerMessage::notification("notifications/subscriptions/acknowledged", &params)
}

/// The answer that ends a subscription.
pub fn subscription_ended(id: &Id<'_>) -> ServerMessage {
    ServerMessage::result(id, &json!({ "resultType": "complete", "_meta": meta(id) }))
}

/// The `_meta` of a message of this subscription.
pub(crate) fn meta(id: &Id<'_>) -> Value {
    // An id is JSON text by construction.
    let value: Value = serde_json::from_str(id.as_json()).unwrap_or_default();
    json!({ META_SUBSCRIPTION: value })
}

/// `notifications/cancelled`, for one of our requests.
pub fn cancelled(id: &str) -> ServerMessage {
    ServerMessage::notification("notifications/cancelled", &json!({ "requestId": id }))
}

/// A log message that a client may subscribe to.
#[derive(Clone, Debug)]
pub struct LogMessage {
    /// Its severity.
    pub level: LogLevel,
    /// What it is about.
    pub logger: &'static str,
    /// Its content.
    pub data: Value,
}

/// `notifications/message`.
pub fn log(message: &LogMessage) -> ServerMessage {
    let LogMessage { level, logger, data } = message;
    let params = json!({ "level": level.name(), "logger": logger, "data": data });
    ServerMessage::notification("notifications/message", &params)
}
