//! Reserves the right to encode the arguments of a tool call: finds the tool, starts the server if need be, and waits
//! while too many encoded arguments of the same run are unsent. A call that has to wait is charged to the call budget
//! here, the others once their arguments are encoded (`load`).

use super::login::logged_in;
use super::time::{LimitSource, TimeLimit};
use super::{CallError, ToolBroker, WorldFault};
use ptc_calls::host::GrantedTool;
use ptc_calls::policy::CallOrigins;
use ptc_calls::run::account::{CallLabel, CallTag, RunAccount};
use ptc_calls::run::ledger::OpenCall;
use ptc_calls::run::outcome::{CallFault, CallStatus, Effect};
use ptc_calls::run::outgoing::EncodingPermit;
use ptc_calls::tools::call_messages::{no_such_server, no_such_tool, refused_request, refused_tool};
use ptc_calls::tools::{CallTarget, LookUp, Notation, Refusal, UpstreamTool};
use ptc_upstream::{CallLimits, Upstream, UpstreamFault, UpstreamState};
use ptc_vm::Span;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// A call that has waited until less than this part of its time is left is not sent any more.
const LATE: u32 = 20;

/// Why a call has no permit.
pub enum NoPermit {
    /// It has to wait for one.
    Yet(Box<Pending>),
    /// It gets none.
    Refused(CallError),
}

impl From<CallError> for NoPermit {
    fn from(error: CallError) -> NoPermit {
        NoPermit::Refused(error)
    }
}

impl From<WorldFault> for NoPermit {
    fn from(fault: WorldFault) -> NoPermit {
        NoPermit::Refused(fault.into())
    }
}

/// Caller, callee and time limit of a call.
pub(super) struct CallPlan {
    pub(super) broker: Arc<ToolBroker>,
    pub(super) account: Arc<RunAccount>,
    pub(super) callee: Callee,
    pub(super) target: CallTarget,
    /// The syntax of its caller.
    pub(super) notation: Notation,
    /// When it was made.
    pub(super) made: Instant,
    /// Its time limit, decided then.
    pub(super) limit: TimeLimit,
    /// How long it has waited for the start of its server, which is not its time.
    pub(super) waited: Duration,
}

/// Who is called.
#[derive(Clone)]
pub(super) enum Callee {
    Server(Arc<dyn Upstream>),
    Host(Arc<GrantedTool>),
}

/// A call that waits for its server, or until less of its program is on the way there. It is paid for.
pub struct Pending {
    plan: CallPlan,
    /// Its tool is known, and its server runs.
    is_loaded: bool,
    call: OpenCall,
}

/// The right to encode one call. The next one in line gets it when it is dropped or used.
pub struct Permit {
    pub(super) plan: CallPlan,
    pub(super) tool: Arc<UpstreamTool>,
    pub(super) turn: EncodingPermit,
    /// Its place in the ledger, once it is paid for.
    pub(super) call: Option<OpenCall>,
    /// When its encoding began.
    pub(super) since: Instant,
    /// The number of the call in the journal of its run.
    pub(crate) seq: Option<u64>,
    pub(crate) history: CallHistory,
    /// Where the call stands in the text of its program.
    pub(crate) place: Option<Span>,
    /// Where its arguments come from, if its run has labels on values.
    pub(crate) origins: Option<Arc<CallOrigins>>,
}

/// What the journal of its run has of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallHistory {
    /// Nothing.
    New,
    /// Its answer: it is not made.
    Answered,
    /// Its arguments, of an earlier process: it is cleared when it is known what becomes of it.
    Entered,
}

impl ToolBroker {
    /// Reserves a call without waiting. Errors show names in `notation`.
    ///
    /// # Errors
    /// The call has to wait. Or there is no such server or tool; the tool may not be called; the budget is used up and the
    /// call would have to wait.
    pub fn reserve(
        self: &Arc<ToolBroker>,
        account: &Arc<RunAccount>,
        server: &str,
        target: CallTarget,
        notation: Notation,
    ) -> Result<Permit, NoPermit> {
        let found = self.find(server, &target, notation).inspect_err(|error| {
            if let CallError::World(fault) = error {
                // It is in the ledger like every call.
                let (server, tool) = (server.into(), target.shared_label());
                let label = CallLabel { server, tool, effect: Effect::Unknown };
                account.refuse_call(label, Instant::now(), fault.reason, &fault.message);
            }
        })?;
        // What was found has an upstream.
        let Some(upstream) = self.upstream(server) else {
            let label = target.label();
            let wrong = no_such_server(server, label, &self.catalog.snapshot(), notation);
            return Err(CallError::Wrong(wrong).into());
        };
        let upstream = upstream.for_caller(account.client()).unwrap_or(upstream);
        let timeout = upstream.limits().timeout.map(|time| (time, LimitSource::Server));
        let is_ready = upstream.is_ready();
        let plan = self.plan(account, Callee::Server(upstream), (target, notation), timeout);
        let effect = found.as_ref().map_or(Effect::Unknown, |tool| tool.effect());
        plan.permit(found.filter(|_| is_ready), effect)
    }

    /// [`ToolBroker::reserve`] for a tool of the host, which is always there and may always be called.
    pub(crate) fn reserve_granted(
        self: &Arc<ToolBroker>,
        account: &Arc<RunAccount>,
        tool: &Arc<GrantedTool>,
    ) -> Result<Permit, NoPermit> {
        let target = CallTarget::Tool(tool.listing().name.clone());
        let timeout = tool.timeout().map(|time| (time, LimitSource::HostTool));
        // Nothing is looked for, so no message needs it.
        let target = (target, Notation::Lisp);
        let plan = self.plan(account, Callee::Host(tool.clone()), target, timeout);
        plan.permit(Some(tool.listing().clone()), tool.listing().effect())
    }

    fn plan(
        self: &Arc<ToolBroker>,
        account: &Arc<RunAccount>,
        callee: Callee,
        (target, notation): (CallTarget, Notation),
        timeout: Option<(Duration, LimitSource)>,
    ) -> CallPlan {
        let made = Instant::now();
        let limits = account.limits();
        let (wanted, source) = timeout.unwrap_or_else(|| (limits.upstream_call_timeout(), LimitSource::Flag));
        let whole = account.tool_timeout_at(made, wanted);
        let source = if whole < wanted { LimitSource::Program(limits.timeout()) } else { source };
        let (limit, waited) = (TimeLimit { whole, source }, Duration::ZERO);
        CallPlan {
            broker: self.clone(),
            account: account.clone(),
            callee,
            target,
            notation,
            made,
            limit,
            waited,
        }
    }

    /// The tool, or what stands for it; `None` when nothing is known about the tools of its server.
    pub(super) fn find(
        &self,
        server: &str,
        target: &CallTarget,
        notation: Notation,
    ) -> Result<Option<Arc<UpstreamTool>>, CallError> {
        let CallTarget::Tool(tool) = target else { return self.find_request(server, target, notation) };
        let wrong = match self.look_up(server, tool) {
            LookUp::Ready(tool) => return Ok(Some(tool)),
            LookUp::NotLoaded => return Ok(None),
            LookUp::NoServer => no_such_server(server, tool, &self.catalog.snapshot(), notation),
            LookUp::Refused(refusal @ Refusal::Changed) => {
                let message = format!("{server}/{tool}: {refusal}");
                return Err(self.world_fault(CallFault::ToolChanged, &message).into());
            }
            LookUp::Refused(refusal) => refused_tool(server, tool, refusal),
            LookUp::NoTool(tools) => no_such_tool(server, tool, &tools, &self.catalog.snapshot(), notation),
        };
        Err(CallError::Wrong(wrong))
    }

    /// A request for something that is no tool: it may be sent unless the configuration refuses it, which shows with
    /// the list of tools.
    fn find_request(
        &self,
        server: &str,
        target: &CallTarget,
        notation: Notation,
    ) -> Result<Option<Arc<UpstreamTool>>, CallError> {
        let (catalog, method) = (self.catalog.snapshot(), target.method());
        let Some(upstream) = self.upstream(server) else {
            return Err(CallError::Wrong(no_such_server(server, method, &catalog, notation)));
        };
        let tools = catalog.server(server).and_then(|server| server.proven());
        let Some(tools) = tools.filter(|_| upstream.status().state == UpstreamState::Ready) else {
            return Ok(None);
        };
        match tools.request_refusal(method) {
            Some(refusal) => Err(CallError::Wrong(refused_request(server, method, refusal))),
            None if !tools.offers().admits(target) => {
                let subject = target.subject().unwrap_or(method);
                let message = format!("{server}/{subject}: {}", Refusal::Changed);
                Err(self.world_fault(CallFault::ToolChanged, &message).into())
            }
            None => Ok(Some(Arc::new(target.as_tool()))),
        }
    }
}

impl Callee {
    /// Its name.
    pub(super) fn name(&self) -> &Arc<str> {
        match self {
            Callee::Server(upstream) => upstream.name(),
            Callee::Host(_) => GrantedTool::host_name(),
        }
    }

    /// What is configured for calls of it.
    pub(super) fn limits(&self) -> CallLimits {
        match self {
            Callee::Server(upstream) => *upstream.limits(),
            Callee::Host(_) => CallLimits::default(),
        }
    }

    /// The tool of the host, if it is one.
    pub(super) fn granted(&self) -> Option<&Arc<str>> {
        match self {
            Callee::Server(_) => None,
            Callee::Host(tool) => Some(&tool.listing().name),
        }
    }

    /// Why none of its tools can be called.
    fn why_unavailable(&self) -> String {
        let Callee::Server(upstream) = self else { return String::new() };
        upstream.status().trouble()
    }
}

impl CallPlan {
    /// The permit for a call of a tool, if there is one now.
    fn permit(self, tool: Option<Arc<UpstreamTool>>, effect: Effect) -> Result<Permit, NoPermit> {
        let is_loaded = tool.is_some();
        if let Some(tool) = tool
            && let Some(turn) = self.account.outgoing().try_permit(self.callee.name())
        {
            return Ok(Permit::new(self, tool, turn, None));
        }
        let call = self.pay(effect, self.made, None)?;
        Err(NoPermit::Yet(Box::new(Pending { plan: self, is_loaded, call })))
    }

    /// Takes a call that begins at this moment from the budgets of its run and opens it. A call that is refused is in the
    /// ledger too, but never under way, so that refused calls in a loop take no room.
    pub(super) fn pay(
        &self,
        effect: Effect,
        begun: Instant,
        place: Option<Span>,
    ) -> Result<OpenCall, WorldFault> {
        let server = self.callee.name();
        let label = || CallLabel { server: server.clone(), tool: self.target.shared_label(), effect };
        let cap = CallFault::CapExhausted.name();
        let refused = match self.callee.limits().max_calls_per_program {
            Some(limit) if !self.account.take_call_of(server, limit) => Cow::Owned(format!(
                "{cap}: upstream {server} allows {limit} calls a program (max_calls_per_program)"
            )),
            _ if self.account.take_call() => {
                return Ok(OpenCall::begin(&self.account, label(), begun, place));
            }
            _ => Cow::Borrowed(cap),
        };
        let fault = self.broker.world_fault(CallFault::CapExhausted, &refused);
        self.account.refuse_call(label(), begun, fault.reason, &fault.message);
        Err(fault)
    }

    /// What is left of the time of a call.
    pub(super) fn left(&self, call: &OpenCall) -> Duration {
        (self.limit.whole + self.waited).saturating_sub(call.elapsed())
    }

    /// The tool as it is now; `None` when nothing is known about the tools of its server.
    fn find(&self) -> Result<Option<Arc<UpstreamTool>>, CallError> {
        self.broker.find(self.callee.name(), &self.target, self.notation)
    }

    /// Finds the tool again after a wait, and the connection to its server: lists, pins and the configuration may have
    /// changed. `None`: it is a tool of the host.
    ///
    /// # Errors
    /// The tool is not there any more, or may not be called any more; its server does not start.
    pub(super) async fn find_again(&mut self) -> Result<Option<Arc<UpstreamTool>>, CallError> {
        let Callee::Server(upstream) = &mut self.callee else { return Ok(None) };
        if let Some(now) = self.broker.upstream(upstream.name()) {
            *upstream = now.for_caller(self.account.client()).unwrap_or(now);
        }
        let upstream = upstream.clone();
        let mut found = self.find()?;
        if found.is_none() {
            let started = start(&self.account, &upstream).await;
            started.map_err(|fault| self.broker.upstream_fault(&fault, self.limit))?;
            found = self.find()?;
        }
        found.map(Some).ok_or_else(|| self.gone())
    }

    /// The error for a tool of a server that was there a moment ago, and has gone again.
    fn gone(&self) -> CallError {
        let text = self.callee.why_unavailable();
        self.broker.upstream_fault(&UpstreamFault::Unavailable(text), self.limit).into()
    }

    /// Ends a call with the fault of its upstream.
    pub(super) fn fail(&self, call: OpenCall, fault: &UpstreamFault) -> WorldFault {
        refuse(call, self.broker.upstream_fault(fault, self.limit))
    }
}

/// Ends a call that was not sent. A wrong call is none.
pub(super) fn refused(call: OpenCall, error: CallError) -> CallError {
    match error {
        CallError::World(fault) => refuse(call, fault).into(),
        wrong => {
            call.withdraw();
            wrong
        }
    }
}

/// Ends a call that was not sent.
pub(super) fn refuse(call: OpenCall, fault: WorldFault) -> WorldFault {
    let status = CallStatus::Error { reason: fault.reason, error: fault.message.clone() };
    let duration = call.elapsed();
    call.end(status, duration, None);
    fault
}

impl Pending {
    /// The call in the ledger.
    pub fn tag(&self) -> CallTag {
        self.call.tag()
    }

    /// The tool of the host that it is for.
    pub(crate) fn granted(&self) -> Option<&Arc<str>> {
        self.plan.callee.granted()
    }

    /// Waits, within the time of the call. Dropping the future cancels the call; a start of its server goes on.
    ///
    /// # Errors
    /// The server did not start or has no such tool; no turn in time.
    pub async fn permit(self) -> Result<Permit, CallError> {
        let Pending { mut plan, is_loaded, call } = self;
        if let (false, Callee::Server(upstream)) = (is_loaded, &plan.callee) {
            let before = call.elapsed();
            if let Err(fault) = start(&plan.account, upstream).await {
                return Err(plan.fail(call, &fault).into());
            }
            plan.waited = call.elapsed().saturating_sub(before);
        }
        let left = plan.left(&call);
        let server = plan.callee.name();
        let turn = match plan.account.outgoing().try_permit(server) {
            Some(turn) => turn,
            None => match timeout(left, plan.account.outgoing().clone().permit(server)).await {
                Ok(turn) => turn,
                Err(_) => return Err(plan.fail(call, &UpstreamFault::Timeout(left)).into()),
            },
        };
        let found = match &plan.callee {
            // Lists may have changed meanwhile.
            Callee::Server(_) => plan.find(),
            Callee::Host(tool) => Ok(Some(tool.listing().clone())),
        };
        match found {
            Ok(Some(tool)) => {
                call.set_effect(tool.effect());
                Ok(Permit::new(plan, tool, turn, Some(call)))
            }
            Ok(None) => Err(refused(call, plan.gone())),
            Err(error) => Err(refused(call, error)),
        }
    }
}

/// Starts the server of a call; the client may be asked to log in there. Neither the call's time nor the program's runs
/// meanwhile.
pub(super) async fn start(
    account: &Arc<RunAccount>,
    upstream: &Arc<dyn Upstream>,
) -> Result<(), UpstreamFault> {
    let patience = account.limits().upstream_start_timeout();
    let _wait = account.wait_for_start();
    match timeout(patience, upstream.start()).await {
        Ok(Err(UpstreamFault::LoginRequired(need))) if logged_in(account, &need).await => {
            upstream.start().await
        }
        Ok(started) => started,
        Err(_) => Err(UpstreamFault::Starting {
            server: upstream.name().clone(),
            start: upstream.status().starting.unwrap_or_default(),
            patience,
        }),
    }
}

impl Permit {
    fn new(plan: CallPlan, tool: Arc<UpstreamTool>, turn: EncodingPermit, call: Option<OpenCall>) -> Permit {
        // A call that is paid for has waited.
        let since = if call.is_some() { Instant::now() } else { plan.made };
        Permit {
            plan,
            tool,
            turn,
            call,
            since,
            seq: None,
            history: CallHistory::New,
            place: None,
            origins: None,
        }
    }

    /// The tool, with the schema of its arguments.
    pub fn tool(&self) -> &Arc<UpstreamTool> {
        &self.tool
    }

    /// The same permit, if there is time left to use it. Encoding a call that cannot be answered in time would only delay
    /// its program. From here on the caller is taken to be encoding.
    ///
    /// # Errors
    /// The call has waited too long.
    pub fn in_time(mut self) -> Result<Permit, WorldFault> {
        let whole = self.plan.limit.whole;
        self.since = Instant::now();
        let least = self.plan.account.longest_encoding().max(whole / LATE);
        let is_late = |call: &mut OpenCall| self.plan.left(call) <= least;
        match self.call.take_if(is_late) {
            Some(call) => Err(self.plan.fail(call, &UpstreamFault::Timeout(whole))),
            None => Ok(self),
        }
    }

    /// Gives it back: the arguments were wrong.
    pub fn withdraw(self) {
        if let Some(call) = self.call {
            call.withdraw();
        }
    }
}
