//! Holds the data from which a timeline of one recorded tool call is drawn: its run, its upstream calls, their
//! payloads, and numbers computed from them.

use super::units::{self, bytes, count, whole};
use crate::redact::visible_line;
use serde_json::Value;

/// A recorded call. Times are in microseconds.
#[derive(Debug, Default)]
pub struct Trace {
    /// The file that it was read from.
    pub file: String,
    /// Id of the request.
    pub request_id: String,
    /// Name of the called tool.
    pub tool: String,
    /// When the request came, as the file says.
    pub begun: String,
    /// True if the answer is an error.
    pub is_error: bool,
    /// Reason of the error.
    pub reason: Option<String>,
    /// Message of the error.
    pub message: Option<String>,
    /// Time from the request to the answer.
    pub micros: u64,
    /// The run; `None` when nothing ran.
    pub run: Option<TraceRun>,
    /// The program.
    pub program: TracePayload,
    /// Its context.
    pub context: TracePayload,
    /// The answer.
    pub answer: TracePayload,
    /// Bytes of the answer.
    pub answer_bytes: Option<u64>,
    /// Printed lines.
    pub prints: Vec<String>,
}

/// The run of a program.
#[derive(Debug, Default)]
pub struct TraceRun {
    /// Its start, counted from the request.
    pub begun: u64,
    /// How long it took.
    pub micros: u64,
    /// Fuel that it used.
    pub fuel: Option<u64>,
    /// The most memory that it held.
    pub peak_bytes: Option<u64>,
    /// A short description of its prelude.
    pub prelude: Option<String>,
    /// Its upstream calls, in the order of their starts.
    pub calls: Vec<TraceCall>,
}

/// An upstream call.
#[derive(Debug, Default)]
pub struct TraceCall {
    /// `server/tool`.
    pub name: String,
    /// Its start, counted from the start of the run.
    pub begun: u64,
    /// How long it took.
    pub micros: u64,
    /// Bytes of the result.
    pub bytes: Option<u64>,
    /// The reason and message of its failure.
    pub fault: Option<(String, String)>,
}

/// A payload, or the part of it that the policy recorded.
#[derive(Debug, Default)]
pub enum TracePayload {
    /// There was none.
    #[default]
    Nothing,
    /// All of it.
    Whole(String),
    /// The beginning of the payload, which may be empty, and its size.
    Part(String, u64),
}

impl TracePayload {
    /// The text, followed by the size when it is not complete.
    pub fn text(&self) -> Option<String> {
        match self {
            TracePayload::Nothing => None,
            TracePayload::Whole(text) => Some(text.clone()),
            TracePayload::Part(text, bytes) => Some(format!("{text}… ({})", units::bytes(*bytes))),
        }
    }
}

impl Trace {
    /// The upstream calls.
    pub fn calls(&self) -> &[TraceCall] {
        self.run.as_ref().map_or(&[], |run| &run.calls)
    }

    /// Total bytes of successful upstream calls.
    pub(crate) fn upstream_bytes(&self) -> u64 {
        self.calls()
            .iter()
            .filter(|call| call.fault.is_none())
            .filter_map(|call| call.bytes)
            .fold(0, u64::saturating_add)
    }

    /// How many times less the answer is than what upstream calls gave.
    pub(crate) fn reduction(&self) -> Option<f64> {
        let (fetched, answer) = (self.upstream_bytes(), self.answer_bytes.unwrap_or(0));
        (fetched > 0 && answer > 0).then(|| fetched as f64 / answer as f64)
    }

    /// The largest number of upstream calls that ran at the same time.
    pub(crate) fn most_at_once(&self) -> usize {
        let calls = self.calls();
        let at = |moment: u64| {
            calls
                .iter()
                .filter(|call| call.begun <= moment && moment < call.begun + call.micros.max(1))
                .count()
        };
        calls.iter().map(|call| at(call.begun)).max().unwrap_or(0)
    }
}

/// Namespaces and hash of a prelude, as `crm paged 1a2b3c4d`.
pub fn prelude_line(trace: &Value) -> String {
    let names = trace["protected_namespaces"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let hash = trace["source_hash"].as_str().and_then(|hash| hash.get(..8));
    names.chain(hash).collect::<Vec<_>>().join(" ")
}

/// The costs of the call as text.
pub fn numbers(trace: &Trace) -> Vec<String> {
    let mut parts = Vec::new();
    let Some(run) = &trace.run else { return vec!["nothing ran".to_owned()] };
    parts.extend(run.fuel.map(|fuel| format!("fuel {}", whole(fuel))));
    parts.extend(run.peak_bytes.map(|peak| format!("peak {}", bytes(peak))));
    let calls = run.calls.len();
    parts.push(match trace.most_at_once() {
        0 => "no upstream calls".to_owned(),
        most => format!("{}, {most} at once", count(calls, "upstream call")),
    });
    parts.extend(run.prelude.as_ref().map(|prelude| format!("prelude {}", visible_line(prelude))));
    let (fetched, answer) = (trace.upstream_bytes(), trace.answer_bytes);
    match (answer, trace.reduction()) {
        (Some(answer), Some(ratio)) => {
            parts.push(format!("{} in, {} out ({ratio:.1} to 1)", bytes(fetched), bytes(answer)));
        }
        _ => {
            parts.extend((fetched > 0).then(|| format!("{} in", bytes(fetched))));
            parts.extend(answer.map(|answer| format!("{} out", bytes(answer))));
        }
    }
    parts
}
