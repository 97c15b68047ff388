//! The policy in effect: every call is cleared here before it leaves.

use super::approvals::{
    Approval, ApprovalAnswer, ApprovalSettings, Approvals, AskRule, AskedCall, Binding, Question,
};
use super::decide::{Policy, Subject};
use super::limits::{LimitBook, LimitRefusal, LimitUse};
use super::permitted::Permitted;
use crate::run::account::RunAccount;
use crate::run::client::ServedClient;
use crate::run::outcome::{PolicyRuling, Verdict};
use crate::secrets::SecretRegistry;
use crate::sync::RwLocked;
use crate::tools::{CallTarget, HOST};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

/// The policy in effect, with the questions that wait. Clones share it.
#[derive(Clone)]
pub struct SharedPolicy(Arc<State>);

struct State {
    policy: RwLock<Option<Arc<Policy>>>,
    approvals: Approvals,
    limits: LimitBook,
    secrets: SecretRegistry,
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
    /// It may leave if no limit is used up.
    Counted(CountedCall),
}

/// A call that limits count.
#[derive(Debug)]
pub(crate) struct CountedCall {
    ruling: PolicyRuling,
    uses: Vec<LimitUse>,
}

/// A call that a person has to approve.
#[derive(Debug)]
pub(crate) struct AskedOf {
    pub(crate) ruling: PolicyRuling,
    policy: Arc<Policy>,
    binding: Binding,
    asks: AskRule,
}

impl std::fmt::Debug for SharedPolicy {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("SharedPolicy")
    }
}

impl Default for SharedPolicy {
    fn default() -> SharedPolicy {
        SharedPolicy::new(None, ApprovalSettings::default(), None, SecretRegistry::new())
    }
}

impl SharedPolicy {
    /// This policy; `None`: there is none, and everything may be called.
    /// Uses of limits are kept in the state folder.
    pub fn new(
        policy: Option<Arc<Policy>>,
        approvals: ApprovalSettings,
        state: Option<&Path>,
        secrets: SecretRegistry,
    ) -> SharedPolicy {
        let (policy, approvals) = (RwLock::new(policy), Approvals::new(approvals));
        let limits = LimitBook::new(state.map(|state| state.join("limits")));
        SharedPolicy(Arc::new(State { policy, approvals, limits, secrets, decided: Default::default() }))
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
        let (mut ruling, asks) = policy.decide(call);
        if let Some(owner) = self.leaked(&policy, call) {
            let Subject { server, .. } = call;
            let rule = format!("the rule that secrets of {owner} are not sent to {server} (secrets)");
            ruling = PolicyRuling::new(Verdict::Deny, rule.into());
        }
        self.0.decided[ruling.verdict as usize].fetch_add(1, Ordering::Relaxed);
        match ruling.verdict {
            Verdict::Allow => counted(&policy, call, run, ruling),
            Verdict::Deny => Clearance::Denied(ruling),
            Verdict::Ask => {
                let binding =
                    Binding::new(call.server, call.target, call.tool, call.arguments, policy.version);
                match self.0.approvals.remembered().find(run, &binding, asks) {
                    Some(by) => {
                        ruling.answered_by = Some(by);
                        counted(&policy, call, run, ruling)
                    }
                    None => Clearance::Asked(AskedOf { ruling, policy, binding, asks }),
                }
            }
        }
    }

    /// The server that a secret in the arguments belongs to, if it is another one.
    fn leaked(&self, policy: &Policy, call: &Subject<'_>) -> Option<Arc<str>> {
        // Tools of the host are part of this program.
        if call.server == HOST || self.0.secrets.is_empty() || policy.passes_secrets() {
            return None;
        }
        let subject = match call.target {
            CallTarget::Resource(subject) | CallTarget::Prompt(subject) => Some(&**subject),
            CallTarget::Tool(_) | CallTarget::List(_) | CallTarget::Protocol(_) => None,
        };
        let mut texts = [Some(call.arguments), subject].into_iter().flatten();
        texts.find_map(|text| self.0.secrets.foreign_owner(call.server, text))
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
    ) -> Result<Approval, ApprovalAnswer> {
        let AskedOf { ruling, policy, binding, asks } = asked;
        let question = Question::new(
            AskedCall {
                binding: binding.clone(),
                rule: ruling.rule.clone(),
                asks: *asks,
                effect: policy.effect(call.server, call.target, call.tool).name(),
                asker: call.asker.to_string(),
                target: call.target,
                tool: call.tool,
                arguments: call.arguments,
            },
            &self.0.secrets,
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
            Clearance::Asked(AskedOf { mut ruling, policy, binding, .. }) if binding == approval.binding => {
                ruling.answered_by = Some(approval.by);
                counted(&policy, call, run, ruling)
            }
            cleared => cleared,
        }
    }

    /// Counts a call. It may wait for another process, so it runs on a blocking thread.
    ///
    /// # Errors
    /// The ruling that denies the call: a limit is used up, or it is not known whether it is.
    pub(crate) fn count(&self, counted: CountedCall) -> Result<(Permitted, PolicyRuling), PolicyRuling> {
        let CountedCall { ruling, uses } = counted;
        let rule: Arc<str> = match self.0.limits.take(&uses) {
            Ok(()) => return Ok((Permitted::by_policy(), ruling)),
            Err(LimitRefusal::UsedUp(title)) => title,
            Err(LimitRefusal::Unknown(why)) => format!("limits cannot be counted: {why}").into(),
        };
        self.0.decided[Verdict::Deny as usize].fetch_add(1, Ordering::Relaxed);
        Err(PolicyRuling { verdict: Verdict::Deny, rule, ..ruling })
    }
}

/// The clearance of a call that may be made as far as rules go.
fn counted(policy: &Policy, call: &Subject<'_>, run: &RunAccount, ruling: PolicyRuling) -> Clearance {
    match policy.limit_uses(call, || run.session_name()) {
        Ok(uses) if uses.is_empty() => Clearance::Granted(Permitted::by_policy(), Some(ruling)),
        Ok(uses) => Clearance::Counted(CountedCall { ruling, uses }),
        Err(why) => Clearance::Denied(PolicyRuling { verdict: Verdict::Deny, rule: why.into(), ..ruling }),
    }
}
