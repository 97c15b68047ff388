//! Serializes the outcome of a run as JSON, in full for `ptc eval --output json` and in short for `ptc batch`. Debug
//! answers share its parts.

use super::RefusalReason;
use super::caps::cut;
use super::report::reports_json;
use ptc_calls::metrics::PtcMetrics;
use ptc_calls::outcome::{CallFault, CallRecord, CallStatus, Outcome, RenderedValue};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::time::Duration;

/// The main part of an outcome. It borrows all long texts.
#[derive(Debug, Default, Serialize)]
pub struct OutcomeJson<'o> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'o RawValue>,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'o str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'o str>,
    prints: &'o [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    notes: &'o [String],
}

impl<'o> OutcomeJson<'o> {
    /// The main part of this outcome. `id` is the caller's id, if it has one.
    pub fn from_outcome(id: Option<&'o RawValue>, outcome: &'o Outcome) -> OutcomeJson<'o> {
        let (error, message, value) = match &outcome.result {
            Ok(answer) => (None, None, Some(answer.text.as_str())),
            Err(failure) => {
                (Some(failure.reason.raw()), Some(failure.message.as_str()), failure.value.as_deref())
            }
        };
        let (prints, notes) = (&outcome.prints, &outcome.notes);
        OutcomeJson { id, ok: error.is_none(), error, message, value, prints, notes }
    }

    /// A program that was refused before it ran.
    pub fn refused(id: &'o RawValue, message: &'o str) -> OutcomeJson<'o> {
        let error = Some(RefusalReason::ArgsError.name());
        OutcomeJson { id: Some(id), error, message: Some(message), ..OutcomeJson::default() }
    }
}

/// The main part, and all that is known of the run.
#[derive(Debug, Serialize)]
pub struct WholeOutcomeJson<'o> {
    #[serde(flatten)]
    main: OutcomeJson<'o>,
    #[serde(skip_serializing_if = "Option::is_none")]
    json: Option<&'o RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    diagnostics: Option<Value>,
    upstream_calls: Vec<Value>,
    /// Number of calls, where not all are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream_calls_total: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ptc_metrics: Option<PtcMetrics>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prelude_trace: Option<&'o Value>,
    usage: Value,
}

impl<'o> WholeOutcomeJson<'o> {
    /// The complete form of this outcome.
    pub fn from_outcome(outcome: &'o Outcome) -> WholeOutcomeJson<'o> {
        let json =
            |answer: &'o RenderedValue| serde_json::from_str(answer.json.as_ref()?.as_ref().ok()?).ok();
        let final_bytes = outcome.result.as_ref().map_or(0, |answer| answer.text_bytes);
        WholeOutcomeJson {
            main: OutcomeJson::from_outcome(None, outcome),
            json: outcome.result.as_ref().ok().and_then(json),
            diagnostics: outcome.result.as_ref().err().map(|failure| reports_json(&failure.reports)),
            upstream_calls: outcome.upstream_calls.iter().map(call_json).collect(),
            upstream_calls_total: Some(outcome.call_totals.count())
                .filter(|total| *total > outcome.upstream_calls.len() as u64),
            ptc_metrics: metrics(outcome, final_bytes),
            prelude_trace: outcome.prelude_trace.as_deref(),
            usage: usage_json(outcome),
        }
    }
}

/// The metrics block; `None` without upstream calls.
pub fn metrics(outcome: &Outcome, final_bytes: u64) -> Option<PtcMetrics> {
    (!outcome.upstream_calls.is_empty()).then(|| PtcMetrics::from_outcome(outcome, final_bytes))
}

/// One upstream call, for operators.
pub fn call_json(call: &CallRecord) -> Value {
    let fault = call_fault(call);
    let mut map = json!({
        "server": call.server, "tool": call.tool,
        "status": if fault.is_none() { "ok" } else { "error" },
        "duration_ms": millis(call.duration),
        "result_bytes": call.result_bytes,
        "oversize": fault.is_some_and(|(reason, _)| reason == OVERSIZE),
        "effect": call.effect.name(),
    });
    if call.cached {
        map["cached"] = true.into();
    }
    if let Some(ruling) = &call.ruling {
        map["policy"] = ruling.to_json();
    }
    if let Some((reason, error)) = fault {
        map["reason"] = reason.into();
        map["error"] = cut(error, 500).0.into();
    }
    map
}

const OVERSIZE: &str = CallFault::ResponseTooLarge.name();

/// Why a call failed: the fault's name and its message.
pub fn call_fault(call: &CallRecord) -> Option<(&'static str, &str)> {
    match &call.status {
        CallStatus::Ok => None,
        CallStatus::Error { reason, error } => Some((reason.name(), error)),
    }
}

/// Usage of a run, for debug answers and `ptc eval --output json`.
pub fn usage_json(outcome: &Outcome) -> Value {
    json!({
        "duration_ms": millis(outcome.usage.duration), "fuel": outcome.usage.fuel,
        "peak_bytes": outcome.usage.peak_bytes, "upstream_calls": outcome.usage.upstream_calls,
    })
}

/// Whole milliseconds.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
