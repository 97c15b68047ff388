//! Drives one program: runs slices of its isolate, hands its host calls out, answers them, and turns the
//! end into an outcome.

use super::{inline, rendering};
use crate::engine::Engine;
use crate::exec::coroutine::PREEMPTION;
use crate::exec::queue::{Inbox, Job, Message, Reply, ReplyBody, RunHandle, RunId};
use crate::guest::lisp::host_call::{self, Earlier, Plan};
use crate::guest::lisp::program_cache::{CachedProgram, CheckedLists, has_usual_symbols};
use crate::guest::lisp::tool_call::{self, ParsedCall, Payload, StaticCheck};
use crate::run::account::{CallLabel, RunAccount};
use crate::run::options::RunOptions;
use crate::run::outcome::{CallFault, CallStatus, Failure, Outcome, Usage};
use crate::run::watcher::Recipient;
use crate::upstream::{CallRequest, Upstream, UpstreamFault};
use ptc_compiler::CompileBudget;
use ptc_compiler::tool_catalog::ToolCatalog;
use ptc_vm::{CallId, Exit, Fault, Interrupt, InterruptKind, Isolate, IsolateOptions, Reason};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::AbortHandle;

/// Fuel of one slice: about a millisecond of work.
const SLICE: u64 = 100_000;

/// A started program.
pub(crate) struct Execution {
    pub(crate) handle: Arc<RunHandle>,
    pub(crate) context: Arc<RunAccount>,
    isolate: Isolate,
    engine: Arc<Engine>,
    inbox: Arc<Inbox>,
    source: Arc<str>,
    options: RunOptions,
    in_flight: HashMap<CallId, InFlight>,
    program: Arc<CachedProgram>,
    /// It asked its host for something.
    host_calls: bool,
    recipient: Option<Recipient>,
}

/// Work for the program that has not come back.
struct InFlight {
    /// The upstream call it is, for the ledger; `None` while servers are started for a look at their tools.
    label: Option<CallLabel>,
    begun: Instant,
    /// How long the call may take in all.
    whole: Duration,
    task: AbortHandle,
}

impl InFlight {
    /// What the program is told about a fault: of a timeout the whole time, of which this work had the rest.
    fn text(&self, fault: &UpstreamFault) -> String {
        match fault {
            UpstreamFault::Timeout(_) => UpstreamFault::Timeout(self.whole).to_string(),
            fault => fault.to_string(),
        }
    }
}

/// What a program needs next.
pub(crate) enum Progress {
    /// Another slice.
    Ready,
    /// An answer of an upstream.
    Waiting,
    /// Nothing; its caller has the outcome.
    Finished,
}

impl Execution {
    /// Compiles and loads a program; `None` when that already gave its outcome.
    pub(crate) fn begin(
        job: Job,
        context: Arc<RunAccount>,
        engine: &Arc<Engine>,
        inbox: &Arc<Inbox>,
    ) -> Option<Execution> {
        let Job { handle, source, options, recipient, .. } = job;
        if !handle.pin(inbox) {
            let failure = rendering::cancelled();
            recipient.send(rendering::without_isolate(failure, &context));
            return None;
        }
        let program = match compile(engine, &source, &options, &handle.interrupt) {
            Ok(program) => program,
            Err(failure) => {
                recipient.send(rendering::without_isolate(failure, &context));
                return None;
            }
        };
        let isolate = Isolate::new(IsolateOptions {
            preemption: PREEMPTION,
            ..isolate_options(&options, handle.interrupt.clone())
        });
        let mut execution = Execution {
            handle,
            context,
            isolate,
            engine: engine.clone(),
            inbox: inbox.clone(),
            source,
            options,
            in_flight: HashMap::new(),
            program,
            host_calls: false,
            recipient: Some(recipient),
        };
        match execution.load() {
            Ok(()) => Some(execution),
            Err(fault) => {
                execution.fail(&fault);
                None
            }
        }
    }

    fn load(&mut self) -> Result<(), Box<Fault>> {
        if let Some(context) = &self.options.context {
            let limit = self.options.limits.max_context_bytes;
            if context.len() as u64 > limit {
                let message = format!("context exceeds max_context_bytes ({} > {limit})", context.len());
                return Err(Fault::new(Reason::RuntimeError, message));
            }
            self.isolate.set_context(context.as_bytes())?;
        }
        let unit = self.isolate.load(self.program.program.clone())?;
        self.isolate.start(unit);
        Ok(())
    }

    pub(crate) fn id(&self) -> RunId {
        self.handle.id
    }

    /// Runs one slice and deals with what came of it.
    pub(crate) fn advance(&mut self) -> Progress {
        if self.is_overdue() {
            self.context.interrupt(InterruptKind::Deadline);
        }
        loop {
            let exit = self.isolate.run(SLICE);
            // A fault says what was still in flight; its end cancels everything.
            if !matches!(exit, Exit::Fault(_)) {
                self.drop_cancelled_calls();
            }
            match exit {
                Exit::HostCall(call) => self.issue(call, Earlier::default()),
                Exit::SliceEnd => return Progress::Ready,
                Exit::Blocked => return Progress::Waiting,
                Exit::Fault(fault) => self.fail(&fault),
                exit @ (Exit::Done | Exit::Return | Exit::Fail(_)) => {
                    let result = rendering::result(&mut self.isolate, &exit, &self.source, &self.options);
                    match result {
                        Ok(result) => self.finish(result),
                        Err(mut fault) => {
                            self.isolate.locate_result(&mut fault);
                            self.fail(&fault);
                        }
                    }
                }
            }
            if self.recipient.is_none() {
                return Progress::Finished;
            }
        }
    }

    /// True when the wall clock has run out.
    fn is_overdue(&self) -> bool {
        self.context.deadline().is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Looks at a host call and answers it or hands it out.
    fn issue(&mut self, call: CallId, earlier: Earlier) {
        self.host_calls = true;
        let waited = earlier.waited;
        let engine = self.engine.clone();
        let context = self.context.clone();
        let plan = self.isolate.call(call, |cx, function, arguments| {
            host_call::plan(cx, &engine, &context, function, arguments, earlier)
        });
        // A call that is not in flight any more needs no answer.
        let Some(plan) = plan else { return };
        match plan {
            Err(fault) => {
                self.in_flight.remove(&call);
                self.isolate.resume(call, |_| Err(fault));
            }
            Ok(Plan::Servers) => self.isolate.resume(call, |cx| host_call::servers(cx, &engine)),
            Ok(Plan::Answer(reply)) => {
                self.in_flight.remove(&call);
                self.isolate.resume(call, |cx| reply.into_value(cx));
            }
            Ok(Plan::LoadAll(upstreams)) => {
                let patience =
                    self.context.limits().upstream_call_timeout().min(self.context.time_left() / 2);
                self.hand_out(call, None, patience, async move {
                    let starts = upstreams.iter().map(|upstream| upstream.start());
                    // Who did not start in time shows in the catalog.
                    let _ = tokio::time::timeout(patience, futures_util::future::join_all(starts)).await;
                    ReplyBody::Loaded(Ok(()))
                });
            }
            Ok(Plan::Budget) => {
                let left = self.context.calls_left();
                self.isolate.resume(call, |cx| host_call::budget(cx, left));
            }
            Ok(Plan::Now) => {
                // Read once: every later answer of this run is the same.
                let now = *self.options.now_ms.get_or_insert_with(host_call::now_ms);
                self.isolate.resume(call, |_| Ok(ptc_vm::Value::Int(now)));
            }
            Ok(Plan::Refuse { label, reason, text }) => {
                // A call that was handed out before, to load its server, keeps its beginning.
                let begun = self.in_flight.remove(&call).map_or_else(Instant::now, |earlier| earlier.begun);
                self.refuse(call, label, begun, reason, &text);
            }
            Ok(Plan::Load { upstream, label, timeout }) => {
                self.hand_out(call, Some(label), waited + timeout, async move {
                    // The start goes on when nobody waits for it any more.
                    let started = tokio::time::timeout(timeout, upstream.start()).await;
                    ReplyBody::Loaded(started.unwrap_or(Err(UpstreamFault::Timeout(timeout))))
                });
            }
            Ok(Plan::AwaitTurn { label, timeout }) => {
                let turn = context.outgoing().clone();
                let server = label.server.clone();
                self.hand_out(call, Some(label), waited + timeout, async move {
                    let turn = tokio::time::timeout(timeout, turn.turn(&server)).await;
                    turn.map_or(ReplyBody::Fault(UpstreamFault::Timeout(timeout)), ReplyBody::Turn)
                });
            }
            Ok(Plan::Send { upstream, label, request, whole }) => {
                let context = self.context.clone();
                self.hand_out(call, Some(label), whole, send(upstream, request, context));
            }
        }
    }

    /// Lets the I/O runtime do `work` and puts its result into the worker's inbox.
    fn hand_out(
        &mut self,
        call: CallId,
        label: Option<CallLabel>,
        whole: Duration,
        work: impl Future<Output = ReplyBody> + Send + 'static,
    ) {
        // A call that was handed out before, to load its server, keeps its beginning.
        let begun = self.in_flight.get(&call).map_or_else(Instant::now, |earlier| earlier.begun);
        let inbox = self.inbox.clone();
        let run = self.id();
        let task = self.engine.io.spawn(async move {
            let body = work.await;
            let reply = Reply { duration: begun.elapsed(), body };
            inbox.push(Message::Reply { run, call, reply });
        });
        self.in_flight.insert(call, InFlight { label, begun, whole, task: task.abort_handle() });
    }

    /// Takes the answer to a call; false when nobody waits for it any more.
    pub(crate) fn answer(&mut self, call: CallId, reply: Reply) -> bool {
        let Some(in_flight) = self.in_flight.get(&call) else {
            if let ReplyBody::Answer(payload) = &reply.body {
                self.context.release(payload.held_bytes());
            }
            return false;
        };
        let (waited, whole) = (in_flight.begun.elapsed(), Some(in_flight.whole));
        let again = |turn| Earlier { looked_at: true, waited, whole, turn };
        let Reply { duration, body } = reply;
        let body = match body {
            ReplyBody::Turn(turn) => {
                self.issue(call, again(Some(turn)));
                return true;
            }
            body => body,
        };
        if let ReplyBody::Loaded(loaded) = body {
            match loaded {
                Ok(()) => self.issue(call, again(None)),
                Err(fault) => {
                    let (label, begun, text) =
                        (in_flight.label.clone(), in_flight.begun, in_flight.text(&fault));
                    self.in_flight.remove(&call);
                    if let Some(label) = label {
                        self.refuse(call, label, begun, fault.reason(), &text);
                    }
                }
            }
            return true;
        }
        let Some(in_flight) = self.in_flight.remove(&call) else { return false };
        let Some(label) = in_flight.label.clone() else { return false };
        match body {
            ReplyBody::Loaded(_) | ReplyBody::Turn(_) => {}
            ReplyBody::Fault(fault) => {
                let bytes = match fault {
                    UpstreamFault::TooLarge { bytes, .. } => Some(bytes),
                    _ => None,
                };
                let text = in_flight.text(&fault);
                self.refuse_with(call, label, in_flight.begun, fault.reason(), &text, bytes);
            }
            ReplyBody::OverMemory(bytes) => {
                self.record(label, CallStatus::Ok, duration, Some(bytes));
                let limit = self.options.limits.memory_bytes;
                let message = format!(
                    "memory limit exceeded: upstream results of {bytes} more bytes wait for the program, the \
                     limit is {limit} bytes"
                );
                self.isolate.resume(call, |_| Err(Fault::new(Reason::MemoryExceeded, message)));
            }
            ReplyBody::Answer(payload) => {
                let mut error = None;
                self.isolate.resume(call, |cx| {
                    let unwrapped = tool_call::unwrap(cx, &payload)?;
                    error = unwrapped.error;
                    Ok(unwrapped.value)
                });
                self.context.release(payload.held_bytes());
                let status = match error {
                    None => CallStatus::Ok,
                    Some((reason, error)) => CallStatus::Error { reason, error },
                };
                self.record(label, status, duration, Some(payload.bytes));
            }
        }
        true
    }

    fn refuse(&mut self, call: CallId, label: CallLabel, begun: Instant, reason: CallFault, text: &str) {
        self.refuse_with(call, label, begun, reason, text, None);
    }

    /// Records a world fault and gives it to the program.
    fn refuse_with(
        &mut self,
        call: CallId,
        label: CallLabel,
        begun: Instant,
        reason: CallFault,
        text: &str,
        bytes: Option<u64>,
    ) {
        let error = self.engine.secrets.scrub(text).into_owned();
        self.isolate.resume(call, |cx| tool_call::world_fault(cx, reason, &error));
        self.record(label, CallStatus::Error { reason, error }, begun.elapsed(), bytes);
    }

    /// Enters an ended call into the ledger, and tells whoever watches.
    fn record(&mut self, label: CallLabel, status: CallStatus, duration: Duration, bytes: Option<u64>) {
        self.context.record(label, status, duration, bytes);
        if let Some(recipient) = &mut self.recipient {
            recipient.call_ended();
        }
    }

    /// The program waits for upstreams.
    pub(crate) fn suspended(&mut self) {
        if let Some(recipient) = &mut self.recipient {
            recipient.suspended(self.isolate.live_bytes() + self.context.held_bytes());
        }
    }

    /// The program can run again.
    pub(crate) fn resumed(&mut self) {
        if let Some(recipient) = &mut self.recipient {
            recipient.resumed();
        }
    }

    /// Cancels the calls of branches that ended before their calls did.
    fn drop_cancelled_calls(&mut self) {
        for call in self.isolate.cancelled_calls() {
            if let Some(in_flight) = self.in_flight.remove(&call) {
                self.cancel(in_flight);
            }
        }
    }

    fn cancel(&self, in_flight: InFlight) {
        in_flight.task.abort();
        if let Some(label) = in_flight.label {
            self.context.record_cancelled(label, in_flight.begun.elapsed());
        }
    }

    fn fail(&mut self, fault: &Fault) {
        let mut failure = rendering::fault(fault, &self.source, &self.options);
        if fault.reason == Reason::Timeout && self.in_flight.values().any(|call| call.label.is_some()) {
            let calls = self.calls_in_flight();
            failure.reports.iter_mut().for_each(|report| report.hints.insert(0, calls.clone()));
        }
        self.finish(Err(failure));
    }

    fn calls_in_flight(&self) -> String {
        const NAMED: usize = 3;
        let mut names: Vec<String> = self
            .in_flight
            .values()
            .filter_map(|call| Some((call.label.as_ref()?, call.begun.elapsed().as_millis())))
            .map(|(label, millis)| format!("{}/{} ({millis} ms)", label.server, label.tool))
            .collect();
        names.sort();
        let count = names.len();
        names.truncate(NAMED);
        let more = if count > NAMED { ", …" } else { "" };
        format!("Upstream calls still in flight: {count}: {}{more}", names.join(", "))
    }

    /// Ends the program and gives its caller the outcome.
    pub(crate) fn finish(&mut self, result: Result<crate::run::outcome::Answer, Failure>) {
        let mut open: Vec<InFlight> = self.in_flight.drain().map(|(_, call)| call).collect();
        open.sort_by_key(|call| call.begun);
        for call in open {
            self.cancel(call);
        }
        let outcome = Outcome {
            result,
            prints: self.isolate.prints(),
            upstream_calls: self.context.take_ledger(),
            notes: self.context.take_notes(),
            usage: Usage {
                fuel: self.isolate.fuel_used(),
                peak_bytes: self.isolate.peak_bytes(),
                duration: self.context.elapsed(),
                upstream_calls: self.context.calls_made(),
            },
        };
        self.program.set_tiny(inline::was_tiny(&outcome, &self.options, self.host_calls));
        if let Some(recipient) = self.recipient.take() {
            recipient.send(outcome);
        }
    }

    /// Logical bytes alive.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.isolate.live_bytes()
    }

    /// Frees the program; logical bytes left on its account are a defect of the language core.
    pub(crate) fn close(self) {
        let leaked = self.isolate.close();
        if leaked != 0 {
            tracing::error!(
                leaked,
                source = &*self.options.source_name,
                "a program left bytes on its account"
            );
        }
    }

    /// Ends the program after a defect of this implementation; the isolate is not touched again.
    pub(crate) fn abandon(&mut self, message: &str) {
        for call in std::mem::take(&mut self.in_flight).into_values() {
            self.cancel(call);
        }
        if let Some(recipient) = self.recipient.take() {
            let failure = rendering::defect(message);
            recipient.send(rendering::without_isolate(failure, &self.context));
        }
    }
}

/// A call, and what comes back of it.
async fn send(upstream: Arc<dyn Upstream>, request: CallRequest, context: Arc<RunAccount>) -> ReplyBody {
    let result = match upstream.call(request).await {
        Ok(result) => result,
        Err(fault) => return ReplyBody::Fault(fault),
    };
    let payload = Payload::read(result).await;
    match context.hold(payload.held_bytes()) {
        true => ReplyBody::Answer(payload),
        false => ReplyBody::OverMemory(payload.bytes),
    }
}

/// The isolate that a run's options describe.
pub(crate) fn isolate_options(options: &RunOptions, interrupt: Interrupt) -> IsolateOptions {
    let limits = &options.limits;
    IsolateOptions {
        memory_bytes: limits.memory_bytes,
        fuel: limits.fuel,
        loop_limit: (limits.loop_limit > 0).then_some(limits.loop_limit),
        parallel_width: usize::try_from(limits.parallel_width).unwrap_or(usize::MAX).max(1),
        print_bytes: usize::try_from(limits.print_bytes).unwrap_or(usize::MAX),
        strict_data: options.strict_data,
        interrupt,
        ..IsolateOptions::default()
    }
}

fn compile(
    engine: &Engine,
    source: &Arc<str>,
    options: &RunOptions,
    interrupt: &Interrupt,
) -> Result<Arc<CachedProgram>, Failure> {
    let limit = usize::try_from(options.limits.max_program_bytes).unwrap_or(usize::MAX);
    let max_symbols = usize::try_from(options.limits.max_symbols).unwrap_or(usize::MAX);
    let defaults = ptc_compiler::CompileOptions::default();
    let is_usual = has_usual_symbols(options);
    if is_usual
        && source.len() <= limit
        && let Some(program) = engine.cache.get(source, &engine.catalog)
    {
        return Ok(program);
    }
    let servers = engine.server_names();
    let catalog = engine.catalog.snapshot();
    let check = StaticCheck { catalog: &catalog };
    // Without any server a call has nothing to be checked against, and says so when it is made.
    let check = (!servers.is_empty()).then_some(&check as &dyn ToolCatalog);
    let externals = ptc_compiler::Externals { servers: &servers, catalog: check, ..Default::default() };
    let budget = CompileBudget {
        preemption: PREEMPTION,
        ..CompileBudget::for_memory(options.limits.memory_bytes, Some(interrupt.clone()))
    };
    let compile_options =
        ptc_compiler::CompileOptions { max_program_bytes: limit, max_symbols, budget, ..defaults };
    match ptc_compiler::compile(source, &externals, &compile_options) {
        Ok(compiled) => {
            let named = compiled.servers.named.iter().map(String::as_str);
            let checked = CheckedLists::of(&catalog, named);
            let program = CachedProgram::new(compiled.program, checked);
            if is_usual {
                engine.cache.insert(source.clone(), program.clone());
            }
            Ok(program)
        }
        Err(rejection) => {
            let is_stopped = rejection.first().is_some_and(|error| error.reason == Reason::CompileTimeout);
            Err(match interrupt.get() {
                Some(InterruptKind::Deadline) if is_stopped => {
                    rendering::compile_timeout(&rejection, source, options)
                }
                _ => rendering::rejection(&rejection, source),
            })
        }
    }
}

/// A call as the ledger shows it.
pub(crate) fn label(call: &ParsedCall, effect: crate::run::outcome::Effect) -> CallLabel {
    CallLabel { server: call.server.clone(), tool: call.tool.clone(), effect }
}
