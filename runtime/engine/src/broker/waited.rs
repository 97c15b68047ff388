//! Lets a tool call wait for a person's approval or for the count of a limit, then looks its tool up again.
//!
//! Tool lists, approved definitions, the policy and the configuration may have changed while the call waited.

use super::load::Loaded;
use super::reserve::{CallPlan, refuse, refused};
use super::{CallError, ToolBroker, WorldFault};
use ptc_base::sync::Locked;
use ptc_calls::policy::{
    Approval, ApprovalAnswer, AskedOf, CallOrigins, CountedCall, Permitted, Policy, Subject,
};
use ptc_calls::run::account::RunAccount;
use ptc_calls::run::ledger::OpenCall;
use ptc_calls::run::outcome::{CallFault, PolicyRuling};
use ptc_calls::tools::{CallTarget, LookUp, Notation, UpstreamTool};
use ptc_upstream::{Recheck, ServerRequest, UpstreamFault};
use ptc_vm::Span;
use std::fmt;
use std::sync::{Arc, Mutex};

/// A call that has waited. Each wait of a loaded call ends with one, and it can only be found again or ended.
pub(super) struct Waited(Loaded);

impl Waited {
    /// The call with its tool as it is now.
    ///
    /// # Errors
    /// The tool has gone, or may not be called any more.
    pub(super) async fn found_again(self) -> Result<Loaded, CallError> {
        let Waited(mut call) = self;
        match call.plan.find_again().await {
            Ok(found) => {
                call.tool = found.unwrap_or(call.tool);
                Ok(call)
            }
            Err(CallError::World(fault)) => Err(call.unsent(fault).into()),
            Err(_) if call.may_be_made() => Err(call.unsent(WorldFault::outcome_unknown()).into()),
            Err(wrong) => Err(refused(call.call, wrong)),
        }
    }

    /// Ends the call.
    pub(super) fn ended(self, end: impl FnOnce(Loaded) -> WorldFault) -> WorldFault {
        end(self.0)
    }
}

impl Loaded {
    /// Asks about the program, if that is to be done. The time of the run stands still.
    ///
    /// # Errors
    /// Meanwhile the tool has gone.
    pub(super) async fn reviewed(self) -> Result<Loaded, CallError> {
        if !self.is_unread() {
            return Ok(self);
        }
        let CallPlan { broker, account, .. } = &self.plan;
        park(account).await;
        let pause = account.wait_for_start();
        let client = broker.client.form_for(account.client());
        broker.policy.review(account, &broker.catalog.snapshot(), client).await;
        drop(pause);
        Waited(self).found_again().await
    }

    /// Asks a person. The time of the run stands still.
    pub(super) async fn asked(self, asked: &AskedOf) -> (Waited, Result<Approval, ApprovalAnswer>) {
        let CallPlan { broker, account, .. } = &self.plan;
        park(account).await;
        let pause = account.wait_for_start();
        let client = broker.client.form_for(account.client());
        let answer = broker.policy.ask(account, asked, &self.subject(), client).await;
        drop(pause);
        (Waited(self), answer)
    }

    /// Counts the call. It may wait for another process.
    pub(super) async fn counted(
        self,
        counted: CountedCall,
    ) -> (Waited, Result<(Permitted, PolicyRuling), PolicyRuling>) {
        let answer = self.plan.broker.policy.count(counted).await;
        (Waited(self), answer)
    }
}

/// A call as it was decided about, which may wait for its server: for one of few permits, for a start, for a login. When
/// that is over, its tool and the policy are compared with those of the decision.
pub(super) struct DecidedCall {
    broker: Arc<ToolBroker>,
    account: Arc<RunAccount>,
    server: Arc<str>,
    notation: Notation,
    tool: Arc<UpstreamTool>,
    policy: Option<Arc<Policy>>,
    place: Option<Span>,
    origins: Option<Arc<CallOrigins>>,
    /// An earlier process may have made it.
    may_be_made: bool,
    overruled: Mutex<Option<Overruled>>,
}

/// Why a call that may leave when it was decided about must not leave any more.
enum Overruled {
    ByTool(WorldFault),
    ByPolicy(PolicyRuling),
}

impl DecidedCall {
    pub(super) fn new(call: &Loaded) -> DecidedCall {
        let Loaded { plan, tool, policy, place, origins, .. } = call;
        DecidedCall {
            broker: plan.broker.clone(),
            account: plan.account.clone(),
            server: plan.callee.name().clone(),
            notation: plan.notation,
            tool: tool.clone(),
            policy: policy.clone(),
            place: *place,
            origins: origins.clone(),
            may_be_made: call.may_be_made(),
            overruled: Mutex::default(),
        }
    }

    /// Ends the call if it was not sent.
    ///
    /// # Errors
    /// It was not sent.
    pub(super) fn sent(&self, call: OpenCall) -> Result<OpenCall, WorldFault> {
        let fault = match self.overruled.locked().take() {
            None => return Ok(call),
            Some(Overruled::ByTool(fault)) => fault,
            Some(Overruled::ByPolicy(ruling)) => {
                let message = format!("denied by {}", ruling.rule);
                call.set_ruling(ruling);
                self.broker.world_fault(CallFault::Denied, &message)
            }
        };
        Err(refuse(call, if self.may_be_made { WorldFault::outcome_unknown() } else { fault }))
    }

    fn overruling(&self, request: &ServerRequest) -> Option<Overruled> {
        if let Some(fault) = self.change_of(&request.target) {
            return Some(Overruled::ByTool(fault));
        }
        let policy = self.broker.policy.current();
        if policy.as_ref().map(Arc::as_ptr) == self.policy.as_ref().map(Arc::as_ptr) {
            return None;
        }
        let subject = Subject {
            server: &self.server,
            target: &request.target,
            tool: &self.tool,
            arguments: request.arguments.as_str(),
            place: self.place,
            origins: self.origins.as_deref(),
            asker: self.account.asker(),
        };
        self.broker.policy.overruling(&subject).map(Overruled::ByPolicy)
    }

    /// What has become of the target, if it is not what was decided about. A server that has gone from the configuration
    /// or has no list yet has the calls that were on their way to it.
    fn change_of(&self, target: &CallTarget) -> Option<WorldFault> {
        let CallTarget::Tool(name) = target else {
            return match self.broker.find(&self.server, target, self.notation) {
                Err(CallError::World(fault)) => Some(fault),
                _ => None,
            };
        };
        let change = match self.broker.look_up(&self.server, name) {
            LookUp::NoServer | LookUp::NotLoaded => return None,
            LookUp::Ready(tool) if tool.is_same_to_callers(&self.tool) => return None,
            LookUp::Refused(refusal) => refusal.to_string(),
            LookUp::Ready(_) | LookUp::NoTool(_) => {
                "the tool has changed while the call waited, so it was not called".to_owned()
            }
        };
        let message = format!("{}/{name}: {change}", self.server);
        Some(self.broker.world_fault(CallFault::ToolChanged, &message))
    }
}

impl Recheck for DecidedCall {
    fn check(&self, request: &ServerRequest) -> Result<(), UpstreamFault> {
        let Some(overruled) = self.overruling(request) else { return Ok(()) };
        *self.overruled.locked() = Some(overruled);
        Err(UpstreamFault::Unavailable("the call was not sent".to_owned()))
    }
}

impl fmt::Debug for DecidedCall {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("DecidedCall").field("server", &self.server).finish_non_exhaustive()
    }
}

/// A run that outlives its process waits for a person in its store.
async fn park(account: &RunAccount) {
    if let Some(parked) = account.journal().and_then(|journal| journal.park()) {
        // What could not be stored is logged; the question is asked all the same.
        let _ = parked.done().await;
    }
}
