//! Finds in the log of a stored session what a program was answered at each of its calls, so that the session is restored
//! without servers, policies and limits of the present.
//!
//! The program does what it did, because it gets what it got: neither the arguments of its calls nor the fuel that it has
//! used are compared. Both depend on lists of tools, which may have changed. A run that goes on gets its answers in the same
//! way, but its calls are compared, since some of them have still to be made.

use super::answer::Answer;
use super::record::Record;
use super::replay::{Compared, Due, Script};
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

impl Script {
    /// What the log has of a call; `None`: nothing. `uncounted`: the reason of calls that are refused because the budget is
    /// used up.
    pub(super) fn restored(&mut self, seq: u64, uncounted: &str) -> Option<Restored> {
        let restored = match self.next()? {
            Record::Wait(wait) if wait.seq == seq => Restored::Waits,
            Record::Call(call) if call.seq == seq => Restored::Left(call.effect.clone()),
            Record::End(end) if end.seq == seq && end.at_once => Restored::Refused(end.answer.clone()?),
            Record::Asked(asked) if asked.seq == seq => Restored::Asked(asked.answer.clone()),
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
            let refused = Restored::Refused(answer.clone());
            self.pass();
            return Some(refused);
        }
        Some(restored)
    }

    /// The program makes a call that the log does not have.
    pub(super) fn unexpected(&mut self, seq: u64) {
        self.diverge(|expected| format!("the program makes call {seq}; the log has {expected}"));
    }

    /// What the program, which waits, gets. `is_first`: nothing was delivered since it waits. Further answers came while it
    /// waited if nothing but the delivery of the others has used fuel.
    pub(super) fn due_again(&mut self, fuel: u64, is_first: bool) -> Due {
        let more_fuel = |then: u64| i128::from(then) - i128::from(fuel);
        match self.next() {
            Some(Record::End(end)) if is_first || self.more_fuel == more_fuel(end.fuel) => {
                let (seq, more, answer) = (end.seq, more_fuel(end.fuel), end.answer.clone());
                self.more_fuel = more;
                self.pass();
                match answer {
                    None => Due::Proceed(seq),
                    Some(Answer::Stored { bytes }) if self.compared() == Compared::Order => {
                        self.diverge(|_| {
                            format!("the answer of call {seq}, {bytes} bytes, was stored in a file of that process")
                        });
                        Due::Diverged
                    }
                    Some(answer) => Due::Answer(seq, answer),
                }
            }
            None if is_first => Due::Never,
            Some(_) if is_first => {
                self.diverge(|expected| format!("the program waits; the log has {expected}"));
                Due::Diverged
            }
            _ => Due::Later,
        }
    }
}
