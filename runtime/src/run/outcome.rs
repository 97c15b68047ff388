//! What one run of a program produced: plain data that crosses threads.

use super::account::RunAccount;
use super::totals::CallTotals;
use super::unseen;
pub use ptc_compiler::diagnostic::{Palette, Place, Position, Report};
use ptc_vm::{Class, Reason};
use serde_json::Value as Json;
use std::sync::Arc;
use std::time::Duration;

/// The full record of one run. Response profiles are applied at the edge, never here.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The answer, or why there is none.
    pub result: Result<RenderedValue, Failure>,
    /// Lines written by `println`, in order; kept for every outcome.
    pub prints: Vec<String>,
    /// Lines of its standard error, where there is such a thing: for operators, not for the caller.
    pub stderr: Vec<String>,
    /// Upstream calls in completion order. Of a run with very many, the first ones: `call_totals` counts them all.
    pub upstream_calls: Vec<CallRecord>,
    /// Totals of all upstream calls.
    pub call_totals: CallTotals,
    /// Remarks that belong to the result, for example that the discovery budget is used up.
    pub notes: Vec<String>,
    /// What the run cost.
    pub usage: Usage,
    /// Which prelude was attached to it: hashes, namespaces, components and exports.
    pub prelude_trace: Option<Arc<Json>>,
}

/// How a run ended, as whatever ran in it knows.
#[derive(Debug)]
pub struct Ending {
    /// The answer, or why there is none.
    pub result: Result<RenderedValue, Failure>,
    /// Lines written on the way, in order.
    pub prints: Vec<String>,
    /// Lines of its standard error, where there is such a thing.
    pub stderr: Vec<String>,
    /// Fuel spent, where there is such a thing.
    pub fuel: Option<u64>,
    /// Most logical bytes alive at once.
    pub peak_bytes: u64,
    /// Which prelude was attached.
    pub prelude_trace: Option<Arc<Json>>,
}

impl Ending {
    /// A run of which nothing is known but its answer.
    pub fn of(result: Result<RenderedValue, Failure>) -> Ending {
        let stderr = Vec::new();
        Ending { result, prints: Vec::new(), stderr, fuel: None, peak_bytes: 0, prelude_trace: None }
    }

    /// A run that failed before anything is known about it.
    pub fn failed(failure: Failure) -> Ending {
        Ending::of(Err(failure))
    }
}

impl From<Failure> for Ending {
    fn from(failure: Failure) -> Ending {
        Ending::failed(failure)
    }
}

impl Default for Outcome {
    /// An answer with nothing in it, to be filled in.
    fn default() -> Outcome {
        Outcome {
            result: Ok(RenderedValue::of(String::new())),
            prints: Vec::new(),
            stderr: Vec::new(),
            upstream_calls: Vec::new(),
            call_totals: CallTotals::default(),
            notes: Vec::new(),
            usage: Usage::default(),
            prelude_trace: None,
        }
    }
}

impl Outcome {
    /// The record of a run that has ended: how it did, and what is on its account.
    pub(crate) fn of(ending: Ending, account: &RunAccount) -> Outcome {
        let Ending { result, prints, stderr, fuel, peak_bytes, prelude_trace } = ending;
        let usage =
            Usage { fuel, peak_bytes, duration: account.elapsed(), upstream_calls: account.calls_made() };
        let (upstream_calls, mut notes) = (account.take_ledger(), account.take_notes());
        let call_totals = account.call_totals();
        notes.extend(unseen::remark(&result, &prints, (&upstream_calls, &call_totals), account.limits()));
        Outcome { result, prints, stderr, upstream_calls, call_totals, notes, usage, prelude_trace }
    }
}

/// How a program ended well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// The value of the last form.
    Value,
    /// `(return v)`.
    Return,
}

/// The value of a program, rendered while its isolate was alive.
#[derive(Clone, Debug)]
pub struct RenderedValue {
    /// Last form or `(return v)`.
    pub completion: Completion,
    /// `pr-str` text, cut at `RunOptions::result_bytes`.
    pub text: String,
    /// True when `text` was cut.
    pub truncated: bool,
    /// Bytes of the whole text, also when it was cut; one more than `RunOptions::counted_bytes` when there are more.
    pub text_bytes: u64,
    /// Bytes that the text is shorter by than that of the value, because it is brief (`RunOptions::brief_text`).
    pub saved_bytes: u64,
    /// True when the value is nil (its text is `nil`).
    pub is_nil: bool,
    /// JSON text of the value, only when `RunOptions::want_json`; an error says where the value has no JSON form.
    pub json: Option<Result<String, JsonRefusal>>,
    /// Images and sounds in it, only with `RunOptions::media_bytes`.
    pub media: Vec<Media>,
}

impl RenderedValue {
    /// An answer that is this text.
    pub fn of(text: String) -> RenderedValue {
        let (completion, text_bytes) = (Completion::Value, text.len() as u64);
        RenderedValue {
            completion,
            text,
            truncated: false,
            text_bytes,
            saved_bytes: 0,
            is_nil: false,
            json: None,
            media: Vec::new(),
        }
    }
}

/// An image or a sound in an answer, as a content block of MCP.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Media {
    /// Which of the two.
    #[serde(rename = "type")]
    pub kind: MediaKind,
    /// In base64.
    pub data: String,
    /// For example `image/png`.
    #[serde(rename = "mimeType")]
    pub mime_type: String,
}

/// What is seen or heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MediaKind {
    /// An image.
    Image,
    /// A sound.
    Audio,
}

impl MediaKind {
    /// What its MIME types begin with.
    pub(crate) const fn prefix(self) -> &'static str {
        match self {
            MediaKind::Image => "image/",
            MediaKind::Audio => "audio/",
        }
    }
}

/// Why a value has no JSON form, or was not rendered as JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JsonRefusal {
    /// The value at this path (for example `rows[0].ts`, `<root>`) is not JSON-encodable.
    NotEncodable {
        /// Where.
        path: String,
    },
    /// Two keys of the map around this path have the same name in JSON, as `:n` and `"n"` have.
    SameName {
        /// Where the value of one of them is.
        path: String,
        /// One key as the program writes it.
        key: String,
        /// The other one.
        other: String,
    },
    /// The JSON text is longer than `RunOptions::json_bytes`.
    TooLarge {
        /// Bytes of the whole text; one more than `RunOptions::counted_bytes` when there are more.
        bytes: u64,
    },
}

impl std::fmt::Display for JsonRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            JsonRefusal::NotEncodable { path } => write!(f, "non-JSON-encodable value at {path}"),
            JsonRefusal::SameName { path, key, other } => {
                write!(f, "the keys {key} and {other} have the same name in JSON (at {path})")
            }
            JsonRefusal::TooLarge { bytes } => write!(f, "larger than {bytes} bytes of JSON"),
        }
    }
}

/// What kind of failure: a name of its own, which may be one of the language that ran, and the class that clients
/// are promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailureKind {
    raw: &'static str,
    class: Class,
}

impl FailureKind {
    /// A kind of this name.
    pub const fn new(raw: &'static str, class: Class) -> FailureKind {
        FailureKind { raw, class }
    }

    /// The name users see, for example `unbound_var`.
    pub const fn raw(self) -> &'static str {
        self.raw
    }

    /// What `lisp_eval` reports as reason.
    pub const fn class(self) -> Class {
        self.class
    }
}

impl From<Reason> for FailureKind {
    fn from(reason: Reason) -> FailureKind {
        FailureKind::new(reason.raw(), reason.class())
    }
}

impl PartialEq<Reason> for FailureKind {
    fn eq(&self, reason: &Reason) -> bool {
        *self == FailureKind::from(*reason)
    }
}

/// Why a program gave no answer.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Of what kind it is.
    pub reason: FailureKind,
    /// What is wrong, in at most 1,000 characters; for `(fail v)` the beginning of `v`.
    pub message: String,
    /// For `(fail v)`: `pr-str` of `v`, cut at `RunOptions::result_bytes`.
    pub value: Option<String>,
    /// The same with places and hints, for every rendering. A rejected program may have several errors,
    /// which stand in the order of their importance; a program that ran has one.
    pub reports: Vec<Report>,
    /// Reports that were left out.
    pub more: usize,
}

impl From<Report> for Failure {
    fn from(report: Report) -> Failure {
        let (reason, message) = (report.reason.into(), report.message.clone());
        Failure { reason, message, value: None, reports: vec![report], more: 0 }
    }
}

impl Failure {
    /// A failure that has nothing to show but this message.
    pub fn new(reason: FailureKind, message: impl Into<String>) -> Failure {
        Failure { reason, message: message.into(), value: None, reports: Vec::new(), more: 0 }
    }

    /// The caller gave up before the program started.
    pub fn cancelled() -> Failure {
        Failure::from(
            Report::new(Reason::Cancelled, "the program was cancelled").hint(Reason::Cancelled.hint()),
        )
    }

    /// A defect of this implementation.
    pub fn defect(message: &str) -> Failure {
        Failure::from(Report::new(Reason::ExecutionError, message).hint(Reason::ExecutionError.hint()))
    }

    /// Where the first error is.
    pub fn position(&self) -> Option<Position> {
        self.reports.first().and_then(Report::position)
    }

    /// What to change about the first error.
    pub fn hints(&self) -> &[String] {
        self.reports.first().map_or(&[], |report| &report.hints)
    }

    /// For models: all reports in few tokens.
    pub fn compact(&self) -> String {
        self.all(Report::compact, "\n")
    }

    /// For people: all reports with snippets.
    pub fn text(&self, source_name: &str, palette: Palette) -> String {
        self.all(|report| report.text(source_name, palette), "\n\n")
    }

    fn all(&self, render: impl Fn(&Report) -> String, separator: &str) -> String {
        if self.reports.is_empty() {
            return self.message.clone();
        }
        let mut parts: Vec<String> = self.reports.iter().map(render).collect();
        if self.more > 0 {
            parts.push(format!("… and {} more errors", self.more));
        }
        parts.join(separator)
    }
}

/// One upstream call as the operator sees it.
#[derive(Clone, Debug)]
pub struct CallRecord {
    /// Configured name of the upstream.
    pub server: Arc<str>,
    /// Tool name as the upstream lists it.
    pub tool: Arc<str>,
    /// Ok or the reason of the fault.
    pub status: CallStatus,
    /// When it began, from the beginning of the run.
    pub begun: Duration,
    /// From sending to answer.
    pub duration: Duration,
    /// Bytes of the tool-result payload as received: structuredContent if present, else the content text.
    /// `None` when nothing was received.
    pub result_bytes: Option<u64>,
    /// What the call may have changed.
    pub effect: Effect,
    /// SHA-256 of its arguments as canonical JSON; only where somebody asked for it
    /// (`ToolBroker::hash_arguments`).
    pub arguments_hash: Option<ArgumentsHash>,
    /// Its result is that of an equal call: its server was not asked.
    pub cached: bool,
}

/// SHA-256.
pub type ArgumentsHash = [u8; 32];

/// How an upstream call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallStatus {
    /// The tool answered.
    Ok,
    /// A world fault: the program got `{:ok false …}` and went on.
    Error {
        /// Which.
        reason: CallFault,
        /// The detail text.
        error: String,
    },
}

/// The closed set of world faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallFault {
    /// Could not start, handshake failed, or in recovery after a crash.
    UpstreamUnavailable,
    /// The upstream answered with a JSON-RPC error.
    UpstreamError,
    /// The tool answered with `isError: true`.
    ToolError,
    /// The per-call deadline passed.
    Timeout,
    /// The answer was larger than the cap, refused before decoding.
    ResponseTooLarge,
    /// The program used up its call budget.
    CapExhausted,
    /// The program or branch ended while the call was in flight.
    Cancelled,
}

impl CallFault {
    /// The name programs see as `:reason`.
    pub const fn name(self) -> &'static str {
        match self {
            CallFault::UpstreamUnavailable => "upstream_unavailable",
            CallFault::UpstreamError => "upstream_error",
            CallFault::ToolError => "tool_error",
            CallFault::Timeout => "timeout",
            CallFault::ResponseTooLarge => "response_too_large",
            CallFault::CapExhausted => "cap_exhausted",
            CallFault::Cancelled => "cancelled",
        }
    }
}

/// What a tool may do, from its annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// `readOnlyHint`.
    Read,
    /// `destructiveHint` or a writing method.
    Write,
    /// Nothing is known.
    Unknown,
}

impl Effect {
    /// The name operators see.
    pub const fn name(self) -> &'static str {
        match self {
            Effect::Read => "read",
            Effect::Write => "write",
            Effect::Unknown => "unknown",
        }
    }
}

/// What a run cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Fuel spent, where there is such a thing.
    pub fuel: Option<u64>,
    /// Most logical bytes alive at once.
    pub peak_bytes: u64,
    /// Wall clock from start to end, waiting included.
    pub duration: Duration,
    /// Upstream calls made (the budget counts the same).
    pub upstream_calls: u32,
}
