//! The outcome of one run as plain data: answer or failure, records of its calls, usage.

mod call;
mod effect;
mod ruling;

use super::account::RunAccount;
use super::totals::CallTotals;
use super::unreported_failures;
use crate::journal::{ErrorRecord, OutcomeRecord};
pub use call::{ArgumentsHash, CallFault, CallRecord, CallStatus};
pub use effect::Effect;
pub use ptc_compiler::diagnostic::{Location, Palette, Position, Report};
use ptc_vm::{Class, Reason};
pub use ruling::{PolicyRuling, Verdict};
use serde_json::Value as Json;
use std::sync::Arc;
use std::time::Duration;

/// The full record of one run. Its guest reports the result, what it printed, fuel, memory and prelude; its account adds
/// the rest. Secrets are redacted in it.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The answer, or the failure.
    pub result: Result<RenderedValue, Failure>,
    /// Lines written by `println`, in order; kept for every outcome.
    pub prints: Vec<String>,
    /// Lines of the standard error of a script: for operators, not for the client.
    pub stderr: Vec<String>,
    /// Upstream calls in order of completion. Of a run with very many calls, only the first; `call_totals`
    /// counts them all.
    pub upstream_calls: Vec<CallRecord>,
    /// Totals of all upstream calls.
    pub call_totals: CallTotals,
    /// Notes to the client, for example that the discovery budget is used up.
    pub notes: Vec<String>,
    /// Resources that the run used.
    pub usage: Usage,
    /// Facts about its prelude: hashes, namespaces, components and exports.
    pub prelude_trace: Option<Arc<Json>>,
}

#[doc(hidden)]
impl From<Failure> for Outcome {
    fn from(failure: Failure) -> Outcome {
        Outcome::failed(failure)
    }
}

impl Default for Outcome {
    /// An empty outcome, to be filled in.
    fn default() -> Outcome {
        Outcome {
            result: Ok(RenderedValue::from_text(String::new())),
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
    /// An outcome with a result and nothing else.
    #[doc(hidden)]
    pub fn with_result(result: Result<RenderedValue, Failure>) -> Outcome {
        Outcome { result, ..Outcome::default() }
    }

    /// An outcome with a failure and nothing else.
    #[doc(hidden)]
    pub fn failed(failure: Failure) -> Outcome {
        Outcome::with_result(Err(failure))
    }

    /// Adds what the account of the run knows: its calls, its notes and how long it took.
    pub(super) fn complete(&mut self, account: &RunAccount) {
        self.usage.duration = account.elapsed();
        self.usage.upstream_calls = account.calls_made();
        self.upstream_calls = account.take_ledger();
        self.call_totals = account.call_totals();
        self.notes = account.take_notes();
        let calls = (&*self.upstream_calls, &self.call_totals);
        self.notes.extend(unreported_failures::remark(&self.result, &self.prints, calls, account.limits()));
    }
}

impl From<&Outcome> for OutcomeRecord {
    fn from(outcome: &Outcome) -> OutcomeRecord {
        let (value, error) = match &outcome.result {
            Ok(answer) => (Some(answer.text.clone()), None),
            Err(failure) => {
                let (reason, message) = (failure.reason.raw().to_owned(), failure.message.clone());
                (None, Some(ErrorRecord { reason, message }))
            }
        };
        let (prints, fuel) = (outcome.prints.clone(), outcome.usage.fuel);
        OutcomeRecord { value, error, prints, fuel, calls: u64::from(outcome.usage.upstream_calls) }
    }
}

/// How a program ended successfully.
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
    #[doc(hidden)]
    pub completion: Completion,
    /// `pr-str` text, cut at `RunOptions::result_bytes`.
    pub text: String,
    /// True when `text` is not `pr-str` text, but the text itself, with its line breaks
    /// (`RunOptions::plain_text`).
    #[doc(hidden)]
    pub is_plain: bool,
    /// True when `text` was cut.
    pub truncated: bool,
    /// Size of the whole text, even if it was cut; one more than `RunOptions::counted_bytes` when it is
    /// longer than that.
    #[doc(hidden)]
    pub text_bytes: u64,
    /// Bytes by which base64 strings in the text were shortened (`RunOptions::brief_text`).
    #[doc(hidden)]
    pub saved_bytes: u64,
    /// True when the value is nil (its text is `nil`).
    pub is_nil: bool,
    /// JSON text of the value if `RunOptions::want_json` is set; the error says where the value has no JSON
    /// form.
    #[doc(hidden)]
    pub json: Option<Result<String, JsonRefusal>>,
    /// Images and sounds of the value, if `RunOptions::media_bytes` is set.
    #[doc(hidden)]
    pub media: Vec<Media>,
}

impl RenderedValue {
    /// An answer with this text.
    pub fn from_text(text: String) -> RenderedValue {
        let (completion, text_bytes) = (Completion::Value, text.len() as u64);
        RenderedValue {
            completion,
            text,
            is_plain: false,
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
    /// Whether it is an image or a sound.
    #[serde(rename = "type")]
    pub kind: MediaKind,
    /// The data, in base64.
    pub data: String,
    /// The MIME type, for example `image/png`.
    #[serde(rename = "mimeType")]
    pub mime_type: String,
}

/// The kind of a medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MediaKind {
    /// An image.
    Image,
    /// A sound.
    Audio,
}

impl MediaKind {
    /// The beginning of its MIME types.
    pub const fn prefix(self) -> &'static str {
        match self {
            MediaKind::Image => "image/",
            MediaKind::Audio => "audio/",
        }
    }
}

/// Why a value was not rendered as JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JsonRefusal {
    /// The value at this path (for example `rows[0].ts`, `<root>`) is not JSON-encodable.
    NotEncodable {
        /// The path of the value.
        path: String,
    },
    /// Two keys of the map around this path have the same name in JSON, as `:n` and `"n"` have.
    SameName {
        /// The path of the value of one of them.
        path: String,
        /// The key as the program writes it.
        key: String,
        /// The other one.
        other: String,
    },
    /// The JSON text is longer than `RunOptions::json_bytes`.
    TooLarge {
        /// Size of the whole text; one more than `RunOptions::counted_bytes` when it is longer than that.
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

/// The kind of a failure: a name, which may be specific to the language, and the class that is documented for
/// clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailureKind {
    raw: &'static str,
    class: Class,
}

impl FailureKind {
    /// A kind with this name and class.
    #[doc(hidden)]
    pub const fn new(raw: &'static str, class: Class) -> FailureKind {
        FailureKind { raw, class }
    }

    /// The stable name to compare with: `timeout`, `memory_exceeded`, `tool_error`, `tool_call_limit_exceeded`,
    /// `invalid_tool_args`, `unknown_tool`, `unbound_var`, `cancelled`, or `fail` for `(fail v)`. docs/troubleshooting.md has
    /// all.
    pub const fn raw(self) -> &'static str {
        self.raw
    }

    /// What `lisp_eval` reports as reason.
    #[doc(hidden)]
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
    /// Its kind.
    pub reason: FailureKind,
    /// What is wrong, in at most 1,000 characters; for `(fail v)` the beginning of `v`. A limit is named as the flag of
    /// `ptc`: `--timeout` is `Limits::timeout_ms`, `--memory` is `Limits::memory_bytes`.
    pub message: String,
    /// For `(fail v)`: `pr-str` of `v`, cut at `RunOptions::result_bytes`.
    pub value: Option<String>,
    /// The same with locations and hints, for every rendering. A rejected program may have several errors,
    /// the most important first; a program that ran has one.
    #[doc(hidden)]
    pub reports: Vec<Report>,
    /// How many reports were left out.
    pub more: usize,
}

impl From<Report> for Failure {
    fn from(report: Report) -> Failure {
        let (reason, message) = (report.reason.into(), report.message.clone());
        Failure { reason, message, value: None, reports: vec![report], more: 0 }
    }
}

impl Failure {
    /// A failure with this message and nothing else.
    pub fn new(reason: FailureKind, message: impl Into<String>) -> Failure {
        Failure { reason, message: message.into(), value: None, reports: Vec::new(), more: 0 }
    }

    /// The caller cancelled the program before it started.
    pub fn cancelled() -> Failure {
        Failure::from(
            Report::new(Reason::Cancelled, "the program was cancelled").hint(Reason::Cancelled.hint()),
        )
    }

    /// A defect of this implementation.
    pub fn defect(message: &str) -> Failure {
        Failure::from(Report::new(Reason::ExecutionError, message).hint(Reason::ExecutionError.hint()))
    }

    /// The location of the first error.
    #[doc(hidden)]
    pub fn position(&self) -> Option<Position> {
        self.reports.first().and_then(Report::position)
    }

    /// Hints about the first error.
    pub fn hints(&self) -> &[String] {
        self.reports.first().map_or(&[], |report| &report.hints)
    }

    /// All reports in few tokens, for models.
    pub fn compact(&self) -> String {
        self.all(Report::compact, "\n")
    }

    /// All reports with snippets, for people.
    #[doc(hidden)]
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

/// Resources that a run used.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Fuel spent, if the guest uses fuel.
    pub fuel: Option<u64>,
    /// Peak of live logical bytes.
    pub peak_bytes: u64,
    /// Time from start to end, waiting included.
    pub duration: Duration,
    /// Number of tool calls, as the budget counts them: those of servers and those of the application, without calls that
    /// the budget refused. Calls with wrong arguments are not made, so they do not count.
    pub upstream_calls: u32,
}
