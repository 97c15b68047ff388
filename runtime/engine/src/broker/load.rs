//! Loads arguments into a reserved tool call and asks the policy whether it may be sent: charges the budget, and clears,
//! denies or holds the call.

use super::reserve::{CallHistory, CallPlan, Permit, refuse};
use super::send::Route;
use super::{PreparedCall, WorldFault};
use ptc_base::secrets::REDACTED;
use ptc_base::spill::SpillStore;
use ptc_base::tasks::{self, StopFlag, TaskOwner};
use ptc_calls::policy::{Approval, CallOrigins, Clearance, Policy, Subject, ToolEffect};
use ptc_calls::run::ledger::OpenCall;
use ptc_calls::run::outcome::{CallFault, Effect, PolicyRuling};
use ptc_calls::run::outgoing::Arguments;
use ptc_calls::tools::{CallTarget, UpstreamTool};
use ptc_upstream::{UpstreamFault, deadline};
use ptc_vm::Span;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Arguments up to this size are encoded in less time than a look at the clock takes.
const QUICK: usize = 1_024;

/// A call with its arguments, on the way to its callee. Dropped before its end, it counts as cancelled.
pub(super) struct Loaded {
    pub(super) plan: CallPlan,
    pub(super) tool: Arc<UpstreamTool>,
    pub(super) arguments: Arguments,
    /// Where a result goes that is too large, if it is kept.
    pub(super) store: Option<SpillStore>,
    /// What is left of its time once its arguments are encoded, and again once it is cleared.
    pub(super) left: Duration,
    /// When that is over.
    pub(super) deadline: tokio::time::Instant,
    pub(super) call: OpenCall,
    /// Its number in the journal of its run.
    pub(super) seq: Option<u64>,
    pub(super) place: Option<Span>,
    /// Where its arguments come from, if its run has labels on values.
    pub(super) origins: Option<Arc<CallOrigins>>,
    /// What the policy says about it, once it is asked.
    pub(super) clearance: Option<Clearance>,
    /// The policy that has decided about it.
    pub(super) policy: Option<Arc<Policy>>,
    /// An earlier process of its run may have made it: a person decides whether it is made again.
    pub(super) is_in_doubt: bool,
    /// The task that its server has made of it in an earlier process, and is asked for: nothing new is made.
    pub(super) task: Option<Arc<str>>,
}

impl Permit {
    /// The place for a result that is too large, if the caller (`is_wanted`) or the configuration of the server says
    /// that it is kept.
    pub(crate) fn spill_store(&self, is_wanted: bool) -> Option<SpillStore> {
        let keeps = is_wanted || self.plan.callee.limits().spills_large;
        let is_tool = matches!(self.plan.target, CallTarget::Tool(_));
        let store = (keeps && is_tool).then(|| self.plan.broker.spills.store())?;
        // Without a place for it, a result that is too large is refused as ever.
        store.inspect_err(|error| tracing::warn!(%error, "results cannot be kept")).ok()
    }

    /// Puts the arguments, JSON object text, on their way, and takes the call from the budget if it is not paid for.
    /// Large arguments take their time to encode, in which others have their turns as well; it is the call's. A result
    /// that is too large goes to `store`, if there is one.
    ///
    /// # Errors
    /// The budget or the time of the call is used up; the policy denies it.
    pub fn load(self, arguments: String, store: Option<SpillStore>) -> Result<PreparedCall, WorldFault> {
        let Permit { plan, tool, turn, call, since, seq, place, origins, history } = self;
        let arguments = with_defaults(arguments, &tool);
        // Few bytes are encoded in less time than it takes to look at the clock.
        let now = if arguments.len() < QUICK && call.is_none() { since } else { Instant::now() };
        let took = now.saturating_duration_since(since);
        plan.account.encoded_in(took);
        let (call, left) = match call {
            Some(call) => {
                place.into_iter().for_each(|place| call.set_place(place));
                let left = plan.left(&call);
                (call, left)
            }
            None => (plan.pay(tool.effect(), now, place)?, plan.limit.whole.saturating_sub(took)),
        };
        if left.is_zero() {
            return Err(plan.fail(call, &UpstreamFault::Timeout(plan.limit.whole)));
        }
        if let Some(hash) = plan.broker.hash_of(&arguments) {
            call.set_arguments_hash(hash);
        }
        // What was sent in another process takes no room on the way there.
        let arguments =
            if history == CallHistory::Answered { arguments.into() } else { turn.charge(arguments) };
        let (deadline, clearance, policy, is_in_doubt, task) = (deadline(left), None, None, false, None);
        let mut loaded = Loaded {
            plan,
            tool,
            arguments,
            store,
            left,
            deadline,
            call,
            seq,
            place,
            origins,
            clearance,
            policy,
            is_in_doubt,
            task,
        };
        let CallPlan { broker, account, callee, target, .. } = &loaded.plan;
        match history {
            // The call had an answer when its run was another one: nothing is asked, and what comes after it depends on
            // it.
            CallHistory::Answered => broker.policy.note_answer(account, callee.name(), target.label()),
            CallHistory::New if !broker.policy.is_slow(loaded.arguments.as_str()) && !loaded.is_unread() => {
                loaded.clearance = Some(match loaded.decide(None) {
                    Clearance::Denied(ruling) => return Err(loaded.denied(ruling)),
                    Clearance::Granted(permitted, ruling) => {
                        ruling.into_iter().for_each(|ruling| loaded.call.set_ruling(ruling));
                        Clearance::Granted(permitted, None)
                    }
                    held @ (Clearance::Asked(_) | Clearance::Counted(_)) => held,
                });
            }
            CallHistory::New | CallHistory::Entered => {}
        }
        Ok(PreparedCall { route: Route::Loaded(Box::new(loaded)) })
    }
}

/// The arguments of a call as they are sent, so that policies, limits and people see those that its tool adds.
fn with_defaults(arguments: String, tool: &UpstreamTool) -> String {
    let Some(defaults) = tool.default_arguments() else { return arguments };
    let Ok(mut given) = serde_json::from_str::<BTreeMap<String, Box<RawValue>>>(&arguments) else {
        return arguments;
    };
    for (name, value) in defaults {
        let value = value.to_string();
        // A null argument counts as omitted. A secret is not in the list of tools: the connection adds it.
        if given.get(name).is_none_or(|given| given.get() == "null")
            && !value.contains(REDACTED)
            && let Ok(value) = RawValue::from_string(value)
        {
            given.insert(name.clone(), value);
        }
    }
    serde_json::to_string(&given).unwrap_or(arguments)
}

impl Loaded {
    /// True if a person is to be asked about the program first.
    pub(super) fn is_unread(&self) -> bool {
        let CallPlan { broker, account, .. } = &self.plan;
        broker.policy.is_unread(account, || broker.client.form_for(account.client()).is_some())
    }

    /// Asks the policy, with the answer of a person if there is one.
    fn decide(&mut self, approval: Option<Approval>) -> Clearance {
        self.policy = self.plan.broker.policy.current();
        let (policy, account) = (&self.plan.broker.policy, &self.plan.account);
        match approval {
            Some(approval) => policy.clear_approved(&self.subject(), account, approval),
            None => policy.clear(&self.subject(), account),
        }
    }

    /// [`Loaded::decide`], on a blocking thread if the arguments are large.
    ///
    /// # Errors
    /// The process ends.
    pub(super) async fn decided(
        mut self,
        approval: Option<Approval>,
    ) -> Result<(Loaded, Clearance), WorldFault> {
        let broker = self.plan.broker.clone();
        if !broker.policy.is_slow(self.arguments.as_str()) {
            let clearance = self.decide(approval);
            return Ok((self, clearance));
        }
        let decide = move |_: &StopFlag| {
            let clearance = self.decide(approval);
            (self, clearance)
        };
        let decided = tasks::blocking(TaskOwner::Run, decide).await;
        decided.ok_or_else(|| broker.world_fault(CallFault::Denied, "the process ends"))
    }

    /// It changes nothing.
    pub(super) fn is_read(&self) -> bool {
        let CallPlan { broker, callee, target, .. } = &self.plan;
        let effect = |policy: Arc<Policy>| policy.effect(callee.name(), target, &self.tool);
        self.tool.effect() == Effect::Read || broker.policy.current().map(effect) == Some(ToolEffect::Read)
    }

    /// It may be made again although it may have been made.
    pub(super) fn may_repeat(&self) -> bool {
        let CallPlan { broker, callee, .. } = &self.plan;
        let is_trusted = || broker.policy.current().is_some_and(|policy| policy.trusts(callee.name()));
        self.is_read() || (self.tool.annotations.idempotent_hint == Some(true) && is_trusted())
    }

    /// An earlier process of its run may have made it.
    pub(super) fn may_be_made(&self) -> bool {
        self.is_in_doubt || self.task.is_some()
    }

    pub(super) fn subject(&self) -> Subject<'_> {
        let plan = &self.plan;
        Subject {
            server: plan.callee.name(),
            target: &plan.target,
            tool: &self.tool,
            arguments: self.arguments.as_str(),
            place: self.place,
            origins: self.origins.as_deref(),
            asker: plan.account.asker(),
        }
    }

    /// Ends a call that a rule denies.
    pub(super) fn denied(self, ruling: PolicyRuling) -> WorldFault {
        let fault = self.plan.broker.world_fault(CallFault::Denied, &format!("denied by {}", ruling.rule));
        self.call.set_ruling(ruling);
        self.unsent(fault)
    }

    /// Ends a call that is not sent.
    pub(super) fn unsent(self, fault: WorldFault) -> WorldFault {
        let fault = if self.may_be_made() { WorldFault::outcome_unknown() } else { fault };
        refuse(self.call, fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn arguments_are_decided_about_as_they_are_sent() {
        let defaults = json!({ "env": "prod", "key": "[REDACTED]", "n": 5 });
        let tool =
            json!({ "name": "t", "inputSchema": {}, "_meta": { "_ptc": { "defaultArgs": defaults } } });
        let tool: UpstreamTool = serde_json::from_value(tool).unwrap();
        let sent = |given: &str| with_defaults(given.to_owned(), &tool);
        assert_eq!(sent("{}"), r#"{"env":"prod","n":5}"#);
        assert_eq!(
            sent(r#"{"env":null,"n":123456789012345678901234567890}"#),
            r#"{"env":"prod","n":123456789012345678901234567890}"#
        );
        assert_eq!(sent(r#"{"env":"test","z":1}"#), r#"{"env":"test","n":5,"z":1}"#);
        assert_eq!(sent("[1]"), "[1]");
        let plain: UpstreamTool = serde_json::from_value(json!({ "name": "t", "inputSchema": {} })).unwrap();
        assert_eq!(with_defaults(r#"{"b":1, "a":2}"#.to_owned(), &plain), r#"{"b":1, "a":2}"#);
    }
}
