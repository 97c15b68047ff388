//! Takes the encoded arguments of a call, asks the policy about it, and makes it ready to be sent.

use super::cache::Repeat;
use super::direct::DirectCall;
use super::reserve::{CallPlan, Callee, Permit, refuse};
use super::send::{Route, UpstreamCall};
use super::{PreparedCall, WorldFault};
use crate::policy::{Clearance, Permitted, Subject};
use crate::run::ledger::OpenCall;
use crate::run::outcome::CallFault;
use crate::run::outgoing::Arguments;
use crate::spill::SpillStore;
use crate::tools::{CallTarget, UpstreamTool};
use crate::upstream::{ResultSink, ServerRequest, UpstreamFault};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Arguments up to this size are encoded in less time than a look at the clock takes.
const QUICK: usize = 1_024;

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
}

impl Permit {
    /// Puts the arguments, JSON object text, on their way, and takes the call from the budget if it is not paid for.
    /// Large arguments take their time to encode, in which others have their turns as well; it is the call's.
    ///
    /// # Errors
    /// The budget or the time of the call is used up; the policy denies it.
    pub fn load(self, arguments: String) -> Result<PreparedCall, WorldFault> {
        self.load_spilling(arguments, None)
    }

    /// [`Permit::load`], for a caller who takes a result that is too large as one that is kept, if it says so
    /// (`is_wanted`) or the configuration of the server does.
    ///
    /// # Errors
    /// As for [`Permit::load`].
    pub(crate) fn load_kept(self, arguments: String, is_wanted: bool) -> Result<PreparedCall, WorldFault> {
        let keeps = is_wanted || self.plan.callee.limits().spills_large;
        let is_tool = matches!(self.plan.target, CallTarget::Tool(_));
        let place = (keeps && is_tool).then(|| self.plan.broker.spills.store());
        // Without a place for it, a result that is too large is refused as ever.
        let store = place.and_then(|store| {
            store.inspect_err(|error| tracing::warn!(%error, "results cannot be kept")).ok()
        });
        self.load_spilling(arguments, store)
    }

    /// [`Permit::load`], with a place for a result that is too large.
    pub(super) fn load_spilling(
        self,
        arguments: String,
        store: Option<SpillStore>,
    ) -> Result<PreparedCall, WorldFault> {
        let Permit { plan, tool, turn, call, since } = self;
        // Few bytes are encoded in less time than it takes to look at the clock.
        let now = if arguments.len() < QUICK && call.is_none() { since } else { Instant::now() };
        let took = now.saturating_duration_since(since);
        plan.account.encoded_in(took);
        let (call, left) = match call {
            Some(call) => {
                let left = plan.left(&call);
                (call, left)
            }
            None => (plan.pay(tool.effect(), now)?, plan.limit.whole.saturating_sub(took)),
        };
        if left.is_zero() {
            return Err(plan.fail(call, &UpstreamFault::Timeout(plan.limit.whole)));
        }
        if let Some(hash) = plan.broker.hash_of(&arguments) {
            call.set_arguments_hash(hash);
        }
        let arguments = turn.charge(arguments);
        Loaded { plan, tool, arguments, store, now, left, call }.cleared()
    }
}

impl Loaded {
    /// Asks the policy.
    fn cleared(self) -> Result<PreparedCall, WorldFault> {
        let plan = &self.plan;
        let subject = Subject {
            server: plan.callee.name(),
            target: &plan.target,
            tool: &self.tool,
            arguments: self.arguments.as_str(),
            asker: plan.account.asker(),
        };
        match plan.broker.policy.clear(&subject) {
            Clearance::Granted(permitted, ruling) => {
                if let Some(ruling) = ruling {
                    self.call.set_ruling(ruling);
                }
                Ok(PreparedCall(self.route(permitted)))
            }
            Clearance::Denied(ruling) => {
                let fault = plan.broker.world_fault(CallFault::Denied, &format!("denied by {}", ruling.rule));
                self.call.set_ruling(ruling);
                Err(refuse(self.call, fault))
            }
            Clearance::Asked(ruling) => {
                let message =
                    format!("a person has to approve it ({}), and there is none to ask", ruling.rule);
                let fault = plan.broker.world_fault(CallFault::ApprovalUnavailable, &message);
                self.call.set_ruling(ruling);
                Err(refuse(self.call, fault))
            }
        }
    }

    /// The way to its callee.
    fn route(self, permitted: Permitted) -> Route {
        let Loaded { plan, tool, arguments, store, now, left, call } = self;
        let most = plan.account.limits().max_upstream_response_bytes;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let max_bytes = plan.callee.limits().max_response_bytes.unwrap_or(most);
        let CallPlan { broker, account, callee, target, made: _, limit, waited: _ } = plan;
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
        let sink = match store {
            Some(store) => ResultSink::Spill { max_bytes, store },
            None => ResultSink::Inline { max_bytes },
        };
        let mut request = ServerRequest::new(permitted, target, arguments, left, sink);
        request.trace = account.trace().cloned();
        request.client = account.client().cloned();
        request.progress = account.progress_listener().cloned();
        let wrapped_in = tool.wraps_result_in();
        let observed = (!tool.declares_result()).then(|| tool.clone());
        let call =
            UpstreamCall { broker, account, upstream, limit, request, wrapped_in, observed, repeat, call };
        Route::Upstream(Box::new(call))
    }
}
