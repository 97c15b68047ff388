//! Makes the MCP log messages that a client gets about a finished run: its upstream calls and its outcome, filtered by
//! the log level that the client has set.

use crate::protocol::LogMessage;
use crate::protocol::log_level::LogLevel;
use ptc_calls::outcome::{CallStatus, Outcome};
use serde_json::json;

/// The messages about a run at `level` and above: each upstream call, then the end. The outcome is already
/// redacted.
pub fn run_messages(level: LogLevel, outcome: &Outcome) -> Vec<LogMessage> {
    /// Most messages about calls. The debug profile of an answer has all calls.
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
        messages.push(LogMessage { level: severity, logger: "upstream", data });
    }
    let (severity, status, message) = match &outcome.result {
        // The answer says the same, so a debug message is enough.
        Ok(_) => (LogLevel::Debug, "ok", None),
        Err(failure) => (LogLevel::Info, failure.reason.raw(), Some(&failure.message)),
    };
    if severity >= level {
        let data = json!({
            "status": status, "message": message, "duration_ms": outcome.usage.duration.as_millis() as u64,
            "fuel": outcome.usage.fuel, "upstream_calls": outcome.usage.upstream_calls,
        });
        messages.push(LogMessage { level: severity, logger: "program", data });
    }
    messages
}
