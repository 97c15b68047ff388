//! Defines what the server's call records and session log keep of a finished tool call: why it failed, the outcome of
//! the program (for `lisp_task`: totals of all programs), and the size of the result. The answer itself is not part of
//! the summary.

use super::planner::TaskSummary;
use super::record::{EvalEnding, Record};
use ptc_calls::outcome::Outcome;
use std::borrow::Cow;

/// Data for the record of a call, apart from its answer.
#[derive(Clone, Debug, Default)]
pub struct CallSummary<'a> {
    /// Why it failed: the reason's name.
    pub reason: Option<Cow<'a, str>>,
    /// The run of the call.
    pub run: Option<&'a Outcome>,
    /// The task of the call, which has many runs.
    pub task: Option<Box<TaskSummary>>,
    /// Bytes of the result alone.
    pub result_bytes: Option<u64>,
    /// The session's entry for it, where programs of sessions are logged.
    pub turn: Option<Box<SessionEntry>>,
}

/// A program of a session, for the log of sessions.
#[derive(Clone, Debug)]
pub struct SessionEntry {
    /// The session.
    pub session_id: String,
    /// Number of committed programs of the session.
    pub turn: u64,
    /// Number of programs that were begun in it.
    pub attempt: u64,
    /// This program was committed.
    pub committed: bool,
    /// Its source.
    pub program: String,
    /// Names that it defined, each with a preview of the value.
    pub changed: Vec<(String, String)>,
    /// Limits that it reached.
    pub limits_hit: Vec<&'static str>,
}

impl<'a> CallSummary<'a> {
    /// Summarizes a recorded run.
    pub fn from_record(record: &Record<'a>) -> CallSummary<'a> {
        let (reason, result_bytes) = match &record.ending {
            EvalEnding::Ok { answer, .. } => (None, Some(answer.text.len() as u64)),
            EvalEnding::Error(error) => (Some(error.reason.into()), None),
        };
        CallSummary { reason, run: record.run, result_bytes, ..CallSummary::default() }
    }

    /// Copies what is borrowed, except for the run.
    pub(super) fn without_run(self) -> CallSummary<'static> {
        CallSummary {
            reason: self.reason.map(|reason| Cow::Owned(reason.into_owned())),
            run: None,
            task: self.task,
            result_bytes: self.result_bytes,
            turn: self.turn,
        }
    }

    /// Summarizes a call that failed for this reason.
    pub fn failed(reason: impl Into<Cow<'a, str>>) -> CallSummary<'a> {
        CallSummary { reason: Some(reason.into()), ..CallSummary::default() }
    }
}
