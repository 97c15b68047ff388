//! Holds the in-memory record of one finished tool call, and serializes it as JSON; the payload policy
//! (`--trace-payloads`) sets how much of the program and the input data the JSON shows.

use super::otlp::CallSpans;
use super::payload::PayloadPolicy;
use crate::answer::PlannerSummary;
use crate::answer::outcome::{call_fault, millis};
use crate::protocol::Raw;
use jiff::Timestamp;
use ptc_base::secrets::{Cut, SecretRegistry, shortened};
use ptc_calls::CallTotals;
use ptc_calls::metrics::PtcMetrics;
use ptc_calls::outcome::{CallFault, CallRecord, CallStatus, Usage};
use ptc_calls::trace::TraceContext;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Longest request id that is stored whole, in bytes. Of a longer one only the start is stored.
const ID_BYTES: usize = 256;
const ID_CHARS: usize = 64;

/// Most bytes stored of an upstream call's error.
const ERROR_BYTES: usize = 500;

/// Most upstream calls of one run that are stored; the others are only counted.
const CALLS: usize = 1_000;

/// A finished call, with the figures of its run.
#[derive(Clone, Debug)]
pub struct CallEntry {
    /// Id of the request, bounded.
    pub request_id: Box<str>,
    /// Name of the tool.
    pub tool: Box<str>,
    /// Owner of the call.
    pub owner: u64,
    /// When it ended.
    pub ended: SystemTime,
    /// Time from the request to its answer.
    pub duration: Duration,
    /// Protocol version of the client, if it is known.
    pub protocol: Option<&'static str>,
    /// Trace context from the client.
    pub trace: Option<TraceContext>,
    /// The answer was an error.
    pub is_error: bool,
    /// Name of the reason for the error.
    pub reason: Option<Box<str>>,
    /// Figures of the run, if there was one.
    pub run: Option<RunEntry>,
    /// Figures of the server's own model, if it was used.
    pub planner: Option<Box<PlannerSummary>>,
    /// Ids of its spans, where they are exported.
    pub(in crate::observe) spans: Option<CallSpans>,
    /// Its number among the calls of the process, where a page shows calls.
    pub number: u64,
}

/// A record with the arguments of its call. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RecordedCall {
    /// The record.
    pub entry: Arc<CallEntry>,
    /// The arguments.
    pub arguments: Option<CallArguments>,
    /// The beginning of its answer, where a page shows calls.
    pub answer: Option<Arc<str>>,
}

/// Stored arguments of a call.
#[derive(Clone, Debug)]
pub struct CallArguments {
    /// Bytes of their text.
    pub bytes: usize,
    /// The text; `None` once it was dropped to save memory.
    pub text: Option<Arc<str>>,
}

/// Figures of a call's run.
#[derive(Clone, Debug)]
pub struct RunEntry {
    /// Bytes of the answer; `None` without one.
    pub result_bytes: Option<u64>,
    /// Number of printed lines, and their bytes.
    pub prints: (usize, u64),
    /// Resources that it used.
    pub usage: Usage,
    /// Stored upstream calls, in the order of their ends; at most `CALLS`.
    pub calls: Box<[CallRecord]>,
    /// Totals of all upstream calls.
    pub totals: CallTotals,
    /// Why there is no answer.
    pub message: Option<Box<str>>,
    /// Prelude of the program.
    pub prelude: Option<Arc<Value>>,
}

/// Parts of the arguments of tools that run a program.
#[derive(Debug, Default, Deserialize)]
struct Parts<'a> {
    #[serde(default)]
    program: Option<String>,
    #[serde(default)]
    code: Option<String>,
    #[serde(borrow, default)]
    context: Option<&'a RawValue>,
    #[serde(borrow, default)]
    output_schema: Option<&'a RawValue>,
}

/// The arguments of a call, as a payload policy shows them.
#[derive(Debug, Default)]
pub struct ShownArguments {
    /// The program or script.
    pub program: Value,
    /// Its context.
    pub context: Value,
    /// All arguments, for a tool that runs no program.
    pub others: Option<Value>,
    /// The call had an `output_schema`.
    pub has_schema: bool,
    /// Bytes of the program.
    pub program_bytes: Option<usize>,
    /// Bytes of the context.
    pub context_bytes: Option<usize>,
}

impl CallArguments {
    /// Stores the arguments of a request.
    pub fn from_given(arguments: Raw<'_>) -> CallArguments {
        let text = arguments.get();
        CallArguments { bytes: text.len(), text: Some(text.into()) }
    }

    /// The program or script among them.
    pub fn program(&self) -> Option<String> {
        let parts: Parts<'_> = serde_json::from_str(self.text.as_deref()?).ok()?;
        parts.program.or(parts.code)
    }

    /// Shows them according to a policy.
    pub fn shown(&self, policy: PayloadPolicy, secrets: &SecretRegistry) -> ShownArguments {
        let mut shown = ShownArguments::default();
        let Some(text) = &self.text else {
            shown.others = Some(json!({ "<bytes>": self.bytes }));
            return shown;
        };
        // Arguments of another shape have no such parts.
        let parts: Parts<'_> = serde_json::from_str(text).unwrap_or_default();
        shown.has_schema = parts.output_schema.is_some_and(|schema| schema.get() != "null");
        match parts.program.or(parts.code) {
            Some(program) => {
                shown.program = policy.text(&program, secrets);
                shown.program_bytes = Some(program.len());
            }
            None => shown.others = policy.object(text, secrets),
        }
        if let Some(context) = parts.context {
            shown.context = policy.object(context.get(), secrets).unwrap_or_default();
            shown.context_bytes = Some(context.get().len());
        }
        shown
    }
}

impl CallEntry {
    /// A minimal call.
    #[cfg(test)]
    pub(super) fn in_tests(id: &str) -> CallEntry {
        CallEntry {
            request_id: id.into(),
            tool: "t".into(),
            owner: 0,
            ended: UNIX_EPOCH,
            duration: Duration::ZERO,
            protocol: None,
            trace: None,
            is_error: false,
            reason: None,
            run: None,
            planner: None,
            spans: None,
            number: 0,
        }
    }

    /// `ok` or `error`.
    pub const fn status(&self) -> &'static str {
        if self.is_error { "error" } else { "ok" }
    }

    /// Stored upstream calls.
    pub fn calls(&self) -> &[CallRecord] {
        self.run.as_ref().map_or(&[], |run| &run.calls)
    }

    /// Totals of its upstream calls.
    pub fn totals(&self) -> CallTotals {
        self.run.as_ref().map_or_else(CallTotals::default, |run| run.totals)
    }

    /// Metrics of a call that used upstream tools or a model.
    pub fn metrics(&self) -> Option<PtcMetrics> {
        let run = self.run.as_ref().filter(|run| !run.calls.is_empty() || self.planner.is_some())?;
        Some(PtcMetrics::from_parts(&run.totals, self.answered_bytes(), run.prints.1))
    }

    fn answered_bytes(&self) -> u64 {
        if let Some(planner) = &self.planner {
            return planner.final_bytes;
        }
        let bytes = self.run.as_ref().and_then(|run| run.result_bytes);
        bytes.filter(|_| !self.is_error).unwrap_or(0)
    }
}

impl RecordedCall {
    /// Shows its arguments according to a policy.
    pub fn shown(&self, policy: PayloadPolicy, secrets: &SecretRegistry) -> ShownArguments {
        self.arguments.as_ref().map(|arguments| arguments.shown(policy, secrets)).unwrap_or_default()
    }

    /// The record in a list of records. With `whole` it includes each upstream call and the message of an
    /// error.
    pub fn as_json(
        &self,
        policy: PayloadPolicy,
        secrets: &SecretRegistry,
        whole: bool,
    ) -> Map<String, Value> {
        let arguments = self.shown(policy, secrets);
        let entry = &*self.entry;
        let run = entry.run.as_ref();
        let mut record = Map::new();
        let mut put = |key: &str, value: Value| {
            record.insert(key.to_owned(), value);
        };
        put("request_id", (*entry.request_id).into());
        put("ts", timestamp(entry.ended).into());
        put("tool", (*entry.tool).into());
        put("status", entry.status().into());
        put("reason", entry.reason.as_deref().into());
        put("duration_ms", millis(entry.duration).into());
        put("program", arguments.program);
        put("context", arguments.context);
        if let Some(others) = arguments.others {
            put("arguments", others);
        }
        let result_bytes = run.and_then(|run| run.result_bytes).filter(|_| !entry.is_error);
        put("result_bytes", result_bytes.into());
        put("prints_count", run.map(|run| run.prints.0).into());
        put("signature_present", arguments.has_schema.into());
        put("protocol_version", entry.protocol.into());
        if let Some(trace) = &entry.trace {
            put("traceparent", trace.parent().into());
        }
        match whole {
            true => put("upstream_calls", entry.calls().iter().map(call_without_error).collect()),
            false => put("upstream_calls", entry.totals().count().into()),
        }
        match (&entry.planner, entry.metrics()) {
            (Some(planner), _) => {
                put("ptc_metrics", planner.metrics(&entry.totals()));
                put("agentic", planner.as_json());
            }
            // Our numbers under string keys, so this cannot fail.
            (None, Some(metrics)) => put("ptc_metrics", serde_json::to_value(metrics).unwrap_or_default()),
            (None, None) => {}
        }
        if whole && let Some(run) = run {
            if let Some(message) = &run.message {
                put("message", (**message).into());
            }
            put("fuel", run.usage.fuel.into());
            put("peak_bytes", run.usage.peak_bytes.into());
        }
        record
    }
}

/// An upstream call without the server's error text.
fn call_without_error(call: &CallRecord) -> Value {
    let reason = call_fault(call).map(|(reason, _)| reason);
    let mut map = json!({
        "server": call.server, "tool": call.tool,
        "status": if reason.is_none() { "ok" } else { "error" },
        "duration_ms": millis(call.duration), "reason": reason, "result_bytes": call.result_bytes,
        "oversize": is_oversize(call),
    });
    if let Some(ruling) = &call.ruling {
        map["policy"] = ruling.to_json();
    }
    map
}

/// True when the upstream's answer was too large.
pub fn is_oversize(call: &CallRecord) -> bool {
    matches!(call.status, CallStatus::Error { reason: CallFault::ResponseTooLarge, .. })
}

/// The upstream calls of a run that are stored.
pub fn stored_calls(calls: &[CallRecord]) -> Box<[CallRecord]> {
    calls.iter().take(CALLS).map(stored_call).collect()
}

/// A copy of a call with a bounded error text.
fn stored_call(call: &CallRecord) -> CallRecord {
    let status = match &call.status {
        CallStatus::Ok => CallStatus::Ok,
        CallStatus::Error { reason, error } => CallStatus::Error {
            reason: *reason,
            error: shortened(error, Cut::Bytes(ERROR_BYTES)).into_owned(),
        },
    };
    CallRecord { status, ..call.clone() }
}

/// An id as text for records: a string without quotes, or the digits of a number.
pub fn bounded_id(json: &str, secrets: &SecretRegistry) -> Box<str> {
    let text = match json.starts_with('"') {
        true => serde_json::from_str::<String>(json).unwrap_or_default(),
        false => json.to_owned(),
    };
    match text.len() > ID_BYTES {
        true => {
            let begin = secrets.excerpt(&text, Cut::Chars(ID_CHARS));
            format!("{begin}…({}B id, truncated)", text.len()).into()
        }
        false => text.into(),
    }
}

/// A time in RFC 3339, with microseconds.
pub fn timestamp(time: SystemTime) -> String {
    moment(time).map_or_else(String::new, |moment| format!("{moment:.6}"))
}

/// A time as a timestamp; `None` when it is out of range.
pub fn moment(time: SystemTime) -> Option<Timestamp> {
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    Timestamp::from_microsecond(i64::try_from(since.as_micros()).ok()?).ok()
}
