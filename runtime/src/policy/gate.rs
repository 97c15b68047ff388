//! The policy in effect: every call is cleared here before it leaves.

use super::approvals::{
    Approval, ApprovalAnswer, ApprovalSettings, Approvals, AskedCall, Binding, Question, Remember,
};
use super::decide::{Policy, Subject};
use super::permitted::Permitted;
use crate::run::account::RunAccount;
use crate::run::client::ServedClient;
use crate::run::outcome::{PolicyRuling, Verdict};
use crate::secrets::SecretRegistry;
use crate::sync::RwLocked;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

/// The policy in effect, with the questions that wait. Clones share it.
#[derive(Clone)]
pub struct SharedPolicy(Arc<State>);

struct State {
    policy: RwLock<Option<Arc<Policy>>>,
    approvals: Approvals,
    /// Decisions by verdict.
    decided: [AtomicU64; 3],
}

/// The decision about a call.
#[derive(Debug)]
pub(crate) enum Clearance {
    /// It may leave.
    Granted(Permitted, Option<PolicyRuling>),
    /// It must not leave.
    Denied(PolicyRuling),
    /// A person has to approve it.
    Asked(AskedOf),
}

/// A call that a person has to approve.
#[derive(Debug)]
pub(crate) struct AskedOf {
    pub(crate) ruling: PolicyRuling,
    policy: Arc<Policy>,
    binding: Binding,
    remember: Remember,
}

impl Default for SharedPolicy {
    fn default() -> SharedPolicy {
        SharedPolicy::new(None, ApprovalSettings::default())
    }
}

impl SharedPolicy {
    /// This policy; `None`: there is none, and everything may be called.
    pub fn new(policy: Option<Arc<Policy>>, approvals: ApprovalSettings) -> SharedPolicy {
        let (policy, approvals) = (RwLock::new(policy), Approvals::new(approvals));
        SharedPolicy(Arc::new(State { policy, approvals, decided: Default::default() }))
    }

    /// The policy at this moment.
    pub fn current(&self) -> Option<Arc<Policy>> {
        self.0.policy.read_locked().clone()
    }

    /// Replaces it, for calls from now on. Answers to questions of the one before no longer count.
    pub fn replace(&self, policy: Arc<Policy>) {
        *self.0.policy.write_locked() = Some(policy);
    }

    /// How many decisions had this verdict.
    pub fn decided(&self, verdict: Verdict) -> u64 {
        self.0.decided[verdict as usize].load(Ordering::Relaxed)
    }

    /// How many calls wait for a person.
    pub fn waiting(&self) -> u64 {
        self.0.approvals.waiting()
    }

    /// Decides about a call of a run.
    pub(crate) fn clear(&self, call: &Subject<'_>, run: &Arc<RunAccount>) -> Clearance {
        let Some(policy) = self.current() else { return Clearance::Granted(Permitted::by_policy(), None) };
        let (mut ruling, remember) = policy.decide(call);
        self.0.decided[ruling.verdict as usize].fetch_add(1, Ordering::Relaxed);
        match ruling.verdict {
            Verdict::Allow => Clearance::Granted(Permitted::by_policy(), Some(ruling)),
            Verdict::Deny => Clearance::Denied(ruling),
            Verdict::Ask => {
                let binding =
                    Binding::new(call.server, call.target, call.tool, call.arguments, policy.version);
                match self.0.approvals.remembered().find(run, &binding, &ruling.rule) {
                    Some(by) => {
                        ruling.answered_by = Some(by);
                        Clearance::Granted(Permitted::by_policy(), Some(ruling))
                    }
                    None => Clearance::Asked(AskedOf { ruling, policy, binding, remember }),
                }
            }
        }
    }

    /// Asks a person about a call. Dropping the future withdraws the question.
    ///
    /// # Errors
    /// The answer, if it is no approval.
    pub(crate) async fn ask(
        &self,
        run: &Arc<RunAccount>,
        asked: &AskedOf,
        call: &Subject<'_>,
        client: Option<Arc<dyn ServedClient>>,
        secrets: &SecretRegistry,
    ) -> Result<Approval, ApprovalAnswer> {
        let AskedOf { ruling, policy, binding, remember } = asked;
        let question = Question::new(
            AskedCall {
                binding: binding.clone(),
                rule: ruling.rule.clone(),
                remember: *remember,
                effect: policy.effect(call.server, call.target, call.tool).name(),
                asker: call.asker.to_string(),
                target: call.target,
                tool: call.tool,
                arguments: call.arguments,
            },
            secrets,
        );
        self.0.approvals.ask(run, question, client).await
    }

    /// Decides about a call again, which a person has approved: the policy or the tool may have changed meanwhile. The
    /// approval is used up.
    pub(crate) fn clear_approved(
        &self,
        call: &Subject<'_>,
        run: &Arc<RunAccount>,
        approval: Approval,
    ) -> Clearance {
        match self.clear(call, run) {
            Clearance::Asked(AskedOf { mut ruling, binding, .. }) if binding == approval.binding => {
                ruling.answered_by = Some(approval.by);
                Clearance::Granted(Permitted::by_policy(), Some(ruling))
            }
            cleared => cleared,
        }
    }
}
