//! Makes the calls of an interrupted run that have no answer, when its log is over. What becomes of a call depends on what
//! the log has of it, and on what it may do.

use super::{Execution, InFlight};
use crate::broker::{CallError, PreparedCall, WorldFault};
use crate::guest::Reply;
use crate::guest::lisp::host_call::Plan;
use ptc_calls::journal::{Departed, InDoubt};
use ptc_vm::{CallId as HostCall, Fault};

/// What becomes of a call without an answer that its log has with its arguments.
pub(super) enum GoingOn {
    /// It had not left: it is made.
    New,
    /// It could be made again when it left: it is made if it still can, and otherwise as [`InDoubt`] says.
    Repeated(InDoubt),
    /// Its server has made this task of it, and is asked for that.
    Task(String),
    /// It may have been made: a person decides whether it is made again.
    Asked,
    /// It may have been made: its program is told so.
    Unknown,
}

impl GoingOn {
    /// `None`: its arguments are not in the log; it waited for its server, or for its turn.
    fn of(seq: u64, departed: &Departed, in_doubt: InDoubt) -> Option<GoingOn> {
        Some(match departed.tasks.get(&seq) {
            Some(task) => GoingOn::Task(task.clone()),
            None if departed.sent.contains(&seq) => match in_doubt {
                InDoubt::Ask => GoingOn::Asked,
                InDoubt::Report => GoingOn::Unknown,
            },
            None if departed.repeatable.contains(&seq) => GoingOn::Repeated(in_doubt),
            None if departed.entered.contains_key(&seq) => GoingOn::New,
            None => return None,
        })
    }

    /// True if a call that cannot be made now may have been made before.
    fn may_be_made(&self) -> bool {
        matches!(self, GoingOn::Task(_) | GoingOn::Asked | GoingOn::Unknown)
    }

    /// Whether the call leaves; if not, its outcome is unknown.
    fn leaves(&self, prepared: &PreparedCall) -> bool {
        match self {
            GoingOn::New | GoingOn::Task(_) | GoingOn::Asked | GoingOn::Repeated(InDoubt::Ask) => true,
            GoingOn::Repeated(InDoubt::Report) => prepared.may_repeat(),
            GoingOn::Unknown => false,
        }
    }

    /// The call as it leaves.
    fn send(self, prepared: PreparedCall) -> PreparedCall {
        match self {
            GoingOn::Task(task) => prepared.continued(&task),
            GoingOn::Asked => prepared.in_doubt(),
            GoingOn::Repeated(InDoubt::Ask) if !prepared.may_repeat() => prepared.in_doubt(),
            GoingOn::New | GoingOn::Repeated(_) | GoingOn::Unknown => prepared,
        }
    }
}

impl Execution {
    /// The log of an interrupted run is over: makes the calls that can be made, and reports those in doubt.
    pub(super) fn go_on(&mut self, departed: &Departed) {
        let Some(journaled) = &mut self.journaled else { return };
        journaled.is_replay = false;
        let (in_doubt, numbers) = (journaled.journal.in_doubt(), journaled.numbers);
        let waiting = self.in_flight.iter().filter(|(_, call)| call.task.is_none());
        let mut waiting: Vec<HostCall> = waiting.map(|(call, _)| *call).collect();
        waiting.sort();
        for call in waiting {
            match GoingOn::of(numbers.seq(call), departed, in_doubt) {
                Some(GoingOn::Unknown) => {
                    let fault = WorldFault::outcome_unknown();
                    self.note_end(call, || Some(fault.recorded()));
                    self.deliver_recorded(call, fault.recorded());
                    continue;
                }
                Some(going_on) => {
                    self.going_on.insert(call, going_on);
                }
                None => self.note_end(call, || None),
            }
            self.take_back(call);
            // This process has not started the servers that a look at their tools has waited for.
            self.issue(call, false);
        }
    }

    /// A call that was opened from the log is to be made: it is paid for anew.
    pub(super) fn take_back(&mut self, call: HostCall) {
        if let Some(InFlight { prepared: Some(prepared), .. }) = self.in_flight.remove(&call) {
            prepared.take_back();
        }
    }

    /// The plan for a call of a run that goes on; `None`: its program has been answered.
    pub(super) fn going_on(
        &mut self,
        call: HostCall,
        plan: Result<Plan, Box<Fault>>,
    ) -> Option<Result<Plan, Box<Fault>>> {
        if self.going_on.is_empty() || matches!(plan, Ok(Plan::Wait(_))) {
            return Some(plan);
        }
        let Some(going_on) = self.going_on.remove(&call) else { return Some(plan) };
        match plan {
            Ok(Plan::Send(prepared)) if going_on.leaves(&prepared) => {
                return Some(Ok(Plan::Send(going_on.send(prepared))));
            }
            Ok(Plan::Send(prepared)) => {
                // Enters the call into the ledger as failed.
                let _ = prepared.replayed(WorldFault::outcome_unknown().recorded());
            }
            plan if going_on.may_be_made() => drop(plan),
            Ok(Plan::Refuse(fault)) => {
                if self.is_entered(call) {
                    self.note_end(call, || Some(fault.recorded()));
                }
                return Some(Ok(Plan::Refuse(fault)));
            }
            plan => return Some(plan),
        }
        self.report_unknown(call);
        None
    }

    /// A reply to a call of a run that goes on, which may have been made although it gets no permit now.
    pub(super) fn reply_going_on(&mut self, call: HostCall, reply: Reply) -> Reply {
        match reply {
            Reply::Permit(Err(_)) if self.going_on.remove(&call).is_some_and(|it| it.may_be_made()) => {
                Reply::Permit(Err(WorldFault::outcome_unknown().into()))
            }
            reply => reply,
        }
    }

    fn is_entered(&self, call: HostCall) -> bool {
        self.journaled.as_ref().is_some_and(|it| it.journal.entered(it.numbers.seq(call)).is_some())
    }

    fn report_unknown(&mut self, call: HostCall) {
        let fault = WorldFault::outcome_unknown();
        self.note_end(call, || Some(fault.recorded()));
        let granted = self.granted(call);
        self.on_call_error(call, granted.as_deref(), CallError::World(fault));
    }
}
