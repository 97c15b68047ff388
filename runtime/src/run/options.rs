//! What a caller may ask of one run.

use super::limits::Limits;
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
            source_name: "program".into(),
            timed: true,
            caller_fuel: u64::MAX,
            now_ms: None,
            since: None,
        }
    }
}
