//! Applies the policy in effect to each tool call before the call is sent: checks rules, data flows and limits, asks
//! people for approval, and denies arguments that contain another server's secrets.

use super::approvals::{
    Approval, ApprovalAnswer, ApprovalList, ApprovalSettings, Approvals, AskRule, AskedCall, Binding,
    PlannedRow, ProgramReview, Question, Remember, owner_of,
};
use super::condition::Arguments;
use super::decide::Policy;
use super::flows::{FlowFinding, FlowMarks, SessionAnswers, ShownAnswer, UNKNOWN_SOURCE};
use super::limits::{LimitBook, LimitRefusal, LimitUse, SessionNames};
use super::permitted::Permitted;
use super::rules::FilePlan;
use super::subject::Subject;
use crate::journal::DurableRuns;
use crate::run::account::{PlannedCall, RunAccount};
use crate::run::client::ServedClient;
use crate::run::outcome::{PolicyRuling, Verdict};
use crate::tools::{CallTarget, Catalog, HOST, UpstreamTool};
use ptc_base::secrets::SecretRegistry;
use ptc_base::sync::RwLocked;
use ptc_base::tasks::{self, TaskOwner};
use std::any::Any;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, RwLock, Weak};

/// Bytes of arguments that are read in less time than a change of threads takes.
const LARGE: usize = 64 << 10;

/// The policy in effect, with the questions that wait. Clones share it.
#[derive(Clone)]
pub struct SharedPolicy(Arc<State>);

struct State {
    policy: RwLock<Option<Arc<Policy>>>,
    approvals: Approvals,
    limits: LimitBook,
    /// What sessions have got.
    flows: FlowMarks,
    names: SessionNames,
    secrets: SecretRegistry,
    /// What stands behind the name of each server: an answer about one is none about another that gets its name.
    servers: RwLock<HashMap<Arc<str>, u64>>,
    /// Decisions by verdict.
    decided: [AtomicU64; 3],
}

/// Where uses of limits are stored, and where questions wait if nodes share a database.
#[derive(Clone, Debug, Default)]
pub struct PolicyState<'s> {
    /// The database that nodes share.
    pub nodes: Option<DurableRuns>,
    /// The state folder of the user.
    pub folder: Option<&'s Path>,
}

/// The decision about a call.
#[derive(Debug)]
pub enum Clearance {
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
pub struct CountedCall {
    ruling: PolicyRuling,
    uses: Vec<LimitUse>,
}

/// A call that a person has to approve.
#[derive(Debug)]
pub struct AskedOf {
    /// The ruling that asks.
    pub ruling: PolicyRuling,
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
        SharedPolicy::new(None, ApprovalSettings::default(), PolicyState::default(), SecretRegistry::new())
    }
}

impl SharedPolicy {
    /// This policy; `None`: there is none, and everything may be called.
    /// Uses of limits are kept in the database of the nodes, or else in the state folder.
    pub fn new(
        policy: Option<Arc<Policy>>,
        approvals: ApprovalSettings,
        state: PolicyState<'_>,
        secrets: SecretRegistry,
    ) -> SharedPolicy {
        let mut approvals = approvals;
        // A question that one node asks can be answered at any other one.
        if let (Some(list), Some(nodes)) = (&mut approvals.list, &state.nodes) {
            *list = ApprovalList::in_database(nodes.clone());
        }
        let (policy, approvals) = (RwLock::new(policy), Approvals::new(approvals));
        let limits = LimitBook::new(state.nodes, state.folder.map(|folder| folder.join("limits")));
        let (flows, names, servers, decided) = Default::default();
        SharedPolicy(Arc::new(State { policy, approvals, limits, flows, names, secrets, servers, decided }))
    }

    /// Sets the configured servers, each with a hash of what it is. Approvals of a server that is another one from now on
    /// no longer count.
    pub fn set_servers(&self, servers: HashMap<Arc<str>, u64>) {
        *self.0.servers.write_locked() = servers;
    }

    fn binding(&self, call: &Subject<'_>, policy: &Policy) -> Binding {
        let configured = self.0.servers.read_locked().get(call.server).copied();
        Binding::new((call.server, configured), call.target, call.tool, call.arguments, policy.version)
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
        self.0.decided[verdict as usize].load(Relaxed)
    }

    /// How many calls wait for a person.
    pub fn waiting(&self) -> u64 {
        self.0.approvals.waiting()
    }

    /// True when these arguments take long to decide about, so it is done on a blocking thread.
    pub fn is_slow(&self, arguments: &str) -> bool {
        arguments.len() > LARGE && self.0.policy.read_locked().is_some()
    }

    /// Decides about a call of a run.
    pub fn clear(&self, call: &Subject<'_>, run: &Arc<RunAccount>) -> Clearance {
        let Some(policy) = self.current() else { return Clearance::Granted(Permitted::by_policy(), None) };
        let text = call.named_arguments();
        let arguments = call.read(&text);
        let plans = policy.plans(call.server, call.target);
        let (mut ruling, mut asks) = policy.decide(call, &plans, &arguments);
        let flow = if policy.has_flows { policy.flow_finding(call, &self.0.flows.of_run(run)) } else { None };
        let asked_flow = flow.as_ref().filter(|flow| flow.verdict >= ruling.verdict);
        let asked_flow = asked_flow.map(|flow| flow.text.clone());
        if let Some(finding) = flow {
            (ruling, asks) = with_flow(ruling, asks, finding);
        }
        if let Some(owner) = self.leaked(&policy, call) {
            let Subject { server, .. } = call;
            let rule = format!("the rule that secrets of {owner} are not sent to {server} (secrets)");
            ruling = PolicyRuling::new(Verdict::Deny, rule.into());
        }
        if let Some(ApprovalAnswer::Denied(by)) = review(run).and_then(ProgramReview::refusal) {
            ruling.answered_by = Some(by.clone());
            ruling = PolicyRuling {
                verdict: Verdict::Deny,
                rule: format!("{by}: the whole program").into(),
                ..ruling
            };
        }
        self.0.decided[ruling.verdict as usize].fetch_add(1, Relaxed);
        match ruling.verdict {
            Verdict::Allow => self.counted((&policy, &plans), call, &arguments, run, ruling),
            Verdict::Deny => Clearance::Denied(ruling),
            Verdict::Ask => {
                let binding = self.binding(call, &policy);
                let remembered = self.0.approvals.remembered.find(run, &binding, asks);
                let reviewed = || review(run)?.take(&binding, call.arguments, asked_flow.as_deref());
                match remembered.or_else(reviewed) {
                    Some(by) => {
                        ruling.answered_by = Some(by);
                        self.counted((&policy, &plans), call, &arguments, run, ruling)
                    }
                    None => Clearance::Asked(AskedOf { ruling, policy, binding, asks }),
                }
            }
        }
    }

    /// The ruling that overrules an earlier decision about a call that has waited since: the policy at this moment denies it.
    /// Flows are left out, as the call itself is one by now, and a call that has to be asked about or counted was so before.
    pub fn overruling(&self, call: &Subject<'_>) -> Option<PolicyRuling> {
        let policy = self.current()?;
        let text = call.named_arguments();
        let plans = policy.plans(call.server, call.target);
        let (ruling, _) = policy.decide(call, &plans, &call.read(&text));
        if ruling.verdict != Verdict::Deny {
            return None;
        }
        self.0.decided[Verdict::Deny as usize].fetch_add(1, Relaxed);
        Some(ruling)
    }

    /// The server that a secret in the arguments belongs to, if it is another one.
    fn leaked(&self, policy: &Policy, call: &Subject<'_>) -> Option<Arc<str>> {
        // Tools of the host are part of this program.
        if call.server == HOST || self.0.secrets.is_empty() || policy.passes_secrets() {
            return None;
        }
        let subject = match call.target {
            CallTarget::Resource(subject) | CallTarget::Prompt(subject) => Some(&**subject),
            CallTarget::Tool(_) | CallTarget::List(_) | CallTarget::Protocol(_) | CallTarget::Task(..) => {
                None
            }
        };
        let mut texts = [Some(call.arguments), subject].into_iter().flatten();
        texts.find_map(|text| self.0.secrets.foreign_owner(call.server, text))
    }

    /// The question whether a call is made again that may have been made already.
    pub fn in_doubt(&self, call: &Subject<'_>) -> Option<AskedOf> {
        const RULE: &str =
            "--in-doubt ask: the process ended while this call was under way, so it may have been made";
        let none = std::iter::empty::<(&str, &str)>();
        let policy = self.current().or_else(|| Policy::parse(none).ok().map(Arc::new))?;
        let binding = self.binding(call, &policy);
        let asks = AskRule { remember: Remember::Call, file: usize::MAX, rule: None };
        Some(AskedOf { ruling: PolicyRuling::new(Verdict::Ask, RULE.into()), policy, binding, asks })
    }

    /// Asks a person about a call. Dropping the future withdraws the question.
    ///
    /// # Errors
    /// The answer, if it is no approval.
    pub async fn ask(
        &self,
        run: &Arc<RunAccount>,
        asked: &AskedOf,
        call: &Subject<'_>,
        client: Option<Arc<dyn ServedClient>>,
    ) -> Result<Approval, ApprovalAnswer> {
        let AskedOf { ruling, policy, binding, asks } = asked;
        let reviewed = review(run);
        if let Some(answer) = reviewed.and_then(ProgramReview::refusal) {
            return Err(answer.clone());
        }
        let lines = reviewed.map(|review| review.lines(call.server, call.target.label())).unwrap_or_default();
        let question = Question::new(
            AskedCall {
                binding: binding.clone(),
                rule: ruling.rule.clone(),
                asks: *asks,
                effect: policy.effect(call.server, call.target, call.tool).name(),
                asker: call.asker.to_string(),
                lines,
                target: call.target,
                tool: call.tool,
                arguments: call.arguments,
            },
            &self.0.secrets,
        );
        self.0.approvals.ask(run, question, client).await
    }

    /// True if the program of a run is to be asked about before its first call leaves.
    pub fn is_unread(&self, run: &RunAccount, has_client: impl FnOnce() -> bool) -> bool {
        let plan = run.plan();
        plan.planner().is_some()
            && !plan.review.initialized()
            && self.0.policy.read_locked().as_ref().is_some_and(|policy| policy.may_ask)
            && self.0.approvals.can_ask(has_client())
    }

    /// Asks about the program of a run, once.
    pub async fn review(
        &self,
        run: &Arc<RunAccount>,
        catalog: &Catalog,
        client: Option<Arc<dyn ServedClient>>,
    ) {
        let reviewed = run.plan().review.get_or_init(|| async {
            let (policy, planner) = (self.current(), run.plan().planner().cloned());
            let review = match policy.zip(planner) {
                Some((policy, planner)) => {
                    let plan = tasks::blocking(TaskOwner::Run, move |_| planner()).await.unwrap_or_default();
                    let flows = self.planned_flows(&policy, catalog, run);
                    let rows = plan.calls.into_iter().map(|call| {
                        let flow = flows.iter().find(|(place, _)| *place == (call.line, call.column));
                        self.row(&policy, call, catalog, run).with_flow(flow.map(|(_, finding)| finding))
                    });
                    let rows = rows.collect();
                    let asker = run.asker().to_string();
                    let asked = (owner_of(run), client);
                    ProgramReview::ask(&self.0.approvals, rows, &asker, asked, &self.0.secrets).await
                }
                None => ProgramReview::default(),
            };
            Arc::new(review) as Arc<dyn Any + Send + Sync>
        });
        reviewed.await;
    }

    /// Decides about a call again, which a person has approved: the policy or the tool may have changed meanwhile. The
    /// approval is used up.
    pub fn clear_approved(&self, call: &Subject<'_>, run: &Arc<RunAccount>, approval: Approval) -> Clearance {
        match self.clear(call, run) {
            Clearance::Asked(AskedOf { mut ruling, policy, binding, .. }) if binding == approval.binding => {
                ruling.answered_by = Some(approval.by);
                let plans = policy.plans(call.server, call.target);
                self.counted((&policy, &plans), call, &call.read(&call.named_arguments()), run, ruling)
            }
            cleared => cleared,
        }
    }

    /// Counts a call. It may wait for another process.
    ///
    /// # Errors
    /// The ruling that denies the call: a limit is used up, or it is not known whether it is.
    pub async fn count(&self, counted: CountedCall) -> Result<(Permitted, PolicyRuling), PolicyRuling> {
        let CountedCall { ruling, uses } = counted;
        let rule: Arc<str> = match self.0.limits.take(uses).await {
            Ok(()) => return Ok((Permitted::by_policy(), ruling)),
            Err(LimitRefusal::UsedUp(title)) => title,
            Err(LimitRefusal::Unknown(why)) => format!("limits cannot be counted: {why}").into(),
        };
        self.0.decided[Verdict::Deny as usize].fetch_add(1, Relaxed);
        Err(PolicyRuling { verdict: Verdict::Deny, rule, ..ruling })
    }
}

/// What a person has said to the program of a run.
fn review(run: &RunAccount) -> Option<&ProgramReview> {
    run.plan().review.get()?.downcast_ref()
}

/// The stricter of two decisions about a call: by its rules, and by the flows into it.
fn with_flow(ruling: PolicyRuling, asks: AskRule, finding: FlowFinding) -> (PolicyRuling, AskRule) {
    let FlowFinding { verdict, text, file, rule, before: _ } = finding;
    let flow = |text: String, remember| {
        (PolicyRuling::new(verdict, text.into()), AskRule { remember, file, rule: Some(rule) })
    };
    match verdict.cmp(&ruling.verdict) {
        Ordering::Less => (ruling, asks),
        Ordering::Greater => flow(text, Remember::Tool),
        // A person is asked about both, and about each call: an answer to one of them is none to the other.
        Ordering::Equal => flow(format!("{}; {text}", ruling.rule), Remember::Call),
    }
}

impl PlannedRow {
    /// The same call, with the data flow into it.
    fn with_flow(self, finding: Option<&FlowFinding>) -> PlannedRow {
        let Some(finding) = finding else { return self };
        let verdict = self.verdict.map(|verdict| verdict.max(finding.verdict));
        PlannedRow { verdict, flow: Some(finding.text.clone()), ..self }
    }
}

impl SharedPolicy {
    /// What the policy says of a call in the text of a program.
    fn row(&self, policy: &Policy, call: PlannedCall, catalog: &Catalog, run: &RunAccount) -> PlannedRow {
        let name = call.tool.as_deref().unwrap_or_default();
        let listed =
            catalog.server(&call.server).and_then(|server| server.tools.as_ref()?.get(name).cloned());
        let target = CallTarget::Tool(name.into());
        let Some(tool) = listed else {
            return PlannedRow { call, verdict: None, effect: "not known yet", binding: None, flow: None };
        };
        let (server, asker) = (&*call.server, run.asker());
        let effect = policy.effect(server, &target, &tool).name();
        let subject = |arguments| Subject {
            server,
            target: &target,
            tool: &tool,
            arguments,
            place: None,
            origins: None,
            asker,
        };
        let verdict = match &call.arguments {
            Some(arguments) => Some(policy.ruling(&subject(arguments)).verdict),
            None => match policy.possible_rulings(server, &target, &tool, asker).as_slice() {
                [only] => Some(only.verdict),
                _ => None,
            },
        };
        let binding = self.binding(&subject(""), policy).without_arguments();
        PlannedRow { verdict, effect, binding: Some(binding), call, flow: None }
    }

    /// What is said of the data flows into the calls of a program, by line and column.
    fn planned_flows(
        &self,
        policy: &Policy,
        catalog: &Catalog,
        run: &RunAccount,
    ) -> Vec<((u32, u32), FlowFinding)> {
        let tainted = self.0.flows.of_run(run);
        let find = |server: &str, tool: &str| catalog.server(server)?.tools.as_ref()?.get(tool).cloned();
        let Some(plan) = run.flows().plan() else { return Vec::new() };
        let findings = policy.planned_findings(&tainted, &find);
        findings
            .into_iter()
            .map(|(index, finding)| ((plan.calls[index].line, plan.calls[index].column), finding))
            .collect()
    }

    /// The clearance of a call that may be made as far as rules go.
    fn counted(
        &self,
        (policy, plans): (&Policy, &[FilePlan]),
        call: &Subject<'_>,
        arguments: &Arguments<'_>,
        run: &RunAccount,
        ruling: PolicyRuling,
    ) -> Clearance {
        // Its answer can reach all that comes after it. A policy with rules about that may replace this one meanwhile.
        self.0.flows.note(run, call.server, call.target.label());
        match policy.limit_uses(&call.asker, plans, arguments, || self.0.names.of_run(run)) {
            Ok(uses) if uses.is_empty() => Clearance::Granted(Permitted::by_policy(), Some(ruling)),
            Ok(uses) => Clearance::Counted(CountedCall { ruling, uses }),
            Err(why) => {
                Clearance::Denied(PolicyRuling { verdict: Verdict::Deny, rule: why.into(), ..ruling })
            }
        }
    }

    /// Counts a call that a run has made in an earlier process for the limits of that run, which no other process counts.
    pub fn count_before(&self, run: &RunAccount, server: &str, tool: &str, arguments: &str) {
        let Some(policy) = self.current() else { return };
        let plans = policy.plans(server, &CallTarget::Tool(tool.into()));
        let session = || self.0.names.of_run(run);
        // A call that cannot be counted now was counted by other rules.
        if let Ok(uses) = policy.limit_uses(&run.asker(), &plans, &Arguments::new(arguments), session) {
            self.0.limits.add_local(&uses);
        }
    }

    /// Notes that what a target has answered may be in the data of a run.
    pub fn note_answer(&self, run: &RunAccount, server: &str, target: &str) {
        self.0.flows.note(run, server, target);
    }

    /// Notes that a run has looked up what the host knows of tools: examples of their results are answers of earlier
    /// calls, of any run.
    pub fn looked_up(&self, run: &RunAccount) {
        self.0.flows.note(run, UNKNOWN_SOURCE.0, UNKNOWN_SOURCE.1);
    }

    /// True when programs are to be planned.
    pub fn plans_flows(&self) -> bool {
        self.current().is_some_and(|policy| policy.has_flows)
    }

    /// Why the program of a run is refused before it runs. `find` looks a tool up.
    pub fn refuses_program(
        &self,
        run: &RunAccount,
        find: &dyn Fn(&str, &str) -> Option<Arc<UpstreamTool>>,
    ) -> Option<String> {
        let policy = self.current().filter(|policy| policy.has_flows)?;
        Some(policy.refused_flow(&self.0.flows.of_run(run), find)?.text)
    }

    /// How values of a run are to be tracked; `None`: not at all. `find` looks a tool up. True when entries of the context
    /// are sources.
    pub fn tracks(
        &self,
        run: &RunAccount,
        find: &dyn Fn(&str, &str) -> Option<Arc<UpstreamTool>>,
    ) -> Option<bool> {
        let policy = self.current().filter(|policy| policy.has_flows)?;
        policy.needs_values(&self.0.flows.of_run(run), find).then(|| !policy.trusts_context())
    }

    /// Notes what the model has seen of a run.
    pub fn shown(&self, run: &RunAccount, shown: ShownAnswer) {
        if let Some(policy) = self.current() {
            self.0.flows.show(run, shown, policy.counts_status());
        }
    }

    /// Notes that the model has seen all that a session has been answered.
    pub fn shown_all(&self, session: &Weak<dyn Any + Send + Sync>) {
        self.0.flows.show_all(session);
    }

    /// Sets the name of a session that outlives its process: limits count its calls under it.
    pub fn name_session(&self, session: &Weak<dyn Any + Send + Sync>, name: Arc<str>) {
        self.0.names.add(session, name);
    }

    /// The answers that the programs of a session have got, as far as rules were in force.
    pub fn session_answers(&self, session: &Weak<dyn Any + Send + Sync>) -> SessionAnswers {
        self.0.flows.of_session(session)
    }

    /// Notes answers of a session that came to it in another process.
    pub fn add_session_answers(&self, session: &Weak<dyn Any + Send + Sync>, answers: SessionAnswers) {
        self.0.flows.add(session, answers);
    }
}
