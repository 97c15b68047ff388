//! What is recorded of a call beside its answer.

use super::planner::TaskSummary;
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
    /// The task behind it, which is many runs.
    pub task: Option<Box<TaskSummary>>,
    /// Bytes of the answer, the result alone.
    pub result_bytes: Option<u64>,
    /// What it was in its session, where turns are logged.
    pub turn: Option<Box<TurnSummary>>,
}

/// A program of a session, as the turn log has it.
#[derive(Clone, Debug)]
pub struct TurnSummary {
    /// The session.
    pub session_id: String,
    /// Programs that the session has kept.
    pub turn: u64,
    /// Programs that were begun in it.
    pub attempt: u64,
    /// This one was kept.
    pub committed: bool,
    /// Its text.
    pub program: String,
    /// Names that it has defined, with the beginnings of what they hold.
    pub changed: Vec<(String, String)>,
    /// Limits that it has met.
    pub limits_hit: Vec<&'static str>,
}

impl<'a> CallSummary<'a> {
    /// Of a run as it was judged.
    pub fn of(record: &Record<'a>) -> CallSummary<'a> {
        let (reason, result_bytes) = match &record.ending {
            EvalEnding::Ok { answer, .. } => (None, Some(answer.text.len() as u64)),
            EvalEnding::Error(error) => (Some(error.reason.into()), None),
        };
        CallSummary { reason, run: record.run, result_bytes, ..CallSummary::default() }
    }

    /// Of a call that came to nothing, for this reason.
    pub fn failed(reason: impl Into<Cow<'a, str>>) -> CallSummary<'a> {
        CallSummary { reason: Some(reason.into()), ..CallSummary::default() }
    }
}
