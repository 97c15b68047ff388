//! Finds in the log of a stored session, or of a run that goes on, what its program was answered at each call, so that
//! servers, policies and limits of the present are not asked.
//!
//! The program does what it did, because it gets what it got. What it calls is compared; the arguments and the fuel that it
//! has used are not: both depend on lists of tools, which may have changed.

use super::answer::Answer;
use super::record::{CallBegun, Record};
use super::replay::Script;
use serde_json::Value as Json;

/// What the log has of a call that a program makes.
#[derive(Debug)]
pub enum Restored {
    /// It waited.
    Waits,
    /// It left; its answer comes later. The name of what it may change.
    Left(String),
    /// It was refused at once, and was not counted.
    Refused(Answer),
    /// A question that the host answered at once.
    Asked(Json),
}

/// A server, and its tool if a tool is called.
pub type Called<'c> = Option<(&'c str, Option<&'c str>)>;

impl Script {
    /// What the log has of a call of this server and tool (`None`: a question to the host, or no call of a tool);
    /// `None`: nothing. With the fuel that the program had used then: encoding arguments and making answers costs some.
    /// `uncounted`: the reason of calls that are refused because the budget is used up.
    pub(super) fn restored(
        &mut self,
        seq: u64,
        called: Called<'_>,
        uncounted: &str,
    ) -> Option<(Restored, u64)> {
        let is_same = |call: &CallBegun| {
            called.is_none_or(|(server, tool)| {
                call.server == server && tool.is_none_or(|tool| call.tool == tool)
            })
        };
        let (restored, fuel) = match self.next()? {
            Record::Wait { seq: waits, fuel } if *waits == seq => (Restored::Waits, *fuel),
            Record::Call(call) if call.seq == seq && is_same(call) => {
                (Restored::Left(call.effect.clone()), call.fuel)
            }
            Record::End(end) if end.seq == seq && end.at_once => {
                (Restored::Refused(end.answer.clone()?), end.fuel)
            }
            Record::Asked(asked) if asked.seq == seq => (Restored::Asked(asked.answer.clone()), asked.fuel),
            _ => return None,
        };
        self.pass();
        // Its arguments were entered, and then the budget did not suffice.
        if matches!(restored, Restored::Left(_))
            && let Some(Record::End(end)) = self.next()
            && (end.seq, end.at_once) == (seq, true)
            && let Some(answer @ Answer::Fault { reason, .. }) = &end.answer
            && reason == uncounted
        {
            let refused = (Restored::Refused(answer.clone()), end.fuel);
            self.pass();
            return Some(refused);
        }
        Some((restored, fuel))
    }

    /// The program makes a call that the log does not have.
    pub(super) fn unexpected(&mut self, seq: u64) {
        self.diverge(|expected| format!("the program makes call {seq}; the log has {expected}"));
    }

    /// The answer of a call was stored in a file, which a session does not have any more.
    pub(super) fn is_without_file(&mut self, seq: u64, bytes: u64) {
        self.diverge(|_| {
            format!("the answer of call {seq}, {bytes} bytes, was stored in a file of that process")
        });
    }
}
