//! Parses and checks the arguments of the tool `lisp_debug`: whether the client asks for statistics, recent calls, or
//! one call.

use crate::protocol::Raw;
use crate::redact;
use ptc_base::secrets::Cut;
use serde_json::{Map, Value};

/// The operations.
pub(super) const OPS: [&str; 3] = ["stats", "recent", "get"];

/// Most calls in one answer.
pub(super) const MOST_CALLS: u64 = 200;

/// Longest time that an answer looks back.
pub(super) const MOST_SECONDS: u64 = 86_400;

/// Most bytes of a request id.
pub(super) const LONGEST_ID: usize = 256;

const DEFAULT_CALLS: u64 = 20;

/// Most characters of a wrong value that a message repeats.
const REPEATED_CHARS: usize = 80;

/// A checked question.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// Statistics over calls.
    Stats(CallFilter),
    /// The last calls, at most this many.
    Recent(CallFilter, usize),
    /// The call with this request id.
    Get(String),
}

/// A filter of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CallFilter {
    /// Only calls that ended in the last seconds, this many.
    pub(super) since_seconds: Option<u64>,
    /// Only calls that failed.
    pub(super) errors_only: bool,
}

impl Question {
    /// Reads the arguments. The error is the message of an `args_error`.
    pub(super) fn read(arguments: Option<Raw<'_>>) -> Result<Question, String> {
        // A value that is not an object counts as no arguments.
        let fields: Map<String, Value> =
            arguments.and_then(|arguments| serde_json::from_str(arguments.get()).ok()).unwrap_or_default();
        let op = match fields.get("op").filter(|op| !op.is_null()) {
            None => return Err(format!("argument `op` is required (one of: {})", OPS.join(", "))),
            Some(op) => op,
        };
        let op = op.as_str().filter(|op| OPS.contains(op)).ok_or_else(|| {
            format!("argument `op` must be one of {} (got: {})", OPS.join(", "), repeated(op))
        })?;
        let limit = whole(&fields, "limit", MOST_CALLS)?;
        let since_seconds = whole(&fields, "since_seconds", MOST_SECONDS)?;
        let errors_only = match fields.get("errors_only") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(only)) => *only,
            Some(other) => {
                return Err(format!("argument `errors_only` must be a boolean (got: {})", repeated(other)));
            }
        };
        let request_id = match fields.get("request_id") {
            None | Some(Value::Null) => None,
            Some(Value::String(id)) if id.len() > LONGEST_ID => {
                return Err(format!("argument `request_id` exceeds {LONGEST_ID} bytes"));
            }
            Some(Value::String(id)) => Some(id.as_str()).filter(|id| !id.is_empty()),
            Some(_) if op == "get" => None,
            Some(other) => {
                return Err(format!("argument `request_id` must be a string (got: {})", repeated(other)));
            }
        };
        let which = CallFilter { since_seconds, errors_only };
        Ok(match op {
            "stats" => Question::Stats(which),
            "recent" => {
                Question::Recent(which, usize::try_from(limit.unwrap_or(DEFAULT_CALLS)).unwrap_or(usize::MAX))
            }
            _ => {
                let id = request_id.ok_or("argument `request_id` is required for op=get")?;
                Question::Get(id.to_owned())
            }
        })
    }
}

fn whole(fields: &Map<String, Value>, key: &str, most: u64) -> Result<Option<u64>, String> {
    match fields.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(number)) if !number.is_f64() => match number.as_u64() {
            Some(number) if (1..=most).contains(&number) => Ok(Some(number)),
            _ => Err(format!("argument `{key}` must be between 1 and {most} (got: {number})")),
        },
        Some(other) => Err(format!("argument `{key}` must be an integer (got: {})", repeated(other))),
    }
}

fn repeated(value: &Value) -> String {
    redact::excerpt(&value.to_string(), Cut::Chars(REPEATED_CHARS)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use serde_json::value::to_raw_value;

    fn read(arguments: Value) -> Result<Question, String> {
        let raw = to_raw_value(&arguments).expect("JSON");
        Question::read(Some(Raw::from(&*raw)))
    }

    #[test]
    fn every_wrong_argument_is_named() {
        let long = "x".repeat(300);
        for (arguments, message) in [
            (json!({}), "argument `op` is required (one of: stats, recent, get)"),
            (json!([1]), "argument `op` is required (one of: stats, recent, get)"),
            (json!({ "op": 5 }), "argument `op` must be one of stats, recent, get (got: 5)"),
            (json!({ "op": "x" }), "argument `op` must be one of stats, recent, get (got: \"x\")"),
            (json!({ "op": "recent", "limit": 0 }), "argument `limit` must be between 1 and 200 (got: 0)"),
            (json!({ "op": "recent", "limit": -3 }), "argument `limit` must be between 1 and 200 (got: -3)"),
            (json!({ "op": "recent", "limit": 2.5 }), "argument `limit` must be an integer (got: 2.5)"),
            (
                json!({ "op": "stats", "since_seconds": 86_401 }),
                "argument `since_seconds` must be between 1 and 86400 (got: 86401)",
            ),
            (
                json!({ "op": "stats", "errors_only": "yes" }),
                "argument `errors_only` must be a boolean (got: \"yes\")",
            ),
            (json!({ "op": "get" }), "argument `request_id` is required for op=get"),
            (json!({ "op": "get", "request_id": 4 }), "argument `request_id` is required for op=get"),
            (json!({ "op": "get", "request_id": "" }), "argument `request_id` is required for op=get"),
            (json!({ "op": "get", "request_id": long }), "argument `request_id` exceeds 256 bytes"),
            (json!({ "op": "stats", "request_id": 4 }), "argument `request_id` must be a string (got: 4)"),
        ] {
            assert_eq!(read(arguments), Err(message.to_owned()));
        }
        let wrong = read(json!({ "op": long })).expect_err("wrong");
        assert!(wrong.len() < 200, "{wrong}");
        let which = CallFilter { since_seconds: None, errors_only: true };
        assert_eq!(read(json!({ "op": "recent", "errors_only": true })), Ok(Question::Recent(which, 20)));
        assert_eq!(read(json!({ "op": "get", "request_id": "4" })), Ok(Question::Get("4".into())));
    }
}
