//! Dispatches MCP methods: answers a message at once, or returns the job that produces the answer.
//!
//! It does no I/O and knows no transport and no tool. A message goes in, answers go to an outbox, and an
//! [`Action`] comes out. A caller that runs the job gives its answer to [`Handler::finish`].

mod long_calls;
mod requested;
mod subscription;

use super::connection_state::{ConnectionState, offered};
use super::detached::{self, AwaitedTask, Detach, DetachedLimits, DetachedRuns, HandleKind, TaskReply};
use super::input_required::{CallKey, ResumedCall};
use super::offerings::Offerings;
use super::outbox::{Outbox, Route};
use super::result_writer::ResultWriter;
use super::tool_lists::ToolLists;
use crate::answer::caps::Profile;
use crate::answer::{RefusalReason, refused};
use crate::observe::{CallRecorder, OpenRecord};
use crate::protocol::log_level::LogLevel;
use crate::protocol::notify::{self, ProgressToken};
use crate::protocol::params::Params;
use crate::protocol::version::META_VERSION;
use crate::protocol::{Era, Id, Message, Raw, RpcError, ServerMessage, Version};
use crate::tools::session::SessionTable;
use crate::tools::{Begun, CallContext, Facts, Job, Registry, Responder, SessionTag, Tool, ToolAnswer};
use ptc_calls::watcher::RunView;
use ptc_upstream::{ClientFeatures, Offered};
use requested::RequestedCall;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
pub use subscription::Subscription;

/// Methods of either era, apart from `tools/call`, that are handled here. Parameters of any other method are passed to
/// the offerings unread.
const METHODS: [&str; 12] = [
    "tools/list",
    "server/discover",
    "subscriptions/listen",
    "initialize",
    "ping",
    "logging/setLevel",
    "shutdown",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
    "tasks/result",
    "tasks/list",
];

const SERVER_NAME: &str = "ptc";

/// What a connection has to do next.
pub enum Action {
    /// Nothing: all answers have been sent.
    None,
    /// Run a job, and send the messages of [`Handler::finish`].
    Run(Box<AcceptedCall>),
    /// Go on with a run after its client was asked, and send its answer.
    Resume(Box<ResumedCall>),
    /// Wait for the end of a task, and send its result.
    Await(Box<AwaitedTask>),
    /// Acknowledge the subscription, store it, and notify it of changes until it is cancelled or the connection
    /// ends.
    Listen(Subscription),
    /// Stop working on this request, without an answer.
    Cancel(Id<'static>),
    /// Stop reading, finish what is in flight, end.
    Exit,
}

/// An accepted call that runs as a job.
pub struct AcceptedCall {
    /// How to answer.
    pub ticket: Ticket,
    /// The job.
    pub job: Job,
    /// Set if the client wants progress notifications.
    pub progress: Option<ProgressToken>,
    /// The features that the client declares for upstream requests.
    pub offered: Offered,
    /// Identity of the call, if its client is asked in responses.
    pub(super) key: Option<CallKey>,
    /// Whether and when it goes on without its request.
    pub(super) detach: Option<Detach>,
}

/// What is needed to answer a call.
pub struct Ticket {
    /// Id of the request.
    pub id: Id<'static>,
    era: Era,
    record: Option<OpenRecord>,
}

impl Ticket {
    /// A ticket for a request that was not handled.
    pub fn without_record(id: &Id<'_>, era: Era) -> Ticket {
        Ticket { id: id.clone().into_owned(), era, record: None }
    }

    /// Lets the page look at the run of the call.
    pub(super) fn watch(&self, run: RunView) {
        if let Some(record) = &self.record {
            record.watch(run);
        }
    }

    /// A ticket for an additional answer, which is not recorded: only the answer of the call itself is.
    pub fn unrecorded(&self) -> Ticket {
        Ticket { id: self.id.clone(), era: self.era, record: None }
    }
}

/// What the server offers.
pub struct Surface {
    /// The tools.
    pub registry: Registry,
    /// What their definitions depend on.
    pub facts: Facts,
    /// The facts may change while the server runs; clients are notified when the tools do.
    pub changes: bool,
    /// What the server does, for `initialize` and `server/discover`, which add the catalog where descriptions of tools
    /// have no room for it.
    pub instructions: String,
    /// The facts are complete enough for `tools/list` and calls. Otherwise those wait for
    /// [`Handler::describe`], while everything else is answered.
    pub ready: bool,
    /// Records calls.
    pub recorder: Option<Arc<CallRecorder>>,
}

/// The server side of MCP. One serves all connections of a process.
pub struct Handler {
    registry: Registry,
    profile: Profile,
    changes: bool,
    server_info: Value,
    result_meta: Box<RawValue>,
    results: ResultWriter,
    tools: ToolLists,
    ready: AtomicBool,
    recorder: Option<Arc<CallRecorder>>,
    /// The features of the process's one client, which upstream requests are forwarded to.
    pub client: ClientFeatures,
    /// What it offers in addition to tools.
    pub offerings: Option<Box<dyn Offerings>>,
    /// The sessions of its clients, for the page.
    pub sessions: Option<Arc<SessionTable>>,
    /// Calls that go on without their requests.
    pub detached: Arc<DetachedRuns>,
    /// Some tool has tasks.
    has_tasks: bool,
}

impl Handler {
    /// A handler for this surface.
    ///
    /// # Errors
    /// A definition that is not JSON.
    pub fn new(surface: Surface) -> serde_json::Result<Handler> {
        let Surface { registry, facts, changes, instructions, ready, recorder } = surface;
        let server_info = json!({
            "name": SERVER_NAME, "title": "PTC-Lisp", "version": env!("CARGO_PKG_VERSION"),
        });
        let result_meta = to_raw_value(&json!({ "io.modelcontextprotocol/serverInfo": server_info }))?;
        let has_tasks = registry.has_tasks();
        let tools = ToolLists::new(&registry, &facts, instructions, changes, &result_meta)?;
        Ok(Handler {
            registry,
            profile: facts.profile,
            changes,
            server_info,
            results: ResultWriter::new(&result_meta),
            result_meta,
            tools,
            ready: AtomicBool::new(ready),
            recorder,
            client: ClientFeatures::default(),
            offerings: None,
            sessions: None,
            detached: DetachedRuns::new(DetachedLimits::default(), None),
            has_tasks,
        })
    }

    /// Rebuilds `tools/list` from new facts. Returns false when no client can have seen a different list. The
    /// response profile stays.
    ///
    /// # Errors
    /// A definition that is not JSON.
    pub fn describe(&self, facts: &Facts) -> serde_json::Result<bool> {
        let replaced = self.tools.replace(&self.registry, facts, &self.result_meta);
        let was_ready = self.ready.swap(true, Ordering::Relaxed);
        replaced.map(|is_new| is_new && was_ready)
    }

    /// True for a request that has to wait for [`Handler::describe`].
    pub fn must_wait(&self, message: &Message<'_, '_>) -> bool {
        !self.is_ready() && matches!(message, Message::Request { method, .. } if method.starts_with("tools/"))
    }

    /// False while some requests have to wait.
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Relaxed)
    }

    /// Handles a message. Everything but a job is answered at once.
    pub fn handle(
        &self,
        message: Message<'_, '_>,
        state: &mut ConnectionState,
        out: &mut impl Outbox,
    ) -> Action {
        let (id, method, params) = match message {
            Message::Request { id, method, params } => (id, method, params),
            Message::Notification { method, params } => return notification(method, params, state),
            Message::Response { .. } => return Action::None,
        };
        let handled = match method {
            "tools/call" => self.call(&id, params, state, out),
            method => self.request(&id, method, params, state, out),
        };
        match handled {
            Ok(action) => action,
            Err(error) => {
                out.refuse(&id, &error);
                Action::None
            }
        }
    }

    /// Writes the messages that answer a call: log notifications, and last the answer.
    pub fn finish(&self, ticket: &mut Ticket, answer: &ToolAnswer<'_>) -> Vec<ServerMessage> {
        let mut text = Vec::with_capacity(256);
        self.results.write(&ticket.id, ticket.era, answer, &mut text);
        let mut messages: Vec<ServerMessage> = answer.log.iter().map(notify::log).collect();
        messages.push(ServerMessage::from_text(text));
        if let Some(record) = ticket.record.take() {
            record.answered(answer);
        }
        messages
    }

    /// Sends the answer to a call.
    fn answer(&self, id: &Id<'_>, era: Era, answer: &ToolAnswer<'_>, out: &mut impl Outbox) {
        for message in &answer.log {
            out.send(Route::Request(id), notify::log(message));
        }
        out.write(Route::Request(id), |out| self.results.write(id, era, answer, out));
    }

    /// Refuses a call that was not started, because `in_flight` others are.
    pub fn refuse_busy(&self, ticket: Ticket, in_flight: usize, out: &mut impl Outbox) {
        let message = format!("server busy: {in_flight} concurrent calls in flight; retry the same call");
        self.refuse(ticket, RefusalReason::Busy, message, out);
    }

    /// Answers a call with a refusal.
    pub fn refuse(
        &self,
        ticket: Ticket,
        reason: RefusalReason,
        message: impl Into<String>,
        out: &mut impl Outbox,
    ) {
        let answer = refused(self.profile, reason, message);
        self.answer(&ticket.id, ticket.era, &answer, out);
        if let Some(record) = ticket.record {
            record.answered(&answer);
        }
    }

    /// Answers a call with a protocol error.
    pub(super) fn reject(&self, ticket: Ticket, error: &RpcError, out: &mut impl Outbox) {
        out.refuse(&ticket.id, error);
        if let Some(record) = ticket.record {
            record.answered(&refused(self.profile, RefusalReason::ArgsError, &*error.message));
        }
    }

    fn request(
        &self,
        id: &Id<'_>,
        method: &str,
        params: Result<&Params<'_>, Box<RpcError>>,
        state: &mut ConnectionState,
        out: &mut impl Outbox,
    ) -> Result<Action, RpcError> {
        if !METHODS.contains(&method) {
            return self.offered(id, method, params, out);
        }
        let params = params.map_err(|error| *error)?;
        let era = Era::from_params(params)?;
        let result = match (method, era) {
            ("tools/list", era) => {
                // The list has one page, so no valid cursor exists.
                if params.cursor.is_some_and(|cursor| cursor.get() != "null") {
                    return Err(RpcError::invalid_params("unknown cursor"));
                }
                out.send(Route::Request(id), ServerMessage::result(id, self.tools.get().for_era(era)));
                return Ok(Action::None);
            }
            ("subscriptions/listen", Era::Stateless) => {
                return self.subscription(id, params, state).map(Action::Listen);
            }
            (method, era) if method.starts_with("tasks/") && self.has_tasks => {
                let reply = match era {
                    Era::Stateless => {
                        let meta = json!(self.result_meta);
                        self.detached.extension_method(method, params, state.owner, &meta)
                    }
                    Era::Handshake => {
                        self.detached.requested_method(method, params, (state.owner, state.version))
                    }
                };
                match reply? {
                    TaskReply::Result(result) => result,
                    TaskReply::Await(run, reply) => {
                        return Ok(Action::Await(Box::new(AwaitedTask::new(id, run, reply))));
                    }
                }
            }
            ("server/discover", Era::Stateless) => self.discover(),
            // The version is required there, and it is what tells the eras apart.
            ("server/discover", Era::Handshake) => {
                return Err(RpcError::invalid_params(&format!("_meta must have \"{META_VERSION}\"")));
            }
            ("initialize", Era::Handshake) => {
                state.offered = Some(offered(params.capabilities.map(Raw::get).unwrap_or_default()));
                let version = requested_version(params);
                state.version = Some(version);
                self.initialize(version)
            }
            ("ping", Era::Handshake) => json!({}),
            ("logging/setLevel", Era::Handshake) => {
                state.log = Some(log_level(params.level.as_deref().unwrap_or_default())?);
                json!({})
            }
            ("shutdown", Era::Handshake) => {
                state.draining = true;
                Value::Null
            }
            _ => return Err(RpcError::method_not_found()),
        };
        out.send(Route::Request(id), ServerMessage::result(id, &result));
        Ok(Action::None)
    }

    /// Answers a method of the offerings.
    fn offered(
        &self,
        id: &Id<'_>,
        method: &str,
        params: Result<&Params<'_>, Box<RpcError>>,
        out: &mut impl Outbox,
    ) -> Result<Action, RpcError> {
        let offerings = self.offerings.as_deref().ok_or_else(RpcError::method_not_found)?;
        let era = params.as_ref().map_or(Ok(Era::Handshake), |params| Era::from_params(params))?;
        if !offerings.has(method, era) {
            return Err(RpcError::method_not_found());
        }
        let mut result = offerings.answer(method, params.map_err(|error| *error)?, era)?;
        if era == Era::Stateless {
            result.entry("resultType").or_insert_with(|| "complete".into());
            result.insert("_meta".into(), json!(self.result_meta));
        }
        out.send(Route::Request(id), ServerMessage::result(id, &result));
        Ok(Action::None)
    }

    fn initialize(&self, version: Version) -> Value {
        json!({
            "protocolVersion": version.name(),
            "serverInfo": self.server_info,
            "capabilities": self.capabilities(Some(version)),
            "instructions": self.tools.get().instructions,
        })
    }

    /// The capabilities, for a version with a handshake or for the stateless one.
    fn capabilities(&self, version: Option<Version>) -> Value {
        let mut all = json!({ "tools": { "listChanged": self.changes }, "logging": {} });
        match version {
            _ if !self.has_tasks => {}
            None => all["extensions"] = detached::extension()["extensions"].take(),
            Some(Version::V2025November) => {
                all["tasks"] = detached::capability(self.detached.limits.knows_clients);
            }
            Some(_) => {}
        }
        if let (Some(offerings), Some(all)) = (&self.offerings, all.as_object_mut()) {
            all.extend(offerings.capabilities());
        }
        all
    }

    fn discover(&self) -> Value {
        let lists = self.tools.get();
        json!({
            "resultType": "complete",
            "supportedVersions": Version::names(),
            "capabilities": self.capabilities(None),
            "instructions": lists.instructions,
            "ttlMs": self.tools.ttl_ms, "cacheScope": lists.cache_scope,
            "_meta": self.result_meta,
        })
    }

    /// Begins a call of a tool, or goes on with a run after its client has answered.
    fn call(
        &self,
        id: &Id<'_>,
        params: Result<&Params<'_>, Box<RpcError>>,
        connection: &ConnectionState,
        out: &mut impl Outbox,
    ) -> Result<Action, RpcError> {
        let params = params.map_err(|error| *error)?;
        if params.name.is_none() {
            return Err(RpcError::invalid_params("name is missing"));
        }
        let call = &RequestedCall { id, params, era: Era::from_params(params)?, connection };
        let log = call.log_level()?;
        let tool = self.registry.find(call.tool());
        let detach = self.detach(call, tool)?;
        let mut record = self.record(call, tool);
        if let Some(state) = call.request_state(tool) {
            return call.resumed(state, call.ticket(record), detach).map(Action::Resume);
        }
        // A task that is over at once is a task all the same, if the client has asked for one.
        let (is_requested, mut end) =
            (matches!(&detach, Some(Detach::AtOnce(handle)) if handle.kind == HandleKind::Requested), None);
        let context = self.context(call, log, record.as_ref());
        let mut write = |answer: &ToolAnswer<'_>| {
            match is_requested {
                true => end = Some(detached::End::of(answer)),
                false => self.answer(id, call.era, answer, out),
            }
            if let Some(record) = record.take() {
                record.answered(answer);
            }
        };
        let reply = Responder::new(&mut write);
        let begun = match tool {
            None => reply.with(&self.unknown_tool(call.tool())),
            Some(_) if connection.draining => reply.with(&self.shutting_down()),
            Some(tool) => tool.begin(params, &context, reply),
        };
        match (begun, detach) {
            (Begun::Answered(_), Some(Detach::AtOnce(handle))) if end.is_some() => {
                let run = self.detached.ended_at_once(connection.owner, handle, end)?;
                self.handed_over(&call.ticket(None), &run, out);
                Ok(Action::None)
            }
            (Begun::Answered(_), _) => Ok(Action::None),
            (Begun::Refused(error), _) => Err(*error),
            (Begun::Run(job), detach) => {
                let (progress, offered) = (call.progress(), call.offered());
                let asks_in_responses = call.era == Era::Stateless && offered != Offered::default();
                let key = asks_in_responses.then(|| call.key());
                let ticket = call.ticket(record);
                Ok(Action::Run(Box::new(AcceptedCall { ticket, job, progress, offered, key, detach })))
            }
        }
    }

    /// Opens the record of a call, if calls of its tool are recorded.
    fn record(&self, call: &RequestedCall<'_>, tool: Option<&dyn Tool>) -> Option<OpenRecord> {
        let recorder = self.recorder.as_ref().filter(|_| tool.is_none_or(|tool| tool.is_recorded()))?;
        let (owner, arguments) = (call.connection.owner.0, call.params.arguments);
        let version = call.version().map(Version::name);
        Some(recorder.begin(call.id, call.tool(), owner, arguments, version, call.trace()))
    }

    /// What a tool gets to know of a call, apart from its parameters.
    fn context(
        &self,
        call: &RequestedCall<'_>,
        log: Option<LogLevel>,
        record: Option<&OpenRecord>,
    ) -> CallContext {
        let connection = call.connection;
        CallContext {
            owner: connection.owner,
            session: connection.session,
            profile: self.profile,
            era: call.era,
            log,
            frame_bytes: self.results.frame_bytes(call.id),
            logs_turns: self.recorder.as_ref().is_some_and(|recorder| recorder.logs_turns),
            trace: record.map_or_else(|| call.trace(), |record| record.trace().cloned()),
        }
    }

    /// Ends a client's session in all tools.
    pub fn session_ended(&self, session: SessionTag) {
        self.registry.session_ended(session);
    }

    fn unknown_tool(&self, name: &str) -> ToolAnswer<'static> {
        let known: Vec<&str> = self.registry.names().collect();
        let message = format!("unknown tool: {name}; there is: {}", known.join(", "));
        refused(self.profile, RefusalReason::UnknownTool, message)
    }

    fn shutting_down(&self) -> ToolAnswer<'static> {
        let message = "server is draining after shutdown; new tool calls are rejected";
        refused(self.profile, RefusalReason::ShuttingDown, message)
    }
}

/// The protocol version for everything after `initialize`.
fn requested_version(params: &Params<'_>) -> Version {
    let requested: Option<String> =
        params.protocol_version.and_then(|raw| serde_json::from_str(raw.get()).ok());
    Version::negotiate(requested.as_deref())
}

fn notification(
    method: &str,
    params: Result<&Params<'_>, Box<RpcError>>,
    state: &mut ConnectionState,
) -> Action {
    match method {
        "notifications/cancelled" => {
            let id = params.ok().and_then(|params| params.request_id).and_then(Id::from_raw);
            id.map_or(Action::None, |id| Action::Cancel(id.into_owned()))
        }
        "notifications/initialized" => {
            state.initialized = true;
            Action::None
        }
        "exit" => Action::Exit,
        _ => Action::None,
    }
}

fn log_level(name: &str) -> Result<LogLevel, RpcError> {
    LogLevel::from_name(name).ok_or_else(|| RpcError::invalid_params("unknown log level"))
}
