//! Defines the options with which a caller starts one run of a program, such as input data, limits, and how the result
//! is rendered. Others are the client that the run executes for, the caller's trace, and the journal (log of a run, to
//! replay or resume it).

use super::client::asker::CallOrigin;
use super::client::{CallingClient, ProgressListener};
use super::limits::Limits;
use super::trace::TraceContext;
use crate::journal::{Keepable, RunJournal};
use ptc_vm::print::TextLimit;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// One option of the rendering: its name, how it is read and how it is set.
type RenderingOption = (&'static str, fn(&RunOptions) -> u64, fn(&mut RunOptions, u64));

/// Bytes of an option; a platform with smaller numbers takes its largest.
fn bytes(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

const RENDERING: &[RenderingOption] = &[
    (
        "result_bytes",
        |options| options.result_bytes as u64,
        |options, value| options.result_bytes = bytes(value),
    ),
    ("json_bytes", |options| options.json_bytes as u64, |options, value| options.json_bytes = bytes(value)),
    (
        "counted_bytes",
        |options| options.counted_bytes as u64,
        |options, value| {
            options.counted_bytes = bytes(value);
        },
    ),
    (
        "media_bytes",
        |options| options.media_bytes as u64,
        |options, value| options.media_bytes = bytes(value),
    ),
    ("plain_text", |options| options.plain_text.into(), |options, value| options.plain_text = value != 0),
    ("want_json", |options| options.want_json.into(), |options, value| options.want_json = value != 0),
    ("brief_text", |options| options.brief_text.into(), |options, value| options.brief_text = value != 0),
    ("brief_json", |options| options.brief_json.into(), |options, value| options.brief_json = value != 0),
    (
        "limited_answer",
        |options| options.limited_answer.into(),
        |options, value| options.limited_answer = value != 0,
    ),
];

/// Options of one run. [`RunOptions::typed`] is for programs that call tools and give a value of the application: 60 s and
/// 100 MiB. The default is for pure computing: 1 s and 10 MiB, and no [`value`](super::outcome::Outcome::value). Fields that
/// the documentation hides do not keep struct update (`..RunOptions::typed()`) from working.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Text of a JSON object; its keys become `data/<key>`; `None` means no context.
    pub context: Option<String>,
    /// Reading an absent `data/<key>` is a runtime_error instead of nil. Default: nil.
    pub strict_data: bool,
    /// Hard budgets.
    pub limits: Limits,
    /// Size limit of `RenderedValue::text`; the rest is cut. Default: none. It does not cut what `Outcome::value` gives.
    pub result_bytes: usize,
    /// Render a text with line breaks as it is, and answers of `doc`, `dir` and `apropos` one below the other.
    #[doc(hidden)]
    pub plain_text: bool,
    /// Render `RenderedValue::json`.
    #[doc(hidden)]
    pub want_json: bool,
    /// Size limit of `RenderedValue::json`.
    #[doc(hidden)]
    pub json_bytes: usize,
    /// Texts are counted up to this size without being stored, so that the size of a result that is too large
    /// is known.
    #[doc(hidden)]
    pub counted_bytes: usize,
    /// Shorten base64 strings in the text to their beginning and size.
    #[doc(hidden)]
    pub brief_text: bool,
    /// Shorten base64 strings in the JSON, too.
    #[doc(hidden)]
    pub brief_json: bool,
    /// Size limit of all images and sounds that the answer has in addition to its text; 0 turns the search
    /// for them off.
    #[doc(hidden)]
    pub media_bytes: usize,
    /// Name of the source in diagnostics, for example a file name.
    pub source_name: Cow<'static, str>,
    /// Measure `Usage::duration` also for tiny programs. Off by default, because reading the clock takes a
    /// share of their time.
    #[doc(hidden)]
    pub timed: bool,
    /// Fuel limit of a program that runs on its caller's thread (`Runtime::try_run`); larger programs go to
    /// the workers. A caller that waits for one program sets a high limit; a caller with many programs sets a
    /// low one, so that they use all cores.
    #[doc(hidden)]
    pub caller_fuel: u64,
    /// The clock that the program sees, in milliseconds since 1970; `None` means the real one.
    pub now_ms: Option<i64>,
    /// Since when the caller has waited for the run; `None` means since it is submitted. A program that has
    /// waited for some milliseconds begins although long ones are running.
    #[doc(hidden)]
    pub since: Option<Instant>,
    /// The caller's trace; it is sent to upstreams.
    #[doc(hidden)]
    pub trace: Option<TraceContext>,
    /// The client that the run executes for; upstreams may elicit from it.
    #[doc(hidden)]
    pub client: Option<CallingClient>,
    /// Receives the progress of tools that the run calls, if no watcher of the run does.
    #[doc(hidden)]
    pub progress: Option<Arc<dyn ProgressListener>>,
    /// Where the calls of the program come from, for the policy. Those of sessions are known.
    #[doc(hidden)]
    pub origin: CallOrigin,
    /// The answer holds booleans, numbers and texts of a fixed list alone, so it shows no data to the model.
    #[doc(hidden)]
    pub limited_answer: bool,
    /// The journal of the run, if it is replayed.
    #[doc(hidden)]
    pub journal: Option<Arc<RunJournal>>,
    /// Lets the caller keep the run stored later.
    #[doc(hidden)]
    pub keep: Option<Keepable>,
}

impl RunOptions {
    /// How the answer is rendered, by name: it costs fuel.
    pub fn rendering(&self) -> BTreeMap<String, u64> {
        let all = RENDERING.iter().map(|(name, get, _)| ((*name).to_owned(), get(self)));
        all.filter(|(name, value)| RunOptions::default().rendering_of(name) != Some(*value)).collect()
    }

    fn rendering_of(&self, name: &str) -> Option<u64> {
        RENDERING.iter().find(|(known, ..)| *known == name).map(|(_, get, _)| get(self))
    }

    /// The same options with the rendering that [`RunOptions::rendering`] has given.
    pub fn rendered_as(mut self, rendering: &BTreeMap<String, u64>) -> RunOptions {
        for (name, _, set) in RENDERING {
            if let Some(value) = rendering.get(*name) {
                set(&mut self, *value);
            }
        }
        self
    }

    /// The limits for rendering the answer as text.
    #[doc(hidden)]
    pub fn text_limit(&self) -> TextLimit {
        TextLimit { bytes: self.result_bytes, counted: self.counted_bytes, brief: self.brief_text }
    }

    /// The limits for rendering the answer as JSON.
    #[doc(hidden)]
    pub fn json_limit(&self) -> TextLimit {
        TextLimit { bytes: self.json_bytes, counted: self.counted_bytes, brief: self.brief_json }
    }
}

impl Default for RunOptions {
    fn default() -> RunOptions {
        RunOptions {
            context: None,
            strict_data: false,
            limits: Limits::default(),
            result_bytes: usize::MAX,
            plain_text: false,
            want_json: false,
            json_bytes: usize::MAX,
            counted_bytes: 0,
            brief_text: false,
            brief_json: false,
            media_bytes: 0,
            source_name: "program".into(),
            timed: true,
            caller_fuel: u64::MAX,
            now_ms: None,
            since: None,
            trace: None,
            client: None,
            progress: None,
            origin: CallOrigin::Program,
            limited_answer: false,
            journal: None,
            keep: None,
        }
    }
}
