//! Method dispatch. It does no I/O and knows no transport: a message goes in, an [`Action`] comes out,
//! and a transport that was told to run a program hands the outcome back to [`Handler::finish`].

use super::frame::{Id, Message};
use super::log_level::LogLevel;
use super::notify::{self, ProgressToken};
use super::params::Params;
use super::plain::PlainCall;
use super::reply::{self, Reply, RpcError};
use super::surface::{CurrentTools, Surface};
use super::version::{Era, Version};
use crate::tool::arguments::{self, EvalCall};
use crate::tool::caps::Profile;
use crate::tool::profile::{self, ToolResult};
use crate::tool::record::{Record, run_options};
use crate::tool::schema::Schema;
use crate::tool::{EdgeReason, LISP_EVAL};
use ptc_runtime::Now;
use ptc_runtime::options::RunOptions;
use ptc_runtime::outcome::Outcome;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

/// Every method we know in either era; parameters of others are not looked at.
const METHODS: [&str; 8] = [
    "tools/call",
    "tools/list",
    "server/discover",
    "subscriptions/listen",
    "initialize",
    "ping",
    "logging/setLevel",
    "shutdown",
];

const SERVER_NAME: &str = "ptc_lisp";

/// What a transport has to do next.
#[derive(Debug)]
pub enum Action {
    /// Nothing.
    None,
    /// Send this.
    Reply(Reply),
    /// Run a program and send what [`Handler::finish`] makes of it.
    Run(Box<Call>),
    /// Acknowledge the subscription, keep it, and tell it of changes until it is cancelled or the
    /// connection ends.
    Listen(Subscription),
    /// Stop working on this request, without an answer.
    Cancel(Id),
    /// Stop reading, finish what is in flight, end.
    Exit,
}

/// An accepted call of `lisp_eval`.
#[derive(Debug)]
pub struct Call {
    /// How to answer.
    pub ticket: Ticket,
    /// Source text.
    pub program: String,
    /// For the runtime.
    pub options: RunOptions,
    /// The client wishes to hear of progress.
    pub progress: Option<ProgressToken>,
}

/// What is needed to answer a call.
#[derive(Clone, Debug)]
pub struct Ticket {
    /// Id of the request.
    pub id: Id,
    era: Era,
    schema: Option<Schema>,
    log: Option<LogLevel>,
}

/// An open `subscriptions/listen`.
#[derive(Clone, Debug)]
pub struct Subscription {
    /// Id of the request.
    pub id: Id,
    /// Wants to hear of changes of the tool list, and can.
    pub tools_list_changed: bool,
}

/// State of one connection; of the handshake era only, the other one has none.
#[derive(Debug, Default)]
pub struct Session {
    draining: bool,
    log: Option<LogLevel>,
    /// The client has finished its handshake, so it may be sent notifications.
    initialized: bool,
}

impl Session {
    /// True when the client may be told of changes without having subscribed.
    pub fn is_initialized(&self) -> bool {
        self.initialized
    }
}

/// The server side of MCP.
#[derive(Debug)]
pub struct Handler {
    surface: Surface,
    server_info: Value,
    result_meta: Box<RawValue>,
    tools: CurrentTools,
    /// Options of a call without context and schema, when nobody reads a log of it.
    plain: RunOptions,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallResult<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
    content: [Text<'a>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<&'a Value>,
    is_error: bool,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct Text<'a> {
    r#type: &'static str,
    text: &'a str,
}

impl Handler {
    /// A handler for this surface.
    pub fn new(surface: Surface) -> serde_json::Result<Handler> {
        let server_info = json!({
            "name": SERVER_NAME, "title": "PTC-Lisp", "version": env!("CARGO_PKG_VERSION"),
        });
        let result_meta = to_raw_value(&json!({ "io.modelcontextprotocol/serverInfo": server_info }))?;
        let tools = CurrentTools::new(&surface, &result_meta)?;
        let mut plain = RunOptions {
            strict_data: true,
            limits: surface.limits,
            timed: surface.profile == Profile::Debug,
            ..RunOptions::default()
        };
        run_options(surface.profile, None, &mut plain);
        Ok(Handler { surface, server_info, result_meta, tools, plain })
    }

    /// Options of a plain call. `None`: [`Handler::handle`] has something to say about it.
    pub fn plain_options(&self, call: &PlainCall<'_>, session: &Session) -> Option<&RunOptions> {
        // What the client logs at belongs to the handshake era, but it is easier to say of both.
        let usual = !session.draining && session.log.is_none();
        let fits = call.program.len() as u64 <= self.surface.limits.max_program_bytes;
        (usual && fits && !call.program.trim_ascii_start().is_empty()).then_some(&self.plain)
    }

    /// True when an answer is shown as its text alone, so that [`Handler::finish_plain`] needs no more of it.
    pub fn shows_text_alone(&self) -> bool {
        self.surface.profile == Profile::Slim
    }

    /// Writes the answer to a plain call whose program has ended.
    pub fn finish_plain(&self, call: &PlainCall<'_>, ended: Now<'_>, out: &mut Vec<u8>) {
        let outcome = match ended {
            Now::Text(text) => {
                let meta = (call.era == Era::Stateless).then(|| self.result_meta.get());
                return reply::text_result(call.id(), text, meta, out);
            }
            Now::Outcome(outcome) => outcome,
        };
        let ticket = Ticket { id: call.to_id(), era: call.era, schema: None, log: None };
        out.extend_from_slice(self.finish(&ticket, *outcome).as_bytes());
    }

    /// Replaces the entries of `tools/list`; false when they are the same as before.
    ///
    /// # Errors
    /// Entries that are no JSON.
    pub fn replace_tools(&self, tools: &[Value]) -> serde_json::Result<bool> {
        self.tools.replace(tools, &self.result_meta)
    }

    /// Reads a message. Everything but a program's run is answered at once.
    pub fn handle(&self, message: Message<'_>, session: &mut Session) -> Action {
        match message {
            Message::Request { id, method, params } => match self.request(&id, &method, params, session) {
                Ok(action) => action,
                Err(error) => Action::Reply(Reply::error(Some(&id), &error)),
            },
            Message::Notification { method, params } => notification(&method, params, session),
            Message::Response => Action::None,
        }
    }

    /// The answer to a call whose program has ended, and the log messages that its client wished for.
    pub fn finish(&self, ticket: &Ticket, outcome: Outcome) -> Reply {
        let messages = ticket.log.map(|level| notify::log_of_run(level, &outcome)).unwrap_or_default();
        let answer = self.answer(ticket, &Record::of(outcome, ticket.schema.as_ref()));
        match messages.into_iter().reduce(|all, next| all.then(&next)) {
            Some(messages) => messages.then(&answer),
            None => answer,
        }
    }

    /// The answer to a call that was not started, because `in_flight` others are.
    pub fn busy(&self, ticket: &Ticket, in_flight: usize) -> Reply {
        let message = format!("server busy: {in_flight} concurrent calls in flight; retry the same call");
        self.answer(ticket, &Record::refused(EdgeReason::Busy, message))
    }

    fn request(
        &self,
        id: &Id,
        method: &str,
        raw: Option<&RawValue>,
        session: &mut Session,
    ) -> Result<Action, RpcError> {
        if !METHODS.contains(&method) {
            return Err(RpcError::method_not_found());
        }
        let params = Params::read(raw)?;
        let era = Era::of(&params)?;
        let result = match (method, era) {
            ("tools/call", era) => return self.call(id, &params, era, session),
            ("tools/list", era) => {
                // The list has one page, so nobody can have a cursor from us.
                if params.cursor.is_some_and(|cursor| cursor.get() != "null") {
                    return Err(RpcError::invalid_params("unknown cursor"));
                }
                let lists = self.tools.get();
                return Ok(Action::Reply(match era {
                    Era::Handshake => Reply::result(id, &lists.handshake),
                    Era::Stateless => Reply::result(id, &lists.stateless),
                }));
            }
            ("subscriptions/listen", Era::Stateless) => {
                let wanted = params.notifications.unwrap_or_default();
                return Ok(Action::Listen(Subscription {
                    id: id.clone(),
                    tools_list_changed: wanted.tools_list_changed && self.surface.changes,
                }));
            }
            ("server/discover", Era::Stateless) => self.discover(),
            // The version is required there, and it is what tells the eras apart.
            ("server/discover", Era::Handshake) => {
                let key = super::version::META_VERSION;
                return Err(RpcError::invalid_params(&format!("_meta must have \"{key}\"")));
            }
            ("initialize", Era::Handshake) => self.initialize(&params),
            ("ping", Era::Handshake) => json!({}),
            ("logging/setLevel", Era::Handshake) => {
                session.log = Some(log_level(params.level.as_deref().unwrap_or_default())?);
                json!({})
            }
            ("shutdown", Era::Handshake) => {
                session.draining = true;
                Value::Null
            }
            _ => return Err(RpcError::method_not_found()),
        };
        Ok(Action::Reply(Reply::result(id, &result)))
    }

    fn initialize(&self, params: &Params<'_>) -> Value {
        let requested: Option<String> =
            params.protocol_version.and_then(|raw| serde_json::from_str(raw.get()).ok());
        json!({
            "protocolVersion": Version::negotiate(requested.as_deref()).name(),
            "serverInfo": self.server_info,
            "capabilities": self.capabilities(),
            "instructions": self.surface.instructions,
        })
    }

    fn capabilities(&self) -> Value {
        json!({ "tools": { "listChanged": self.surface.changes }, "logging": {} })
    }

    fn discover(&self) -> Value {
        let versions: Vec<&str> = Version::STATELESS.iter().map(|version| version.name()).collect();
        json!({
            "resultType": "complete",
            "supportedVersions": versions,
            "capabilities": self.capabilities(),
            "instructions": self.surface.instructions,
            "ttlMs": self.tools.ttl_ms(), "cacheScope": "public",
            "_meta": self.result_meta,
        })
    }

    fn call(&self, id: &Id, params: &Params<'_>, era: Era, session: &Session) -> Result<Action, RpcError> {
        let meta = params.meta.as_ref();
        let log = match (era, meta.and_then(|meta| meta.log_level.as_deref())) {
            (Era::Handshake, _) => session.log,
            (Era::Stateless, level) => level.map(log_level).transpose()?,
        };
        let mut ticket = Ticket { id: id.clone(), era, schema: None, log };
        let refused = |reason, message: String| {
            Ok(Action::Reply(self.answer(&ticket, &Record::refused(reason, message))))
        };
        let name = params.name.as_deref().unwrap_or_default();
        if name != LISP_EVAL {
            return refused(EdgeReason::UnknownTool, format!("unknown tool: {name}"));
        }
        if session.draining {
            let message = "server is draining after shutdown; new tool calls are rejected";
            return refused(EdgeReason::ShuttingDown, message.into());
        }
        let EvalCall { program, context, schema } =
            match arguments::read(params.arguments, &self.surface.limits) {
                Ok(call) => call,
                Err(message) => return refused(EdgeReason::ArgsError, message),
            };
        let mut options = RunOptions { context, timed: true, ..self.plain.clone() };
        run_options(self.surface.profile, schema.as_ref(), &mut options);
        ticket.schema = schema;
        let progress = meta.and_then(|meta| meta.progress_token).and_then(ProgressToken::from_raw);
        Ok(Action::Run(Box::new(Call { ticket, program, options, progress })))
    }

    fn answer(&self, ticket: &Ticket, record: &Record) -> Reply {
        let ToolResult { is_error, text, structured } = profile::apply(self.surface.profile, record);
        let stateless = ticket.era == Era::Stateless;
        Reply::result(
            &ticket.id,
            &CallResult {
                result_type: stateless.then_some("complete"),
                content: [Text { r#type: "text", text: &text }],
                structured_content: structured.as_ref(),
                is_error,
                meta: stateless.then_some(&*self.result_meta),
            },
        )
    }
}

fn notification(method: &str, raw: Option<&RawValue>, session: &mut Session) -> Action {
    match method {
        "notifications/cancelled" => {
            let id = Params::read(raw).ok().and_then(|params| params.request_id).and_then(Id::from_raw);
            id.map_or(Action::None, Action::Cancel)
        }
        "notifications/initialized" => {
            session.initialized = true;
            Action::None
        }
        "exit" => Action::Exit,
        _ => Action::None,
    }
}

fn log_level(name: &str) -> Result<LogLevel, RpcError> {
    LogLevel::from_name(name).ok_or_else(|| RpcError::invalid_params("unknown log level"))
}
