//! Answers the host calls of a program of a stored session, or of a run that goes on, from its log. Nothing of the present
//! is asked: not its servers, nor its tool lists, policies and limits. A run that goes on makes the calls without an answer
//! when its log is over ([`Execution::go_on`]).

use super::{Execution, InFlight};
use crate::broker::{PreparedCall, names};
use crate::guest::lisp::discovery::DiscoveryReply;
use crate::guest::lisp::host_call::Plan;
use crate::guest::lisp::tool_call::parse;
use ptc_calls::journal::{Answer, Restored, RunJournal};
use ptc_calls::run::outcome::{CallFault, Effect};
use ptc_calls::tools::{CallTarget, HOST};
use ptc_vm::builtins::HostFunction;
use ptc_vm::{CallId as HostCall, Context, Fault, Reason, Value};
use std::sync::Arc;

/// The reason of calls that the budget refused: they were not counted.
const UNCOUNTED: &str = CallFault::CapExhausted.name();

fn effect_of(name: &str) -> Effect {
    [Effect::Read, Effect::Write].into_iter().find(|effect| effect.name() == name).unwrap_or(Effect::Unknown)
}

/// What a call was made to.
struct Restoring {
    call: HostCall,
    server: String,
    target: CallTarget,
    /// The tool of the host, if it is one.
    granted: Option<Arc<str>>,
}

impl Execution {
    /// Answers a call of a session that is restored, or of a run that goes on, whose log is not over. False for other runs,
    /// and for calls that the host answers as ever.
    pub(super) fn restore(&mut self, call: HostCall) -> bool {
        let Some(journaled) = self.journaled.as_deref().filter(|journaled| journaled.is_replay) else {
            return false;
        };
        let (journal, seq) = (journaled.journal.clone(), journaled.numbers.seq(call));
        if !journal.is_answered_from_log() {
            return false;
        }
        let Some(function) = self.isolate.call(call, |_, function, _| function) else { return true };
        match function {
            HostFunction::Servers | HostFunction::Discover(_) => {
                if !self.restore_question(call, function, (&journal, seq)) {
                    journal.unexpected(seq);
                }
                true
            }
            HostFunction::Tool
            | HostFunction::ToolCall
            | HostFunction::ToolCallValue
            | HostFunction::Ask(_) => {
                self.restore_call(call, (&journal, seq));
                true
            }
            // Each kind is named, so that a new one has to say how it is restored.
            HostFunction::Now | HostFunction::Budget | HostFunction::Look(_) => false,
        }
    }

    /// What the log has of a call, after the program has paid what it had paid there.
    fn paid_as_then(&mut self, call: HostCall, restored: Option<(Restored, u64)>) -> Option<Restored> {
        let (restored, fuel) = restored?;
        self.isolate.call(call, |cx, _, _| {
            let more = fuel.saturating_sub(cx.fuel.used());
            // A shortage shows at the next instruction, as it did then.
            let _ = cx.fuel.pay(more);
        });
        Some(restored)
    }

    /// False: the journal has no answer.
    fn restore_question(
        &mut self,
        call: HostCall,
        function: HostFunction,
        (journal, seq): (&RunJournal, u64),
    ) -> bool {
        self.lisp.broker.policy().looked_up(&self.account);
        let plan = match (self.paid_as_then(call, journal.restored(seq, None, UNCOUNTED)), function) {
            (Some(Restored::Waits), _) => {
                self.in_flight.insert(call, InFlight::default());
                return true;
            }
            (Some(Restored::Asked(answer)), HostFunction::Servers) => {
                serde_json::from_value(answer).ok().map(Plan::Servers)
            }
            (Some(Restored::Asked(answer)), _) => {
                serde_json::from_value(answer).ok().map(|reply: DiscoveryReply| {
                    self.account.discover(reply.texts());
                    Plan::Answer(reply)
                })
            }
            // Beyond the limit of such questions.
            (None, HostFunction::Servers) => Some(Plan::Answer(DiscoveryReply::Nil)),
            _ => None,
        };
        let is_answered = plan.is_some();
        if let Some(plan) = plan {
            self.carry_out(call, Ok(plan));
        }
        is_answered
    }

    fn restore_call(&mut self, call: HostCall, (journal, seq): (&RunJournal, u64)) {
        let restoring = match self.restoring(call) {
            Ok(restoring) => restoring,
            Err(fault) => return self.resume(call, |_| Err(fault)),
        };
        let tool = match &restoring.target {
            CallTarget::Tool(name) => Some(&**name),
            _ => None,
        };
        let restored = journal.restored(seq, Some((&restoring.server, tool)), UNCOUNTED);
        match self.paid_as_then(call, restored) {
            Some(Restored::Waits) => {
                // In a later process it waited again: it is paid for once.
                self.take_back(call);
                if !self.open_waiting(restoring) {
                    journal.unexpected(seq);
                }
            }
            Some(Restored::Left(effect)) => {
                let effect = effect_of(&effect);
                // A call that has waited is open.
                let waited = self.in_flight.remove(&call).and_then(|waited| waited.prepared);
                let opened = waited.or_else(|| self.open_recorded(&restoring, effect));
                opened.iter().for_each(|opened| opened.set_effect(effect));
                self.await_recorded(call, opened);
            }
            Some(Restored::Refused(answer)) => self.refuse_restored(&restoring, answer),
            Some(Restored::Asked(_)) | None => journal.unexpected(seq),
        }
    }

    /// Lets a call wait, which counts among those of its run from here on. False: the budget does not suffice.
    fn open_waiting(&mut self, restoring: Restoring) -> bool {
        let Some(prepared) = self.open_recorded(&restoring, Effect::Unknown) else { return false };
        let (tag, granted) = (Some(prepared.tag()), restoring.granted);
        let waiting = InFlight { call: tag, granted, prepared: Some(prepared), task: None };
        self.in_flight.insert(restoring.call, waiting);
        true
    }

    /// Whether a call of a recording that is replayed waits here, as the recorded one did.
    pub(super) fn waits_as_recorded(&mut self, call: HostCall) -> bool {
        let fuel = self.isolate.fuel_used();
        let waits = self.journaled.as_ref().is_some_and(|journaled| {
            journaled.is_replay && journaled.journal.waits(journaled.numbers.seq(call), fuel)
        });
        if waits {
            let is_question = self.isolate.call(call, |_, function, _| {
                matches!(function, HostFunction::Servers | HostFunction::Discover(_))
            });
            let restoring = if is_question == Some(false) { self.restoring(call).ok() } else { None };
            if !restoring.is_some_and(|restoring| self.open_waiting(restoring)) {
                self.in_flight.insert(call, InFlight::default());
            }
        }
        waits
    }

    fn refuse_restored(&mut self, restoring: &Restoring, answer: Answer) {
        let Restoring { call, server, target, granted } = restoring;
        let refused = self.lisp.broker.refuse_recorded(&self.account, (server, target), answer);
        if let Some(error) = refused {
            self.on_call_error(*call, granted.as_deref(), error);
        }
    }

    fn open_recorded(&self, restoring: &Restoring, effect: Effect) -> Option<PreparedCall> {
        let Restoring { server, target, granted, .. } = restoring;
        self.lisp.broker.open_recorded(&self.account, (server, target), granted.clone(), effect)
    }

    /// The tool of the host that a call is made to.
    pub(super) fn granted(&mut self, call: HostCall) -> Option<Arc<str>> {
        self.restoring(call).ok()?.granted
    }

    /// What a call was made to.
    ///
    /// # Errors
    /// It is no call.
    fn restoring(&mut self, call: HostCall) -> Result<Restoring, Box<Fault>> {
        let broker = self.lisp.broker.clone();
        let named = |cx: &mut Context, function, arguments: &[Value]| match function {
            HostFunction::Tool => {
                let name: Arc<str> = arguments.first().and_then(|name| cx.name(name)).unwrap_or("?").into();
                Ok(Restoring {
                    call,
                    server: HOST.to_owned(),
                    target: CallTarget::Tool(name.clone()),
                    granted: Some(name),
                })
            }
            _ => {
                let (parsed, _) = parse(cx, function, arguments, &names(&broker.upstreams()))?;
                Ok(Restoring { call, server: parsed.server, target: parsed.target, granted: None })
            }
        };
        // The call is in flight.
        self.isolate.call(call, named).unwrap_or_else(|| Err(Fault::new(Reason::RuntimeError, "no call")))
    }
}
