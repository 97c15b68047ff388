//! What a caller may ask of one run.

use super::client::CallingClient;
use super::limits::Limits;
use super::trace::TraceContext;
use ptc_vm::print::TextLimit;
use std::borrow::Cow;
use std::time::Instant;

/// Options of one run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// JSON object text whose keys become `data/<key>`; `None` means no context.
    pub context: Option<String>,
    /// Reading an absent `data/<key>` is a runtime_error (the server) instead of nil.
    pub strict_data: bool,
    /// Hard budgets.
    pub limits: Limits,
    /// Bytes of `RenderedValue::text` to keep.
    pub result_bytes: usize,
    /// Render `RenderedValue::json`.
    pub want_json: bool,
    /// Bytes of `RenderedValue::json` to keep.
    pub json_bytes: usize,
    /// Bytes of either that are written, though not kept, so that the size of what is too large is known.
    pub counted_bytes: usize,
    /// What is base64 in strings stands in the text by its beginning and its size.
    pub brief_text: bool,
    /// And in the JSON.
    pub brief_json: bool,
    /// Bytes of images and sounds that the answer may hold beside its text; 0: none are looked for.
    pub media_bytes: usize,
    /// Name of the source in diagnostics, for example a file name.
    pub source_name: Cow<'static, str>,
    /// Measure `Usage::duration` also of a program that is over at once: looking at the clock costs a share
    /// of it.
    pub timed: bool,
    /// Most fuel of a program that runs on its caller's thread (`Runtime::try_run`); larger ones go to the workers. Who
    /// waits for one program wants as much as there may be, who has many leaves all but the smallest to all cores.
    pub caller_fuel: u64,
    /// The clock as the program sees it, in milliseconds since 1970; `None` means the real one.
    pub now_ms: Option<i64>,
    /// Since when somebody has waited for it; `None` means since it is submitted. A program that has waited for some
    /// milliseconds begins beside long ones.
    pub since: Option<Instant>,
    /// The trace of its caller, which upstream servers are told.
    pub trace: Option<TraceContext>,
    /// Its client, in a process that serves many: whom servers may ask that it calls.
    pub client: Option<CallingClient>,
}

impl RunOptions {
    /// How the text of an answer is written.
    pub(crate) fn text_limit(&self) -> TextLimit {
        TextLimit { bytes: self.result_bytes, counted: self.counted_bytes, brief: self.brief_text }
    }

    /// How its JSON is written.
    pub(crate) fn json_limit(&self) -> TextLimit {
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
        }
    }
}
