//! What is recorded of a call beside its answer.

use super::record::{EvalEnding, Record};
use ptc_runtime::outcome::Outcome;
use std::borrow::Cow;

/// What is recorded of a call beside its answer.
#[derive(Clone, Debug, Default)]
pub struct CallSummary<'a> {
    /// Why it failed, in a word.
    pub reason: Option<Cow<'a, str>>,
    /// The run behind it.
    pub run: Option<&'a Outcome>,
    /// Bytes of the answer, the result alone.
    pub result_bytes: Option<u64>,
}

impl<'a> CallSummary<'a> {
    /// Of a run as it was judged.
    pub fn of(record: &Record<'a>) -> CallSummary<'a> {
        let (reason, result_bytes) = match &record.ending {
            EvalEnding::Ok { answer, .. } => (None, Some(answer.text.len() as u64)),
            EvalEnding::Error(error) => (Some(error.reason.into()), None),
        };
        CallSummary { reason, run: record.run, result_bytes }
    }

    /// Of a call that came to nothing, for this reason.
    pub fn failed(reason: impl Into<Cow<'a, str>>) -> CallSummary<'a> {
        CallSummary { reason: Some(reason.into()), ..CallSummary::default() }
    }
}
