//! Drives one Lisp program from start to end: runs it in time slices, starts the tool calls that it makes, answers
//! them, and builds the result of the run.
//!
//! # Layout
//! - `gate`: what has to be there before the first instruction; `journaled`: programs that are recorded or
//!   replayed; `restored`: programs that are answered from a log; `going_on`: calls that are made when a log is over;
//!   `origins`: where values come from

mod gate;
mod going_on;
pub(crate) mod journaled;
mod origins;
mod restored;

use crate::broker::{CallError, CallResponse, Permit, PreparedCall, start_all};
use crate::guest::lisp::compile::{Needs, compile, plan_flows, planner, run_budget};
use crate::guest::lisp::environment::CompileEnvironment;
use crate::guest::lisp::host_call::{self, HostCallContext, Plan};
use crate::guest::lisp::prelude::Attached;
use crate::guest::lisp::program_cache::CachedProgram;
use crate::guest::lisp::session::SessionRun;
use crate::guest::lisp::session::commit::{self, CommitRefusal};
use crate::guest::lisp::session::isolates::{self, RetainedIsolate};
use crate::guest::lisp::spilled::{self, KnownSpills, PlannedLook};
use crate::guest::lisp::tool_call::ResultForm;
use crate::guest::lisp::{Lisp, fast_path, rendering, tool_call};
use crate::guest::{CallId, Guest, LookReply, Port, Progress, Reply, TaskHandle};
use foldhash::fast::RandomState;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gate::{ATTACHING, AttachState};
use going_on::GoingOn;
use journaled::{CallNumbers, CallPosition, Journaled};
use ptc_base::spill::OwnedSpills;
use ptc_calls::policy::ShownAnswer;
use ptc_calls::run::account::{CallTag, RunAccount};
use ptc_calls::run::client::asker::CallOrigin;
use ptc_calls::run::options::RunOptions;
use ptc_calls::run::outcome::{Failure, Outcome, RenderedValue, Usage};
use ptc_vm::{Budget, CallId as HostCall, Context, Exit, Fault, Isolate, Preemption, Reason, UnitId, Value};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// Fuel of one slice: about a millisecond of work.
const SLICE: u64 = 100_000;

/// A started program.
pub(crate) struct Execution {
    account: Arc<RunAccount>,
    port: Rc<Port>,
    isolate: Isolate,
    lisp: Arc<Lisp>,
    source: Arc<str>,
    options: RunOptions,
    in_flight: HashMap<HostCall, InFlight, RandomState>,
    gate: AttachState,
    program: Arc<CachedProgram>,
    /// The program in its isolate, once it is loaded.
    unit: Option<UnitId>,
    environment: Arc<CompileEnvironment>,
    /// The program has made a host call.
    host_calls: bool,
    /// Its session, if it runs in one.
    session: Option<SessionRun>,
    /// Logical bytes of the isolate that do not belong to the program.
    empty_bytes: u64,
    /// The definitions of its prelude that are in the isolate.
    attached: Attached,
    /// False once a defect may have left the isolate in an inconsistent state.
    is_whole: bool,
    /// Its results that were too large to carry.
    spills: OwnedSpills,
    /// Its journal, if it has one.
    journaled: Option<Box<Journaled>>,
    /// Calls of an interrupted run that are made anew.
    going_on: HashMap<HostCall, GoingOn, RandomState>,
}

/// Work for the program that is under way.
#[derive(Default)]
struct InFlight {
    /// The ledger entry of an upstream call; `None` while servers are started for a look at their tools.
    call: Option<CallTag>,
    /// The tool of the host that is called.
    granted: Option<Arc<str>>,
    /// The call, if its answer is recorded and it is not sent.
    prepared: Option<PreparedCall>,
    /// `None` in a replay.
    task: Option<TaskHandle>,
}

impl Execution {
    /// Compiles and loads a program.
    pub(crate) fn begin(
        lisp: Arc<Lisp>,
        source: Arc<str>,
        mut options: RunOptions,
        session: Option<SessionRun>,
        account: Arc<RunAccount>,
        port: Rc<Port>,
        preemption: Preemption,
    ) -> Result<Box<dyn Guest>, Box<Outcome>> {
        if let Some(trace) = &options.trace {
            account.set_trace(trace.clone());
        }
        if let Some(client) = &options.client {
            account.set_client(client.clone());
        }
        if let Some(run) = &session {
            let state = Arc::downgrade(&run.state);
            account.set_session(state, run.state.id);
        }
        if let Some(listener) = &options.progress {
            account.set_progress_listener(listener.clone());
        }
        account.set_origin(match options.origin {
            CallOrigin::Program if session.is_some() => CallOrigin::Session,
            origin => origin,
        });
        let interrupt = account.interrupt_flag();
        let of_session = session.as_ref().and_then(|run| isolates::environment(&run.state));
        let environment = of_session.unwrap_or_else(|| lisp.environment.clone());
        let refused = |failure| {
            let prelude_trace = environment.prelude().map(|prelude| prelude.trace().clone());
            Box::new(Outcome { prelude_trace, ..Outcome::failed(failure) })
        };
        // A recording has no session: the names of earlier programs are not in the journal of one.
        let is_journaled = session.is_none() || options.journal.is_some();
        let mut journaled = None;
        if is_journaled {
            let asker = account.asker().identity;
            let begun = Journaled::begin(&lisp, &environment, &source, &mut options, asker);
            journaled = begun.map(Box::new);
        }
        if let Some(journaled) = &mut journaled {
            account.set_journal(journaled.journal.clone());
            for call in journaled.journal.made() {
                lisp.broker.policy().count_before(&account, &call.server, &call.tool, call.args.get());
            }
            journaled.follow_lists(&lisp);
        }
        // What the present would refuse was accepted when the session had it, or when the run began.
        let restores = journaled.as_ref().is_some_and(|journaled| journaled.journal.is_answered_from_log());
        let needs = if restores { Needs::Met } else { Needs::Checked };
        if !restores {
            environment.check(&lisp.broker).map_err(refused)?;
        }
        let compiled = compile(&lisp, &environment, &source, &options, needs, interrupt, preemption);
        let program = compiled.map_err(refused)?;
        program.remarks.iter().for_each(|remark| account.note(remark.clone()));
        if lisp.broker.policy().current().is_some() {
            account.plan().set_planner(planner(&lisp, &environment, &source));
        }
        plan_flows(&lisp, &program, &account, needs).map_err(refused)?;
        let mut budget = Budget { preemption, ..run_budget(&options, interrupt.clone()) };
        let kept = session.as_ref().and_then(|run| isolates::take(&run.state));
        let (isolate, empty_bytes, attached) = match kept {
            Some(RetainedIsolate { mut isolate, empty_bytes, attached, .. }) => {
                // The memory of the session does not count against the program.
                budget.memory_bytes = budget.memory_bytes.saturating_add(isolate.live_bytes());
                isolate.begin(budget);
                (isolate, empty_bytes, attached)
            }
            None => {
                let isolate = Isolate::new(budget);
                let empty_bytes = isolate.live_bytes();
                (isolate, empty_bytes, Attached::default())
            }
        };
        if let Some(journaled) = &mut journaled {
            journaled.number(CallNumbers::begin(isolate.next_call()));
        }
        let in_flight = HashMap::default();
        let spills = OwnedSpills::after(session.as_ref().map_or(0, |run| run.state.spills().made()));
        let mut execution = Execution {
            account,
            port,
            isolate,
            lisp,
            source,
            options,
            in_flight,
            gate: AttachState::Open,
            program,
            unit: None,
            environment,
            host_calls: false,
            session,
            empty_bytes,
            attached,
            is_whole: true,
            spills,
            journaled,
            going_on: HashMap::default(),
        };
        match execution.load() {
            Ok(()) => {
                if !restores {
                    execution.attach();
                }
                Ok(Box::new(execution))
            }
            Err(fault) => {
                let ending = execution.fail(&fault);
                Box::new(execution).close();
                Err(ending)
            }
        }
    }

    fn load(&mut self) -> Result<(), Box<Fault>> {
        let before = self.isolate.live_bytes();
        self.environment.attach(&mut self.isolate, &self.program.needed, &mut self.attached)?;
        self.empty_bytes += self.isolate.live_bytes().saturating_sub(before);
        // Loaded before the context, so that keys that the program names are found by their symbols.
        let unit = self.isolate.load(self.program.program.clone())?;
        if let Some(context) = &self.options.context {
            let limit = self.options.limits.max_context_bytes;
            if context.len() as u64 > limit {
                let message = format!("context exceeds max_context_bytes ({} > {limit})", context.len());
                return Err(Fault::new(Reason::RuntimeError, message));
            }
            self.isolate.set_context(context)?;
        }
        self.track();
        self.isolate.start(unit);
        self.unit = Some(unit);
        Ok(())
    }

    /// Encodes a call that has got its permit.
    fn encode(&mut self, call: HostCall, permit: Permit) {
        let place = self.isolate.call_place(call);
        let origins = self.origins(call);
        let (broker, account) = (&self.lisp.broker, &self.account);
        let position = CallPosition::new(self.journaled.as_deref(), call, place, origins.as_ref());
        let plan = self.isolate.call(call, |cx, function, arguments| {
            host_call::permitted(cx, broker, account, function, permit, position, arguments)
        });
        if let Some(plan) = plan {
            self.carry_out(call, plan);
        }
    }

    /// Answers a host call or starts work for it. `is_loaded`: servers were started for it.
    fn issue(&mut self, call: HostCall, is_loaded: bool) {
        self.host_calls = true;
        self.follow_lists();
        self.say_origin(call);
        if self.restore(call) || self.waits_as_recorded(call) {
            return;
        }
        let place = self.isolate.call_place(call);
        let origins = self.origins(call);
        let surroundings = HostCallContext {
            environment: &self.environment,
            broker: &self.lisp.broker,
            account: &self.account,
            spills: KnownSpills { own: &self.spills, session: self.session.as_ref().map(|run| &*run.state) },
            position: CallPosition::new(self.journaled.as_deref(), call, place, origins.as_ref()),
        };
        let plan = self.isolate.call(call, |cx, function, arguments| {
            host_call::plan(cx, &surroundings, function, arguments, is_loaded)
        });
        // A call that is no longer in flight needs no answer.
        let Some(plan) = plan else { return };
        self.carry_out(call, plan);
    }

    fn carry_out(&mut self, call: HostCall, plan: Result<Plan, Box<Fault>>) {
        let Some(plan) = self.going_on(call, plan) else { return };
        let plan = match plan {
            Ok(plan) => plan,
            Err(fault) => return self.resume(call, |_| Err(fault)),
        };
        let (tag, granted, work): (_, _, BoxFuture<'static, Reply>) = match plan {
            Plan::Servers(rows) => return self.isolate.resume(call, |cx| host_call::servers(cx, rows)),
            Plan::Answer(reply) => return self.resume(call, |cx| reply.into_value(cx)),
            Plan::Budget => {
                let left = self.account.calls_left();
                return self.isolate.resume(call, |cx| host_call::budget(cx, left));
            }
            Plan::Now => {
                // Read once: the clock stands still for the rest of the run.
                let read = || {
                    self.journaled.as_ref().map_or_else(host_call::now_ms, |journaled| {
                        journaled.journal.now(host_call::now_ms())
                    })
                };
                let now = *self.options.now_ms.get_or_insert_with(read);
                return self.isolate.resume(call, |_| Ok(ptc_vm::Value::Int(now)));
            }
            Plan::Refuse(fault) => {
                let (called, most) = (self.called(call), self.account.limits().max_upstream_calls);
                return self.resume(call, |cx| match called {
                    Some(called) => Err(tool_call::value_fault(&called, &fault, most)),
                    None => tool_call::world_fault(cx, fault.reason, &fault.message),
                });
            }
            Plan::AwaitRecorded(prepared) => return self.await_recorded(call, prepared),
            Plan::Stop => return,
            Plan::LoadAll(upstreams) => {
                self.note_wait(call);
                let starts = start_all(&self.account, upstreams);
                (None, None, Box::pin(starts.map(|()| Reply::Started)))
            }
            Plan::Wait(pending) => {
                self.note_wait(call);
                (
                    Some(pending.tag()),
                    pending.granted().cloned(),
                    Box::pin(pending.permit().map(Reply::Permit)),
                )
            }
            Plan::Look(PlannedLook { spilled, look, most, held }) => {
                let looked = async move { spilled.read_blocking(look, most).await };
                let reply = |looked| Reply::Looked(LookReply { looked, held });
                (None, None, Box::pin(looked.map(reply)))
            }
            Plan::Send(prepared) => {
                let (tag, granted) = (prepared.tag(), prepared.granted().cloned());
                (Some(tag), granted, Box::pin(prepared.send().map(Reply::Answer)))
            }
        };
        let task = self.port.hand_out(CallId(call.0), work);
        self.in_flight.insert(call, InFlight { call: tag, granted, prepared: None, task: Some(task) });
    }

    /// Answers a host call; no work for it is under way any more.
    fn resume(&mut self, call: HostCall, build: impl FnOnce(&mut Context) -> Result<Value, Box<Fault>>) {
        self.in_flight.remove(&call);
        self.isolate.resume(call, build);
    }

    /// The `server/tool` of a call that ends the program when it fails.
    fn called(&mut self, call: HostCall) -> Option<String> {
        let broker = &self.lisp.broker;
        let label =
            |cx: &mut Context, function, args: &[Value]| host_call::called(cx, broker, function, args);
        self.isolate.call(call, label).flatten()
    }

    /// A tool answered a call that is not in flight any more.
    fn on_tool_response(&mut self, call: HostCall, granted: Option<&str>, answer: CallResponse) {
        let mut failure = None;
        let kept =
            answer.payload().spilled().map(|spilled| (spilled.clone(), self.spills.keep(spilled.clone())));
        let called = self.called(call);
        let form = if called.is_some() { ResultForm::Value } else { ResultForm::Tagged };
        let most = self.account.limits().max_upstream_calls;
        self.isolate.resume(call, |cx| {
            if let Some(name) = granted {
                return tool_call::granted::value(cx, name, answer.payload(), &mut failure);
            }
            let (value, why) = match &kept {
                Some((spilled, name)) => tool_call::kept(cx, answer.payload(), spilled, name)?,
                None => tool_call::unwrap(cx, answer.payload(), form)?,
            };
            failure = why;
            match (&called, &failure) {
                (Some(called), Some(fault)) => Err(tool_call::value_fault(called, fault, most)),
                _ => Ok(value),
            }
        });
        answer.settle(failure);
    }

    /// A call failed.
    fn on_call_error(&mut self, call: HostCall, granted: Option<&str>, error: CallError) {
        let account = &self.account.clone();
        let plan = match granted {
            Some(name) => Err(tool_call::granted::failed(name, error, account)),
            None => host_call::plan_for_error(error, account),
        };
        self.carry_out(call, plan);
    }

    /// Cancels calls of branches that have ended.
    fn drop_cancelled_calls(&mut self) {
        for call in self.isolate.cancelled_calls() {
            if let Some(InFlight { call: Some(tag), .. }) = self.in_flight.remove(&call) {
                self.account.cancel_call(tag);
            }
        }
    }

    fn fail(&mut self, fault: &Fault) -> Box<Outcome> {
        let fault = &self.seen_from_program(fault);
        let mut failure = rendering::fault(fault, &self.source, &self.options);
        if fault.reason == Reason::Timeout
            && let Some(calls) = self.calls_in_flight()
        {
            failure.reports.iter_mut().for_each(|report| report.hints.insert(0, calls.clone()));
        }
        self.end(Err(failure))
    }

    /// The fault with its location in the program's own text.
    fn seen_from_program(&self, fault: &Fault) -> Fault {
        let prelude = self.environment.prelude().map(|prelude| &**prelude);
        rendering::seen_from(self.unit, fault, prelude, &self.attached)
    }

    fn calls_in_flight(&self) -> Option<String> {
        const NAMED: usize = 3;
        let calls = self.account.calls_in_flight();
        let names = calls
            .iter()
            .map(|(label, elapsed)| format!("{}/{} ({} ms)", label.server, label.tool, elapsed.as_millis()));
        let mut names: Vec<String> = names.collect();
        names.sort();
        let count = names.len();
        names.truncate(NAMED);
        let more = if count > NAMED { ", …" } else { "" };
        (count > 0).then(|| format!("Upstream calls still in flight: {count}: {}{more}", names.join(", ")))
    }

    fn end(&mut self, result: Result<RenderedValue, Failure>) -> Box<Outcome> {
        // Recorded in the order in which the calls began, and before work on them stops.
        self.account.cancel_calls();
        self.in_flight.clear();
        self.isolate.remarks().for_each(|remark| self.account.note(remark));
        let prints = self.isolate.prints();
        let (fuel, peak_bytes) = (Some(self.isolate.fuel_used()), self.isolate.peak_bytes());
        let usage = Usage { fuel, peak_bytes, ..Usage::default() };
        let result = match self.session.take() {
            Some(mut session) => {
                let settled = result.and_then(|answer| self.keep(&mut session, answer, &prints));
                if settled.is_err() {
                    self.isolate.rollback();
                    let mut contents = session.state.contents();
                    (contents.committed, contents.note) = (false, None);
                    contents.changed.clear();
                }
                // The client sees the beginnings of names that are defined.
                let hides = prints.is_empty() && session.state.contents().changed.is_empty();
                let shown = match (&settled, self.options.limited_answer && hides) {
                    (Ok(_), true) => ShownAnswer::Limited,
                    (Ok(_), false) => ShownAnswer::Planned,
                    (Err(_), _) => ShownAnswer::Anything,
                };
                self.lisp.broker.policy().shown(&self.account, shown);
                self.session = Some(session);
                settled
            }
            None => result,
        };
        let prelude_trace = self.environment.prelude().map(|prelude| prelude.trace().clone());
        let outcome = Outcome { result, prints, usage, prelude_trace, ..Outcome::default() };
        self.program.set_tiny(fast_path::was_tiny(&outcome, &self.options, self.host_calls));
        Box::new(outcome)
    }

    /// Commits what a program of a session has defined, if its answer is accepted.
    fn keep(
        &mut self,
        session: &mut SessionRun,
        answer: RenderedValue,
        prints: &[String],
    ) -> Result<RenderedValue, Failure> {
        if let Some(accept) = session.accept.take() {
            accept(&answer)?;
        }
        self.say_definitions();
        let limits = session.state.limits;
        let secrets = self.lisp.broker.secrets();
        let prepared = commit::prepare(&mut self.isolate, &session.state, &answer, &self.options, secrets)
            .and_then(|prepared| {
                commit::commit(&mut self.isolate, self.empty_bytes, &limits).map(|()| prepared)
            });
        let prepared = prepared.map_err(|refusal| match refusal {
            CommitRefusal::OverLimit(failure) => failure,
            CommitRefusal::Fault(fault) => rendering::fault(&fault, &self.source, &self.options),
        })?;
        session.state.spills().take_over(std::mem::take(&mut self.spills));
        let memory_bytes = self.isolate.live_bytes().saturating_sub(self.empty_bytes);
        let mut contents = session.state.contents();
        let has_new_names = prepared.enter(&mut contents, &limits, prints, memory_bytes, secrets);
        drop(contents);
        if has_new_names {
            self.environment = commit::describe(&mut self.isolate, &self.environment);
        }
        Ok(answer)
    }
}

impl Guest for Execution {
    fn advance(&mut self) -> Progress {
        // A defect leaves it false.
        self.is_whole = false;
        self.unblock();
        let mut progress = self.at_the_gate();
        let progress = loop {
            if let Some(progress) = progress {
                break progress;
            }
            let exit = self.isolate.run(SLICE);
            // The report of a fault lists the calls in flight; its end cancels them.
            if !matches!(exit, Exit::Fault(_)) {
                self.drop_cancelled_calls();
            }
            progress = match exit {
                Exit::HostCall(call) => {
                    self.issue(call, false);
                    self.replay_over(false)
                }
                Exit::SliceEnd => Some(Progress::Ready),
                Exit::Blocked if self.blocked() => None,
                Exit::Blocked => Some(self.replay_over(true).unwrap_or(Progress::Waiting)),
                Exit::Fault(fault) => Some(Progress::Finished(self.fail(&fault))),
                exit @ (Exit::Done | Exit::Return | Exit::Fail(_)) => {
                    let exit = match exit {
                        Exit::Fail(fault) => Exit::Fail(Box::new(self.seen_from_program(&fault))),
                        exit => exit,
                    };
                    let (source, options, account) = (&self.source, &self.options, &self.account);
                    let result = rendering::result(&mut self.isolate, &exit, source, options, account);
                    Some(Progress::Finished(match result {
                        Ok(result) => self.end(result),
                        Err(mut fault) => {
                            self.isolate.locate_result(&mut fault);
                            self.fail(&fault)
                        }
                    }))
                }
            };
        };
        self.is_whole = true;
        progress
    }

    fn answer(&mut self, call: CallId, reply: Reply) {
        if call == ATTACHING {
            return self.attached();
        }
        // Retained until the program waits.
        if let Some(journaled) = &mut self.journaled
            && !journaled.is_blocked
        {
            return journaled.undelivered.push((call, reply));
        }
        let call = HostCall(call.0);
        // If the call was cancelled, dropping the reply frees what it holds.
        if !self.in_flight.contains_key(&call) {
            return;
        }
        let reply = self.reply_going_on(call, reply);
        self.note_reply(call, &reply);
        let granted = self.in_flight.remove(&call).and_then(|call| call.granted);
        let granted = granted.as_deref();
        match reply {
            Reply::Started => self.issue(call, true),
            Reply::Permit(Ok(permit)) => self.encode(call, permit),
            Reply::Answer(Ok(answer)) => self.on_tool_response(call, granted, answer),
            Reply::Permit(Err(error)) | Reply::Answer(Err(error)) | Reply::Payload(Err(error)) => {
                self.on_call_error(call, granted, error);
            }
            Reply::Looked(LookReply { looked, held }) => {
                self.resume(call, |cx| spilled::value(cx, looked));
                drop(held);
            }
            // Arguments of a program are encoded before they are sent, so these replies do not occur.
            Reply::Payload(Ok(_)) => {}
        }
    }

    fn printed(&self) -> &[String] {
        self.isolate.printed()
    }

    fn live_bytes(&self) -> u64 {
        self.isolate.live_bytes()
    }

    /// Frees the program. Logical bytes that remain on its account are a defect of the language core.
    fn close(mut self: Box<Self>) {
        if let Some(session) = self.session.take()
            && self.is_whole
        {
            let Execution { isolate, environment, empty_bytes, attached, .. } = *self;
            return isolates::put(
                &session.state,
                RetainedIsolate { isolate, environment, empty_bytes, attached },
            );
        }
        let leaked = self.isolate.close();
        if leaked != 0 {
            tracing::error!(
                leaked,
                source = &*self.options.source_name,
                "a program left bytes on its account"
            );
        }
    }
}
