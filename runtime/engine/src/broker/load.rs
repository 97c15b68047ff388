//! Loads arguments into a reserved tool call and asks the policy whether it may be sent: charges the budget, and clears,
//! denies or holds the call.

use super::cache::Repeat;
use super::direct::DirectCall;
use super::held::HeldCall;
use super::reserve::{CallHistory, CallPlan, Callee, Permit, refuse};
use super::send::{CallMark, Route, UpstreamCall};
use super::{PreparedCall, WorldFault};
use ptc_base::secrets::REDACTED;
use ptc_base::spill::SpillStore;
use ptc_base::tasks::{self, StopFlag, TaskOwner};
use ptc_calls::policy::{Approval, CallOrigins, Clearance, Permitted, Subject, ToolEffect};
use ptc_calls::run::ledger::OpenCall;
use ptc_calls::run::outcome::{CallFault, Effect, PolicyRuling};
use ptc_calls::run::outgoing::Arguments;
use ptc_calls::tools::{CallTarget, UpstreamTool};
use ptc_upstream::{ResultSink, ServerRequest, UpstreamFault};
use ptc_vm::Span;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Arguments up to this size are encoded in less time than a look at the clock takes.
const QUICK: usize = 1_024;

/// A call with its arguments, before it may leave.
pub(super) struct Loaded {
    pub(super) plan: CallPlan,
    pub(super) tool: Arc<UpstreamTool>,
    arguments: Arguments,
    store: Option<SpillStore>,
    /// When its arguments were encoded.
    pub(super) now: Instant,
    /// What is left of its time.
    left: Duration,
    pub(super) call: OpenCall,
    /// Its number in the journal of its run.
    seq: Option<u64>,
    place: Option<Span>,
    /// Where its arguments come from, if its run has labels on values.
    origins: Option<Arc<CallOrigins>>,
    /// It may have been made by an earlier process of its run: if it is not sent now, its outcome is unknown.
    pub(super) may_be_made: bool,
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
                if let Some(place) = place {
                    call.set_place(place);
                }
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
        let may_be_made = false;
        let loaded =
            Loaded { plan, tool, arguments, store, now, left, call, seq, place, origins, may_be_made };
        let CallPlan { broker, account, callee, target, .. } = &loaded.plan;
        if history == CallHistory::Answered {
            // The call had an answer when its run was another one: nothing is asked, and what comes after it depends on
            // it.
            broker.policy.note_answer(account, callee.name(), target.label());
            return Ok(loaded.held(None));
        }
        if history == CallHistory::Entered
            || broker.policy.is_slow(loaded.arguments.as_str())
            || loaded.is_unread()
        {
            return Ok(loaded.held(None));
        }
        match loaded.decide(None) {
            Clearance::Granted(permitted, ruling) => {
                if let Some(ruling) = ruling {
                    loaded.call.set_ruling(ruling);
                }
                let mark = loaded.mark();
                Ok(PreparedCall { route: loaded.route(permitted), mark, task: None })
            }
            Clearance::Denied(ruling) => Err(loaded.denied(ruling)),
            held @ (Clearance::Asked(_) | Clearance::Counted(_)) => Ok(loaded.held(Some(held))),
        }
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
    /// A call that is cleared later.
    fn held(self, clearance: Option<Clearance>) -> PreparedCall {
        let mark = self.mark();
        PreparedCall { route: Route::Held(Box::new(HeldCall::new(self, clearance))), mark, task: None }
    }

    /// True if a person is to be asked about the program first.
    pub(super) fn is_unread(&self) -> bool {
        let CallPlan { broker, account, .. } = &self.plan;
        broker.policy.is_unread(account, || broker.client.form_for(account.client()).is_some())
    }

    /// Asks the policy, with the answer of a person if there is one.
    fn decide(&self, approval: Option<Approval>) -> Clearance {
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
    pub(super) async fn decided(self, approval: Option<Approval>) -> Result<(Loaded, Clearance), WorldFault> {
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

    /// What the journal of the run has to know.
    fn mark(&self) -> Option<CallMark> {
        let seq = self.seq?;
        let (plan, tool) = (&self.plan, &self.tool);
        let policy = plan.broker.policy.current();
        let server = plan.callee.name();
        let is_read = tool.effect() == Effect::Read
            || policy
                .as_ref()
                .is_some_and(|policy| policy.effect(server, &plan.target, tool) == ToolEffect::Read);
        let is_idempotent = tool.annotations.idempotent_hint == Some(true);
        let may_repeat = is_read || (is_idempotent && policy.is_some_and(|policy| policy.trusts(server)));
        Some(CallMark { seq, is_read, may_repeat })
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
        let fault = if self.may_be_made { WorldFault::outcome_unknown() } else { fault };
        refuse(self.call, fault)
    }

    /// The way to its callee.
    pub(super) fn route(self, permitted: Permitted) -> Route {
        let Loaded { plan, tool, arguments, store, now, left, call, .. } = self;
        let most = plan.account.limits().max_upstream_response_bytes;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let max_bytes = plan.callee.limits().max_response_bytes.unwrap_or(most);
        let CallPlan { broker, account, callee, target, notation: _, made: _, limit, waited: _ } = plan;
        let upstream = match callee {
            Callee::Server(upstream) => upstream,
            Callee::Host(tool) => {
                let deadline = now.checked_add(left).unwrap_or(now).into();
                return Route::Direct(DirectCall {
                    broker,
                    account,
                    tool,
                    arguments,
                    limit,
                    deadline,
                    max_bytes,
                    call,
                    permitted,
                });
            }
        };
        let repeat = Repeat::of(&target, &tool);
        let is_observed = matches!(target, CallTarget::Tool(_)) && !tool.declares_result();
        let sink = match store {
            Some(store) => ResultSink::Spill { max_bytes, store },
            None => ResultSink::Inline { max_bytes },
        };
        let mut request = ServerRequest::new(permitted, target, arguments, left, sink);
        request.trace = account.trace().map(|trace| trace.for_call(call.tag().number()));
        request.client = account.client().cloned();
        request.progress = account.progress_listener().cloned();
        let wrapped_in = tool.wraps_result_in();
        let observed = is_observed.then(|| tool.clone());
        let call = UpstreamCall {
            broker,
            account,
            upstream,
            limit,
            request,
            wrapped_in,
            observed,
            repeat,
            polls_on: false,
            call,
        };
        Route::Upstream(Box::new(call))
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
