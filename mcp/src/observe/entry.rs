//! One call as it was recorded. Nothing of it is looked into before somebody asks.

use super::payload::PayloadPolicy;
use crate::answer::PlannerSummary;
use crate::answer::outcome::{fault_of, millis};
use crate::protocol::arguments::GivenArguments;
use jiff::Timestamp;
use ptc_runtime::CallTotals;
use ptc_runtime::metrics::PtcMetrics;
use ptc_runtime::outcome::{CallFault, CallRecord, CallStatus, Usage};
use ptc_runtime::secrets::{Cut, SecretRegistry, shortened};
use ptc_runtime::trace::TraceContext;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Bytes of a request id that are kept; a longer one is kept by its beginning.
const ID_BYTES: usize = 256;
const ID_CHARS: usize = 64;

/// Bytes of the error of one upstream call that are kept.
const ERROR_BYTES: usize = 500;

/// Records of the upstream calls of one run that are kept; the others are only counted.
const CALLS: usize = 1_000;

/// A call that has ended. The numbers of its run are there, and texts where they are wanted.
#[derive(Clone, Debug)]
pub struct CallEntry {
    /// Id of the request, bounded.
    pub request_id: Box<str>,
    /// Name of the tool.
    pub tool: Box<str>,
    /// Whose call it was.
    pub owner: u64,
    /// When it ended.
    pub ended: SystemTime,
    /// From the request to its answer.
    pub duration: Duration,
    /// Revision of the protocol that the client speaks, as far as it has said so.
    pub protocol: Option<&'static str>,
    /// The trace of the client that it belongs to.
    pub trace: Option<TraceContext>,
    /// It was answered as an error.
    pub is_error: bool,
    /// Why, in a word.
    pub reason: Option<Box<str>>,
    /// What ran.
    pub run: Option<RunEntry>,
    /// What a model of this server did.
    pub planner: Option<Box<PlannerSummary>>,
}

/// A record with the arguments of its call, as far as anything was done about them. Cheap to copy.
#[derive(Clone, Debug)]
pub struct RecordedCall {
    /// The record.
    pub entry: Arc<CallEntry>,
    /// The arguments.
    pub arguments: Option<CallArguments>,
}

/// The arguments of a call.
#[derive(Clone, Debug)]
pub struct CallArguments {
    /// Bytes of their text.
    pub bytes: usize,
    /// The text; `None` once there are too many of them.
    pub text: Option<Arc<str>>,
}

/// What is known of the run of a call.
#[derive(Clone, Debug)]
pub struct RunEntry {
    /// Bytes of the answer; `None` without one.
    pub result_bytes: Option<u64>,
    /// Printed lines, and bytes of these.
    pub prints: (usize, u64),
    /// What it cost.
    pub usage: Usage,
    /// Upstream calls in the order of their ends, the first thousand.
    pub calls: Box<[CallRecord]>,
    /// Totals of all of them.
    pub totals: CallTotals,
    /// Why there is no answer.
    pub message: Option<Box<str>>,
    /// Which prelude its program had.
    pub prelude: Option<Arc<Value>>,
}

/// Parts of the arguments of the tools that run something.
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

/// The payloads of a call as a policy shows them.
#[derive(Debug, Default)]
pub struct ShownArguments {
    /// The program or script.
    pub program: Value,
    /// Its context.
    pub context: Value,
    /// All arguments, of a tool that runs no program.
    pub others: Option<Value>,
    /// There was an `output_schema`.
    pub has_schema: bool,
    /// Bytes of the program.
    pub program_bytes: Option<usize>,
    /// Bytes of the context.
    pub context_bytes: Option<usize>,
}

impl CallArguments {
    /// Keeps the arguments of a request.
    pub fn of(arguments: &GivenArguments<'_>) -> CallArguments {
        let text = arguments.text();
        CallArguments { bytes: text.len(), text: Some(text.into()) }
    }

    /// What a policy shows of them.
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
    /// A call that has nothing to tell.
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
        }
    }

    /// `ok` or `error`.
    pub const fn status(&self) -> &'static str {
        if self.is_error { "error" } else { "ok" }
    }

    /// Upstream calls.
    pub fn calls(&self) -> &[CallRecord] {
        self.run.as_ref().map_or(&[], |run| &run.calls)
    }

    /// Totals of its upstream calls.
    pub fn totals(&self) -> CallTotals {
        self.run.as_ref().map_or_else(CallTotals::default, |run| run.totals)
    }

    /// The metrics of a call that has called upstream tools, or asked a model.
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
    /// What a policy shows of its arguments.
    pub fn shown(&self, policy: PayloadPolicy, secrets: &SecretRegistry) -> ShownArguments {
        self.arguments.as_ref().map(|arguments| arguments.shown(policy, secrets)).unwrap_or_default()
    }

    /// The record as a list of records has it; whole, with each upstream call and the message of an error.
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
            // Numbers under names of ours.
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

/// An upstream call without what a server has said.
fn call_without_error(call: &CallRecord) -> Value {
    let reason = fault_of(call).map(|(reason, _)| reason);
    json!({
        "server": call.server, "tool": call.tool,
        "status": if reason.is_none() { "ok" } else { "error" },
        "duration_ms": millis(call.duration), "reason": reason, "result_bytes": call.result_bytes,
        "oversize": is_oversize(call),
    })
}

/// Its answer was over the cap.
pub fn is_oversize(call: &CallRecord) -> bool {
    matches!(call.status, CallStatus::Error { reason: CallFault::ResponseTooLarge, .. })
}

/// The records of a run that are kept.
pub fn kept_calls(calls: &[CallRecord]) -> Box<[CallRecord]> {
    calls.iter().take(CALLS).map(kept_call).collect()
}

/// The same call with so much of its error as is kept.
fn kept_call(call: &CallRecord) -> CallRecord {
    let status = match &call.status {
        CallStatus::Ok => CallStatus::Ok,
        CallStatus::Error { reason, error } => CallStatus::Error {
            reason: *reason,
            error: shortened(error, Cut::Bytes(ERROR_BYTES)).into_owned(),
        },
    };
    let CallRecord { server, tool, status: _, begun, duration, result_bytes, effect, arguments_hash, cached } =
        call;
    CallRecord {
        server: server.clone(),
        tool: tool.clone(),
        status,
        begun: *begun,
        duration: *duration,
        result_bytes: *result_bytes,
        effect: *effect,
        arguments_hash: *arguments_hash,
        cached: *cached,
    }
}

/// An id as records have it: a string by its content, a number by its digits.
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

/// A moment as RFC 3339 writes it, in microseconds.
pub fn timestamp(time: SystemTime) -> String {
    moment(time).map_or_else(String::new, |moment| format!("{moment:.6}"))
}

/// A moment of the calendar; `None` for one that it does not reach.
pub fn moment(time: SystemTime) -> Option<Timestamp> {
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    Timestamp::from_microsecond(i64::try_from(since.as_micros()).ok()?).ok()
}
