//! Loads encoded arguments into a reserved tool call and authorizes the call to be sent: charges the budget, asks the
//! policy, and gets a person's approval where the policy demands one.

use super::cache::Repeat;
use super::direct::DirectCall;
use super::reserve::{CallHistory, CallPlan, Callee, Permit, refuse, refused};
use super::send::{CallMark, Route, UpstreamCall};
use super::{CallError, PreparedCall, WorldFault};
use ptc_base::secrets::REDACTED;
use ptc_base::spill::SpillStore;
use ptc_base::tasks::{self, StopFlag, TaskOwner};
use ptc_calls::policy::{
    Approval, ApprovalAnswer, AskedOf, CallOrigins, Clearance, Permitted, Subject, ToolEffect,
};
use ptc_calls::run::account::{CallTag, RunAccount};
use ptc_calls::run::ledger::OpenCall;
use ptc_calls::run::outcome::{CallFault, Effect, PolicyRuling, Verdict};
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

/// Steps of one call to its clearance: the policy or the tool may change while a question waits.
const ROUNDS: u32 = 10;

/// A call with its arguments, before it may leave.
struct Loaded {
    plan: CallPlan,
    tool: Arc<UpstreamTool>,
    arguments: Arguments,
    store: Option<SpillStore>,
    /// When its arguments were encoded.
    now: Instant,
    /// What is left of its time.
    left: Duration,
    call: OpenCall,
    /// Its number in the journal of its run.
    seq: Option<u64>,
    place: Option<Span>,
    /// Where its arguments come from, if its run has labels on values.
    origins: Option<Arc<CallOrigins>>,
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
        let loaded = Loaded { plan, tool, arguments, store, now, left, call, seq, place, origins };
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
        let call = HeldCall { loaded: self, clearance, is_in_doubt: false, is_made: false };
        PreparedCall { route: Route::Held(Box::new(call)), mark, task: None }
    }

    /// True if a person is to be asked about the program first.
    fn is_unread(&self) -> bool {
        let CallPlan { broker, account, .. } = &self.plan;
        broker.policy.is_unread(account, || broker.client.form_for(account.client()).is_some())
    }

    /// Asks about the program, if that is to be done. The time of the run stands still.
    ///
    /// # Errors
    /// Meanwhile the tool has gone.
    async fn reviewed(self) -> Result<Loaded, CallError> {
        if self.is_unread() {
            let CallPlan { broker, account, .. } = &self.plan;
            park(account).await;
            let pause = account.wait_for_start();
            let client = broker.client.form_for(account.client());
            broker.policy.review(account, &broker.catalog.snapshot(), client).await;
            drop(pause);
            return self.found_again().await;
        }
        Ok(self)
    }

    /// The call with its tool as it is now: it may be another one after a wait.
    ///
    /// # Errors
    /// The tool has gone, or may not be called any more.
    async fn found_again(mut self) -> Result<Loaded, CallError> {
        match self.plan.find_again().await {
            Ok(found) => {
                self.tool = found.unwrap_or(self.tool);
                Ok(self)
            }
            Err(error) => Err(refused(self.call, error)),
        }
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
    async fn decided(self, approval: Option<Approval>) -> Result<(Loaded, Clearance), WorldFault> {
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

    fn subject(&self) -> Subject<'_> {
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
    fn denied(self, ruling: PolicyRuling) -> WorldFault {
        let fault = self.plan.broker.world_fault(CallFault::Denied, &format!("denied by {}", ruling.rule));
        self.call.set_ruling(ruling);
        refuse(self.call, fault)
    }

    /// The way to its callee.
    fn route(self, permitted: Permitted) -> Route {
        let Loaded { plan, tool, arguments, store, now, left, call, seq: _, place: _, origins: _ } = self;
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

/// A run that outlives its process waits for a person in its store.
async fn park(account: &RunAccount) {
    if let Some(parked) = account.journal().and_then(|journal| journal.park()) {
        // What could not be stored is logged; the question is asked all the same.
        let _ = parked.done().await;
    }
}

/// A call that waits until a person has approved it, until limits have counted it, or until large arguments are decided
/// about. Its time and that of its program stand still while a person is asked.
pub(super) struct HeldCall {
    loaded: Loaded,
    /// `None`: it is not decided yet.
    clearance: Option<Clearance>,
    /// It may have been made already: a person decides whether it is made again.
    is_in_doubt: bool,
    /// Its server has made a task of it, and is asked for that: nothing new is made.
    is_made: bool,
}

impl HeldCall {
    /// The same call in doubt.
    pub(super) fn in_doubt(self) -> HeldCall {
        HeldCall { is_in_doubt: true, ..self }
    }

    /// The same call, of which its server has made a task.
    pub(super) fn made(self) -> HeldCall {
        HeldCall { is_made: true, ..self }
    }

    /// The call in the ledger.
    pub(super) fn tag(&self) -> CallTag {
        self.loaded.call.tag()
    }

    /// The tool of the host that it is for.
    pub(super) fn granted(&self) -> Option<&Arc<str>> {
        match &self.loaded.plan.callee {
            Callee::Server(_) => None,
            Callee::Host(tool) => Some(&tool.listing().name),
        }
    }

    /// Its run, and its place in the ledger.
    pub(super) fn into_open(self) -> (Arc<RunAccount>, OpenCall) {
        (self.loaded.plan.account, self.loaded.call)
    }

    /// Asks until a person has decided about the call as it is now, counts it, and clears it for its way.
    pub(super) async fn cleared(self) -> Result<Route, CallError> {
        let HeldCall { loaded, clearance, is_in_doubt, is_made } = self;
        let (begun, mut waited) = (Instant::now(), Duration::ZERO);
        let (mut loaded, mut clearance) = match clearance {
            _ if is_in_doubt => loaded.repeated().await?,
            Some(clearance) => (loaded, clearance),
            None if is_made => loaded.decided(None).await?,
            None => loaded.reviewed().await?.decided(None).await?,
        };
        for _ in 0..ROUNDS {
            clearance = match clearance {
                // It was approved and counted when it was made.
                Clearance::Asked(_) | Clearance::Counted(_) if is_made => {
                    Clearance::Granted(Permitted::by_caller(), None)
                }
                Clearance::Asked(asked) => {
                    park(&loaded.plan.account).await;
                    let answer = loaded.asked(&asked).await;
                    waited = begun.elapsed();
                    match answer {
                        // The policy or the tool may have changed while the question waited.
                        Ok(approval) => {
                            let decided = loaded.found_again().await?.decided(Some(approval)).await?;
                            loaded = decided.0;
                            decided.1
                        }
                        Err(answer) => return Err(loaded.refused(asked.ruling, answer, waited).into()),
                    }
                }
                Clearance::Counted(counted) => match loaded.plan.broker.policy.count(counted).await {
                    Ok((permitted, ruling)) => Clearance::Granted(permitted, Some(ruling)),
                    Err(ruling) => Clearance::Denied(ruling),
                },
                Clearance::Granted(permitted, ruling) => {
                    if let Some(ruling) = ruling {
                        loaded.call.set_ruling(PolicyRuling { waited, ..ruling });
                    }
                    loaded.now = Instant::now();
                    return Ok(loaded.route(permitted));
                }
                // It may have been made already.
                Clearance::Denied(ruling) if is_in_doubt || is_made => {
                    loaded.call.set_ruling(PolicyRuling { waited, ..ruling });
                    return Err(refuse(loaded.call, WorldFault::outcome_unknown()).into());
                }
                Clearance::Denied(ruling) => {
                    return Err(loaded.denied(PolicyRuling { waited, ..ruling }).into());
                }
            };
        }
        let ruling = PolicyRuling::new(Verdict::Ask, "the policy".into());
        let answer = ApprovalAnswer::Unavailable("the policy or the tool changes all the time".into());
        Err(loaded.refused(ruling, answer, begun.elapsed()).into())
    }
}

impl Loaded {
    /// Asks a person whether a call that may have been made is made again, and then the policy.
    ///
    /// # Errors
    /// It is not: its outcome stays unknown.
    async fn repeated(mut self) -> Result<(Loaded, Clearance), WorldFault> {
        let Some(asked) = self.plan.broker.policy.in_doubt(&self.subject()) else {
            return Err(refuse(self.call, WorldFault::outcome_unknown()));
        };
        let Ok(approval) = self.asked(&asked).await else {
            return Err(refuse(self.call, WorldFault::outcome_unknown()));
        };
        match self.plan.find_again().await {
            Ok(found) => self.tool = found.unwrap_or(self.tool),
            Err(_) => return Err(refuse(self.call, WorldFault::outcome_unknown())),
        }
        self.decided(Some(approval)).await
    }

    /// Asks a person.
    async fn asked(&self, asked: &AskedOf) -> Result<Approval, ApprovalAnswer> {
        let CallPlan { broker, account, .. } = &self.plan;
        let _pause = account.wait_for_start();
        let client = broker.client.form_for(account.client());
        broker.policy.ask(account, asked, &self.subject(), client).await
    }

    /// Ends a call that a person did not approve.
    fn refused(self, ruling: PolicyRuling, answer: ApprovalAnswer, waited: Duration) -> WorldFault {
        let (reason, by, message) = match answer {
            ApprovalAnswer::Denied(by) => {
                let message = format!("{by} denied it, as asked by {}", ruling.rule);
                (CallFault::Denied, Some(by), message)
            }
            ApprovalAnswer::Unavailable(why) => {
                let message = format!("a person has to approve it ({}): {why}", ruling.rule);
                (CallFault::ApprovalUnavailable, None, message)
            }
        };
        let fault = self.plan.broker.world_fault(reason, &message);
        self.call.set_ruling(PolicyRuling { answered_by: by, waited, ..ruling });
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
